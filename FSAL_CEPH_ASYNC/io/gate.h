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
 * Order.  WRITEs that overlap reach libcephfs in the order they came here.  An
 * op is in sight from the moment it is queued until it has been submitted; a
 * call of several, which may be refused and submitted once more, until it has
 * been answered.  What overlaps something in sight waits.  A WRITE that waits
 * for a place among what is in flight (inflight.h) is parked here.  (A READ that
 * overlaps a WRITE in flight may see what was before or after it, so reads
 * keep nothing waiting.)
 *
 * Flushes.  libcephfs' fsync waits until no write of the inode is in flight,
 * which under load is never.  So a flush closes the gate to the writes that
 * come from then on, waits for those before (no thread does), and opens it
 * when it is done (flush.c).  An epoch is what came between two such moments;
 * two are enough, as a flush begins when the one before has ended.  And all
 * writes wait for a new file's first flush.
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
	struct casync_op *oldest;   /**< Queued; oldest first. */
	struct casync_op **end;	    /**< Where the next one is hung. */
	struct casync_op *in_sight; /**< Taken, not to be overtaken. */
	uint32_t flying[2]; /**< Writes not answered, queued too, by epoch. */
	uint8_t epoch;	    /**< Of the writes that come now: 0 or 1. */
	bool held;	    /**< Those wait, for a flush. */
	bool draining;	    /**< The flush waits for the other epoch's. */
	bool journaling;    /**< All writes wait, for a first flush. */
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
 * A parked write, which casync_gate_enter() has queued for its place in the
 * order, may go.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_unpark(struct casync_gate *gate,
				     struct casync_op *op);

/**
 * A parked write is not going to go: it is the caller's again.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_give_up(struct casync_gate *gate,
				      struct casync_op *op);

/**
 * What to submit next, or NULL: then the caller is out.
 *
 * To be called while the last op is still held: it keeps the gate's object.
 *
 * @param[in] op  The last one, which has been submitted.
 */
struct casync_op *casync_gate_next(struct casync_gate *gate,
				   struct casync_op *op);

/**
 * An op that was submitted has been answered.
 *
 * @param[out] drained  It was the last one that a flush waits for.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_answered(struct casync_gate *gate,
				       struct casync_op *op, bool *drained);

/**
 * A call was refused, and the caller, who is inside then, is going to submit
 * each of its ops by itself.  They stay in sight until casync_gate_next().
 */
void casync_gate_refused(struct casync_gate *gate, struct casync_op *first);

/**
 * Begin a flush: hold what comes from now on.
 *
 * @return Whether nothing from before is in flight; else
 *	   casync_gate_answered() tells when.
 */
bool casync_gate_hold(struct casync_gate *gate);

/** Does the flush wait for a write that is in flight? */
bool casync_gate_is_draining(struct casync_gate *gate);

/**
 * Let go what a flush holds.
 *
 * @param[in] journaled  And what waits for the first flush.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_release(struct casync_gate *gate, bool journaled);

/** All writes wait from now on. */
void casync_gate_hold_for_journal(struct casync_gate *gate);

/**
 * The first flush has failed.
 *
 * @return The writes that waited, linked by `next`: the caller's.
 */
struct casync_op *casync_gate_expel(struct casync_gate *gate);

#endif /* CASYNC_GATE_H */
