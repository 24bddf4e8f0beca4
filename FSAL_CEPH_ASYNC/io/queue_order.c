/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "check.h"
#include "queue.h"
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
static bool queue_order_is_held(const struct casync_queue *queue,
				const struct casync_op *op)
{
	if (op->queue_state == CASYNC_QUEUE_PARKED)
		return true;
	return (queue->hold.since_ns != 0 ||
		casync_queue_awaits_create(queue)) &&
	       op->gather.epoch == queue->writes.epoch;
}

static bool queue_order_must_wait(struct casync_queue *queue,
				  const struct casync_op *op)
{
	return queue_order_is_held(queue, op) ||
	       casync_write_stream_is_busy(&queue->streams, op);
}

void casync_queue_order_append_locked(struct casync_queue *queue,
				      struct casync_op *op)
{
	CASYNC_CHECK_HELD(&queue->lock);
	op->next = NULL;
	*queue->end = op;
	queue->end = &op->next;
	casync_write_stream_queued(&queue->streams, op);
}

struct casync_op *casync_queue_order_remove_locked(struct casync_queue *queue,
						   struct casync_op **link)
{
	struct casync_op *op = *link;

	CASYNC_CHECK_HELD(&queue->lock);
	*link = op->next;
	if (queue->end == &op->next)
		queue->end = link;
	op->next = NULL;
	op->queue_state = CASYNC_QUEUE_OUT;
	casync_write_stream_unqueued(&queue->streams, op);
	return op;
}

/* Does it matter which of the two comes first? */
static bool queue_order_overlap(const struct casync_op *a,
				const struct casync_op *b)
{
	return a->offset < b->offset + b->length_bytes &&
	       b->offset < a->offset + a->length_bytes;
}

/* Does it overlap an op that is being submitted? */
static bool queue_order_overlaps_submitting(const struct casync_queue *queue,
					    const struct casync_op *op)
{
	const struct casync_op *first;

	for (first = queue->submitting; first != NULL;
	     first = first->gather.next_submitting) {
		if (first->offset < op->offset + op->length_bytes &&
		    op->offset < first->gather.end)
			return true;
	}
	return false;
}

bool casync_queue_order_submitted_locked(struct casync_queue *queue,
					 struct casync_op *op)
{
	struct casync_op **link = &queue->submitting;

	CASYNC_CHECK_HELD(&queue->lock);
	if (op->queue_state != CASYNC_QUEUE_TAKEN)
		return false;
	while (*link != op)
		link = &(*link)->gather.next_submitting;
	*link = op->gather.next_submitting;
	op->queue_state = CASYNC_QUEUE_OUT;
	return true;
}

/* The link of the oldest op before this one that overlaps it, or its own. */
static struct casync_op **queue_order_first_overlap(struct casync_queue *queue,
						    const struct casync_op *op)
{
	struct casync_op **link = &queue->oldest;

	while (*link != op && !queue_order_overlap(*link, op))
		link = &(*link)->next;
	return link;
}

/*
 * Collect the ops that go in one call with this one: adjacent ops, in a bounded
 * number of steps through the queue.
 */
static struct casync_op *queue_order_gather(struct casync_queue *queue,
					    struct casync_op *op)
{
	unsigned int looks = CASYNC_GATHER_LOOKS;
	struct casync_gather_run run;
	struct casync_op **link;
	bool found;

	casync_gather_begin(&run, op);
	do {
		found = false;
		link = &queue->oldest;
		while (*link != NULL && looks != 0) {
			looks--;
			if (!casync_gather_fits(&run, *link) ||
			    queue_order_is_held(queue, *link) ||
			    queue_order_overlaps_submitting(queue, *link) ||
			    queue_order_first_overlap(queue, *link) != link) {
				link = &(*link)->next;
				continue;
			}
			casync_gather_add(
				&run,
				casync_queue_order_remove_locked(queue, link));
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
static struct casync_op **
queue_order_first_to_submit(struct casync_queue *queue, struct casync_op **link)
{
	unsigned int looks = CHAIN_LOOKS;
	const struct casync_op *op;

	do {
		op = *link;
		link = queue_order_first_overlap(queue, op);
	} while (*link != op && --looks != 0);
	if (*link == op && !queue_order_is_held(queue, op) &&
	    !queue_order_overlaps_submitting(queue, op))
		return link;
	return NULL;
}

static struct casync_op **queue_order_find(struct casync_queue *queue)
{
	unsigned int blocked = BLOCKED_LOOKS;
	struct casync_op **link, **go;

	for (link = &queue->oldest; *link != NULL; link = &(*link)->next) {
		if (queue_order_must_wait(queue, *link))
			continue;
		go = queue_order_first_to_submit(queue, link);
		if (go != NULL)
			return go;
		if (--blocked == 0)
			break;
	}
	return NULL;
}

/* The op at a link, with the ops that share its call. */
static struct casync_op *queue_order_take_call(struct casync_queue *queue,
					       struct casync_op **link)
{
	struct casync_op *op = casync_queue_order_remove_locked(queue, link);

	op->gather.end = op->offset + op->length_bytes;
	if (op->gather.max_bytes != 0)
		op = queue_order_gather(queue, op);
	casync_write_stream_begin_call(&queue->streams, op);
	op->queue_state = CASYNC_QUEUE_TAKEN;
	op->gather.next_submitting = queue->submitting;
	queue->submitting = op;
	return op;
}

struct casync_op *casync_queue_order_take_locked(struct casync_queue *queue)
{
	struct casync_op **link = queue_order_find(queue);

	CASYNC_CHECK_HELD(&queue->lock);
	return link != NULL ? queue_order_take_call(queue, link) : NULL;
}

struct casync_op *
casync_queue_order_take_newest_locked(struct casync_queue *queue,
				      struct casync_op **link)
{
	struct casync_op **go;

	if (queue_order_must_wait(queue, *link))
		return NULL;
	go = queue_order_first_to_submit(queue, link);
	return go != NULL ? queue_order_take_call(queue, go) : NULL;
}
