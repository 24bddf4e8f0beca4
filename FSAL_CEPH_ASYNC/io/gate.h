/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gate.h
 * @brief Limits and orders what one file has in submission; queues the rest.
 *
 * Threads.  A submission does not wait for OSDs.  But it waits for capabilities
 * without a timeout: while another client does not return them, while the MDS
 * fails over, while an append asks for a larger maximum size.  Each request for
 * that file would block a worker of Ganesha's, until no worker is left for
 * other files.  So at most CASYNC_GATE_THREADS threads submit for one file.
 * The requests of the others are queued, and their workers are free.  A thread
 * that has submitted takes the next request from the queue.
 *
 * Streams.  A small write may wait for the calls of its stream, and then shares
 * a call with others (write_stream.h).
 *
 * Order.  WRITEs that overlap reach libcephfs in the order of their arrival.
 * An op waits while it overlaps an earlier op that has not been submitted.  A
 * call of several ops can be refused and submitted again, so its ops count as
 * not submitted until it has been answered.  A READ that overlaps a WRITE in
 * flight may see the data before or after it, so reads block nothing.  A WRITE
 * that waits for a place in flight (inflight.h) is parked here.
 *
 * Flushes.  libcephfs' fsync waits until no write of the inode is in flight.
 * Under load that never happens.  So a flush (flush.c) closes the gate to new
 * writes, waits for the earlier writes (no thread does), and opens the gate
 * when it has ended.  An epoch is the time between two such closings.  Two
 * epochs are enough, because a flush begins when the previous one has ended.
 * In addition all writes of a new file wait for its first flush.
 *
 * The queue_state of an op (CASYNC_QUEUE_*), and the functions that change it:
 *
 *	OUT	-> QUEUED	casync_gate_enter()
 *	OUT	-> PARKED	casync_gate_park()
 *	PARKED	-> QUEUED	casync_gate_unpark()
 *	PARKED	-> OUT		casync_gate_cancel_parked()
 *	QUEUED	-> TAKEN	each function that returns an op to submit, if
 *				it is a WRITE
 *	QUEUED	-> OUT		the same functions: a READ, and op->members;
 *				casync_gate_remove_unjournaled()
 *	TAKEN	-> OUT		casync_gate_next(), if the op has no members;
 *				else casync_gate_answered()
 *	TAKEN	-> REFUSED	casync_gather_scatter(), if some of the ops
 *				could succeed alone
 *	REFUSED	-> TAKEN	casync_gate_refused()
 *
 * gate.lock protects the state.  casync_gather_scatter() and casync_finish() do
 * without: the op is theirs, and other threads look at ops in the queue only.
 */
#ifndef CASYNC_GATE_H
#define CASYNC_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "write_stream.h"

struct casync_op;

/** Where an op is in the gate of its file. */
enum casync_queue_state {
	CASYNC_QUEUE_OUT,    /**< Not yet in the gate, or through it. */
	CASYNC_QUEUE_PARKED, /**< In the queue, without a place in flight. */
	CASYNC_QUEUE_QUEUED, /**< In the queue, and may be taken. */
	/** A WRITE, alone or the first of its call, that is being submitted, or
	 * may be submitted again.  No overlapping op may overtake it. */
	CASYNC_QUEUE_TAKEN,
	/** Taken; the call was refused, and each op is to be submitted alone.
	 */
	CASYNC_QUEUE_REFUSED,
};

/**
 * Threads that may submit for one file.  libcephfs' client_lock lets one work
 * at a time, so a few are as fast as many.  Ganesha has 200
 * (RPC_Ioq_ThrdMax).
 */
#define CASYNC_GATE_THREADS 4

/** Embedded in the object. */
struct casync_gate {
	pthread_mutex_t lock;	      /**< A leaf. */
	struct casync_op *oldest;     /**< Queued; oldest first. */
	struct casync_op **end;	      /**< Where the next one is linked. */
	struct casync_op *submitting; /**< Taken; none may overtake it. */
	unsigned int inside;	      /**< Threads that submit. */
	/** Writes not answered, queued too, by epoch. */
	uint32_t writes_in_flight[2];
	uint8_t epoch;	 /**< Epoch of new writes: 0 or 1. */
	bool held;	 /**< New writes wait for a flush. */
	bool draining;	 /**< The flush waits for the other epoch. */
	bool journaling; /**< All writes wait for the first flush. */
	struct casync_write_streams streams;
};

void casync_gate_init(struct casync_gate *gate);
void casync_gate_destroy(struct casync_gate *gate);

/**
 * Enter the gate with an op.  The caller no longer owns the op.
 *
 * Only submit.c calls it: on a worker of Ganesha's or of ours, never in a
 * callback of libcephfs.  The caller holds no lock of ours.  The op is prepared
 * (casync_op_prepare()) and has its fd and its place in flight.
 *
 * @return The op to submit now, this one or another, with gathered ops in
 *         op->members.  After it the caller must call casync_gate_next().
 *         NULL: nothing to submit.
 */
struct casync_op *casync_gate_enter(struct casync_gate *gate,
				    struct casync_op *op);

/**
 * Enter the gate with a write that has no place in flight yet.  It is queued,
 * to keep the order, and not taken before casync_gate_unpark().  The caller
 * still owns it.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_park(struct casync_gate *gate,
				   struct casync_op *op);

/**
 * A parked write has got its place in flight and may go.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_unpark(struct casync_gate *gate,
				     struct casync_op *op);

/**
 * A parked write was refused.  The caller owns it again.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_cancel_parked(struct casync_gate *gate,
					    struct casync_op *op);

/**
 * Return the next op to submit.  NULL: the caller has left the gate.
 *
 * The caller must still hold the last op: it keeps the gate's object alive.
 *
 * @param[in] op  The last op, which has been submitted.
 */
struct casync_op *casync_gate_next(struct casync_gate *gate,
				   struct casync_op *op);

/**
 * A submitted op has been answered.
 *
 * @param[out] drained  Whether it was the last op that a flush waits for.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_answered(struct casync_gate *gate,
				       struct casync_op *op, bool *drained);

/**
 * A call was refused.  The caller enters the gate, and will submit each op of
 * the call alone.  Others that overlap them wait until
 * casync_gate_next().
 */
void casync_gate_refused(struct casync_gate *gate, struct casync_op *first);

/**
 * Begin a flush: hold the writes that come from now on.
 *
 * @return true: no earlier write is in flight; false: casync_gate_answered()
 *	   reports when the last one is answered.
 */
bool casync_gate_hold(struct casync_gate *gate);

/** Does the flush wait for a write that is in flight? */
bool casync_gate_is_draining(struct casync_gate *gate);

/**
 * Release the writes that a flush holds.
 *
 * @param[in] journaled  Release also the writes that wait for the first flush.
 *
 * @return As casync_gate_enter().
 */
struct casync_op *casync_gate_release(struct casync_gate *gate, bool journaled);

/** Hold all writes from now on, until the first flush. */
void casync_gate_hold_for_journal(struct casync_gate *gate);

/**
 * The first flush has failed.
 *
 * @return The writes that waited, linked by `next`.  The caller owns them.
 */
struct casync_op *casync_gate_remove_unjournaled(struct casync_gate *gate);

/*
 * The order, which gate_order.c decides.  Only gate.c calls these functions,
 * under the gate's lock.  Nothing in them blocks.
 *
 * Bounds.  A search skips only so many ops that cannot go, and follows only so
 * many that overlap.  When a blocking op has gone, the search is repeated.
 */

/** Put an op at the end of the queue.  Its queue_state is set before. */
void casync_gate_order_append_locked(struct casync_gate *gate,
				     struct casync_op *op);

/** Take out the op at a link of the queue.  It is CASYNC_QUEUE_OUT. */
struct casync_op *casync_gate_order_remove_locked(struct casync_gate *gate,
						  struct casync_op **link);

/**
 * Take the next op that may go, with the ops that share its call.
 *
 * @return The first op of the call, CASYNC_QUEUE_TAKEN if it is a WRITE.  NULL:
 *	   none.
 */
struct casync_op *casync_gate_order_take_locked(struct casync_gate *gate);

/**
 * Take the newest op, if so many others cannot go that the search did not
 * reach it.
 *
 * @param[in] link  That of the newest op.
 */
struct casync_op *casync_gate_order_take_newest_locked(struct casync_gate *gate,
						       struct casync_op **link);

/**
 * No op waits any longer for an op that is CASYNC_QUEUE_TAKEN.
 *
 * @return Whether it was taken.
 */
bool casync_gate_order_submitted_locked(struct casync_gate *gate,
					struct casync_op *op);

#endif /* CASYNC_GATE_H */
