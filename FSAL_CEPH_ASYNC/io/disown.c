/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "buffer.h"
#include "client.h"
#include "complete.h"
#include "disown.h"
#include "export.h"
#include "ganesha.h"
#include "guard.h"
#include "inode.h"
#include "object.h"
#include "op.h"
#include "pool.h"
#include "read_cache.h"
#include "lane.h"

/** The client and the buffer that a disowned READ uses. */
struct casync_disowned {
	struct casync_client *client;
	struct casync_pool *pool; /**< Its export may be gone. */
	/** Ganesha's buffer; NULL: libcephfs writes to one of the cache. */
	void (*release)(void *data);
	void *data;
};

static void disown_note(struct casync_op *op, struct casync_disown_round *round)
{
	struct casync_disowned *disowned = gsh_calloc(1, sizeof(*disowned));

	disowned->client = op->exp->mount->client;
	disowned->pool = op->exp->pool;
	casync_client_hold(disowned->client);
	op->disowned = disowned;
	round->count++;
}

/* libcephfs has the op, and all its parts are submitted: it is ours, unless the
 * last answer comes first. */
static bool disown_claim(struct casync_op *op, int left)
{
	while (left > 0 && left < CASYNC_OP_SUBMITTING) {
		if (__atomic_compare_exchange_n(
			    &op->parts_left, &left, left + CASYNC_OP_DISOWNED,
			    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* Its buffer cannot be kept.  The last answer may have come meanwhile. */
static void disown_give_back(struct casync_op *op)
{
	if (__atomic_sub_fetch(&op->parts_left, CASYNC_OP_DISOWNED,
			       __ATOMIC_ACQ_REL) == 0)
		casync_complete_queue(op);
}

/* A READ has no members.  The completion threads look at them, so they are
 * taken away before libcephfs can answer it. */
static void disown_in_flight(struct casync_op *op,
			     struct casync_disown_round *round)
{
	if (op->fill == NULL && !op->keeps_buffer) {
		disown_give_back(op);
		return;
	}
	disown_note(op, round);
	if (op->fill == NULL)
		casync_ganesha_keep(op->arg, &op->disowned->release,
				    &op->disowned->data);
	op->members = round->to_answer;
	round->to_answer = op;
}

/* The thread that is inside finds out when it comes back. */
static void disown_inside(struct casync_op *op,
			  struct casync_disown_round *round)
{
	int expected = CASYNC_OP_INSIDE;

	if (!__atomic_compare_exchange_n(&op->parts_left, &expected,
					 CASYNC_OP_INSIDE + CASYNC_OP_DISOWNED,
					 false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	disown_note(op, round);
	casync_guard_leave(&casync_inode_mount(op->obj)->guard);
}

/* Under the lock of the set: so the op stays what it is. */
void casync_disown_visit(struct casync_inflight_entry *entry, void *arg)
{
	struct casync_op *op = container_of(entry, struct casync_op, entry);
	int left = __atomic_load_n(&op->parts_left, __ATOMIC_ACQUIRE);

	if (op->kind != CASYNC_OP_READ || casync_complete_is_awaited(op))
		return;
	if (left == CASYNC_OP_INSIDE)
		disown_inside(op, arg);
	else if (disown_claim(op, left))
		disown_in_flight(op, arg);
}

static void disown_run_answer(struct casync_work *work)
{
	struct casync_op *op = container_of(work, struct casync_op, work);

	casync_op_set_state(op, CASYNC_OP_FINISHING);
	op->status = fsalstat(ERR_FSAL_DELAY, ETIME);
	casync_op_answer(op);
}

unsigned int casync_disown_answer(struct casync_disown_round *round)
{
	struct casync_op *op;

	/* An answer may wait for a lock of Ganesha's, or end an export. */
	while ((op = round->to_answer) != NULL) {
		round->to_answer = op->members;
		op->members = NULL;
		op->work.run = disown_run_answer;
		casync_lane_submit(
			casync_inode_lane(op->obj, CASYNC_LANE_METADATA),
			&op->work);
	}
	return round->count;
}

void casync_disown_release(struct casync_op *op)
{
	struct casync_disowned *disowned = op->disowned;
	struct casync_client *client = disowned->client;

	if (op->fill != NULL) {
		casync_buffer_release(op->fill->buffer);
		gsh_free(op->fill);
	} else {
		disowned->release(disowned->data);
	}
	casync_op_free(op, disowned->pool);
	gsh_free(disowned);
	casync_client_put(client);
}

/* The visitor has left the guard for us. */
static void disown_came_back(struct casync_op *op)
{
	struct casync_disowned *disowned;

	/* The visitor may still be at it. */
	casync_inflight_sync(&op->exp->inflight);
	disowned = op->disowned;
	op->disowned = NULL;
	op->call.holds &= ~(uint32_t)CASYNC_CALL_CLIENT;
	casync_client_put(disowned->client);
	gsh_free(disowned);
}

int64_t casync_disown_read(struct casync_op *op, struct Fh *fh, int64_t offset,
			   char *to, size_t length_bytes)
{
	int64_t rc;

	__atomic_store_n(&op->parts_left, CASYNC_OP_INSIDE, __ATOMIC_RELEASE);
	rc = ceph_ll_read(casync_inode_ceph(op->obj), fh, offset, length_bytes,
			  to);
	if (__atomic_exchange_n(&op->parts_left, 0, __ATOMIC_ACQ_REL) ==
	    CASYNC_OP_INSIDE)
		return rc;
	disown_came_back(op);
	return -ETIME;
}
