/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <limits.h>
#include <pthread.h>

#include "fsal.h"

#include "complete.h"
#include "futex.h"
#include "op.h"
#include "workers.h"

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

/* Set before the first thread starts. */
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
	casync_on_thread_begin();

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
		__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
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
static void complete_help_locked(void)
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
void casync_complete_help(void)
{
	static uint64_t before; /* the caller's: one thread */
	uint64_t now = __atomic_load_n(&answered, __ATOMIC_RELAXED);

	if (now == before && complete_something_queued()) {
		pthread_mutex_lock(&threads_lock);
		complete_help_locked();
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
