/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "export.h"
#include "queue.h"
#include "gather.h"
#include "object.h"
#include "op.h"
#include "pool.h"

void casync_gather_prepare(struct casync_op *op)
{
	uint32_t max_bytes =
		casync_tuning_read(&op->exp->keys.tuning.gather_bytes);
	uint64_t span =
		__atomic_load_n(&op->obj->object_span, __ATOMIC_RELAXED);

	op->gather.max_bytes = 0;
	/* An op that leaves no room for a second one of its size goes alone. */
	if (op->length_bytes > max_bytes / 2 || span == 0)
		return;
	op->gather.piece = op->offset / span;
	if ((op->offset + op->length_bytes - 1) / span == op->gather.piece)
		op->gather.max_bytes = max_bytes;
}

static uint32_t gather_iovs_of(const struct casync_op *op)
{
	return (uint32_t)op->parts.at[0].io.iovcnt;
}

void casync_gather_begin(struct casync_gather_run *run, struct casync_op *op)
{
	run->first = op;
	run->last = op;
	run->begin = op->offset;
	run->end = op->offset + op->length_bytes;
	run->count = 1;
	run->iovs = gather_iovs_of(op);
}

static bool gather_wants_the_same(const struct casync_op *a,
				  const struct casync_op *b)
{
	return a->gather.max_bytes == b->gather.max_bytes &&
	       a->gather.piece == b->gather.piece &&
	       a->parts.at[0].io.fh == b->parts.at[0].io.fh &&
	       a->parts.at[0].io.fsync == b->parts.at[0].io.fsync &&
	       a->durability.stable_answer == b->durability.stable_answer;
}

bool casync_gather_fits(const struct casync_gather_run *run,
			const struct casync_op *op)
{
	if (op->gather.max_bytes == 0 ||
	    (op->offset != run->end &&
	     op->offset + op->length_bytes != run->begin))
		return false;
	return run->end - run->begin + op->length_bytes <=
		       op->gather.max_bytes &&
	       run->iovs + gather_iovs_of(op) <= CASYNC_GATHER_IOVS &&
	       gather_wants_the_same(run->first, op);
}

void casync_gather_add(struct casync_gather_run *run, struct casync_op *op)
{
	if (op->offset == run->end) {
		run->last->next = op;
		run->last = op;
	} else {
		op->next = run->first;
		run->first = op;
		run->begin = op->offset;
	}
	run->end = run->last->offset + run->last->length_bytes;
	run->count++;
	run->iovs += gather_iovs_of(op);
}

struct casync_op *casync_gather_end(const struct casync_gather_run *run)
{
	struct casync_op *first = run->first;
	struct casync_metrics_shard *shard;

	first->members = first->next;
	first->next = NULL;
	if (run->count > 1) {
		shard = casync_metrics_shard(&first->exp->metrics);
		casync_metrics_count(shard, CASYNC_C_GATHERED_WRITES,
				     run->count);
		casync_metrics_count(shard, CASYNC_C_GATHERED_CALLS, 1);
	}
	return first;
}

void casync_gather_lay_out(struct casync_op *first)
{
	struct casync_part *part = &first->parts.at[0];
	uint32_t own = gather_iovs_of(first);
	const struct casync_op *op;
	struct iovec *to;
	uint32_t iovs = own;

	for (op = first->members; op != NULL; op = op->next)
		iovs += gather_iovs_of(op);
	casync_pool_keep_iovs(&first->parts, own, iovs);
	part->io.iov = first->parts.iovs;
	to = first->parts.iovs + own;
	for (op = first->members; op != NULL; op = op->next) {
		memcpy(to, op->parts.at[0].io.iov,
		       gather_iovs_of(op) * sizeof(*to));
		to += gather_iovs_of(op);
		part->asked_bytes += op->length_bytes;
	}
	part->io.iovcnt = (int)iovs;
}

/* Could some of the ops succeed alone? */
static bool gather_is_refused(const struct casync_part *part)
{
	int64_t result = part->result;

	return result == -EDQUOT || result == -ENOSPC || result == -EFBIG ||
	       (result > 0 && (size_t)result < part->asked_bytes);
}

struct casync_op *casync_gather_scatter(struct casync_op *first)
{
	struct casync_op *members = first->members;
	struct casync_op *op;
	int64_t result;

	if (members == NULL)
		return NULL;
	result = first->parts.at[0].result;
	if (gather_is_refused(&first->parts.at[0])) {
		first->queue_state = CASYNC_QUEUE_REFUSED;
		return NULL;
	}
	first->members = NULL;
	/* The whole length, or an error. */
	if (result > 0)
		first->parts.at[0].result = (int64_t)first->length_bytes;
	for (op = members; op != NULL; op = op->next) {
		op->parts.at[0].result = result > 0 ? (int64_t)op->length_bytes
						    : result;
		op->submitted_ns = first->submitted_ns;
		op->answered_ns = first->answered_ns;
		__atomic_store_n(&op->parts_left, 0, __ATOMIC_RELAXED);
		casync_op_set_state(op, CASYNC_OP_QUEUED);
	}
	return members;
}

void casync_gather_make_alone(struct casync_op *op)
{
	op->gather.max_bytes = 0;
	/* Use its second part: a late duplicate of the first call must find the
	 * first part. */
	op->parts.at = &op->parts.own[1];
	op->parts.room = 1;
}
