/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "check.h"
#include "gate.h"
#include "gather.h"
#include "op.h"
#include "write_stream.h"

/*
 * Most ops that one search skips because they cannot go, and most overlapping
 * ops that it follows.  When a blocking op has gone, the search is repeated.
 */
#define BLOCKED_LOOKS 64
#define CHAIN_LOOKS 32

/* Does it wait for a flush? */
static bool gate_order_is_held(const struct casync_gate *gate,
			       const struct casync_op *op)
{
	if (op->kind != CASYNC_OP_WRITE)
		return false;
	return op->queue_state == CASYNC_QUEUE_PARKED ||
	       ((gate->journaling || gate->held) &&
		op->gather.epoch == gate->epoch);
}

static bool gate_order_must_wait(struct casync_gate *gate,
				 const struct casync_op *op)
{
	return gate_order_is_held(gate, op) ||
	       casync_write_stream_is_busy(&gate->streams, op);
}

void casync_gate_order_append_locked(struct casync_gate *gate,
				     struct casync_op *op)
{
	CASYNC_CHECK_HELD(&gate->lock);
	op->next = NULL;
	*gate->end = op;
	gate->end = &op->next;
	casync_write_stream_queued(&gate->streams, op);
}

struct casync_op *casync_gate_order_remove_locked(struct casync_gate *gate,
						  struct casync_op **link)
{
	struct casync_op *op = *link;

	CASYNC_CHECK_HELD(&gate->lock);
	*link = op->next;
	if (gate->end == &op->next)
		gate->end = link;
	op->next = NULL;
	op->queue_state = CASYNC_QUEUE_OUT;
	casync_write_stream_unqueued(&gate->streams, op);
	return op;
}

/* Does it matter which of the two comes first? */
static bool gate_order_overlap(const struct casync_op *a,
			       const struct casync_op *b)
{
	if (a->kind != CASYNC_OP_WRITE && b->kind != CASYNC_OP_WRITE)
		return false;
	return a->offset < b->offset + b->length_bytes &&
	       b->offset < a->offset + a->length_bytes;
}

/* Does it overlap an op that is being submitted? */
static bool gate_order_overlaps_submitting(const struct casync_gate *gate,
					   const struct casync_op *op)
{
	const struct casync_op *first;

	if (op->kind != CASYNC_OP_WRITE)
		return false;
	for (first = gate->submitting; first != NULL;
	     first = first->gather.next_submitting) {
		if (first->offset < op->offset + op->length_bytes &&
		    op->offset < first->gather.end)
			return true;
	}
	return false;
}

bool casync_gate_order_submitted_locked(struct casync_gate *gate,
					struct casync_op *op)
{
	struct casync_op **link = &gate->submitting;

	CASYNC_CHECK_HELD(&gate->lock);
	if (op->queue_state != CASYNC_QUEUE_TAKEN)
		return false;
	while (*link != op)
		link = &(*link)->gather.next_submitting;
	*link = op->gather.next_submitting;
	op->queue_state = CASYNC_QUEUE_OUT;
	return true;
}

/* The link of the oldest op before this one that overlaps it, or its own. */
static struct casync_op **gate_order_first_overlap(struct casync_gate *gate,
						   const struct casync_op *op)
{
	struct casync_op **link = &gate->oldest;

	while (*link != op && !gate_order_overlap(*link, op))
		link = &(*link)->next;
	return link;
}

/*
 * Collect the ops that go in one call with this one: adjacent ops, in a bounded
 * number of steps through the queue.
 */
static struct casync_op *gate_order_gather(struct casync_gate *gate,
					   struct casync_op *op)
{
	unsigned int looks = CASYNC_GATHER_LOOKS;
	struct casync_gather_run run;
	struct casync_op **link;
	bool found;

	casync_gather_begin(&run, op);
	do {
		found = false;
		link = &gate->oldest;
		while (*link != NULL && looks != 0) {
			looks--;
			if (!casync_gather_fits(&run, *link) ||
			    gate_order_is_held(gate, *link) ||
			    gate_order_overlaps_submitting(gate, *link) ||
			    gate_order_first_overlap(gate, *link) != link) {
				link = &(*link)->next;
				continue;
			}
			casync_gather_add(&run, casync_gate_order_remove_locked(
							gate, link));
			found = true;
		}
	} while (found && looks != 0);
	op = casync_gather_end(&run);
	op->gather.end = run.end;
	return op;
}

/*
 * The op that has to go first before the op at a link: the oldest op that it
 * overlaps, then the oldest op that that one overlaps, and so on.  It is the op
 * itself if it overlaps none.  NULL: it cannot go now.
 */
static struct casync_op **gate_order_first_to_submit(struct casync_gate *gate,
						     struct casync_op **link)
{
	struct casync_op **const wanted = link;
	unsigned int looks = CHAIN_LOOKS;
	const struct casync_op *op;

	do {
		op = *link;
		link = gate_order_first_overlap(gate, op);
	} while (*link != op && --looks != 0);
	if (*link == op && !gate_order_is_held(gate, op) &&
	    !gate_order_overlaps_submitting(gate, op))
		return link;
	/* A read does not wait for the reasons of a write. */
	return (*wanted)->kind == CASYNC_OP_WRITE ? NULL : wanted;
}

static struct casync_op **gate_order_find(struct casync_gate *gate)
{
	unsigned int blocked = BLOCKED_LOOKS;
	struct casync_op **link, **go;

	for (link = &gate->oldest; *link != NULL; link = &(*link)->next) {
		if (gate_order_must_wait(gate, *link))
			continue;
		go = gate_order_first_to_submit(gate, link);
		if (go != NULL)
			return go;
		if (--blocked == 0)
			break;
	}
	return NULL;
}

/* The op at a link, with the ops that share its call. */
static struct casync_op *gate_order_take_call(struct casync_gate *gate,
					      struct casync_op **link)
{
	struct casync_op *op = casync_gate_order_remove_locked(gate, link);

	op->gather.end = op->offset + op->length_bytes;
	if (op->gather.max_bytes != 0)
		op = gate_order_gather(gate, op);
	casync_write_stream_begin_call(&gate->streams, op);
	if (op->kind == CASYNC_OP_WRITE) {
		op->queue_state = CASYNC_QUEUE_TAKEN;
		op->gather.next_submitting = gate->submitting;
		gate->submitting = op;
	}
	return op;
}

struct casync_op *casync_gate_order_take_locked(struct casync_gate *gate)
{
	struct casync_op **link = gate_order_find(gate);

	CASYNC_CHECK_HELD(&gate->lock);
	return link != NULL ? gate_order_take_call(gate, link) : NULL;
}

struct casync_op *casync_gate_order_take_newest_locked(struct casync_gate *gate,
						       struct casync_op **link)
{
	struct casync_op **go;

	if (gate_order_must_wait(gate, *link))
		return NULL;
	go = gate_order_first_to_submit(gate, link);
	return go != NULL ? gate_order_take_call(gate, go) : NULL;
}
