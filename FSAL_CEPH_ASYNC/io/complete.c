/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <limits.h>
#include <pthread.h>

#include "fsal.h"
#include "nfs_core.h"

#include "check.h"
#include "clock.h"
#include "complete.h"
#include "export.h"
#include "futex.h"
#include "op.h"
#include "lane.h"

/* --- the completion threads */

/* The newest op first; one exchange empties it. */
static struct casync_op *completed;

/* Ops taken from `completed` and not answered yet, oldest first.  The lock is a
 * leaf; it is held to take one op, not during an answer. */
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static struct casync_op *ready;
static uint64_t answered; /* ops taken to be answered; atomic */

/*
 * The sleepers' futex.  It counts the times at which threads should look.  So a
 * thread that found no op does not sleep if one was pushed meanwhile.
 */
static uint32_t filled;
static int sleepers;
static bool stopping;

/* Set before the first thread starts, and before the first op is submitted. */
static void (*finish)(struct casync_op *op);

/* All threads are joined before their code is unmapped. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[CASYNC_COMPLETERS_MAX];
static unsigned int thread_count;

void casync_complete_queue(struct casync_op *op)
{
	struct casync_op *head = __atomic_load_n(&completed, __ATOMIC_RELAXED);

	casync_op_set_state(op, CASYNC_OP_QUEUED);
	do {
		op->next = head;
	} while (!__atomic_compare_exchange_n(&completed, &head, op, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));

	/* If the list was not empty, a wake-up is already under way. */
	if (head != NULL)
		return;
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) != 0)
		casync_futex_wake(&filled, 1);
}

void casync_complete_run(struct casync_op *op)
{
	finish(op);
}

/* An op, those that were submitted with it, and then others. */
static struct casync_op *complete_with_members(struct casync_op *op,
					       struct casync_op *others)
{
	struct casync_op *last = op;

	op->next = casync_gather_scatter(op);
	while (last->next != NULL)
		last = last->next;
	last->next = others;
	return op;
}

/* All queued ops, oldest first. */
static struct casync_op *complete_take_all(void)
{
	struct casync_op *op =
		__atomic_exchange_n(&completed, NULL, __ATOMIC_SEQ_CST);
	struct casync_op *oldest = NULL;

	while (op != NULL) {
		struct casync_op *next = op->next;

		oldest = complete_with_members(op, oldest);
		op = next;
	}
	return oldest;
}

static struct casync_op *complete_take_one(void)
{
	struct casync_op *op;

	pthread_mutex_lock(&ready_lock);
	if (ready == NULL)
		ready = complete_take_all();
	op = ready;
	if (op != NULL) {
		ready = op->next;
		__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&ready_lock);
	return op;
}

static void *complete_completer(void *unused)
{
	(void)unused;
	SetNameFunction("casync_done");
	casync_lane_mark_completion_thread();

	for (;;) {
		uint32_t seen = __atomic_load_n(&filled, __ATOMIC_SEQ_CST);
		struct casync_op *op = complete_take_one();

		if (op != NULL) {
			finish(op);
			continue;
		}
		if (__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
			return NULL;
		__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
		casync_futex_wait(&filled, seen, 0);
		CASYNC_CHECK_DOWN(&sleepers, __ATOMIC_SEQ_CST);
	}
}

static int complete_add_thread_locked(void)
{
	int rc = pthread_create(&threads[thread_count], NULL,
				complete_completer, NULL);

	if (rc == 0)
		thread_count++;
	return -rc;
}

static bool complete_something_queued(void)
{
	bool queued;

	pthread_mutex_lock(&ready_lock);
	queued = ready != NULL ||
		 __atomic_load_n(&completed, __ATOMIC_SEQ_CST) != NULL;
	pthread_mutex_unlock(&ready_lock);
	return queued;
}

/* All threads are blocked in answers, or some are and the others sleep. */
static void complete_unblock_locked(void)
{
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) != 0)
		casync_futex_wake(&filled, 1);
	else if (thread_count < CASYNC_COMPLETERS_MAX)
		(void)complete_add_thread_locked();
}

/*
 * An answer can wait for a lock that an unexport holds, while the unexport
 * waits for I/O on another file.  If this blocked all threads, that I/O would
 * never be answered.  So a new thread serves queued ops if none was answered
 * for a while.
 */
void casync_complete_unblock(void)
{
	static uint64_t before; /* the caller's: one thread */
	uint64_t now = __atomic_load_n(&answered, __ATOMIC_RELAXED);

	if (now == before && complete_something_queued()) {
		pthread_mutex_lock(&threads_lock);
		complete_unblock_locked();
		pthread_mutex_unlock(&threads_lock);
	}
	before = now;
}

int casync_complete_start(void (*finish_op)(struct casync_op *op))
{
	int rc = 0;

	pthread_mutex_lock(&threads_lock);
	finish = finish_op;
	__atomic_store_n(&stopping, false, __ATOMIC_SEQ_CST);
	while (thread_count < CASYNC_COMPLETERS && rc == 0)
		rc = complete_add_thread_locked();
	pthread_mutex_unlock(&threads_lock);
	return rc;
}

void casync_complete_stop(void)
{
	__atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	casync_futex_wake(&filled, INT_MAX);
	while (thread_count != 0)
		pthread_join(threads[--thread_count], NULL);
}

/* --- a worker that waits for its own answer */

/* Values of op->awaited, which is also the futex of the waiting worker. */
enum { NOBODY, AWAITED, ANSWERED };

static unsigned int waiting; /* workers; atomic */

bool casync_complete_is_awaited(const struct casync_op *op)
{
	return __atomic_load_n(&op->awaited, __ATOMIC_ACQUIRE) == AWAITED;
}

/* Ganesha may have been given few workers. */
static unsigned int complete_most_waiters(void)
{
	uint32_t half = nfs_param.core_param.rpc.ioq_thrd_max / 2;

	return half < CASYNC_AWAIT_MOST ? half : CASYNC_AWAIT_MOST;
}

static bool complete_may_wait(const struct casync_op *op)
{
	const uint64_t *until_ns = &op->exp->await_not_before_ns;

	if (op->kind == CASYNC_OP_WRITE && !op->entry.alone)
		return false;
	/* A completion thread must not wait: it answers other ops too. */
	return !casync_lane_on_completion_thread() &&
	       op->entry.since_ns >=
		       __atomic_load_n(until_ns, __ATOMIC_RELAXED);
}

bool casync_complete_wait_begin(struct casync_op *op)
{
	if (!complete_may_wait(op))
		return false;
	if (__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED) >
	    complete_most_waiters()) {
		CASYNC_CHECK_DOWN(&waiting, __ATOMIC_RELAXED);
		return false;
	}
	__atomic_store_n(&op->awaited, AWAITED, __ATOMIC_RELAXED);
	return true;
}

/* From here on the answering thread queues the op.  False: it is answered. */
static bool complete_wait_withdraw(struct casync_op *op)
{
	uint32_t expected = AWAITED;

	return __atomic_compare_exchange_n(&op->awaited, &expected, NOBODY,
					   false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static bool complete_wait_timed_out(struct casync_op *op, uint64_t now_ns)
{
	/* Before the op is given away: the export may be freed with it. */
	__atomic_store_n(&op->exp->await_not_before_ns,
			 now_ns + CASYNC_AWAIT_PAUSE_MS * CASYNC_NS_PER_MS,
			 __ATOMIC_RELAXED);
	return complete_wait_withdraw(op);
}

/* Is the op answered, and ours? */
static bool complete_wait_for_answer(struct casync_op *op)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t until_ns = now_ns + CASYNC_AWAIT_MS * CASYNC_NS_PER_MS;

	while (__atomic_load_n(&op->awaited, __ATOMIC_ACQUIRE) == AWAITED) {
		if (now_ns >= until_ns)
			return !complete_wait_timed_out(op, now_ns);
		casync_futex_wait(&op->awaited, AWAITED, until_ns - now_ns);
		now_ns = casync_clock_ns();
	}
	return true;
}

void casync_complete_wait_end(struct casync_op *op)
{
	bool ours = complete_wait_for_answer(op);

	CASYNC_CHECK_DOWN(&waiting, __ATOMIC_RELAXED);
	if (ours)
		finish(op);
}

bool casync_complete_wake_waiter(struct casync_op *op)
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
