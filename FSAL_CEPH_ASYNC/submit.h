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
 * Not absorbed: a read at EOF of a file with inline data returns 0 and never
 * calls back.  Inline data is off unless somebody turned it on for the file
 * system in spite of its deprecation; see docs/limits.md.
 */
#ifndef CASYNC_SUBMIT_H
#define CASYNC_SUBMIT_H

#include <cephfs/libcephfs.h>

struct casync_op;

/**
 * Hand an op to libcephfs.
 *
 * Blocks only where libcephfs does: for client_lock and in get_caps.  The op
 * must not be touched afterwards: it may be answered and freed already.
 */
void casync_submit(struct casync_op *op);

/** ceph_ll_io_info.callback of every part. */
void casync_submit_callback(struct ceph_ll_io_info *io);

/** Completions of parts that had completed before; always 0 but for bugs. */
uint64_t casync_submit_duplicates(void);

#endif /* CASYNC_SUBMIT_H */
