/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gate.h
 * @brief How many threads one file may keep inside libcephfs' submission.
 *
 * "Non-blocking" covers the OSD's part only.  Submission itself waits for
 * capabilities, without a timeout: while another client does not give them
 * back, while the MDS fails over, while an append asks for a larger maximum
 * size.  Each request for that file would keep a worker of Ganesha's, until
 * none is left for anybody.
 *
 * So a few threads are let in for a file; the requests of all others are
 * queued, their workers go free, and the threads inside take the queue along
 * as they come out.
 */
#ifndef CASYNC_GATE_H
#define CASYNC_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct casync_op;

/**
 * Threads of one file inside the submission.  libcephfs' client_lock lets one
 * work at a time, so a few are as good as many; Ganesha has 200
 * (RPC_Ioq_ThrdMax).
 */
#define CASYNC_GATE_THREADS 4

/** Embedded in the object. */
struct casync_gate {
	pthread_mutex_t lock; /**< A leaf. */
	unsigned int inside;
	struct casync_op *oldest; /**< Waiting for a thread; oldest first. */
	struct casync_op *newest;
};

void casync_gate_init(struct casync_gate *gate);
void casync_gate_destroy(struct casync_gate *gate);

/**
 * Ask to be let in with an op.
 *
 * @return True: submit it, then call casync_gate_next().  False: it is queued
 *         and no longer the caller's.
 */
bool casync_gate_enter(struct casync_gate *gate, struct casync_op *op);

/**
 * The op to submit next, or NULL: then the caller is out.
 *
 * To be called while the last op is still held: it keeps the gate's object.
 */
struct casync_op *casync_gate_next(struct casync_gate *gate);

#endif /* CASYNC_GATE_H */
