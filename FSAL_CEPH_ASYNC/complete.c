/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fsal.h"

#include "complete.h"
#include "finish.h"
#include "op.h"

/* Milliseconds without an answer after which what is queued gets help. */
#define STALL_MS 100
/* Seconds that a thread which came to help waits for more. */
#define IDLE_S 2

/* Newest first; emptied with one exchange. */
static struct casync_op *completed;

/* Oldest first: what was taken off `completed` and is not answered yet.  A
 * leaf; it is held to take one op, not while answering. */
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static struct casync_op *ready;
static uint64_t answered; /* ops taken to be answered; atomic */

/*
 * The sleepers' futex.  It counts the times there was a reason to look, so
 * that a thread that found nothing, and was overtaken by a push, does not
 * sleep.
 */
static uint32_t filled;
static int sleepers;
static bool stopping;
static __thread bool on_thread;

/* The threads, and the one that watches them. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_changed = PTHREAD_COND_INITIALIZER;
static unsigned int threads;
static bool watching;

bool casync_complete_on_thread(void)
{
	return on_thread;
}

/* True when it was the time that ended the wait. */
static bool futex_wait(uint32_t *word, uint32_t seen)
{
	struct timespec timeout = {.tv_sec = IDLE_S};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &timeout,
		       NULL, 0) != 0 &&
	       errno == ETIMEDOUT;
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

static struct casync_op *take_one(void)
{
	struct casync_op *op;

	pthread_mutex_lock(&ready_lock);
	if (ready == NULL)
		ready = take_all();
	op = ready;
	if (op != NULL) {
		ready = op->next;
		__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&ready_lock);
	return op;
}

/* Nothing to do: wait, or leave.  False: leave. */
static bool sleep_until_filled(uint32_t seen)
{
	bool timed_out;
	bool leave;

	__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	timed_out = futex_wait(&filled, seen);
	__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
	if (!timed_out)
		return true;

	pthread_mutex_lock(&threads_lock);
	leave = threads > CASYNC_COMPLETERS;
	if (leave)
		threads--;
	pthread_mutex_unlock(&threads_lock);
	return !leave;
}

static void *completer(void *unused)
{
	(void)unused;
	SetNameFunction("casync_done");
	on_thread = true;

	for (;;) {
		uint32_t seen = __atomic_load_n(&filled, __ATOMIC_SEQ_CST);
		struct casync_op *op = take_one();

		if (op != NULL)
			casync_finish(op);
		else if (__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
			break;
		else if (!sleep_until_filled(seen))
			return NULL;
	}

	pthread_mutex_lock(&threads_lock);
	threads--;
	pthread_cond_broadcast(&threads_changed);
	pthread_mutex_unlock(&threads_lock);
	return NULL;
}

static int start_locked(void *(*run)(void *))
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, run, NULL);

	if (rc == 0)
		pthread_detach(thread);
	return -rc;
}

static bool something_queued(void)
{
	bool queued;

	pthread_mutex_lock(&ready_lock);
	queued = ready != NULL ||
		 __atomic_load_n(&completed, __ATOMIC_SEQ_CST) != NULL;
	pthread_mutex_unlock(&ready_lock);
	return queued;
}

/* All threads are held up in answers, or one is and the rest sleeps. */
static void help_locked(void)
{
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) != 0)
		futex_wake(&filled, 1);
	else if (threads < CASYNC_COMPLETERS_MAX &&
		 start_locked(completer) == 0)
		threads++;
}

/*
 * An answer can wait for a lock that an unexport holds while it waits for I/O
 * on another file to end: with every thread held up so, that end would never
 * come.  So what is queued and gets no answer for a while gets a thread.
 */
static void *watcher(void *unused)
{
	struct timespec deadline;
	uint64_t before = 0;
	uint64_t now;

	(void)unused;
	SetNameFunction("casync_watch");
	pthread_mutex_lock(&threads_lock);
	while (!stopping) {
		clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_nsec += STALL_MS * 1000000L;
		deadline.tv_sec += deadline.tv_nsec / 1000000000L;
		deadline.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&threads_changed, &threads_lock,
					     &deadline);
		now = __atomic_load_n(&answered, __ATOMIC_RELAXED);
		if (now == before && something_queued())
			help_locked();
		before = now;
	}
	watching = false;
	pthread_cond_broadcast(&threads_changed);
	pthread_mutex_unlock(&threads_lock);
	return NULL;
}

int casync_complete_start(void)
{
	int rc = 0;

	pthread_mutex_lock(&threads_lock);
	__atomic_store_n(&stopping, false, __ATOMIC_SEQ_CST);
	while (threads < CASYNC_COMPLETERS && rc == 0) {
		rc = start_locked(completer);
		if (rc == 0)
			threads++;
	}
	if (rc == 0 && !watching) {
		rc = start_locked(watcher);
		watching = rc == 0;
	}
	pthread_mutex_unlock(&threads_lock);
	return rc;
}

void casync_complete_stop(void)
{
	pthread_mutex_lock(&threads_lock);
	__atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&filled, 1, __ATOMIC_SEQ_CST);
	futex_wake(&filled, INT_MAX);
	pthread_cond_broadcast(&threads_changed);
	while (threads != 0 || watching)
		pthread_cond_wait(&threads_changed, &threads_lock);
	pthread_mutex_unlock(&threads_lock);
}
