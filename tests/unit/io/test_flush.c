/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "flush.h"
#include "rig.h"
#include "rig_lanes.h"

#define WAITERS 8

struct waiter {
	struct casync_flush_waiter waiter;
	int answers; /* atomic */
	int rc;
	bool frees; /* the object, as the last request on it may */
	bool asks_again;
};

static struct waiter waiters[WAITERS];

/* A flush stops at the gate: the test sees it begin, and lets it through. */
static bool gated;
static sem_t begun;
static sem_t gate;
static bool gate_timed_out;
/* Atomic: more than one flush in the air at once would show. */
static int in_the_air;
static int most_in_the_air;
static void (*in_flush)(void);

static void answered(struct casync_flush_waiter *waiter, int rc)
{
	struct waiter *w = container_of(waiter, struct waiter, waiter);

	w->rc = rc;
	if (w->frees)
		rig_free_object();
	if (w->asks_again) {
		w->asks_again = false;
		casync_flush_request(rig.obj, waiter);
	}
	__atomic_add_fetch(&w->answers, 1, __ATOMIC_ACQ_REL);
}

static void hook(enum fake_blocking which)
{
	int now;

	if (which != FAKE_SYNC_INODE)
		return;
	now = __atomic_add_fetch(&in_the_air, 1, __ATOMIC_ACQ_REL);
	if (now > __atomic_load_n(&most_in_the_air, __ATOMIC_ACQUIRE))
		__atomic_store_n(&most_in_the_air, now, __ATOMIC_RELEASE);
	if (in_flush != NULL)
		in_flush();
	sem_post(&begun);
	if (__atomic_load_n(&gated, __ATOMIC_ACQUIRE) && !rig_wait(&gate))
		__atomic_store_n(&gate_timed_out, true, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&in_the_air, 1, __ATOMIC_ACQ_REL);
}

static int up(void **state)
{
	unsigned int i;

	rig_up(state);
	memset(waiters, 0, sizeof(waiters));
	for (i = 0; i < WAITERS; i++)
		waiters[i].waiter.done = answered;
	gated = true;
	gate_timed_out = false;
	in_flush = NULL;
	in_the_air = 0;
	most_in_the_air = 0;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	fake.hook = hook;
	return rig_lanes_up();
}

static int down(void **state)
{
	rig_lanes_down();
	rig_down(state);
	sem_destroy(&begun);
	sem_destroy(&gate);
	return gate_timed_out ? -1 : 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static void request(unsigned int i)
{
	casync_flush_request(rig.obj, &waiters[i].waiter);
}

static void await_begun(void)
{
	assert_true(rig_wait(&begun));
}

static void let_through(void)
{
	sem_post(&gate);
}

static void check_answered(unsigned int i, int rc)
{
	RIG_UNTIL(NOW(waiters[i].answers) >= 1);
	assert_int_equal(waiters[i].rc, rc);
}

/* Results for the flushes to come, one after the other. */
static void next_result(int rc)
{
	fake.blocking_result[FAKE_SYNC_INODE] = rc;
}

static void ungate(void)
{
	__atomic_store_n(&gated, false, __ATOMIC_RELEASE);
}

CASE(one_request_is_one_flush)
{
	request(0);
	await_begun();
	assert_int_equal(__atomic_load_n(&waiters[0].answers, __ATOMIC_ACQUIRE),
			 0);
	let_through();
	check_answered(0, 0);
	rig_lanes_down();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_int_equal(waiters[0].answers, 1);
}

CASE(later_callers_share_the_next_flush)
{
	unsigned int i;

	request(0);
	await_begun();
	for (i = 1; i < WAITERS; i++)
		request(i);
	let_through();
	check_answered(0, 0);
	await_begun();
	for (i = 1; i < WAITERS; i++)
		assert_int_equal(
			__atomic_load_n(&waiters[i].answers, __ATOMIC_ACQUIRE),
			0);
	let_through();
	for (i = 1; i < WAITERS; i++)
		check_answered(i, 0);
	rig_lanes_down();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	assert_int_equal(most_in_the_air, 1);
	for (i = 0; i < WAITERS; i++)
		assert_int_equal(waiters[i].answers, 1);
}

CASE(leader_that_goes_on_is_not_joined_by_another)
{
	/* Time for a second leader, if there were one, to show. */
	const struct timespec pause = {.tv_nsec = 20000000};
	int shown = -1;

	request(0);
	await_begun();
	request(1);
	let_through();
	await_begun(); /* the same leader's second */
	request(2);
	nanosleep(&pause, NULL);
	sem_getvalue(&begun, &shown);
	let_through();
	let_through();
	check_answered(0, 0);
	check_answered(1, 0);
	check_answered(2, 0);
	assert_int_equal(shown, 0);
	assert_int_equal(most_in_the_air, 1);
}

CASE(error_reaches_exactly_those_covered)
{
	next_result(-EDQUOT);
	request(0);
	await_begun();
	request(1);
	request(2);
	let_through();
	check_answered(0, -EDQUOT);
	await_begun();
	next_result(0);
	let_through();
	check_answered(1, 0);
	check_answered(2, 0);
}

CASE(error_of_second_flush_spares_the_first)
{
	request(0);
	await_begun();
	request(1);
	let_through();
	check_answered(0, 0);
	await_begun();
	next_result(-EIO);
	let_through();
	check_answered(1, -EIO);
	assert_int_equal(waiters[0].rc, 0);
}

CASE(flush_after_all_ended_starts_anew)
{
	unsigned int i;

	ungate();
	for (i = 0; i < 3; i++) {
		request(i);
		check_answered(i, 0);
	}
	rig_lanes_down();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 3);
}

CASE(waiter_may_ask_again_in_done)
{
	ungate();
	waiters[0].asks_again = true;
	request(0);
	RIG_UNTIL(NOW(waiters[0].answers) >= 2);
	rig_lanes_down();
	assert_int_equal(waiters[0].answers, 2);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
}

CASE(object_may_be_freed_in_last_done)
{
	waiters[1].frees = true;
	request(0);
	await_begun();
	request(1);
	let_through();
	await_begun();
	let_through();
	check_answered(0, 0);
	check_answered(1, 0);
	rig_lanes_down();
	assert_null(rig.obj);
}

CASE(object_may_be_freed_in_last_of_a_batch)
{
	unsigned int i;

	request(0);
	await_begun();
	for (i = 1; i < WAITERS; i++)
		request(i);
	waiters[WAITERS - 1].frees = true;
	let_through();
	await_begun();
	let_through();
	for (i = 0; i < WAITERS; i++)
		check_answered(i, 0);
	rig_lanes_down();
	assert_null(rig.obj);
}

CASE(object_may_be_freed_after_failed_flush)
{
	next_result(-EIO);
	waiters[0].frees = true;
	request(0);
	let_through();
	check_answered(0, -EIO);
	rig_lanes_down();
	assert_null(rig.obj);
}

CASE(wait_returns_result_of_its_flush)
{
	ungate();
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	next_result(-ENOSPC);
	assert_int_equal(casync_flush_wait(rig.obj), -ENOSPC);
}

CASE(flush_makes_known_size_not_grown)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_false(casync_file_size_grown(&rig.obj->size, 1000));
	assert_true(casync_file_size_grown(&rig.obj->size, 1001));
}

CASE(failed_flush_leaves_it_grown)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	next_result(-EIO);
	assert_int_equal(casync_flush_wait(rig.obj), -EIO);
	assert_true(casync_file_size_grown(&rig.obj->size, 1000));
}

CASE(growth_during_flush_is_not_covered)
{
	casync_file_size_set(&rig.obj->size, 1000);
	request(0);
	await_begun();
	rig_grow(2000);
	let_through();
	check_answered(0, 0);
	assert_false(casync_file_size_grown(&rig.obj->size, 1000));
	assert_true(casync_file_size_grown(&rig.obj->size, 2000));
}

CASE(truncated_file_grows_again_from_there)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	rig_set_size(400);
	assert_false(casync_file_size_grown(&rig.obj->size, 400));
	assert_true(casync_file_size_grown(&rig.obj->size, 401));
}

CASE(truncate_upwards_flushes_nothing)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	rig_set_size(5000);
	assert_true(casync_file_size_grown(&rig.obj->size, 1001));
}

static void truncate_now(void)
{
	casync_file_size_set(&rig.obj->size, 0);
	rig_set_size(0);
}

/*
 * The leader stores the size it read before the flush, over what a truncate
 * has set meanwhile: the next stable writes up to the old size then count as
 * not grown, and are acknowledged without their flush (Stable_Write =
 * fdatasync).
 */
CASE(truncate_during_flush_is_not_forgotten)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	in_flush = truncate_now;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_true(casync_file_size_grown(&rig.obj->size, 500));
}

static void foreign_truncate_now(void)
{
	casync_file_size_update(&rig.obj->size, 100,
				casync_file_size_changes(&rig.obj->size));
}

/* The same when it is somebody else's and a getattr shows it. */
CASE(foreign_truncate_during_flush_is_not_forgotten)
{
	ungate();
	casync_file_size_set(&rig.obj->size, 1000);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	in_flush = foreign_truncate_now;
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_true(casync_file_size_grown(&rig.obj->size, 500));
}

CASE(flush_after_truncate_counts_again)
{
	ungate();
	rig_set_size(2000);
	assert_int_equal(casync_flush_wait(rig.obj), 0);
	assert_false(casync_file_size_grown(&rig.obj->size, 2000));
}

struct caller {
	pthread_t thread;
	int failures;
};

#define CALLERS 8
#define FLUSHES_EACH 300

static void *call_repeatedly(void *arg)
{
	struct caller *caller = arg;
	int i;

	for (i = 0; i < FLUSHES_EACH; i++) {
		if (casync_flush_wait(rig.obj) != 0)
			caller->failures++;
	}
	return NULL;
}

CASE(many_callers_never_have_two_flushes_in_the_air)
{
	struct caller callers[CALLERS] = {0};
	unsigned int i;

	ungate();
	for (i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i].thread, NULL,
						call_repeatedly, &callers[i]),
				 0);
	for (i = 0; i < CALLERS; i++) {
		RIG_JOIN(callers[i].thread, NULL);
		assert_int_equal(callers[i].failures, 0);
	}
	rig_lanes_down();
	assert_int_equal(most_in_the_air, 1);
	assert_true(fake_blocking_count(FAKE_SYNC_INODE) <=
		    CALLERS * FLUSHES_EACH);
}
