/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file queue.h
 * @brief Limits and orders the WRITEs of one file, and says when it is flushed.
 *
 * Threads.  A submission does not wait for OSDs.  But it waits for capabilities
 * without a timeout: while another client does not return them, while the MDS
 * fails over, while an append asks for a larger maximum size.  Each request for
 * that file would block a worker of Ganesha's, until no worker is left for
 * other files.  So at most CASYNC_QUEUE_THREADS threads submit for one file.
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
 * flight may see the data before or after it, so READs are not in the queue.
 * They have a bound of their own (submit.h).  A WRITE that waits for a place in
 * flight (inflight.h) is parked here.
 *
 * Flushes.  libcephfs' fsync waits until no write of the inode is in flight.
 * Under load that never happens.  So a flush (flush.h) holds new writes, waits
 * for the earlier writes (no thread does), and lets the others go when it has
 * ended.  An epoch is the time between two such moments.  Two epochs are
 * enough, because a flush begins when the previous one has ended.  In addition
 * all writes of a new file wait for its first flush.  A flush is wanted while
 * somebody waits for one, or such a write does.  The states of a flush:
 *
 *	IDLE		none is under way
 *	SENDING		a change is sent without a wait
 *			(casync_queue_begin_send())
 *	DRAINING	writes are in flight that a flush would wait for
 *	SYNCING		the flush is in libcephfs, or about to be
 *
 *	event		state		next state
 *	wanted		IDLE		DRAINING, or SYNCING if nothing is in
 *					flight; in each other state it is noted
 *	drained		DRAINING	DRAINING once more if the writes took
 *					over CASYNC_QUEUE_HOLD_MS, and others
 *					are in flight by now; SYNCING if a flush
 *					is still wanted; else IDLE
 *	ended, sent	SYNCING,	as "wanted" does from IDLE, if a flush
 *			SENDING		is wanted; else IDLE
 *
 * The queue_state of an op (CASYNC_QUEUE_*), and the functions that change it:
 *
 *	OUT	-> QUEUED	casync_queue_enter()
 *	OUT	-> PARKED	casync_queue_park()
 *	PARKED	-> QUEUED	casync_queue_unpark()
 *	PARKED	-> OUT		casync_queue_cancel_parked()
 *	QUEUED	-> TAKEN	each function that returns an op to submit
 *	QUEUED	-> OUT		the same functions: its op->members;
 *				casync_queue_flushed(), after a failure
 *	TAKEN	-> OUT		casync_queue_next(), if the op has no members;
 *				else casync_queue_answered()
 *	TAKEN	-> REFUSED	casync_gather_scatter(), if some of the ops
 *				could succeed alone
 *	REFUSED	-> TAKEN	casync_queue_refused()
 *
 * The queue's lock protects all of it.  casync_gather_scatter() and
 * casync_finish() do without: the op is theirs, and other threads look at ops
 * in the queue only.
 */
#ifndef CASYNC_QUEUE_H
#define CASYNC_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "lane.h"
#include "write_stream.h"

struct casync_op;

/** Where an op is in the queue of its file. */
enum casync_queue_state {
	CASYNC_QUEUE_OUT,    /**< Not yet in the queue, or through it. */
	CASYNC_QUEUE_PARKED, /**< In the queue, without a place in flight. */
	CASYNC_QUEUE_QUEUED, /**< In the queue, and may be taken. */
	/** Alone or the first of its call, it is being submitted, or may be
	 * submitted again.  No overlapping op may overtake it. */
	CASYNC_QUEUE_TAKEN,
	/** Taken; the call was refused, and each op is to be submitted alone.
	 */
	CASYNC_QUEUE_REFUSED,
};

/**
 * Threads that may submit WRITEs for one file.  libcephfs' client_lock lets one
 * work at a time, so a few are as fast as many.  Ganesha has 200
 * (RPC_Ioq_ThrdMax).
 */
#define CASYNC_QUEUE_THREADS 4

/** Longest time that a flush holds writes of its file. */
#define CASYNC_QUEUE_HOLD_MS 1000

/** How often a flush holds writes in all, if the earlier writes take longer
 * than that.  After that it begins with others in flight. */
#define CASYNC_QUEUE_HOLDS 5

/** Changes of a file that are sent without a wait before one waits for the
 * journal.  libcephfs keeps each until the MDS has acknowledged it. */
#define CASYNC_QUEUE_SENT_MAX 64

/** Where a file's flush is; the table is above. */
enum casync_flush_state {
	CASYNC_FLUSH_IDLE,
	CASYNC_FLUSH_SENDING,
	CASYNC_FLUSH_DRAINING,
	CASYNC_FLUSH_SYNCING,
};

/** Has the MDS journaled the create of the file? */
enum casync_create_state {
	CASYNC_CREATE_JOURNALED,
	CASYNC_CREATE_UNJOURNALED, /**< Perhaps not: no data may be written. */
	CASYNC_CREATE_AWAITED,	   /**< Perhaps not, and all writes wait. */
};

/** A caller that waits for a flush. */
struct casync_flush_waiter {
	struct glist_head link;
	bool covered; /**< The flush under way covers it. */
	/**
	 * Called once, on a worker, with no lock held; @p rc is 0 or a negative
	 * errno.  The waiter may be freed when it returns.
	 */
	void (*done)(struct casync_flush_waiter *waiter, int rc);
};

/** Writes that are not answered, queued too, by epoch. */
struct casync_queue_writes {
	uint32_t in_flight[2];
	uint8_t epoch; /**< Of new writes: 0 or 1. */
};

/** In the list of queues whose flush holds writes, oldest first. */
struct casync_queue_hold {
	struct glist_head link;
	uint64_t since_ns;  /**< 0: not in that list; no write is held. */
	unsigned int times; /**< How often this flush has held writes. */
};

/** Embedded in the object. */
struct casync_queue {
	pthread_mutex_t lock;	  /**< The list of holds is locked under it. */
	struct casync_op *oldest; /**< Queued; oldest first. */
	struct casync_op **end;	  /**< Where the next one is linked. */
	struct casync_op *submitting; /**< Taken; none may overtake it. */
	unsigned int inside;	      /**< Threads that submit. */
	struct casync_queue_writes writes;
	struct casync_write_streams streams;

	uint8_t flush;		   /**< enum casync_flush_state. */
	uint8_t create;		   /**< enum casync_create_state; atomic. */
	struct glist_head waiters; /**< They wait for the next flush. */
	struct casync_queue_hold hold;
	struct casync_work work; /**< The flush, in a lane. */
	/** Sent to the MDS without a wait since the last flush that has covered
	 * them; of the thread that is SENDING or SYNCING. */
	uint32_t sent;
};

void casync_queue_init(struct casync_queue *queue);
void casync_queue_destroy(struct casync_queue *queue);

/**
 * Enter the queue with a WRITE.  The caller no longer owns it.
 *
 * Only submit.c calls it: on a worker of Ganesha's or of ours, never in a
 * callback of libcephfs.  The caller holds no lock of ours.  The op is prepared
 * (casync_op_prepare()) and has its fd and its place in flight.
 *
 * @return The op to submit now, this one or another, with gathered ops in
 *         op->members.  After it the caller must call casync_queue_next().
 *         NULL: nothing to submit.
 */
struct casync_op *casync_queue_enter(struct casync_queue *queue,
				     struct casync_op *op);

/**
 * Enter the queue with a write that has no place in flight yet.  It is queued,
 * to keep the order, and not taken before casync_queue_unpark().  The caller
 * still owns it.
 *
 * @return As casync_queue_enter().
 */
struct casync_op *casync_queue_park(struct casync_queue *queue,
				    struct casync_op *op);

/**
 * A parked write has got its place in flight and may go.
 *
 * @return As casync_queue_enter().
 */
struct casync_op *casync_queue_unpark(struct casync_queue *queue,
				      struct casync_op *op);

/**
 * A parked write was refused.  The caller owns it again.
 *
 * @return As casync_queue_enter().
 */
struct casync_op *casync_queue_cancel_parked(struct casync_queue *queue,
					     struct casync_op *op);

/**
 * Return the next op to submit.  NULL: the caller has left the queue.
 *
 * The caller must still hold the last op: it keeps the queue's object alive.
 *
 * @param[in] op  The last op, which has been submitted.
 */
struct casync_op *casync_queue_next(struct casync_queue *queue,
				    struct casync_op *op);

/** A caller has to do these things after it, with no lock held. */
struct casync_queue_todo {
	/** To be submitted, as by casync_queue_enter(); or NULL. */
	struct casync_op *submit;
	/** Writes that fail, linked by `next`; the caller owns them. */
	struct casync_op *fail;
	/** The flush is to be run (flush.c): the queue is SYNCING.  Those who
	 * wait for the flush keep the object until it has ended. */
	bool flush;
};

/** A submitted op has been answered; maybe the last that a flush waits for. */
struct casync_queue_todo casync_queue_answered(struct casync_queue *queue,
					       struct casync_op *op);

/**
 * A call was refused.  The caller enters the queue, and will submit each op of
 * the call alone.  Others that overlap them wait until
 * casync_queue_next().
 */
void casync_queue_refused(struct casync_queue *queue, struct casync_op *first);

/* Flushes. */

/** Wait for a flush.  @return Whether the caller has to run it. */
bool casync_queue_want_flush(struct casync_queue *queue,
			     struct casync_flush_waiter *waiter);

/**
 * If the MDS may not have journaled the file, hold its writes for the first
 * flush.
 *
 * @param[out] flush  Whether the caller has to run it.
 *
 * @return Whether a write has to wait.
 */
bool casync_queue_want_create(struct casync_queue *queue, bool *flush);

/** Withdraw a waiter while the flush waits for writes in flight.  @return
 * false: too late. */
bool casync_queue_withdraw(struct casync_queue *queue,
			   struct casync_flush_waiter *waiter);

/** A flush goes to libcephfs.  Move those who wait to a list: it covers
 * them. */
void casync_queue_cover(struct casync_queue *queue, struct glist_head *covered);

/**
 * A flush has ended.  Its writes go on.  If it was the first one and failed,
 * the writes that waited for it fail: the MDS may forget the file.
 *
 * Unless to be done again, the object may be freed from here on.
 *
 * @param[in] rc  0 or a negative errno.
 */
struct casync_queue_todo casync_queue_flushed(struct casync_queue *queue,
					      int rc);

/** Take a turn among the flushes, to send a change without a wait.  Each could
 * take the other's changes along, and not wait for them.  @return false: a
 * flush is under way, or CASYNC_QUEUE_SENT_MAX were sent in a row. */
bool casync_queue_begin_send(struct casync_queue *queue);

/** End the turn.  @return Whether the caller has to run a flush. */
bool casync_queue_end_send(struct casync_queue *queue, bool sent);

/**
 * Let the writes go that have been held longest, if that is too long.
 *
 * @param[out] submit  To be submitted, as by casync_queue_enter(); or NULL.
 *
 * @return false: there are none, or another thread is at work in that queue.
 */
bool casync_queue_release_oldest(struct casync_op **submit);

/** May the MDS not have the file on disk yet?  Then no data may be written. */
static inline bool casync_queue_is_unjournaled(const struct casync_queue *queue)
{
	return __atomic_load_n(&queue->create, __ATOMIC_ACQUIRE) !=
	       CASYNC_CREATE_JOURNALED;
}

/** Do all writes wait for the first flush? */
static inline bool casync_queue_awaits_create(const struct casync_queue *queue)
{
	return __atomic_load_n(&queue->create, __ATOMIC_RELAXED) ==
	       CASYNC_CREATE_AWAITED;
}

/** A file was created, or looked up anew.  The MDS may not have journaled its
 * create: it answers at once and writes its journal every few seconds. */
static inline void casync_queue_mark_new(struct casync_queue *queue)
{
	__atomic_store_n(&queue->create, CASYNC_CREATE_UNJOURNALED,
			 __ATOMIC_RELEASE);
}

/** The MDS has journaled the file's create.  Writes that wait for a flush are
 * left to that flush. */
static inline void casync_queue_mark_journaled(struct casync_queue *queue)
{
	uint8_t before = CASYNC_CREATE_UNJOURNALED;

	(void)__atomic_compare_exchange_n(&queue->create, &before,
					  CASYNC_CREATE_JOURNALED, false,
					  __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/*
 * The order, which queue_order.c decides.  Only queue.c calls these
 * functions, under the queue's lock.  Nothing in them blocks.
 *
 * Bounds.  A search skips only so many ops that cannot go, and follows only so
 * many that overlap.  When a blocking op has gone, the search is repeated.
 */

/** Put an op at the end of the queue.  Its queue_state is set before. */
void casync_queue_order_append_locked(struct casync_queue *queue,
				      struct casync_op *op);

/** Take out the op at a link of the queue.  It is CASYNC_QUEUE_OUT. */
struct casync_op *casync_queue_order_remove_locked(struct casync_queue *queue,
						   struct casync_op **link);

/**
 * Take the next op that may go, with the ops that share its call.
 *
 * @return The first op of the call, CASYNC_QUEUE_TAKEN.  NULL: none.
 */
struct casync_op *casync_queue_order_take_locked(struct casync_queue *queue);

/**
 * Take the newest op, if so many others cannot go that the search did not
 * reach it.
 *
 * @param[in] link  That of the newest op.
 */
struct casync_op *
casync_queue_order_take_newest_locked(struct casync_queue *queue,
				      struct casync_op **link);

/**
 * No op waits any longer for an op that is CASYNC_QUEUE_TAKEN.
 *
 * @return Whether it was taken.
 */
bool casync_queue_order_submitted_locked(struct casync_queue *queue,
					 struct casync_op *op);

#endif /* CASYNC_QUEUE_H */
