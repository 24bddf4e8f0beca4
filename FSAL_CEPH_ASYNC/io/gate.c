/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "check.h"
#include "export.h"
#include "gate.h"
#include "op.h"
#include "write_stream.h"

void casync_gate_init(struct casync_gate *gate)
{
	memset(gate, 0, sizeof(*gate));
	pthread_mutex_init(&gate->lock, NULL);
	gate->end = &gate->oldest;
}

void casync_gate_destroy(struct casync_gate *gate)
{
	/* The last thread that left may still hold the lock. */
	pthread_mutex_lock(&gate->lock);
	pthread_mutex_unlock(&gate->lock);
	pthread_mutex_destroy(&gate->lock);
}

/* Take an op if fewer threads than that are inside.  With ALONE: if no other
 * thread would take it.  With BESIDE_OTHERS: they may be stuck. */
enum { ALONE = 1, BESIDE_OTHERS = CASYNC_GATE_THREADS };

static struct casync_op *gate_take(struct casync_gate *gate,
				   unsigned int threads)
{
	struct casync_op *op = gate->inside < threads
				       ? casync_gate_order_take_locked(gate)
				       : NULL;

	if (op != NULL)
		gate->inside++;
	return op;
}

static void gate_mark_queued(const struct casync_gate *gate,
			     struct casync_op *op)
{
	if (gate->journaling && op->kind == CASYNC_OP_WRITE) {
		casync_op_set_state(op, CASYNC_OP_JOURNALING);
		return;
	}
	casync_metrics_count(casync_metrics_shard(&op->exp->metrics),
			     CASYNC_C_FILE_QUEUE_WAITS, 1);
	casync_op_set_state(op, CASYNC_OP_HELD);
}

/* Of an op in the queue: is it a write in flight?  A parked one is not. */
static bool gate_is_queued_write(const struct casync_op *op)
{
	return op->kind == CASYNC_OP_WRITE &&
	       op->queue_state == CASYNC_QUEUE_QUEUED;
}

/* A write is in flight now; mostly it belongs to the current epoch. */
static void gate_write_admitted(struct casync_gate *gate, struct casync_op *op,
				uint8_t epoch)
{
	op->gather.epoch = epoch;
	gate->writes_in_flight[epoch]++;
}

static struct casync_op *gate_enter_as(struct casync_gate *gate,
				       struct casync_op *op,
				       enum casync_queue_state queue_state)
{
	struct casync_op **link;
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	op->queue_state = queue_state;
	if (op->kind == CASYNC_OP_WRITE && queue_state == CASYNC_QUEUE_QUEUED)
		gate_write_admitted(gate, op, gate->epoch);
	casync_write_stream_follow(&gate->streams, op);
	link = gate->end;
	casync_gate_order_append_locked(gate, op);
	now = gate_take(gate, BESIDE_OTHERS);
	if (now == NULL && gate->inside < CASYNC_GATE_THREADS) {
		now = casync_gate_order_take_newest_locked(gate, link);
		gate->inside += now != NULL;
	}
	/* Still in the queue? */
	if (op->queue_state == queue_state)
		gate_mark_queued(gate, op);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

struct casync_op *casync_gate_enter(struct casync_gate *gate,
				    struct casync_op *op)
{
	return gate_enter_as(gate, op, CASYNC_QUEUE_QUEUED);
}

struct casync_op *casync_gate_park(struct casync_gate *gate,
				   struct casync_op *op)
{
	return gate_enter_as(gate, op, CASYNC_QUEUE_PARKED);
}

struct casync_op *casync_gate_next(struct casync_gate *gate,
				   struct casync_op *op)
{
	struct casync_op *next;

	pthread_mutex_lock(&gate->lock);
	/* A call of several ops may still be refused. */
	if (op->members == NULL)
		(void)casync_gate_order_submitted_locked(gate, op);
	next = casync_gate_order_take_locked(gate);
	CASYNC_CHECK(gate->inside != 0);
	if (next == NULL)
		gate->inside--;
	pthread_mutex_unlock(&gate->lock);
	return next;
}

/* A write is no longer in flight.  Was it the last that a flush waits for? */
static bool gate_write_done(struct casync_gate *gate,
			    const struct casync_op *op)
{
	CASYNC_CHECK(gate->writes_in_flight[op->gather.epoch] != 0);
	gate->writes_in_flight[op->gather.epoch]--;
	if (!gate->draining || gate->writes_in_flight[gate->epoch ^ 1] != 0)
		return false;
	gate->draining = false;
	return true;
}

struct casync_op *casync_gate_answered(struct casync_gate *gate,
				       struct casync_op *op, bool *drained)
{
	struct casync_op *now = NULL;
	bool others_may_go;

	*drained = false;
	if (op->kind != CASYNC_OP_WRITE)
		return NULL;
	pthread_mutex_lock(&gate->lock);
	others_may_go = casync_write_stream_end_call(&gate->streams, op);
	others_may_go |= casync_gate_order_submitted_locked(gate, op);
	*drained = gate_write_done(gate, op);
	if (others_may_go)
		now = gate_take(gate, ALONE);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

void casync_gate_refused(struct casync_gate *gate, struct casync_op *first)
{
	pthread_mutex_lock(&gate->lock);
	(void)casync_write_stream_end_call(&gate->streams, first);
	first->queue_state = CASYNC_QUEUE_TAKEN;
	gate->inside++;
	pthread_mutex_unlock(&gate->lock);
}

/*
 * The first flush does not wait for the writes that wait for it, though they
 * may have come before it began.
 */
static void gate_move_journaling(struct casync_gate *gate)
{
	struct casync_op *op;

	for (op = gate->oldest; op != NULL; op = op->next) {
		if (!gate_is_queued_write(op) ||
		    op->gather.epoch == gate->epoch)
			continue;
		CASYNC_CHECK(gate->writes_in_flight[op->gather.epoch] != 0);
		gate->writes_in_flight[op->gather.epoch]--;
		gate_write_admitted(gate, op, gate->epoch);
	}
}

bool casync_gate_hold(struct casync_gate *gate)
{
	bool drained;

	pthread_mutex_lock(&gate->lock);
	gate->epoch ^= 1;
	if (gate->journaling)
		gate_move_journaling(gate);
	drained = gate->writes_in_flight[gate->epoch ^ 1] == 0;
	gate->held = true;
	gate->draining = !drained;
	pthread_mutex_unlock(&gate->lock);
	return drained;
}

bool casync_gate_is_draining(struct casync_gate *gate)
{
	bool draining;

	pthread_mutex_lock(&gate->lock);
	draining = gate->draining;
	pthread_mutex_unlock(&gate->lock);
	return draining;
}

struct casync_op *casync_gate_release(struct casync_gate *gate, bool journaled)
{
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	gate->held = false;
	if (journaled)
		gate->journaling = false;
	now = gate_take(gate, BESIDE_OTHERS);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

void casync_gate_hold_for_journal(struct casync_gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->journaling = true;
	pthread_mutex_unlock(&gate->lock);
}

struct casync_op *casync_gate_remove_unjournaled(struct casync_gate *gate)
{
	struct casync_op **link = &gate->oldest;
	struct casync_op *expelled = NULL;
	struct casync_op **end = &expelled;

	pthread_mutex_lock(&gate->lock);
	gate->journaling = false;
	while (*link != NULL) {
		if (!gate_is_queued_write(*link)) {
			link = &(*link)->next;
			continue;
		}
		*end = casync_gate_order_remove_locked(gate, link);
		CASYNC_CHECK(gate->writes_in_flight[(*end)->gather.epoch] != 0);
		gate->writes_in_flight[(*end)->gather.epoch]--;
		end = &(*end)->next;
	}
	pthread_mutex_unlock(&gate->lock);
	return expelled;
}

/* May a later op that a flush waits for have to wait for this one? */
static bool gate_keeps_flush_waiting(const struct casync_gate *gate,
				     const struct casync_op *op)
{
	const struct casync_op *later;

	if (!gate->draining)
		return false;
	for (later = op->next; later != NULL; later = later->next) {
		if (gate_is_queued_write(later) &&
		    later->gather.epoch != gate->epoch)
			return true;
	}
	return false;
}

struct casync_op *casync_gate_unpark(struct casync_gate *gate,
				     struct casync_op *op)
{
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	op->queue_state = CASYNC_QUEUE_QUEUED;
	gate_write_admitted(gate, op,
			    gate->epoch ^ gate_keeps_flush_waiting(gate, op));
	now = gate_take(gate, BESIDE_OTHERS);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

struct casync_op *casync_gate_cancel_parked(struct casync_gate *gate,
					    struct casync_op *op)
{
	struct casync_op **link = &gate->oldest;
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	while (*link != op)
		link = &(*link)->next;
	(void)casync_gate_order_remove_locked(gate, link);
	/* Ops that overlap it no longer wait for it. */
	now = gate_take(gate, BESIDE_OTHERS);
	pthread_mutex_unlock(&gate->lock);
	return now;
}
