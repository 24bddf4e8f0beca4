/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file submit.h
 * @brief The only caller of ceph_ll_nonblocking_readv_writev(), and large READs
 *	  by a blocking call.
 *
 * For the caller the function is void: the op is queued for completion exactly
 * once.  libcephfs answers a call in one of five ways.  All are handled here:
 *
 *	1. 0, and the callback comes later, on a thread of libcephfs;
 *	2. 0, and the callback has already run in this thread, with or without
 *	   client_lock held;
 *	3. 0, and the callback carries an error (not mounted, bad Fh, quota);
 *	4. a negative errno, and no callback comes;
 *	5. a positive count, and no callback comes (inline data).
 *
 * The callback may run with client_lock held.  So it stores a result and hands
 * the op over.  It does not call libcephfs, take a lock, log, or allocate.
 *
 * libcephfs must not get the following requests.  The right column names the
 * code that prevents them:
 *
 *	zero bytes (a read loses its callback)		rw.c
 *	more than INT_MAX (clamped without an error)	casync_parts_length()
 *	a read over several objects (errors become
 *	zeros)						casync_parts_lay_out()
 *	fsync without syncdataonly (may abort)		parts.c
 *	a write to a snapshot (asserts)			rw.c, casync_write2()
 *	a read past the end of the file (no callback
 *	for inline data, else a blocking getattr in
 *	the completion)					rw.c
 *	NULL buffers (it copies from them)		Ganesha allocates them
 *
 * The number of iovecs has no limit: libcephfs puts them into a bufferlist and
 * never into readv().  A client that is unmounted or evicted answers by the
 * callback (3).  A call that was in flight at that time may never be answered.
 * So an export drains its requests first (export.c).
 *
 * READs of a file.  At most CASYNC_LANE_SHARE threads submit them, Ganesha's
 * workers or ours, for the reason that queue.h has for WRITEs.  They are a
 * share of the lane `casync_submit` (lane.h).  Further READs wait beside the
 * lane in the order in which they came, in the state HELD, and keep no thread.
 * They stay in flight and in the guard.  They wait for no WRITE, and no flush
 * waits for them.
 *
 * Large READs by a blocking call: the non-blocking READ copies the caller's
 * empty buffers first, and the data once more, both under libcephfs' lock.
 * ceph_ll_read() copies once, without the lock.  For a MiB that is worth a
 * worker of Ganesha's; what keeps it harmless:
 *
 *	- At most half of the workers that are left for the mount (call.h) do
 *	  so.  READs that find no room are submitted by a thread of ours.  So an
 *	  OSD or an MDS that does not answer keeps those workers, and no more.
 *	- After one that took longer than CASYNC_READ_HERE_MS, the export's
 *	  READs go the usual way for CASYNC_AWAIT_PAUSE_MS.
 *	- At the end of Ganesha the watchdog waits for these workers no longer
 *	  than for others that Ceph keeps.
 */
#ifndef CASYNC_SUBMIT_H
#define CASYNC_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

struct casync_call;
struct casync_op;

/** The smallest READ for which a blocking call pays. */
#define CASYNC_READ_HERE_BYTES (128U << 10)

/** From when on Ceph is slow.  16 READs of 1 MiB in flight take 20 ms where the
 * gateway is the limit. */
#define CASYNC_READ_HERE_MS 200

/**
 * Hand a WRITE to libcephfs, by a worker of Ganesha's that may wait for the
 * answer (complete.h).
 *
 * It blocks only if libcephfs does: for client_lock and in get_caps, with at
 * most CASYNC_QUEUE_THREADS threads for one file.  The worker takes a slot of
 * the mount for it.  It may submit other WRITEs of the same file too.  The
 * caller must not touch the op afterwards: it may already be answered and
 * reused.
 */
void casync_submit_write(struct casync_op *op);

/**
 * Hand a READ to libcephfs, as casync_submit_write() does.  A worker of
 * Ganesha's may also read by a blocking call.
 *
 * @param[in,out] slot  Holds the worker's slot of the mount, or nothing: then
 *			it is taken.  It holds nothing afterwards.  NULL: it is
 *			a thread of ours, which waits for no answer.
 */
void casync_submit_read(struct casync_op *op, struct casync_call *slot);

/**
 * Park a write in the queue: it waits for a place in flight and keeps its place
 * in the order.  The caller still owns it.
 */
void casync_submit_park(struct casync_op *op);

/** A parked write has got its place: submit it.  Runs on a worker. */
void casync_submit_parked(struct casync_op *op);

/** Take a parked write that was refused out of the queue; caller answers. */
void casync_submit_cancel_parked(struct casync_op *op);

/**
 * Submit a WRITE that the queue has let in (NULL: none), and those that it lets
 * in afterwards, or a READ that has its place.  It is done on a worker:
 * submission may wait for the MDS.
 */
void casync_submit_on_lane(struct casync_op *op);

/**
 * Submit an op and its members again, each alone, on a worker: their call was
 * refused (gather.h).
 */
void casync_submit_each_alone(struct casync_op *first);

/** May a READ pass the end of the file, as far as we know now? */
bool casync_submit_is_beyond_the_end(const struct casync_op *op);

/**
 * Second completions of parts, since the plugin was loaded.  All were ignored.
 * More than 0 only after a bug.
 */
uint64_t casync_submit_duplicates(void);

#endif /* CASYNC_SUBMIT_H */
