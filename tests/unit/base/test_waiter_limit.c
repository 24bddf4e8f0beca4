/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <time.h>

#include "unit.h"

#include "waiter_limit.h"
#include "clock.h"
#include "inflight.h"

#define ROOM 4

static struct casync_waiter_limit limit;

static int up(void **state)
{
	limit = (struct casync_waiter_limit){0};
	return 0;
}

static bool enter(void)
{
	return casync_waiter_limit_enter(&limit, CASYNC_LANE_WORKER, ROOM);
}

static void leave(unsigned int count)
{
	while (count-- != 0)
		casync_waiter_limit_leave(&limit, CASYNC_LANE_WORKER);
}

static void check_empty(void)
{
	int lane;

	for (lane = 0; lane < CASYNC_LANES; lane++) {
		assert_int_equal(limit.lanes[lane].inside, 0);
		assert_int_equal(limit.lanes[lane].sleepers, 0);
	}
}

/* Time it takes to be let in, or not, in milliseconds. */
static uint64_t timed(enum casync_lane lane, bool let_in)
{
	uint64_t began_ns = casync_clock_ns();

	assert_int_equal(casync_waiter_limit_enter(&limit, lane, ROOM), let_in);
	return (casync_clock_ns() - began_ns) / 1000000;
}

static void nobody_waits_while_there_is_room(void **state)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		(void)timed(CASYNC_LANE_WORKER, true);
	leave(ROOM);
	check_empty();
}

static void stuck_file_turns_away_after_a_while_then_at_once(void **state)
{
	uint64_t ms;
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	ms = timed(CASYNC_LANE_WORKER, false);
	assert_true(ms >= CASYNC_WAITER_LIMIT_WORKER_MS - 50);
	assert_true(timed(CASYNC_LANE_WORKER, false) <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2);
	leave(ROOM);
	assert_true(enter());
	leave(1);
	check_empty();
}

static void completion_thread_has_less_patience_and_its_own_room(void **state)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	for (i = 0; i < ROOM; i++)
		(void)timed(CASYNC_LANE_COMPLETER, true);
	assert_true(timed(CASYNC_LANE_COMPLETER, false) <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2);
	for (i = 0; i < ROOM; i++)
		casync_waiter_limit_leave(&limit, CASYNC_LANE_COMPLETER);
	leave(ROOM);
	check_empty();
}

/* As soon as somebody waits, whenever that is on a slow machine. */
static void *come_out_when_awaited(void *unused)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	(void)unused;
	while (__atomic_load_n(&limit.lanes[CASYNC_LANE_WORKER].sleepers,
			       __ATOMIC_ACQUIRE) == 0)
		nanosleep(&pause, NULL);
	leave(1);
	return NULL;
}

static void who_waits_gets_the_room_of_who_comes_out(void **state)
{
	pthread_t other;
	unsigned int i;

	assert_int_equal(
		pthread_create(&other, NULL, come_out_when_awaited, NULL), 0);
	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	(void)timed(CASYNC_LANE_WORKER, true);
	pthread_join(other, NULL);
	leave(ROOM);
	check_empty();
}

static void pause_is_not_a_lack_of_progress(void **state)
{
	const struct timespec pause = {.tv_nsec = 150000000};
	unsigned int i;

	assert_true(enter());
	leave(1);
	/* Longer than a completion thread's patience. */
	nanosleep(&pause, NULL);
	for (i = 0; i < ROOM; i++)
		assert_true(casync_waiter_limit_enter(
			&limit, CASYNC_LANE_COMPLETER, ROOM));
	assert_true(timed(CASYNC_LANE_COMPLETER, false) >= 50);
	for (i = 0; i < ROOM; i++)
		casync_waiter_limit_leave(&limit, CASYNC_LANE_COMPLETER);
	check_empty();
}

#define THREADS 16
#define TIMES 2000

static int inside;	/* atomic */
static int too_many;	/* atomic */
static int turned_away; /* atomic */

static void *come_and_go(void *unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i < TIMES; i++) {
		if (!enter()) {
			__atomic_add_fetch(&turned_away, 1, __ATOMIC_RELAXED);
			continue;
		}
		if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > ROOM)
			__atomic_add_fetch(&too_many, 1, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		leave(1);
	}
	return NULL;
}

static void file_that_answers_turns_nobody_away(void **state)
{
	pthread_t threads[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, come_and_go, NULL),
			0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(too_many, 0);
	assert_int_equal(turned_away, 0);
	check_empty();
}

#define CASE(test) cmocka_unit_test_setup(test, up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nobody_waits_while_there_is_room),
		CASE(stuck_file_turns_away_after_a_while_then_at_once),
		CASE(completion_thread_has_less_patience_and_its_own_room),
		CASE(who_waits_gets_the_room_of_who_comes_out),
		CASE(pause_is_not_a_lack_of_progress),
		CASE(file_that_answers_turns_nobody_away),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
