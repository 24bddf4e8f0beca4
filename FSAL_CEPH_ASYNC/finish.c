/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "errors.h"
#include "export.h"
#include "finish.h"
#include "object.h"
#include "op.h"
#include "submit.h"

static void count(struct casync_op *op, enum casync_counter counter)
{
	casync_count(casync_metrics_shard(&op->exp->metrics), counter, 1);
}

/* The first error in file order; a part that failed fails the request. */
static int64_t first_error(const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < op->part_count; i++) {
		if (op->parts[i].result < 0)
			return op->parts[i].result;
	}
	return 0;
}

static bool all_parts_full(const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < op->part_count; i++) {
		if ((size_t)op->parts[i].result != op->parts[i].asked_bytes)
			return false;
	}
	return true;
}

/*
 * Settle a read without asking Ceph: an error, or all bytes there and more of
 * the file known to follow.  False: a worker has to look.
 */
static bool read_settled(struct casync_op *op)
{
	int64_t error = first_error(op);

	if (error != 0) {
		op->status = casync_status(error);
		return true;
	}
	if (!all_parts_full(op))
		return false;

	op->amount_bytes = op->length_bytes;
	return casync_object_size_hint(op->obj) > op->offset + op->length_bytes;
}

/*
 * Fetch with the blocking call, which gets holes right, what a part is short
 * of.  Within one object, so that an error is reported as one.
 *
 * Zero-filling instead would be wrong where a writer extends the file
 * meanwhile: a reader of a growing log would see zeros that never were there.
 *
 * Returns the bytes the part has now, or a negative errno.
 */
static int64_t repair_part(struct casync_op *op, struct casync_part *part)
{
	size_t have = (size_t)part->result;
	const struct iovec *iov = part->io.iov;
	size_t skip = have;
	int64_t rc = 0;

	while (have < part->asked_bytes) {
		while (skip >= iov->iov_len) {
			skip -= iov->iov_len;
			iov++;
		}
		rc = ceph_ll_read(op->exp->ceph, part->io.fh,
				  part->io.off + (int64_t)have,
				  iov->iov_len - skip,
				  (char *)iov->iov_base + skip);
		if (rc <= 0)
			break;
		have += (size_t)rc;
		skip += (size_t)rc;
	}
	return rc < 0 ? rc : (int64_t)have;
}

/*
 * Does the file end where the read does?  All bytes are there, so if nobody
 * can tell, "not yet" is the answer: the client's next read finds out.
 */
static void check_end_of_file(struct casync_op *op)
{
	uint64_t generation = casync_flush_generation(op->obj);
	struct ceph_statx stx;

	if (ceph_ll_getattr(op->exp->ceph, op->obj->inode, &stx,
			    CEPH_STATX_SIZE, 0, op->exp->root_perms) != 0)
		return;
	casync_flush_size_seen(op->obj, stx.stx_size, generation);
	op->end_of_file = op->offset + op->amount_bytes >= stx.stx_size;
}

static void read_repair(struct casync_op *op)
{
	unsigned int i;
	int64_t have;

	count(op, all_parts_full(op) ? CASYNC_C_SIZE_CHECKS
				     : CASYNC_C_REPAIRED_READS);
	op->amount_bytes = 0;
	for (i = 0; i < op->part_count; i++) {
		have = repair_part(op, &op->parts[i]);
		if (have < 0) {
			op->status = casync_status(have);
			return;
		}
		op->amount_bytes += (size_t)have;
		/* The blocking call stops short only at the end. */
		if ((size_t)have < op->parts[i].asked_bytes) {
			op->end_of_file = true;
			return;
		}
	}
	check_end_of_file(op);
}

static void write_settle(struct casync_op *op)
{
	int64_t result = op->parts[0].result;

	if (result > 0) {
		op->amount_bytes = (size_t)result;
		casync_flush_written(op->obj, op->offset + op->amount_bytes);
	} else {
		/* Nothing written and no error would be an endless retry. */
		op->status = casync_status(result < 0 ? result : -EIO);
	}
}

/* Temporary fds are closed, and reads repaired, where that may block. */
static void finish_blocking(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	if (op->kind == CASYNC_OP_READ && !read_settled(op))
		read_repair(op);
	casync_op_end(op);
}

static void go_blocking(struct casync_op *op)
{
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	op->work.run = finish_blocking;
	casync_work_submit(&op->work);
}

void casync_finish_blocking_read(struct casync_op *op)
{
	/* Its parts have a result of 0: all of it is yet to be fetched. */
	count(op, CASYNC_C_BLOCKING_READS);
	go_blocking(op);
}

static void flushed(struct casync_flush_waiter *waiter, int rc)
{
	struct casync_op *op =
		container_of(waiter, struct casync_op, flush_waiter);

	/* The data are there, what was promised is not: not acknowledged. */
	if (rc < 0)
		op->status = casync_status(rc);
	casync_op_end(op);
}

void casync_finish(struct casync_op *op)
{
	bool settled = true;

	casync_submit_answered(op);
	if (op->gather.alone) {
		casync_submit_alone(op);
		return;
	}
	casync_op_set_state(op, CASYNC_OP_FINISHING);
	if (CASYNC_METRICS_ON)
		op->taken_ns = casync_now_ns();
	if (op->kind == CASYNC_OP_READ) {
		settled = read_settled(op);
	} else {
		write_settle(op);
		if (op->durability.flush && !FSAL_IS_ERROR(op->status)) {
			casync_op_set_state(op, CASYNC_OP_BLOCKING);
			op->flush_waiter.done = flushed;
			casync_flush_request(op->obj, &op->flush_waiter);
			return;
		}
	}

	if (settled && !casync_op_closes_fd(op))
		casync_op_end(op);
	else
		go_blocking(op);
}
