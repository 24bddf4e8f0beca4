/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "export_mgr.h"
#include "nfs_core.h"

#include "clock.h"
#include "complete.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "object.h"
#include "op.h"
#include "parts.h"
#include "pool.h"
#include "read_cache.h"

/* The request, and its groups, may be freed while done_cb still runs. */
static void op_copy_creds(struct casync_op *op, const struct user_cred *from)
{
	gid_t *groups = op->groups;

	if (from->caller_glen > CASYNC_OP_GROUPS)
		groups = gsh_calloc(from->caller_glen, sizeof(*groups));
	if (from->caller_glen != 0)
		memcpy(groups, from->caller_garray,
		       from->caller_glen * sizeof(*groups));

	op->creds = *from;
	op->creds.caller_garray = groups;
}

struct casync_op *casync_op_new(enum casync_op_kind kind,
				const struct casync_call *call,
				struct fsal_io_arg *arg, fsal_async_cb done_cb,
				void *caller_arg)
{
	struct casync_export *exp = casync_export_current();
	struct casync_op *op = casync_pool_get(exp->pool);

	op->kind = kind;
	op->exp = exp;
	op->call = *call;
	op->obj = call->obj;
	op->ino = op->obj->id.ino;
	op->gsh_export = op_ctx->ctx_export;
	op_copy_creds(op, &op_ctx->creds);

	op->arg = arg;
	op->done_cb = done_cb;
	op->caller_arg = caller_arg;
	op->offset = arg->offset;
	op->length_bytes = casync_parts_length(arg);
	op->keeps_buffer = casync_ganesha_may_keep(arg);
	init_fsal_fd(&op->temp_fd.fsal_fd, FSAL_FD_TEMP, &op->exp->export);
	return op;
}

void casync_op_free(struct casync_op *op, struct casync_pool *pool)
{
	casync_op_set_state(op, CASYNC_OP_DONE);
	if (op->creds.caller_garray != op->groups)
		gsh_free(op->creds.caller_garray);
	casync_pool_put(pool, op);
}

static fsal_openflags_t op_openflags(const struct casync_op *op)
{
	return op->kind == CASYNC_OP_READ ? FSAL_O_READ : FSAL_O_WRITE;
}

static struct casync_durability op_decide_durability(struct casync_op *op)
{
	const struct casync_tuning *tuning = &op->exp->keys.tuning;
	struct casync_durability_in in = {
		.mode = casync_tuning_read(&tuning->stable_write),
		.stable_wanted = op->arg->fsal_stable,
		.promote_unstable =
			casync_tuning_read(&tuning->promote_unstable),
		.object_cache = false, /* refused in config.c */
		.grown = casync_file_size_grown(&op->obj->size,
						op->offset + op->length_bytes),
	};

	op->stable_write = in.mode;
	return casync_durability_of_write(&in);
}

/* --- the metrics */

static enum casync_metric_op op_metric_kind(const struct casync_op *op)
{
	return op->kind == CASYNC_OP_READ ? CASYNC_METRIC_READ
					  : CASYNC_METRIC_WRITE;
}

/* Stability is known only after the answer. */
static void op_count_stability(const struct casync_op *op,
			       struct casync_metrics_shard *shard)
{
	if (!op->durability.stable_answer)
		return;
	/* Until op_store_outcome() it is the requested stability. */
	casync_metrics_count(shard,
			     op->arg->fsal_stable
				     ? CASYNC_C_STABLE + op->stable_write
				     : CASYNC_C_PROMOTED,
			     1);
	if (!op->durability.flush)
		casync_metrics_count(shard, CASYNC_C_FLUSHES_AVOIDED, 1);
}

/* Requests never submitted report only the total. */
static void op_observe_stages(const struct casync_op *op,
			      struct casync_metrics_shard *shard)
{
	unsigned int h = CASYNC_H_STAGES + op_metric_kind(op) * CASYNC_STAGES;
	uint64_t began_ns = op->entry.since_ns - op->entry.waited_ns;
	uint64_t now_ns = casync_clock_ns();

	casync_metrics_observe(shard, h + CASYNC_STAGE_TOTAL,
			       now_ns - began_ns);
	if (op->taken_ns == 0)
		return;
	casync_metrics_observe(shard, h + CASYNC_STAGE_QUEUED,
			       op->submitted_ns - began_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_LIBCEPHFS,
			       op->answered_ns - op->submitted_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_HANDOVER,
			       op->taken_ns - op->answered_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_FINISH,
			       now_ns - op->taken_ns);
}

/* Before the answer: a client that has it finds the op counted. */
static void op_count(const struct casync_op *op)
{
	struct casync_metrics_shard *shard =
		casync_metrics_shard(&op->exp->metrics);

	if (!CASYNC_METRICS_ON || op->ahead)
		return;
	casync_metrics_count_answer(shard, op_metric_kind(op), op->status);
	if (op->entry.waited_ns != 0)
		casync_metrics_observe(shard, CASYNC_H_THROTTLE,
				       op->entry.waited_ns);
	if (op->entry.refused != 0)
		return;
	op_observe_stages(op, shard);
	if (FSAL_IS_ERROR(op->status))
		return;
	casync_metrics_count(shard, CASYNC_C_BYTES + op_metric_kind(op),
			     op->amount_bytes);
	if (op->kind == CASYNC_OP_WRITE)
		op_count_stability(op, shard);
	else if (op->end_of_file)
		casync_metrics_count(shard, CASYNC_C_EOF_READS, 1);
}

static void op_count_unsubmitted(const struct casync_op *op,
				 fsal_status_t status)
{
	if (op->ahead)
		return;
	casync_metrics_count_answer(casync_metrics_shard(&op->exp->metrics),
				    op_metric_kind(op), status);
}

/* --- the log */

static const char *const op_state_names[] = {
	[CASYNC_OP_NEW] = "NEW (opening the file)",
	[CASYNC_OP_JOURNALING] = "JOURNALING (first flush of a new file)",
	[CASYNC_OP_HELD] = "HELD (waits for other requests of its file)",
	[CASYNC_OP_SUBMITTED] = "SUBMITTED (with libcephfs)",
	[CASYNC_OP_QUEUED] = "QUEUED (libcephfs has answered)",
	[CASYNC_OP_FINISHING] = "FINISHING",
	[CASYNC_OP_BLOCKING] = "BLOCKING (repair, flush or close)",
	[CASYNC_OP_DONE] = "DONE",
};

void casync_op_dump_take(const struct casync_op *op, struct casync_dump *dump)
{
	dump->ino = op->ino;
	dump->offset = op->offset;
	dump->length_bytes = op->length_bytes;
	dump->since_ns = op->entry.since_ns;
	dump->kind = op->kind;
	dump->state = __atomic_load_n(&op->state, __ATOMIC_ACQUIRE);
	dump->parts_left = __atomic_load_n(&op->parts_left, __ATOMIC_RELAXED) %
			   CASYNC_OP_SUBMITTING;
}

const char *casync_op_dump_format(const struct casync_dump *dump, char *line,
				  size_t size)
{
	uint64_t age_ns =
		dump->since_ns == 0 ? 0 : casync_clock_age_ns(dump->since_ns);

	(void)snprintf(line, size,
		       "%s inode 0x%" PRIx64 " offset %" PRIu64
		       " length %" PRIu64 " age %" PRIu64
		       " ms state %s, %d calls unanswered",
		       dump->kind == CASYNC_OP_READ ? "READ" : "WRITE",
		       dump->ino, dump->offset, dump->length_bytes,
		       (uint64_t)(age_ns / CASYNC_NS_PER_MS),
		       op_state_names[dump->state], dump->parts_left);
	return line;
}

void casync_op_log_ended(const struct casync_op *op)
{
	struct casync_dump dump;
	char line[CASYNC_DUMP_LINE];

	casync_op_dump_take(op, &dump);
	LogWarn(COMPONENT_FSAL,
		"export %" PRIu16 ": slow request completed: %s: %s",
		op->exp->export.export_id,
		casync_op_dump_format(&dump, line, sizeof(line)),
		fsal_err_txt(op->status));
}

/* --- the start and the answer */

void casync_op_answer_early(struct casync_op *op, fsal_status_t status)
{
	struct fsal_obj_handle *handle = &op->obj->handle;
	fsal_async_cb done_cb = op->done_cb;
	struct fsal_io_arg *arg = op->arg;
	void *caller_arg = op->caller_arg;

	status = casync_call_end(&op->call, status);
	op_count_unsubmitted(op, status);
	/* First: after the answer the export may be freed. */
	casync_op_free(op, op->exp->pool);
	arg->io_amount = 0;
	done_cb(handle, status, arg, caller_arg);
}

static void op_release_fd(struct casync_op *op)
{
	static uint64_t line_ns;
	fsal_status_t status;

	if (casync_op_ends_in_libcephfs(op))
		casync_metrics_count(casync_metrics_shard(&op->exp->metrics),
				     CASYNC_C_DEFERRED_CLOSES, 1);
	status = casync_borrow_complete_io(op->obj, op->fsal_fd);
	if (FSAL_IS_ERROR(status) && casync_clock_once_a_minute(&line_ns))
		LogWarn(COMPONENT_FSAL,
			"closing the temporary fd of inode 0x%" PRIx64
			": %s; the I/O itself is not affected (no other such line for a minute)",
			op->obj->id.ino, fsal_err_txt(status));

	if (op->share_held)
		update_share_counters_locked(&op->obj->handle, &op->obj->share,
					     op_openflags(op), FSAL_O_CLOSED);
}

/* op->resume_events: the second of these two events sends the write on. */
enum { PARKED = 1, CALLED = 2 };

static void op_resume(struct casync_op *op, uint32_t what)
{
	const uint32_t both = PARKED | CALLED;

	if ((__atomic_or_fetch(&op->resume_events, what, __ATOMIC_ACQ_REL) &
	     both) == both)
		casync_lane_submit(
			casync_inode_lane(op->obj, CASYNC_LANE_SUBMIT),
			&op->work);
}

/* The op got a place, or none in time.  Go on, on a thread that may block. */
static void op_called(struct casync_inflight_entry *entry)
{
	op_resume(container_of(entry, struct casync_op, entry), CALLED);
}

void casync_op_parked(struct casync_op *op)
{
	op_resume(op, PARKED);
}

enum casync_op_started casync_op_start(struct casync_op *op, bool bypass,
				       void (*later)(struct casync_work *work),
				       fsal_status_t *status)
{
	struct casync_object *obj = op->obj;
	struct state_t *state = op->arg->state;
	int rc;

	*status = casync_ganesha_start_io(
		&op->fsal_fd, &obj->handle,
		&casync_object_global_fd(obj, op_openflags(op))->fsal_fd,
		&op->temp_fd.fsal_fd, state, op_openflags(op), false, bypass,
		&obj->share);
	if (FSAL_IS_ERROR(*status)) {
		op->fsal_fd = NULL;
		return CASYNC_OP_REFUSED;
	}
	/* It takes a reservation only if no state has one. */
	op->share_held = state == NULL;
	rc = casync_call_use_fd(obj, casync_fd_of(op->fsal_fd));
	if (rc < 0) {
		op_release_fd(op);
		op->fsal_fd = NULL;
		*status = casync_errors_status(rc);
		return CASYNC_OP_REFUSED;
	}

	op->work.run = later;
	op->entry.called = op_called;
	op->resume_events = op->kind == CASYNC_OP_WRITE ? 0 : PARKED;
	rc = casync_inflight_enter(&op->exp->inflight, &op->entry,
				   op->length_bytes);
	if (rc == 0)
		return CASYNC_OP_STARTED;
	if (rc == -EINPROGRESS)
		return CASYNC_OP_WAITS;
	op_release_fd(op);
	op->fsal_fd = NULL;
	*status = fsalstat(ERR_FSAL_DELAY, -rc);
	return CASYNC_OP_REFUSED;
}

void casync_op_lay_out(struct casync_op *op)
{
	bool fills = op->fill != NULL;
	const struct casync_transfer transfer = {
		.fh = casync_fd_fh(casync_fd_of(op->fsal_fd)),
		.offset = op->offset,
		.length_bytes = op->length_bytes,
		.span = __atomic_load_n(&op->obj->object_span,
					__ATOMIC_RELAXED),
		.iov = fills ? &op->fill->iov : op->arg->iov,
		.iov_count = fills ? 1U : (unsigned int)op->arg->iov_count,
		.write = op->kind == CASYNC_OP_WRITE,
		.fsync = op->durability.fsync,
	};

	casync_parts_lay_out(&op->parts, op->exp->pool, &transfer);
}

void casync_op_prepare(struct casync_op *op)
{
	if (op->kind == CASYNC_OP_WRITE) {
		op->truncations = casync_file_size_truncations(&op->obj->size);
		op->durability = op_decide_durability(op);
	}
	casync_op_lay_out(op);
	if (op->kind == CASYNC_OP_WRITE)
		casync_gather_prepare(op);
}

static void op_store_outcome(const struct casync_op *op)
{
	struct fsal_io_arg *arg = op->arg;

	/* Bytes that were transferred before an error are not reported. */
	arg->io_amount = FSAL_IS_ERROR(op->status) ? 0 : op->amount_bytes;
	if (op->kind == CASYNC_OP_READ)
		arg->end_of_file = op->end_of_file;
	else
		arg->fsal_stable = op->durability.stable_answer;
}

/* It is answered.  If it was disowned, libcephfs may have it still (disown.h);
 * else a completion thread frees what was kept for libcephfs. */
static void op_put(struct casync_op *op)
{
	if (op->disowned == NULL)
		casync_op_free(op, op->exp->pool);
	else if (__atomic_sub_fetch(&op->parts_left, CASYNC_OP_DISOWNED,
				    __ATOMIC_ACQ_REL) == 0)
		casync_complete_queue(op);
}

void casync_op_answer(struct casync_op *op)
{
	struct req_op_context ctx;

	get_gsh_export_ref(op->gsh_export);
	init_op_context_simple(&ctx, op->gsh_export, &op->exp->export);
	/* A simple context has root's credentials; done_cb needs the
	 * requester's. */
	ctx.creds = op->creds;

	op_release_fd(op);
	if (op->kind == CASYNC_OP_READ && op->disowned == NULL)
		casync_read_cache_end_read(op);
	/* Before the answer, after which the object may be freed. */
	op->status = casync_call_end(&op->call, op->status);
	casync_inflight_leave(&op->exp->inflight, &op->entry);
	op_count(op);
	op_store_outcome(op);
	op->done_cb(&op->obj->handle, op->status, op->arg, op->caller_arg);
	if (op->entry.reported)
		casync_op_log_ended(op);
	/* Before the context is released: export and pool may go with it. */
	op_put(op);
	release_op_context();
}

static void op_run_end(struct casync_work *work)
{
	casync_op_answer(container_of(work, struct casync_op, work));
}

void casync_op_end_on_worker(struct casync_op *op)
{
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	op->work.run = op_run_end;
	casync_lane_submit(casync_inode_lane(op->obj, CASYNC_LANE_DATA),
			   &op->work);
}

void casync_op_end_unblocked(struct casync_op *op)
{
	if (casync_op_ends_in_libcephfs(op))
		casync_op_end_on_worker(op);
	else
		casync_op_answer(op);
}
