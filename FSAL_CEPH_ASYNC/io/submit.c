/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "call.h"
#include "check.h"
#include "clock.h"
#include "complete.h"
#include "export.h"
#include "inode.h"
#include "object.h"
#include "op.h"
#include "repair.h"
#include "submit.h"
#include "lane.h"

static uint64_t duplicates; /* atomic */

uint64_t casync_submit_duplicates(void)
{
	return __atomic_load_n(&duplicates, __ATOMIC_RELAXED);
}

/* A call is answered, or all are submitted; the last one hands the op over. */
static void submit_put(struct casync_op *op, int what)
{
	if (__atomic_sub_fetch(&op->parts_left, what, __ATOMIC_ACQ_REL) == 0 &&
	    !casync_complete_wake_waiter(op))
		casync_complete_queue(op);
}

static void submit_part_completed(struct casync_part *part, int64_t result)
{
	/* The exactly-once guard.  It also protects an op that was answered and
	 * is back in the pool: its parts are not armed.  Once the op serves
	 * another request, a late duplicate looks like its answer. */
	if (!__atomic_exchange_n(&part->armed, false, __ATOMIC_ACQ_REL)) {
		__atomic_add_fetch(&duplicates, 1, __ATOMIC_RELAXED);
		CASYNC_CHECK(casync_submit_duplicates() == 0);
		return;
	}
	part->result = result;
	/* The pace needs both times, also where nothing is counted. */
	__atomic_store_n(&part->op->answered_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
	submit_put(part->op, 1);
}

/* ceph_ll_io_info.callback of every part. */
static void submit_completed(struct ceph_ll_io_info *io)
{
	submit_part_completed((struct casync_part *)io, io->result);
}

/* The members of a call get the state of the first op. */
static void submit_mark_members(struct casync_op *first)
{
	struct casync_op *op;

	for (op = first->members; op != NULL; op = op->next) {
		__atomic_store_n(&op->parts_left, 1, __ATOMIC_RELAXED);
		casync_op_set_state(op, CASYNC_OP_SUBMITTED);
	}
}

/*
 * A new file's first flush can fail while a write is on its way to the queue,
 * which then holds it no more: the write fails as those that were held.
 */
static int64_t submit_part(struct casync_op *op, struct casync_part *part)
{
	if (op->kind == CASYNC_OP_WRITE &&
	    casync_queue_is_unjournaled(&op->obj->queue))
		return -EIO;
	return ceph_ll_nonblocking_readv_writev(casync_inode_ceph(op->obj),
						&part->io);
}

static void submit_parts(struct casync_op *op)
{
	unsigned int called_back = 0;
	unsigned int i;
	int64_t rc;

	if (op->members != NULL) {
		casync_gather_lay_out(op);
		submit_mark_members(op);
	}
	casync_op_set_state(op, CASYNC_OP_SUBMITTED);
	op->submitted_ns = casync_clock_ns();
	/* This hold keeps the op alive until its thread is done with it. */
	__atomic_store_n(&op->parts_left,
			 (int)op->parts.count + CASYNC_OP_SUBMITTING,
			 __ATOMIC_RELAXED);

	for (i = 0; i < op->parts.count; i++) {
		struct casync_part *part = &op->parts.at[i];

		part->op = op;
		part->io.callback = submit_completed;
		__atomic_store_n(&part->armed, true, __ATOMIC_RELEASE);
		rc = submit_part(op, part);
		if (rc != 0)
			submit_part_completed(part, rc);
		else if (!__atomic_load_n(&part->armed, __ATOMIC_RELAXED))
			called_back++;
	}
	/* The hold keeps the op in the guard until here. */
	if (op->kind == CASYNC_OP_WRITE)
		casync_lock_records_written(&op->obj->locks);
	if (called_back == op->parts.count)
		casync_metrics_count(casync_metrics_shard(&op->exp->metrics),
				     CASYNC_C_INLINE, 1);
}

/* The file may have become shorter while a read waited.  rw_clamp_to_size() in
 * rw.c tells what happens then. */
bool casync_submit_is_beyond_the_end(const struct casync_op *op)
{
	return casync_file_size_is_unknown(&op->obj->size) ||
	       op->offset + op->length_bytes >
		       casync_file_size_hint(&op->obj->size);
}

static struct casync_lane *submit_lane(const struct casync_op *op)
{
	return casync_inode_lane(op->obj, CASYNC_LANE_SUBMIT);
}

/*
 * Submission waits for capabilities, without a timeout.  So a worker of
 * Ganesha's submits in a slot of the mount.  False: the op was handed over.
 */
static bool submit_take_slot(struct casync_op *op, struct casync_call *slot)
{
	if (slot->holds != 0 ||
	    casync_call_try(slot, op->obj, CASYNC_CALL_MOUNT_SLOT, 0))
		return true;
	casync_submit_on_lane(op);
	return false;
}

/* The thread gives the op's place back, or submits the WRITE that is returned.
 * The op's hold keeps the object alive, and with it the mount. */
static struct casync_op *submit_leave(struct casync_op *op)
{
	if (op->kind == CASYNC_OP_WRITE)
		return casync_queue_next(&op->obj->queue, op);
	casync_lane_release_share(submit_lane(op), &op->obj->reads);
	return NULL;
}

static struct casync_op *submit_one(struct casync_op *op,
				    struct casync_call *slot)
{
	submit_parts(op);
	if (slot != NULL)
		casync_call_drop(slot);
	return submit_leave(op);
}

/* Submit an op that has a place, and the WRITEs that the queue lets in next.
 * SLOT: a worker of Ganesha's has it for the first one; NULL: it is a thread of
 * ours. */
static void submit_from(struct casync_op *op, struct casync_call *slot)
{
	struct casync_op *next;

	/* The op in hand keeps the object alive, and with it the queue. */
	for (; op != NULL; op = next) {
		if (op->kind == CASYNC_OP_READ &&
		    casync_submit_is_beyond_the_end(op)) {
			if (slot != NULL)
				casync_call_drop(slot);
			next = submit_leave(op);
			op->past_end = true;
			casync_repair_whole(op);
		} else {
			next = submit_one(op, slot);
			submit_put(op, CASYNC_OP_SUBMITTING);
		}
		if (slot != NULL && next != NULL &&
		    !submit_take_slot(next, slot))
			return;
	}
}

void casync_submit_park(struct casync_op *op)
{
	casync_submit_on_lane(casync_queue_park(&op->obj->queue, op));
}

void casync_submit_parked(struct casync_op *op)
{
	submit_from(casync_queue_unpark(&op->obj->queue, op), NULL);
}

void casync_submit_cancel_parked(struct casync_op *op)
{
	casync_submit_on_lane(casync_queue_cancel_parked(&op->obj->queue, op));
}

/* Submit an op that has a place.  This worker waits for its answer, if it may:
 * a WRITE that the queue lets in next is for another thread. */
static void submit_and_wait(struct casync_op *op, struct casync_call *slot)
{
	if (!casync_complete_wait_begin(op)) {
		submit_from(op, slot);
		return;
	}
	casync_submit_on_lane(submit_one(op, slot));
	submit_put(op, CASYNC_OP_SUBMITTING);
	casync_complete_wait_end(op);
}

void casync_submit_write(struct casync_op *op)
{
	struct casync_op *now = casync_queue_enter(&op->obj->queue, op);
	struct casync_call slot = {0};

	if (now == NULL || !submit_take_slot(now, &slot))
		return;
	/* A completion thread answers ops that share a call. */
	if (now != op || op->members != NULL)
		submit_from(now, &slot);
	else
		submit_and_wait(op, &slot);
}

/* May a worker do a laid out read by the blocking call? */
static bool submit_may_block(const struct casync_op *op)
{
	const uint64_t *until_ns = &op->exp->await_not_before_ns;

	return op->parts.count == 1 &&
	       op->length_bytes >= CASYNC_READ_HERE_BYTES &&
	       !casync_lane_on_completion_thread() &&
	       op->entry.since_ns >=
		       __atomic_load_n(until_ns, __ATOMIC_RELAXED);
}

/* The result is in the op's part. */
static void submit_read_blocking(struct casync_op *op, struct casync_call *slot)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t late_ns = now_ns + CASYNC_READ_HERE_MS * CASYNC_NS_PER_MS;

	op->parts.at[0].result = casync_repair_part(op, &op->parts.at[0]);
	casync_call_drop(slot);
	now_ns = casync_clock_ns();
	if (now_ns > late_ns)
		__atomic_store_n(&op->exp->await_not_before_ns,
				 now_ns + CASYNC_AWAIT_PAUSE_MS *
						  CASYNC_NS_PER_MS,
				 __ATOMIC_RELAXED);
}

/* It has a bound of its own, so it gives its place back before. */
static void submit_block_on_read(struct casync_op *op, struct casync_call *slot)
{
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	if (CASYNC_METRICS_ON)
		op->submitted_ns = casync_clock_ns();
	(void)submit_leave(op);
	submit_read_blocking(op, slot);
	if (CASYNC_METRICS_ON)
		op->answered_ns = casync_clock_ns();
	casync_complete_run(op);
}

static void submit_run(struct casync_work *work)
{
	submit_from(container_of(work, struct casync_op, work), NULL);
}

/* It waits for a place, and keeps no thread. */
static void submit_read_later(struct casync_op *op)
{
	casync_metrics_count(casync_metrics_shard(&op->exp->metrics),
			     CASYNC_C_FILE_QUEUE_WAITS, 1);
	casync_op_set_state(op, CASYNC_OP_HELD);
	op->work.run = submit_run;
	casync_lane_submit_shared(submit_lane(op), &op->obj->reads, &op->work);
}

void casync_submit_read(struct casync_op *op, struct casync_call *slot)
{
	if (!casync_lane_enter_share(&op->obj->reads)) {
		if (slot != NULL)
			casync_call_drop(slot);
		submit_read_later(op);
	} else if (slot == NULL) {
		submit_from(op, NULL);
	} else if (submit_take_slot(op, slot)) {
		if (casync_submit_is_beyond_the_end(op))
			submit_from(op, slot);
		else if (submit_may_block(op))
			submit_block_on_read(op, slot);
		else
			submit_and_wait(op, slot);
	}
}

void casync_submit_on_lane(struct casync_op *op)
{
	if (op == NULL)
		return;
	op->work.run = submit_run;
	casync_lane_submit(submit_lane(op), &op->work);
}

static void submit_again(struct casync_op *op)
{
	casync_op_set_state(op, CASYNC_OP_BLOCKING);
	casync_gather_make_alone(op);
	casync_op_lay_out(op);
	submit_parts(op);
}

/* The first op goes last: what overlaps one of them waits until then. */
static void submit_each(struct casync_work *work)
{
	struct casync_op *first = container_of(work, struct casync_op, work);
	struct casync_op *op = first->members;
	struct casync_op *next;

	first->members = NULL;
	for (; op != NULL; op = next) {
		next = op->next;
		submit_again(op);
		submit_put(op, CASYNC_OP_SUBMITTING);
	}
	submit_again(first);
	next = submit_leave(first);
	submit_put(first, CASYNC_OP_SUBMITTING);
	submit_from(next, NULL);
}

void casync_submit_each_alone(struct casync_op *first)
{
	casync_queue_refused(&first->obj->queue, first);
	first->work.run = submit_each;
	casync_lane_submit(submit_lane(first), &first->work);
}
