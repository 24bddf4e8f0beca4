/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The hand-over from libcephfs' threads to ours; finish.c is stood in for.
 */
#include "config.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "complete.h"
#include "op.h"
#include "lane.h"

#define PRODUCERS 4
#define OPS_EACH 5000

nfs_parameter_t nfs_param;

void SetNameFunction(const char *nom)
{
	(void)nom;
}

/* An op as this test knows it. */
struct numbered {
	struct casync_op op;
	unsigned int finished; /* times; atomic */
	unsigned int sequence; /* of finishing; atomic */
	pthread_t finisher;
	bool on_completer;
	sem_t *hold; /* finishing waits for it */
	sem_t *told; /* posted when finishing begins */
};

static unsigned int finished_total;
static unsigned int next_sequence;

void casync_finish(struct casync_op *op)
{
	struct numbered *n = container_of(op, struct numbered, op);
	sem_t *hold = n->hold;

	n->sequence = __atomic_fetch_add(&next_sequence, 1, __ATOMIC_ACQ_REL);
	n->finisher = pthread_self();
	n->on_completer = casync_lane_on_completion_thread();
	if (n->told != NULL)
		sem_post(n->told);
	if (hold != NULL)
		(void)rig_wait(hold);
	__atomic_add_fetch(&n->finished, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&finished_total, 1, __ATOMIC_ACQ_REL);
}

/* What the watchdog does. */
static pthread_t ticker_thread;
static bool ticking; /* atomic */

static void *ticker(void *unused)
{
	const struct timespec pause = {.tv_nsec = 100000000};

	while (__atomic_load_n(&ticking, __ATOMIC_ACQUIRE)) {
		casync_complete_unblock();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int start_threads(void)
{
	int rc = casync_complete_start(casync_finish);

	ticking = true;
	return rc != 0 ? rc
		       : -pthread_create(&ticker_thread, NULL, ticker, NULL);
}

static void stop_threads(void)
{
	__atomic_store_n(&ticking, false, __ATOMIC_RELEASE);
	RIG_JOIN(ticker_thread, NULL);
	casync_complete_stop();
}

static int up(void **state)
{
	finished_total = 0;
	next_sequence = 0;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

CASE(one_op_is_finished_on_completion_thread)
{
	struct numbered n = {0};

	assert_int_equal(start_threads(), 0);
	casync_complete_queue(&n.op);
	RIG_UNTIL(NOW(finished_total) >= 1);
	stop_threads();
	assert_int_equal(n.finished, 1);
	assert_true(n.on_completer);
	assert_false(casync_lane_on_completion_thread());
	assert_false(pthread_equal(n.finisher, pthread_self()));
}

/* Long enough between ops that the threads are asleep most of the time. */
CASE(sleeping_thread_is_woken_each_time)
{
	const struct timespec pause = {.tv_nsec = 300000};
	static struct numbered n[200];
	unsigned int i;

	memset(n, 0, sizeof(n));
	assert_int_equal(start_threads(), 0);
	for (i = 0; i < 200; i++) {
		casync_complete_queue(&n[i].op);
		RIG_UNTIL(NOW(finished_total) >= i + 1);
		nanosleep(&pause, NULL);
	}
	stop_threads();
	for (i = 0; i < 200; i++)
		assert_int_equal(n[i].finished, 1);
}

/* No pause at all: hits the instant at which a thread goes to sleep. */
CASE(wake_up_is_not_lost_at_the_edge_of_sleep)
{
	const int rounds = 20000;
	static struct numbered n;
	int i;

	memset(&n, 0, sizeof(n));
	assert_int_equal(start_threads(), 0);
	for (i = 1; i <= rounds; i++) {
		int spins = 0;

		casync_complete_queue(&n.op);
		/* Spin first: sleeping would hide the edge. */
		while (NOW(n.finished) != (unsigned int)i && spins++ < 1000)
			;
		if (!RIG_COMES(NOW(n.finished) == (unsigned int)i))
			break;
	}
	stop_threads();
	assert_int_equal(n.finished, rounds);
}

struct producer {
	pthread_t thread;
	struct numbered *ops;
};

static void *produce(void *arg)
{
	struct producer *producer = arg;
	int i;

	for (i = 0; i < OPS_EACH; i++)
		casync_complete_queue(&producer->ops[i].op);
	return NULL;
}

static void start_producers(struct producer *producers)
{
	int i;

	for (i = 0; i < PRODUCERS; i++) {
		producers[i].ops = calloc(OPS_EACH, sizeof(struct numbered));
		assert_non_null(producers[i].ops);
	}
	for (i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&producers[i].thread, NULL,
						produce, &producers[i]),
				 0);
}

static void check_once_each(struct producer *producers)
{
	int i, j;

	for (i = 0; i < PRODUCERS; i++) {
		for (j = 0; j < OPS_EACH; j++) {
			assert_int_equal(producers[i].ops[j].finished, 1);
			assert_true(producers[i].ops[j].on_completer);
		}
		free(producers[i].ops);
	}
}

CASE(many_producers_have_each_op_finished_once)
{
	struct producer producers[PRODUCERS];
	int i;

	assert_int_equal(start_threads(), 0);
	start_producers(producers);
	for (i = 0; i < PRODUCERS; i++)
		RIG_JOIN(producers[i].thread, NULL);
	RIG_UNTIL(NOW(finished_total) >= PRODUCERS * OPS_EACH);
	stop_threads();
	check_once_each(producers);
}

/* What was queued before stop is answered by it. */
CASE(stop_finishes_what_is_queued)
{
	struct producer producers[PRODUCERS];
	int i;

	assert_int_equal(start_threads(), 0);
	start_producers(producers);
	for (i = 0; i < PRODUCERS; i++)
		RIG_JOIN(producers[i].thread, NULL);
	stop_threads();
	assert_int_equal(finished_total, PRODUCERS * OPS_EACH);
	check_once_each(producers);
}

/* Before the first start as at dlopen, where no thread runs yet. */
CASE(op_queued_before_start_is_finished)
{
	struct numbered n = {0};

	casync_complete_queue(&n.op);
	assert_int_equal(start_threads(), 0);
	RIG_UNTIL(NOW(finished_total) >= 1);
	stop_threads();
	assert_int_equal(n.finished, 1);
}

CASE(start_after_stop_works)
{
	struct numbered n[3];
	int i;

	memset(n, 0, sizeof(n));
	for (i = 0; i < 3; i++) {
		assert_int_equal(start_threads(), 0);
		casync_complete_queue(&n[i].op);
		RIG_UNTIL(NOW(finished_total) >= (unsigned)i + 1);
		stop_threads();
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(n[i].finished, 1);
}

/* Ops are taken oldest first: each thread begins its own in that order. */
CASE(ops_are_taken_in_order_of_queueing)
{
	static struct numbered n[100];
	unsigned int i, j;

	memset(n, 0, sizeof(n));
	for (i = 0; i < 100; i++)
		casync_complete_queue(&n[i].op);
	assert_int_equal(start_threads(), 0);
	RIG_UNTIL(NOW(finished_total) >= 100);
	stop_threads();
	for (i = 0; i < 100; i++) {
		for (j = i + 1; j < 100; j++) {
			if (pthread_equal(n[i].finisher, n[j].finisher))
				assert_true(n[i].sequence < n[j].sequence);
		}
	}
}

CASE(held_up_answer_leaves_other_thread_to_go_on)
{
	struct numbered held = {0};
	struct numbered next = {0};
	sem_t hold, told;
	bool went_on;

	sem_init(&hold, 0, 0);
	sem_init(&told, 0, 0);
	held.hold = &hold;
	held.told = &told;
	assert_int_equal(start_threads(), 0);
	casync_complete_queue(&held.op);
	assert_true(rig_wait(&told));
	casync_complete_queue(&next.op);
	went_on = RIG_COMES(NOW(finished_total) >= 1);
	sem_post(&hold);
	stop_threads();
	assert_true(went_on);
	assert_int_equal(next.finished, 1);
	assert_int_equal(held.finished, 1);
	sem_destroy(&hold);
	sem_destroy(&told);
}

/*
 * complete.h: "when one is held up in an answer, the other goes on".  Not
 * with what the held-up one has taken: two ops queued together are in one
 * batch, and the second waits for the first while the other thread sleeps.
 */
CASE(held_up_answer_does_not_hold_up_its_batch)
{
	struct numbered held = {0};
	struct numbered behind = {0};
	sem_t hold, told_held, told_behind;
	bool went_on;

	sem_init(&hold, 0, 0);
	sem_init(&told_held, 0, 0);
	sem_init(&told_behind, 0, 0);
	held.hold = &hold;
	held.told = &told_held;
	behind.told = &told_behind;

	casync_complete_queue(&held.op);
	casync_complete_queue(&behind.op);
	assert_int_equal(start_threads(), 0);
	assert_true(rig_wait(&told_held));
	went_on = rig_wait(&told_behind);
	sem_post(&hold);
	stop_threads();
	sem_destroy(&hold);
	sem_destroy(&told_held);
	sem_destroy(&told_behind);
	assert_true(went_on);
}
