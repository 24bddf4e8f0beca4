/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file finish.h
 * @brief From libcephfs' results to the answer: count, EOF, error.
 *
 * A read's part that comes back short is EOF, or a hole (its object does not
 * exist), or lost a race with truncate: a worker fetches it with the blocking
 * call.
 *
 * One that has all its bytes and ends where the file is known to end asks
 * whether that is still so, which waits for the MDS where another client
 * writes.  Over NFSv4 Ganesha asks by itself (Getattrs_In_Complete_Read).
 * Else a worker does, if one is free; if not, the answer is "not the end" and
 * the client's next READ finds out.
 */
#ifndef CASYNC_FINISH_H
#define CASYNC_FINISH_H

struct casync_op;

/** Finish an op that all results are in for.  On a completion thread, or by
 * the worker that waited for them. */
void casync_finish(struct casync_op *op);

/** End an op, whose outcome is settled, where a temporary fd may be closed. */
void casync_finish_close(struct casync_op *op);

/**
 * Carry out a read that was started, by the blocking call on a worker, and
 * finish it.
 */
void casync_finish_blocking_read(struct casync_op *op);

#endif /* CASYNC_FINISH_H */
