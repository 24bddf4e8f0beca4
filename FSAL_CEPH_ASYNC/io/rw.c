/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READ, WRITE and COMMIT as Ganesha calls them.  Requests that libcephfs must
 * never get are answered here.  The others become ops.
 *
 * fsal_resume is written and never read: we do not ask to be resumed, and 9P
 * passes an argument that it has not initialised.
 */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "call.h"
#include "clock.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "delegations.h"
#include "next_files.h"
#include "object.h"
#include "op.h"
#include "obj_ops.h"
#include "privileges.h"
#include "read_cache.h"
#include "repair.h"
#include "submit.h"

static void rw_count(struct casync_export *exp, enum casync_metric counter)
{
	casync_metrics_count(casync_metrics_shard(&exp->metrics), counter, 1);
}

static void rw_refuse(struct casync_op *op)
{
	op->status = fsalstat(ERR_FSAL_DELAY, -op->entry.refused);
	casync_op_end_unblocked(op);
}

/* libcephfs refuses empty writes and loses empty reads. */
static bool rw_answers_empty(struct casync_op *op)
{
	if (op->length_bytes != 0)
		return false;
	casync_op_answer_early(op, fsalstat(ERR_FSAL_NO_ERROR, 0));
	return true;
}

/* Does the request end past what a signed offset can say? */
static bool rw_past_last_offset(const struct casync_op *op)
{
	return op->offset > INT64_MAX ||
	       op->length_bytes > INT64_MAX - op->offset;
}

/* --- READ */

/*
 * A non-blocking read must stay within the file.  Past the end libcephfs does
 * one of two things.  If the data are inline in the inode, it returns 0 and
 * never calls back.  Otherwise it asks the MDS for the size from within the
 * completion, on a messenger thread, while it holds the read capability.  A
 * truncation by another client waits for that capability, and delays the
 * MDS' answer.  Then the mount hangs for ever.
 *
 * Returns false if no byte of the request is within the file, or if somebody
 * has shortened the file: then the known size cannot be used.
 */
static bool rw_clamp_to_size(struct casync_op *op)
{
	uint64_t size;

	/* In this order: file_size.h. */
	op->truncations = casync_file_size_truncations(&op->obj->size);
	if (casync_file_size_is_unknown(&op->obj->size))
		return false;
	size = casync_file_size_hint(&op->obj->size);
	if (op->offset >= size)
		return false;
	if (op->length_bytes > size - op->offset)
		op->length_bytes = size - op->offset;
	return true;
}

/* From here on no worker of Ganesha's waits with the op.  A worker that has not
 * waited so far may wait for the answer: it has a SLOT, or may take one. */
static void rw_read(struct casync_op *op, struct casync_call *slot)
{
	casync_op_prepare(op);
	if (op->past_end)
		casync_repair_whole(op);
	else
		casync_submit_read(op, slot);
}

/* A READ that is there to fill the cache is done if it cannot. */
static bool rw_is_done(struct casync_op *op, struct casync_call *slot)
{
	if (!op->past_end && casync_read_cache_find(op, slot))
		return true;
	return op->ahead && op->fill == NULL;
}

/* A READ that has its fd, its reservation and its place, on the worker that
 * brought it. */
static void rw_read_or_hit(struct casync_op *op)
{
	struct casync_call slot = {0};

	if (!rw_is_done(op, &slot)) {
		rw_read(op, &slot);
		return;
	}
	casync_call_drop(&slot);
	casync_op_end_unblocked(op);
}

static void rw_resume_read(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	if (op->entry.refused != 0 || op->ahead)
		rw_refuse(op);
	else
		rw_read(op, NULL);
}

static void rw_start_read(struct casync_op *op, bool bypass)
{
	fsal_status_t status;

	op->past_end = !rw_clamp_to_size(op);
	if (rw_answers_empty(op))
		return;
	switch (casync_op_start(op, bypass, rw_resume_read, &status)) {
	case CASYNC_OP_STARTED:
		rw_read_or_hit(op);
		break;
	case CASYNC_OP_WAITS:
		break;
	case CASYNC_OP_REFUSED:
		casync_op_answer_early(op, status);
		break;
	}
}

void casync_read2(struct fsal_obj_handle *obj_hdl, bool bypass,
		  fsal_async_cb done_cb, struct fsal_io_arg *read_arg,
		  void *caller_arg)
{
	struct casync_call call;
	struct casync_op *op;
	fsal_status_t status;

	read_arg->fsal_resume = FSAL_NORESUME;
	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_CLIENT);
	if (FSAL_IS_ERROR(status)) {
		read_arg->io_amount = 0;
		done_cb(obj_hdl, status, read_arg, caller_arg);
		return;
	}
	op = casync_op_new(CASYNC_OP_READ, &call, read_arg, done_cb,
			   caller_arg);
	op->ahead = done_cb == casync_next_files_done;

	/*
	 * READ_PLUS keeps `info` on the caller's stack, which is gone when an
	 * asynchronous read ends; RFC 7862 makes the operation optional.
	 */
	if (casync_ganesha_is_read_plus(read_arg)) {
		casync_op_answer_early(op, fsalstat(ERR_FSAL_NOTSUPP, 0));
		return;
	}

	read_arg->end_of_file = false;
	if (rw_past_last_offset(op)) {
		/* No file reaches that far. */
		read_arg->end_of_file = true;
		casync_op_answer_early(op, fsalstat(ERR_FSAL_NO_ERROR, 0));
		return;
	}
	if (casync_fd_lost_lock(read_arg->state)) {
		casync_op_answer_early(op, fsalstat(ERR_FSAL_IO, EIO));
		return;
	}
	casync_delegations_return_recalled(&op->obj->delegations, false);
	casync_next_files_read(op);
	rw_start_read(op, bypass);
}

/* --- WRITE */

static void rw_journal_first(const struct casync_op *op)
{
	if (casync_flush_before_data(op->obj))
		rw_count(op->exp, CASYNC_C_NEW_FILE_DELAYED);
}

/* A WRITE that has its fd, its reservation and its place, on the worker that
 * brought it.  That worker may wait for the answer. */
static void rw_submit_write(struct casync_op *op)
{
	casync_op_prepare(op);
	rw_journal_first(op);
	casync_submit_write(op);
}

/* The queue keeps the order of a write and those that overlap it. */
static void rw_park(struct casync_op *op)
{
	casync_op_prepare(op);
	casync_submit_park(op);
	casync_op_parked(op);
}

static void rw_resume_write(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	if (op->entry.refused != 0) {
		casync_submit_cancel_parked(op);
		rw_refuse(op);
		return;
	}
	rw_journal_first(op);
	casync_submit_parked(op);
}

static void rw_start_write(struct casync_op *op, bool bypass)
{
	fsal_status_t status;

	if (rw_answers_empty(op))
		return;
	casync_call_announce_own(&op->call);
	switch (casync_op_start(op, bypass, rw_resume_write, &status)) {
	case CASYNC_OP_STARTED:
		rw_submit_write(op);
		break;
	case CASYNC_OP_WAITS:
		rw_park(op);
		break;
	case CASYNC_OP_REFUSED:
		casync_op_answer_early(op, status);
		break;
	}
}

/* Take from the file what a write has to take.  0 or a negative errno. */
static int rw_clear_privileges(const struct casync_op *op)
{
	struct casync_call slot;
	int rc;

	if (!casync_object_privileged(op->obj))
		return 0;
	/* It asks the MDS, so the limit of SETATTR applies. */
	rc = casync_call_take(&slot, op->obj,
			      CASYNC_CALL_MOUNT_SLOT |
				      CASYNC_CALL_SETATTR_SLOT |
				      CASYNC_CALL_ANNOUNCES);
	if (rc < 0)
		return rc;
	rc = casync_privileges_drop(op->obj);
	casync_call_drop(&slot);
	return rc;
}

void casync_write2(struct fsal_obj_handle *obj_hdl, bool bypass,
		   fsal_async_cb done_cb, struct fsal_io_arg *write_arg,
		   void *caller_arg)
{
	struct casync_call call;
	struct casync_op *op;
	fsal_status_t status;
	int rc;

	write_arg->fsal_resume = FSAL_NORESUME;
	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_CLIENT);
	if (FSAL_IS_ERROR(status)) {
		write_arg->io_amount = 0;
		done_cb(obj_hdl, status, write_arg, caller_arg);
		return;
	}
	op = casync_op_new(CASYNC_OP_WRITE, &call, write_arg, done_cb,
			   caller_arg);

	casync_delegations_return_recalled(&op->obj->delegations, false);
	/* libcephfs asserts on a write to a snapshot. */
	if (casync_fd_lost_lock(write_arg->state))
		casync_op_answer_early(op, fsalstat(ERR_FSAL_IO, EIO));
	else if (op->obj->id.snapid != CEPH_NOSNAP)
		casync_op_answer_early(op, fsalstat(ERR_FSAL_ROFS, EROFS));
	else if (rw_past_last_offset(op))
		casync_op_answer_early(op, fsalstat(ERR_FSAL_FBIG, EFBIG));
	else if ((rc = rw_clear_privileges(op)) < 0)
		casync_op_answer_early(op, casync_errors_status(rc));
	else
		rw_start_write(op, bypass);
}

/* --- COMMIT */

static void rw_count_commit(struct casync_export *exp, fsal_status_t status,
			    uint64_t began_ns)
{
	struct casync_metrics_shard *shard =
		casync_metrics_shard(&exp->metrics);

	if (!CASYNC_METRICS_ON)
		return;
	casync_metrics_count_answer(shard, CASYNC_METRIC_COMMIT, status);
	casync_metrics_observe(shard, CASYNC_H_COMMIT,
			       casync_clock_age_ns(began_ns));
}

/* The limit of SETATTR applies: only some workers may wait for one file. */
static int rw_flush(struct casync_object *obj)
{
	struct casync_call slot;
	int rc = casync_call_take(&slot, obj, CASYNC_CALL_SETATTR_SLOT);

	if (rc < 0)
		return rc;
	rc = casync_flush_wait(obj);
	casync_call_drop(&slot);
	return rc;
}

fsal_status_t casync_commit2(struct fsal_obj_handle *obj_hdl, off_t offset,
			     size_t len)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_export *exp = casync_export_current();
	const struct casync_tuning *tuning = &exp->keys.tuning;
	uint64_t began_ns;
	struct casync_call call;
	fsal_status_t status;
	int rc = 0;

	/* A flush covers the whole inode. */
	(void)offset;
	(void)len;

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	began_ns = CASYNC_METRICS_ON ? casync_clock_ns() : 0;
	if (casync_durability_commit_flushes(
		    casync_tuning_read(&tuning->stable_write), false,
		    casync_file_size_pending(&obj->size)))
		rc = rw_flush(obj);
	else
		rw_count(exp, CASYNC_C_COMMIT_NO_FLUSH);

	status = casync_errors_status(rc);
	rw_count_commit(exp, status, began_ns);
	return casync_call_end(&call, status);
}
