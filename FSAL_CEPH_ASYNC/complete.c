/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fsal.h"

#include "complete.h"
#include "finish.h"
#include "op.h"

/* Newest first; a taker empties it with one exchange. */
static struct casync_op *completed;

/*
 * The sleepers' futex.  It counts the times the list became non-empty, so
 * that a taker that found it empty, and was overtaken by a push, does not
 * sleep.
 */
static uint32_t filled;
static int sleepers;
static bool stopping;
static pthread_t threads[CASYNC_COMPLETERS];
static unsigned int thread_count;
static __thread bool on_thread;

bool casync_complete_on_thread(void)
{
	return on_thread;
}

static void futex_wait(uint32_t *word, uint32_t seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void casync_complete_queue(struct casync_op *op)
{
	struct casync_op *head = __atomic_load_n(&completed, __ATOMIC_RELAXED);

	casync_op_set_state(op, CASYNC_OP_QUEUED);
	do {
		op->next = head;
	} while (!__atomic_compare_exchange_n(&completed, &head, op, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));

	/* Whoever filled a non-empty list finds its wake-up under way. */
	if (head != NULL)
		return;
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) != 0)
		futex_wake(&filled, 1);
}

/* All that is queued, oldest first. */
static struct casync_op *take_all(void)
{
	struct casync_op *op =
		__atomic_exchange_n(&completed, NULL, __ATOMIC_SEQ_CST);
	struct casync_op *oldest = NULL;

	while (op != NULL) {
		struct casync_op *next = op->next;

		op->next = oldest;
		oldest = op;
		op = next;
	}
	return oldest;
}

static void *completer(void *unused)
{
	(void)unused;
	SetNameFunction("casync_done");
	on_thread = true;

	for (;;) {
		uint32_t seen = __atomic_load_n(&filled, __ATOMIC_SEQ_CST);
		struct casync_op *op = take_all();

		if (op == NULL) {
			if (__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
				return NULL;
			__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
			futex_wait(&filled, seen);
			__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
			continue;
		}
		while (op != NULL) {
			/* Finishing may free it. */
			struct casync_op *next = op->next;

			casync_finish(op);
			op = next;
		}
	}
}

int casync_complete_start(void)
{
	int rc = 0;

	stopping = false;
	while (thread_count < CASYNC_COMPLETERS && rc == 0) {
		rc = pthread_create(&threads[thread_count], NULL, completer,
				    NULL);
		if (rc == 0)
			thread_count++;
	}
	/* One is enough to go on with. */
	return thread_count != 0 ? 0 : -rc;
}

void casync_complete_stop(void)
{
	__atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	futex_wake(&filled, INT_MAX);
	while (thread_count != 0)
		pthread_join(threads[--thread_count], NULL);
}
