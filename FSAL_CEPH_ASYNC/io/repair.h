/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file repair.h
 * @brief READs that need a blocking call of libcephfs.
 *
 * A part of a read that comes back short is EOF, or a hole (its object does not
 * exist), or lost a race with truncate: a worker fetches it with the blocking
 * call.
 *
 * One that has all its bytes and ends where the file is known to end asks
 * whether that is still so, which waits for the MDS where another client
 * writes.  Over NFSv4 Ganesha asks by itself (Getattrs_In_Complete_Read).
 * Else a worker does, if one is free; if not, the answer is "not the end" and
 * the client's next READ finds out.
 */
#ifndef CASYNC_REPAIR_H
#define CASYNC_REPAIR_H

struct casync_op;

/** Fetch what the op's parts are short of, on a worker, and end the op. */
void casync_repair(struct casync_op *op);

/**
 * Carry out a read that was started but not submitted, on a worker, and end
 * it.  Its parts have a result of 0.
 */
void casync_repair_whole(struct casync_op *op);

/** All bytes are there: ask whether the read has reached the end of the file,
 * where that may wait, and end the op. */
void casync_repair_end_of_file(struct casync_op *op);

#endif /* CASYNC_REPAIR_H */
