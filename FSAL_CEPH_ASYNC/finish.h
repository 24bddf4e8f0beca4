/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file finish.h
 * @brief From libcephfs' results to the answer: count, EOF, error.
 *
 * A read's part that comes back short is EOF, or a hole (its object does not
 * exist), or lost a race with truncate; only the file's size tells.  What can
 * be decided without asking Ceph is decided on the completion thread; the
 * rest goes to a worker that may block.
 */
#ifndef CASYNC_FINISH_H
#define CASYNC_FINISH_H

struct casync_op;

/** Finish an op that all results are in for.  On a completion thread. */
void casync_finish(struct casync_op *op);

/**
 * Carry out a read that was started, by the blocking call on a worker, and
 * finish it.
 */
void casync_finish_blocking_read(struct casync_op *op);

#endif /* CASYNC_FINISH_H */
