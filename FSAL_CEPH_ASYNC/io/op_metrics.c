/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "clock.h"
#include "export.h"
#include "op.h"
#include "op_metrics.h"

static enum casync_metric_op op_metrics_kind(const struct casync_op *op)
{
	return op->kind == CASYNC_OP_READ ? CASYNC_METRIC_READ
					  : CASYNC_METRIC_WRITE;
}

/* Stability is known only after the answer. */
static void op_metrics_count_stability(const struct casync_op *op,
				       struct casync_metrics_shard *shard)
{
	if (!op->durability.stable_answer)
		return;
	/* Until op_store_outcome() it is the requested stability. */
	casync_count(shard,
		     op->arg->fsal_stable ? CASYNC_C_STABLE + op->stable_write
					  : CASYNC_C_PROMOTED,
		     1);
	if (!op->durability.flush)
		casync_count(shard, CASYNC_C_FLUSH_FREE, 1);
}

/* Requests never submitted report only the total. */
static void op_metrics_observe_stages(const struct casync_op *op,
				      struct casync_metrics_shard *shard)
{
	unsigned int h = CASYNC_H_STAGES + op_metrics_kind(op) * CASYNC_STAGES;
	uint64_t began_ns = op->entry.since_ns - op->entry.waited_ns;
	uint64_t now_ns = casync_now_ns();

	casync_observe(shard, h + CASYNC_STAGE_TOTAL, now_ns - began_ns);
	if (op->taken_ns == 0)
		return;
	casync_observe(shard, h + CASYNC_STAGE_QUEUED,
		       op->submitted_ns - began_ns);
	casync_observe(shard, h + CASYNC_STAGE_LIBCEPHFS,
		       op->answered_ns - op->submitted_ns);
	casync_observe(shard, h + CASYNC_STAGE_HANDOVER,
		       op->taken_ns - op->answered_ns);
	casync_observe(shard, h + CASYNC_STAGE_FINISH, now_ns - op->taken_ns);
}

void casync_op_count(const struct casync_op *op)
{
	struct casync_metrics_shard *shard =
		casync_metrics_shard(&op->exp->metrics);

	if (!CASYNC_METRICS_ON)
		return;
	casync_count_answer(shard, op_metrics_kind(op), op->status);
	if (op->entry.waited_ns != 0)
		casync_observe(shard, CASYNC_H_THROTTLE, op->entry.waited_ns);
	if (op->entry.refused != 0)
		return;
	op_metrics_observe_stages(op, shard);
	if (FSAL_IS_ERROR(op->status))
		return;
	casync_count(shard, CASYNC_C_BYTES + op_metrics_kind(op),
		     op->amount_bytes);
	if (op->kind == CASYNC_OP_WRITE)
		op_metrics_count_stability(op, shard);
	else if (op->end_of_file)
		casync_count(shard, CASYNC_C_EOF_READS, 1);
}

void casync_op_count_unsubmitted(const struct casync_op *op,
				 fsal_status_t status)
{
	casync_count_answer(casync_metrics_shard(&op->exp->metrics),
			    op_metrics_kind(op), status);
}
