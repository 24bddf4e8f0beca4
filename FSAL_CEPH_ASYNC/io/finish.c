/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "clock.h"
#include "disown.h"
#include "errors.h"
#include "metrics.h"
#include "object.h"
#include "op.h"
#include "repair.h"
#include "submit.h"

/* The handle names a file that is there, so what is missing is its pool. */
static fsal_status_t finish_status(int64_t error)
{
	return casync_errors_status(error == -ENOENT ? -EIO : error);
}

/* The first error in file order: a failed part fails the request. */
static int64_t finish_first_error(const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < op->parts.count; i++) {
		if (op->parts.at[i].result < 0)
			return op->parts.at[i].result;
	}
	return 0;
}

static bool finish_all_parts_full(const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < op->parts.count; i++) {
		if ((size_t)op->parts.at[i].result !=
		    op->parts.at[i].asked_bytes)
			return false;
	}
	return true;
}

static void finish_discard_parts(struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < op->parts.count; i++)
		op->parts.at[i].result = 0;
}

/*
 * A short part is repaired.  A read that ends at the known end of the file asks
 * whether the file still ends there.  Over NFSv4 Ganesha asks as well, but may
 * be content with its cache; and what we learn keeps the next reads within the
 * file (rw_clamp_to_size()).
 */
static void finish_read(struct casync_op *op)
{
	int64_t error = finish_first_error(op);

	if (error != 0) {
		op->status = finish_status(error);
		casync_op_end_unblocked(op);
		return;
	}
	/* Zeros may stand for data (repair.h): nothing of it is kept. */
	if (casync_file_size_truncated_since(&op->obj->size, op->truncations))
		finish_discard_parts(op);
	if (!finish_all_parts_full(op)) {
		casync_repair(op);
		return;
	}
	op->amount_bytes = op->length_bytes;
	if (casync_file_size_hint(&op->obj->size) >
	    op->offset + op->length_bytes)
		casync_op_end_unblocked(op);
	else
		casync_repair_end_of_file(op);
}

static void finish_write_result(struct casync_op *op)
{
	int64_t result = op->parts.at[0].result;

	if (result > 0) {
		op->amount_bytes = (size_t)result;
		casync_file_size_written(&op->obj->size,
					 op->offset + op->amount_bytes,
					 op->truncations);
	} else {
		/* 0 bytes and no error would make the client retry for ever. */
		op->status = finish_status(result < 0 ? result : -EIO);
	}
}

static void finish_flushed(struct casync_flush_waiter *waiter, int rc)
{
	struct casync_op *op =
		container_of(waiter, struct casync_op, flush_waiter);

	/* The data are on disk, but the promise is not kept: an error. */
	if (rc < 0)
		op->status = casync_errors_status(rc);
	casync_op_answer(op);
}

/* The file may have been shortened since the durability was decided. */
static void finish_look_at_growth(struct casync_op *op)
{
	if (op->durability.stable_answer &&
	    op->stable_write == CASYNC_STABLE_FDATASYNC &&
	    casync_file_size_grown(&op->obj->size,
				   op->offset + op->amount_bytes))
		op->durability.flush = true;
}

static void finish_write(struct casync_op *op)
{
	finish_write_result(op);
	finish_look_at_growth(op);
	if (op->durability.flush && !FSAL_IS_ERROR(op->status)) {
		casync_op_set_state(op, CASYNC_OP_BLOCKING);
		op->flush_waiter.done = finish_flushed;
		casync_flush_request(op->obj, &op->flush_waiter);
	} else {
		casync_op_end_unblocked(op);
	}
}

/*
 * Submit WRITEs that waited for the answer, or flush the file, on a worker.  It
 * comes before any step that may free the op.
 */
static void finish_admit_next(struct casync_op *op)
{
	struct casync_queue_todo todo =
		casync_queue_answered(&op->obj->queue, op);

	casync_flush_go_on(op->obj, &todo, 0);
}

void casync_finish(struct casync_op *op)
{
	/* It was answered long ago. */
	if (op->disowned != NULL) {
		casync_disown_release(op);
		return;
	}
	if (op->queue_state == CASYNC_QUEUE_REFUSED) {
		casync_submit_each_alone(op);
		return;
	}
	if (op->kind == CASYNC_OP_WRITE)
		finish_admit_next(op);
	casync_op_set_state(op, CASYNC_OP_FINISHING);
	if (CASYNC_METRICS_ON)
		op->taken_ns = casync_clock_ns();
	if (op->kind == CASYNC_OP_READ)
		finish_read(op);
	else
		finish_write(op);
}
