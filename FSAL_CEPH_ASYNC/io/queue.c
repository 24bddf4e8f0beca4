/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "check.h"
#include "clock.h"
#include "export.h"
#include "queue.h"
#include "op.h"
#include "write_stream.h"

/* The queues whose flush holds writes, oldest first: added and removed under
 * both locks.  A queue in it has an object. */
static pthread_mutex_t holds_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(holds);

void casync_queue_init(struct casync_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	pthread_mutex_init(&queue->lock, NULL);
	queue->end = &queue->oldest;
	glist_init(&queue->waiters);
}

void casync_queue_destroy(struct casync_queue *queue)
{
	/* The last thread that left may still hold the lock. */
	pthread_mutex_lock(&queue->lock);
	pthread_mutex_unlock(&queue->lock);
	pthread_mutex_destroy(&queue->lock);
}

/* Take an op if fewer threads than that are inside.  With ALONE: if no other
 * thread would take it.  With BESIDE_OTHERS: they may be stuck. */
enum { ALONE = 1, BESIDE_OTHERS = CASYNC_QUEUE_THREADS };

static struct casync_op *queue_take(struct casync_queue *queue,
				    unsigned int threads)
{
	struct casync_op *op = queue->inside < threads
				       ? casync_queue_order_take_locked(queue)
				       : NULL;

	if (op != NULL)
		queue->inside++;
	return op;
}

static void queue_mark_queued(const struct casync_queue *queue,
			      struct casync_op *op)
{
	if (casync_queue_awaits_create(queue)) {
		casync_op_set_state(op, CASYNC_OP_JOURNALING);
		return;
	}
	casync_metrics_count(casync_metrics_shard(&op->exp->metrics),
			     CASYNC_C_FILE_QUEUE_WAITS, 1);
	casync_op_set_state(op, CASYNC_OP_HELD);
}

/* A write is in flight now; mostly it belongs to the current epoch. */
static void queue_write_admitted(struct casync_queue *queue,
				 struct casync_op *op, uint8_t epoch)
{
	op->gather.epoch = epoch;
	queue->writes.in_flight[epoch]++;
}

static struct casync_op *queue_enter_as(struct casync_queue *queue,
					struct casync_op *op,
					enum casync_queue_state queue_state)
{
	struct casync_op **link;
	struct casync_op *now;

	pthread_mutex_lock(&queue->lock);
	op->queue_state = queue_state;
	if (queue_state == CASYNC_QUEUE_QUEUED)
		queue_write_admitted(queue, op, queue->writes.epoch);
	casync_write_stream_follow(&queue->streams, op);
	link = queue->end;
	casync_queue_order_append_locked(queue, op);
	now = queue_take(queue, BESIDE_OTHERS);
	if (now == NULL && queue->inside < CASYNC_QUEUE_THREADS) {
		now = casync_queue_order_take_newest_locked(queue, link);
		queue->inside += now != NULL;
	}
	/* Still in the queue? */
	if (op->queue_state == queue_state)
		queue_mark_queued(queue, op);
	pthread_mutex_unlock(&queue->lock);
	return now;
}

struct casync_op *casync_queue_enter(struct casync_queue *queue,
				     struct casync_op *op)
{
	return queue_enter_as(queue, op, CASYNC_QUEUE_QUEUED);
}

struct casync_op *casync_queue_park(struct casync_queue *queue,
				    struct casync_op *op)
{
	return queue_enter_as(queue, op, CASYNC_QUEUE_PARKED);
}

struct casync_op *casync_queue_next(struct casync_queue *queue,
				    struct casync_op *op)
{
	struct casync_op *next;

	pthread_mutex_lock(&queue->lock);
	/* A call of several ops may still be refused. */
	if (op->members == NULL)
		(void)casync_queue_order_submitted_locked(queue, op);
	next = casync_queue_order_take_locked(queue);
	CASYNC_CHECK(queue->inside != 0);
	if (next == NULL)
		queue->inside--;
	pthread_mutex_unlock(&queue->lock);
	return next;
}

void casync_queue_refused(struct casync_queue *queue, struct casync_op *first)
{
	pthread_mutex_lock(&queue->lock);
	(void)casync_write_stream_end_call(&queue->streams, first);
	first->queue_state = CASYNC_QUEUE_TAKEN;
	queue->inside++;
	pthread_mutex_unlock(&queue->lock);
}

/* May a later op that a flush waits for have to wait for this one? */
static bool queue_keeps_flush_waiting(const struct casync_queue *queue,
				      const struct casync_op *op)
{
	const struct casync_op *later;

	if (queue->flush != CASYNC_FLUSH_DRAINING)
		return false;
	for (later = op->next; later != NULL; later = later->next) {
		/* A parked one is not in flight. */
		if (later->queue_state == CASYNC_QUEUE_QUEUED &&
		    later->gather.epoch != queue->writes.epoch)
			return true;
	}
	return false;
}

struct casync_op *casync_queue_unpark(struct casync_queue *queue,
				      struct casync_op *op)
{
	struct casync_op *now;

	pthread_mutex_lock(&queue->lock);
	op->queue_state = CASYNC_QUEUE_QUEUED;
	queue_write_admitted(queue, op,
			     queue->writes.epoch ^
				     queue_keeps_flush_waiting(queue, op));
	now = queue_take(queue, BESIDE_OTHERS);
	pthread_mutex_unlock(&queue->lock);
	return now;
}

struct casync_op *casync_queue_cancel_parked(struct casync_queue *queue,
					     struct casync_op *op)
{
	struct casync_op **link = &queue->oldest;
	struct casync_op *now;

	pthread_mutex_lock(&queue->lock);
	while (*link != op)
		link = &(*link)->next;
	(void)casync_queue_order_remove_locked(queue, link);
	/* Ops that overlap it no longer wait for it. */
	now = queue_take(queue, BESIDE_OTHERS);
	pthread_mutex_unlock(&queue->lock);
	return now;
}

/* --- flushes */

static void queue_set_flush(struct casync_queue *queue,
			    enum casync_flush_state state)
{
	CASYNC_CHECK_HELD(&queue->lock);
	CASYNC_CHECK(state != CASYNC_FLUSH_SENDING ||
		     queue->flush == CASYNC_FLUSH_IDLE);
	queue->flush = state;
}

static bool queue_flush_is_wanted(struct casync_queue *queue)
{
	return casync_queue_awaits_create(queue) ||
	       !glist_empty(&queue->waiters);
}

/* A write is answered, or fails, or counts in another epoch. */
static void queue_write_left(struct casync_queue *queue,
			     const struct casync_op *op)
{
	uint32_t *count = &queue->writes.in_flight[op->gather.epoch];

	CASYNC_CHECK(*count != 0);
	(*count)--;
}

/*
 * The first flush does not wait for the writes that wait for it, though they
 * may have come before it began.
 */
static void queue_move_awaiting(struct casync_queue *queue)
{
	struct casync_op *op;

	for (op = queue->oldest; op != NULL; op = op->next) {
		if (op->queue_state != CASYNC_QUEUE_QUEUED ||
		    op->gather.epoch == queue->writes.epoch)
			continue;
		queue_write_left(queue, op);
		queue_write_admitted(queue, op, queue->writes.epoch);
	}
}

static bool queue_is_drained(const struct casync_queue *queue)
{
	return queue->writes.in_flight[queue->writes.epoch ^ 1] == 0;
}

/* Hold the writes that come from now on. */
static void queue_hold(struct casync_queue *queue)
{
	queue->writes.epoch ^= 1;
	if (casync_queue_awaits_create(queue))
		queue_move_awaiting(queue);
	queue->hold.times++;
	pthread_mutex_lock(&holds_lock);
	queue->hold.since_ns = casync_clock_ns();
	glist_add_tail(&holds, &queue->hold.link);
	pthread_mutex_unlock(&holds_lock);
}

static void queue_end_hold(struct casync_queue *queue)
{
	if (queue->hold.since_ns == 0)
		return;
	pthread_mutex_lock(&holds_lock);
	glist_del(&queue->hold.link);
	queue->hold.since_ns = 0;
	pthread_mutex_unlock(&holds_lock);
}

/* Was it the last write that a flush waits for?  Returns whether to run the
 * flush: those who wanted it may have left. */
static bool queue_look_if_drained(struct casync_queue *queue)
{
	bool wanted = queue_flush_is_wanted(queue);

	if (queue->flush != CASYNC_FLUSH_DRAINING || !queue_is_drained(queue))
		return false;
	/* Others are in flight by now: hold again, or libcephfs waits for them.
	 */
	if (queue->hold.since_ns == 0 &&
	    queue->hold.times < CASYNC_QUEUE_HOLDS) {
		queue_hold(queue);
		if (!queue_is_drained(queue))
			return false;
	}
	if (!wanted)
		queue_end_hold(queue);
	queue_set_flush(queue,
			wanted ? CASYNC_FLUSH_SYNCING : CASYNC_FLUSH_IDLE);
	return wanted;
}

/* Begin the next flush, if it is wanted.  Returns whether to run it. */
static bool queue_begin_flush(struct casync_queue *queue)
{
	if (!queue_flush_is_wanted(queue)) {
		queue_set_flush(queue, CASYNC_FLUSH_IDLE);
		return false;
	}
	queue->hold.times = 0;
	queue_hold(queue);
	queue_set_flush(queue, CASYNC_FLUSH_DRAINING);
	return queue_look_if_drained(queue);
}

struct casync_queue_todo casync_queue_answered(struct casync_queue *queue,
					       struct casync_op *op)
{
	struct casync_queue_todo todo = {0};
	unsigned int threads = 0;
	bool held;

	pthread_mutex_lock(&queue->lock);
	held = queue->hold.since_ns != 0;
	if (casync_write_stream_end_call(&queue->streams, op))
		threads = ALONE;
	if (casync_queue_order_submitted_locked(queue, op))
		threads = ALONE;
	queue_write_left(queue, op);
	todo.flush = queue_look_if_drained(queue);
	if (held && queue->hold.since_ns == 0)
		threads = BESIDE_OTHERS;
	todo.submit = queue_take(queue, threads);
	pthread_mutex_unlock(&queue->lock);
	return todo;
}

bool casync_queue_want_flush(struct casync_queue *queue,
			     struct casync_flush_waiter *waiter)
{
	bool run = false;

	waiter->covered = false;
	pthread_mutex_lock(&queue->lock);
	glist_add_tail(&queue->waiters, &waiter->link);
	if (queue->flush == CASYNC_FLUSH_IDLE)
		run = queue_begin_flush(queue);
	pthread_mutex_unlock(&queue->lock);
	return run;
}

bool casync_queue_want_create(struct casync_queue *queue, bool *flush)
{
	uint8_t create = CASYNC_CREATE_UNJOURNALED;

	*flush = false;
	if (!casync_queue_is_unjournaled(queue))
		return false;
	pthread_mutex_lock(&queue->lock);
	/* A flush that is under way is enough: it began after the create. */
	if (__atomic_compare_exchange_n(&queue->create, &create,
					CASYNC_CREATE_AWAITED, false,
					__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		create = CASYNC_CREATE_AWAITED;
		if (queue->flush == CASYNC_FLUSH_IDLE)
			*flush = queue_begin_flush(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return create != CASYNC_CREATE_JOURNALED;
}

bool casync_queue_withdraw(struct casync_queue *queue,
			   struct casync_flush_waiter *waiter)
{
	bool withdrawn;

	pthread_mutex_lock(&queue->lock);
	withdrawn = !waiter->covered && queue->flush == CASYNC_FLUSH_DRAINING;
	if (withdrawn)
		glist_del(&waiter->link);
	pthread_mutex_unlock(&queue->lock);
	return withdrawn;
}

void casync_queue_cover(struct casync_queue *queue, struct glist_head *covered)
{
	struct glist_head *node;

	glist_init(covered);
	pthread_mutex_lock(&queue->lock);
	CASYNC_CHECK(queue->flush == CASYNC_FLUSH_SYNCING);
	glist_splice_tail(covered, &queue->waiters);
	glist_for_each(node, covered)
		glist_entry(node, struct casync_flush_waiter, link)->covered =
			true;
	pthread_mutex_unlock(&queue->lock);
}

/* Take the writes out that wait for the first flush. */
static struct casync_op *queue_remove_awaiting(struct casync_queue *queue)
{
	struct casync_op **link = &queue->oldest;
	struct casync_op *removed = NULL;
	struct casync_op **end = &removed;

	while (*link != NULL) {
		if ((*link)->queue_state != CASYNC_QUEUE_QUEUED) {
			link = &(*link)->next;
			continue;
		}
		*end = casync_queue_order_remove_locked(queue, link);
		queue_write_left(queue, *end);
		end = &(*end)->next;
	}
	return removed;
}

struct casync_queue_todo casync_queue_flushed(struct casync_queue *queue,
					      int rc)
{
	struct casync_queue_todo todo = {0};

	pthread_mutex_lock(&queue->lock);
	CASYNC_CHECK(queue->flush == CASYNC_FLUSH_SYNCING);
	if (rc == 0) {
		__atomic_store_n(&queue->create, CASYNC_CREATE_JOURNALED,
				 __ATOMIC_RELEASE);
	} else if (casync_queue_awaits_create(queue)) {
		todo.fail = queue_remove_awaiting(queue);
		casync_queue_mark_new(queue);
	}
	queue_end_hold(queue);
	todo.flush = queue_begin_flush(queue);
	todo.submit = queue_take(queue, BESIDE_OTHERS);
	pthread_mutex_unlock(&queue->lock);
	return todo;
}

bool casync_queue_begin_send(struct casync_queue *queue)
{
	bool taken;

	pthread_mutex_lock(&queue->lock);
	taken = queue->flush == CASYNC_FLUSH_IDLE &&
		queue->sent < CASYNC_QUEUE_SENT_MAX;
	if (taken)
		queue_set_flush(queue, CASYNC_FLUSH_SENDING);
	pthread_mutex_unlock(&queue->lock);
	return taken;
}

bool casync_queue_end_send(struct casync_queue *queue, bool sent)
{
	bool run;

	pthread_mutex_lock(&queue->lock);
	CASYNC_CHECK(queue->flush == CASYNC_FLUSH_SENDING);
	queue->sent += sent;
	run = queue_begin_flush(queue);
	pthread_mutex_unlock(&queue->lock);
	return run;
}

/* The locks are taken in the other order elsewhere, so the second one is only
 * tried. */
static bool queue_release_locked(struct casync_queue *queue,
				 struct casync_op **submit)
{
	if (pthread_mutex_trylock(&queue->lock) != 0)
		return false;
	glist_del(&queue->hold.link);
	queue->hold.since_ns = 0;
	*submit = queue_take(queue, BESIDE_OTHERS);
	pthread_mutex_unlock(&queue->lock);
	return true;
}

bool casync_queue_release_oldest(struct casync_op **submit)
{
	struct casync_queue *queue;
	bool released = false;

	*submit = NULL;
	pthread_mutex_lock(&holds_lock);
	queue = glist_first_entry(&holds, struct casync_queue, hold.link);
	if (queue != NULL && casync_clock_age_ns(queue->hold.since_ns) >=
				     CASYNC_QUEUE_HOLD_MS * CASYNC_NS_PER_MS)
		released = queue_release_locked(queue, submit);
	pthread_mutex_unlock(&holds_lock);
	return released;
}
