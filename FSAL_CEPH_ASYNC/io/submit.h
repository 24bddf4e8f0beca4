/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file submit.h
 * @brief The seam: the only caller of ceph_ll_nonblocking_readv_writev().
 *
 * Above: void, and the op is queued for completion exactly once.
 * Below, libcephfs answers each call in one of five ways, all taken here:
 *
 *	1. 0, and the callback comes later, on one of its threads;
 *	2. 0, and the callback has run already, in this thread, with or without
 *	   client_lock held;
 *	3. 0, and the callback carries an error (not mounted, bad Fh, quota);
 *	4. a negative errno, and no callback will come;
 *	5. a positive count, and no callback will come (inline data).
 *
 * The callback may run with client_lock held.  So it stores a result and
 * hands over: it calls nothing of libcephfs, takes no lock, does not log, does
 * not allocate.
 *
 * What libcephfs must not be given, and who sees to it:
 *
 *	zero bytes (a read loses its callback)		rw.c, start()
 *	more than INT_MAX (clamped in silence)		casync_parts_length()
 *	a read over several objects (errors become
 *	zeros)						casync_parts_lay_out()
 *	fsync without syncdataonly (may abort)		parts.c, init_part()
 *	a write to a snapshot (asserts)			rw.c, casync_write2()
 *	a read past the end of the file (no callback
 *	for inline data, else a blocking getattr in
 *	the completion)					rw.c, clamp_to_size()
 *	NULL buffers (it copies from them)		Ganesha allocates them
 *
 * The number of iovecs has no limit: libcephfs puts them into a bufferlist and
 * never into readv().  A client that is unmounted or evicted answers by the
 * callback (3); what was in flight at the time may never be answered, which
 * is why an export drains first (export.c).
 */
#ifndef CASYNC_SUBMIT_H
#define CASYNC_SUBMIT_H

#include <stdbool.h>

struct casync_op;

/**
 * Hand an op to libcephfs.
 *
 * Blocks only where libcephfs does: for client_lock and in get_caps, with at
 * most CASYNC_GATE_THREADS threads for one file.  May submit other ops of the
 * same file on the way.  The op must not be touched afterwards: it may be
 * answered and used again already.
 */
void casync_submit(struct casync_op *op);

/**
 * The same by a worker of Ganesha's, which may wait for the answer (await.h).
 *
 * @return true: the op is answered and the caller's, casync_finish() is due;
 *	   false: it must not be touched.
 */
bool casync_submit_and_await(struct casync_op *op);

/**
 * Have a write, which has to wait for a place in flight, keep its place in the
 * order.  It stays the caller's.
 */
void casync_submit_park(struct casync_op *op);

/** It has got its place: submit it.  On a worker. */
void casync_submit_parked(struct casync_op *op);

/** It has not: it is the caller's to answer. */
void casync_submit_give_up(struct casync_op *op);

/**
 * Submit what the gate has let in (or nothing), and what it lets in then, on
 * a worker: submission may wait for the MDS.
 */
void casync_submit_let_in(struct casync_op *op);

/**
 * Submit an op and its members once more, each by itself: their call was
 * refused (gather.h).  On a worker.
 */
void casync_submit_each_alone(struct casync_op *first);

#endif /* CASYNC_SUBMIT_H */
