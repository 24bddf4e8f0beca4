/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gate.h
 * @brief What of one file may be inside libcephfs, and what is queued before.
 *
 * Threads.  "Non-blocking" covers the OSD's part only.  Submission itself
 * waits for capabilities, without a timeout: while another client does not
 * give them back, while the MDS fails over, while an append asks for a larger
 * maximum size.  Each request for that file would keep a worker of Ganesha's,
 * until none is left for anybody.  So a few threads are let in for a file; the
 * requests of all others are queued, their workers go free, and the threads
 * inside take the queue along as they come out.
 *
 * Streams.  Small writes that continue each other cost an OSD operation each
 * and are done one after the other there, as they are of one object.  So a
 * write that belongs to a stream which has CASYNC_GATE_CALLS calls in the air
 * already is queued until one of them is answered, and then goes with those
 * that are adjacent, in one call (gather.h).  Nothing waits that has fewer
 * calls before it, whatever might come; nothing waits for a time; a stream
 * that has moved on to another object, or has a full call's worth queued,
 * waits for nothing.
 *
 * What overlaps is submitted in the order it came.
 */
#ifndef CASYNC_GATE_H
#define CASYNC_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_op;

/**
 * Threads of one file inside the submission.  libcephfs' client_lock lets one
 * work at a time, so a few are as good as many; Ganesha has 200
 * (RPC_Ioq_ThrdMax).
 */
#define CASYNC_GATE_THREADS 4

/**
 * Calls of one stream in the air before the next write is queued.  With more
 * the calls are smaller, with fewer a write waits longer: 4 make 64 writes in
 * flight a fifth faster on a fast backend, and up to 30 % slower on one that
 * takes 0 to 100 ms.
 */
#define CASYNC_GATE_CALLS 8

/** Streams of one file that are told apart. */
#define CASYNC_GATE_STREAMS 2

/** Writes that go where a stream went; read by gate.c alone. */
struct casync_stream {
	uint64_t next;	/**< Where the furthest one ends. */
	uint64_t piece; /**< Of the file, in one object; gather.h. */
	uint32_t id;	/**< Never used again; 0: no stream. */
	uint32_t calls; /**< In the air. */
	uint64_t queued_bytes;
	uint64_t gaps_bytes; /**< Left out before `next`. */
	unsigned int hits;   /**< How sure it is one. */
};

/** Embedded in the object. */
struct casync_gate {
	pthread_mutex_t lock; /**< A leaf. */
	unsigned int inside;  /**< Threads. */
	uint32_t last_id;
	struct casync_op *oldest; /**< Queued; oldest first. */
	struct casync_op **end;	  /**< Where the next one is hung. */
	struct casync_stream streams[CASYNC_GATE_STREAMS];
};

void casync_gate_init(struct casync_gate *gate);
void casync_gate_destroy(struct casync_gate *gate);

/**
 * Ask to be let in with an op, which is no longer the caller's.
 *
 * @return What to submit now, the op itself or others, with those gathered in
 *         op->members; then casync_gate_next() is due.  NULL: nothing.
 */
struct casync_op *casync_gate_enter(struct casync_gate *gate,
				    struct casync_op *op);

/**
 * What to submit next, or NULL: then the caller is out.
 *
 * To be called while the last op is still held: it keeps the gate's object.
 */
struct casync_op *casync_gate_next(struct casync_gate *gate);

/**
 * An op that was submitted has been answered.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_answered(struct casync_gate *gate,
				       struct casync_op *op);

#endif /* CASYNC_GATE_H */
