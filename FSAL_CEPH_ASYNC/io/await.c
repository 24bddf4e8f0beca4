/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "nfs_core.h"

#include "await.h"
#include "clock.h"
#include "complete.h"
#include "export.h"
#include "futex.h"
#include "op.h"
#include "workers.h"

/* Values of op->awaited, which is also the futex of the waiting worker. */
enum { NOBODY, AWAITED, ANSWERED };

static unsigned int waiting; /* atomic */

/* Ganesha may have been given few workers. */
static unsigned int await_most(void)
{
	uint32_t half = nfs_param.core_param.rpc.ioq_thrd_max / 2;

	return half < CASYNC_AWAIT_MOST ? half : CASYNC_AWAIT_MOST;
}

static bool await_worth_it(const struct casync_op *op)
{
	const uint64_t *until_ns = &op->exp->await_not_before_ns;

	if (op->kind == CASYNC_OP_WRITE && !op->entry.alone)
		return false;
	/* A completion thread must not wait: it answers other ops too. */
	return !casync_on_completion_thread() &&
	       op->entry.since_ns >=
		       __atomic_load_n(until_ns, __ATOMIC_RELAXED);
}

bool casync_await_begin(struct casync_op *op)
{
	if (!await_worth_it(op))
		return false;
	if (__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED) > await_most()) {
		__atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
		return false;
	}
	__atomic_store_n(&op->awaited, AWAITED, __ATOMIC_RELAXED);
	return true;
}

/* From here on the answering thread queues the op.  False: it is answered. */
static bool await_give_away(struct casync_op *op)
{
	uint32_t expected = AWAITED;

	return __atomic_compare_exchange_n(&op->awaited, &expected, NOBODY,
					   false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static bool await_give_up(struct casync_op *op, uint64_t now_ns)
{
	/* Before the op is given away: the export may be freed with it. */
	__atomic_store_n(&op->exp->await_not_before_ns,
			 now_ns + CASYNC_AWAIT_PAUSE_MS * CASYNC_NS_PER_MS,
			 __ATOMIC_RELAXED);
	return await_give_away(op);
}

/* Is the op answered, and ours? */
static bool await_answer(struct casync_op *op)
{
	uint64_t now_ns = casync_now_ns();
	uint64_t until_ns = now_ns + CASYNC_AWAIT_MS * CASYNC_NS_PER_MS;

	while (__atomic_load_n(&op->awaited, __ATOMIC_ACQUIRE) == AWAITED) {
		if (now_ns >= until_ns)
			return !await_give_up(op, now_ns);
		casync_futex_wait(&op->awaited, AWAITED, until_ns - now_ns);
		now_ns = casync_now_ns();
	}
	return true;
}

bool casync_await_end(struct casync_op *op)
{
	bool ours = await_answer(op);

	__atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
	return ours;
}

void casync_await_leave(struct casync_op *op)
{
	__atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
	if (!await_give_away(op))
		casync_complete_queue(op);
}

bool casync_await_hand_over(struct casync_op *op)
{
	uint32_t expected = AWAITED;

	if (!__atomic_compare_exchange_n(&op->awaited, &expected, ANSWERED,
					 false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	/*
	 * The worker may have seen the answer and finished.  Then this wakes no
	 * thread, or a thread that waits for another op in the same memory and
	 * looks again.  The call itself reads no memory there.
	 */
	casync_futex_wake(&op->awaited, 1);
	return true;
}
