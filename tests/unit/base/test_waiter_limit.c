/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "nfs_core.h"

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

/* Sooner than a worker that has just seen progress?  Of ten times one is
 * enough: this thread may have had no CPU. */
static bool is_turned_away_soon(enum casync_lane lane)
{
	unsigned int tries;

	for (tries = 0; tries < 10; tries++) {
		if (timed(lane, false) < CASYNC_WAITER_LIMIT_WORKER_MS / 2)
			return true;
		/* Progress: the next one has patience again. */
		casync_waiter_limit_leave(&limit, lane);
		(void)timed(lane, true);
	}
	return false;
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
	assert_true(is_turned_away_soon(CASYNC_LANE_COMPLETER));
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

/* --- the limits of mounts, which share a budget */

#define MOUNTS 20

static struct casync_waiter_limit mounts[MOUNTS];

static int workers_up(void **state)
{
	memset(mounts, 0, sizeof(mounts));
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	return 0;
}

/* As many as get in without a pause. */
static unsigned int fill(struct casync_waiter_limit *mount, uint32_t part)
{
	unsigned int count = 0;

	while (casync_waiter_limit_try_mount(mount, part))
		count++;
	return count;
}

static void empty(struct casync_waiter_limit *mount, unsigned int count)
{
	while (count-- != 0)
		casync_waiter_limit_leave_mount(mount);
}

/* Requests to mounts that do not answer come in turn. */
static void fill_in_turn(unsigned int dead, unsigned int *counts)
{
	unsigned int i, before, all = 0;

	memset(counts, 0, dead * sizeof(*counts));
	do {
		before = all;
		for (i = 0; i < dead; i++) {
			unsigned int more =
				casync_waiter_limit_try_mount(&mounts[i], 1);

			counts[i] += more;
			all += more;
		}
	} while (all != before);
}

static void dead_mounts_leave_as_much_to_another(void **state)
{
	unsigned int counts[MOUNTS], dead, i, all;

	for (dead = 1; dead < MOUNTS; dead++) {
		fill_in_turn(dead, counts);
		for (i = 0, all = 0; i < dead; i++)
			all += counts[i];
		assert_true(all >= 75 && all <= 150 - counts[dead - 1]);
		assert_true(fill(&mounts[dead], 1) != 0);
		empty(&mounts[dead],
		      mounts[dead].lanes[CASYNC_LANE_COMPLETER].inside);
		for (i = 0; i < dead; i++)
			empty(&mounts[i], counts[i]);
	}
	assert_int_equal(fill(&mounts[0], 1), 75);
	empty(&mounts[0], 75);
}

/* Whoever comes first, nobody gets at the last quarter. */
static void mounts_filled_one_after_the_other_keep_to_the_budget(void **state)
{
	unsigned int counts[MOUNTS], i, all = 0;

	for (i = 0; i < MOUNTS; i++)
		all += counts[i] = fill(&mounts[i], 1);
	assert_int_equal(counts[0], 75);
	assert_int_equal(counts[1], 38);
	assert_int_equal(all, 150);
	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i], counts[i]);
}

static void optional_calls_leave_room_for_needed_ones(void **state)
{
	assert_int_equal(fill(&mounts[0], 2), 50);
	assert_int_equal(fill(&mounts[0], 1), 25);
	empty(&mounts[0], 75);
}

static void forced_entry_counts(void **state)
{
	unsigned int i;

	for (i = 0; i < 160; i++)
		casync_waiter_limit_force_mount(&mounts[0]);
	assert_int_equal(fill(&mounts[1], 1), 0);
	empty(&mounts[0], 160);
	assert_int_equal(fill(&mounts[1], 1), 75);
	empty(&mounts[1], 75);
}

static void files_leave_room_for_another_file(void **state)
{
	struct casync_waiter_limit files[61] = {0};
	const enum casync_lane lane = CASYNC_LANE_WORKER;
	unsigned int counts[61] = {0};
	unsigned int i, before, all = 0;

	do {
		before = all;
		for (i = 0; i < 60; i++) {
			if (!casync_waiter_limit_try(
				    &files[i], lane,
				    casync_waiter_limit_file_room(&mounts[0])))
				continue;
			if (!casync_waiter_limit_try_mount(&mounts[0], 1)) {
				casync_waiter_limit_leave(&files[i], lane);
				continue;
			}
			counts[i]++;
			all++;
		}
	} while (all != before);
	assert_true(all >= 60 && all <= 74);
	assert_true(casync_waiter_limit_try(
		&files[60], lane, casync_waiter_limit_file_room(&mounts[0])));
	assert_true(casync_waiter_limit_try_mount(&mounts[0], 1));
	empty(&mounts[0], all + 1);
}

/* Half of the last quarter. */
static void reserve_has_a_bound(void **state)
{
	unsigned int i, all = 0, more = 0;

	for (i = 0; i < MOUNTS; i++)
		all += fill(&mounts[i], 1);
	while (casync_waiter_limit_try_reserve(&mounts[0]))
		more++;
	assert_int_equal(all + more, 175);
	assert_int_equal(fill(&mounts[0], 1), 0);
	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i],
		      mounts[i].lanes[CASYNC_LANE_COMPLETER].inside);
}

static void *enter_full_file(void *file)
{
	return casync_waiter_limit_enter_file(file, &mounts[0], true) ? file
								      : NULL;
}

/* COUNT threads want to enter FULL; @return how many are still waiting after
 * three times the shortest patience. */
static unsigned int still_waiting(struct casync_waiter_limit *full,
				  pthread_t *threads, unsigned int count)
{
	const struct timespec pause = {
		.tv_nsec = 3 * CASYNC_WAITER_LIMIT_COMPLETER_MS * 1000000};
	unsigned int i;

	for (i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						enter_full_file, full),
				 0);
	nanosleep(&pause, NULL);
	return __atomic_load_n(&full->lanes[CASYNC_LANE_COMPLETER].sleepers,
			       __ATOMIC_ACQUIRE);
}

/* The file has 38 places and goes on after 0.3 s.  A quarter of the workers
 * wait for that, if the budget has room for them. */
static void folder_outlasts_a_short_pause(void **state)
{
	struct casync_waiter_limit folder = {0};
	pthread_t threads[60];
	unsigned int i, inside, waiting, entered = 0;
	uint64_t began_ns;
	void *did;

	for (inside = 0;
	     casync_waiter_limit_try(&folder, CASYNC_LANE_COMPLETER,
				     casync_waiter_limit_file_room(&mounts[0]));
	     inside++)
		assert_true(casync_waiter_limit_try_mount(&mounts[0], 1));
	assert_int_equal(inside, 38);
	/* One that has not answered lately does not wait for so long. */
	began_ns = casync_clock_ns();
	assert_false(
		casync_waiter_limit_enter_file(&folder, &mounts[0], false));
	assert_true(casync_clock_ns() - began_ns <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2 * 1000000);
	waiting = still_waiting(&folder, threads, 60);
	assert_int_equal(waiting, casync_waiter_limit_workers());
	empty(&mounts[0], inside);
	for (i = 0; i < inside; i++)
		casync_waiter_limit_leave(&folder, CASYNC_LANE_COMPLETER);
	for (i = 0; i < 60; i++) {
		pthread_join(threads[i], &did);
		entered += did != NULL;
	}
	assert_int_equal(entered, waiting);
}

static void few_workers_are_enough_for_one(void **state)
{
	nfs_param.core_param.rpc.ioq_thrd_max = 2;
	assert_int_equal(fill(&mounts[0], 1), 1);
	empty(&mounts[0], 1);
}

#define CASE(test) cmocka_unit_test_setup(test, up)
#define WORKERS_CASE(test) cmocka_unit_test_setup(test, workers_up)

/* Looks at 1 s, 2 s, and so on. */
static void oldest_call_has_an_age(void **state)
{
	struct casync_waiter_age age = {0};
	uint64_t now_ns = CASYNC_NS_PER_S;
	uint32_t first, second, third;

	assert_int_equal(casync_waiter_limit_look_at_age(&age, now_ns), 0);
	first = casync_waiter_limit_enter_age(&age);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 2 * now_ns), 0);
	second = casync_waiter_limit_enter_age(&age);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 5 * now_ns),
			 3 * CASYNC_NS_PER_S);
	/* Calls that come and go do not make it younger. */
	third = casync_waiter_limit_enter_age(&age);
	casync_waiter_limit_leave_age(&age, third);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 60 * now_ns),
			 58 * CASYNC_NS_PER_S);
	/* The second one counts from the look after the first one's end. */
	casync_waiter_limit_leave_age(&age, first);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 61 * now_ns), 0);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 65 * now_ns),
			 4 * CASYNC_NS_PER_S);
	casync_waiter_limit_leave_age(&age, second);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 66 * now_ns), 0);
	assert_int_equal(casync_waiter_limit_look_at_age(&age, 67 * now_ns), 0);
	assert_int_equal(age.inside[0] + age.inside[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nobody_waits_while_there_is_room),
		CASE(stuck_file_turns_away_after_a_while_then_at_once),
		CASE(completion_thread_has_less_patience_and_its_own_room),
		CASE(who_waits_gets_the_room_of_who_comes_out),
		CASE(pause_is_not_a_lack_of_progress),
		CASE(file_that_answers_turns_nobody_away),
		CASE(oldest_call_has_an_age),
		WORKERS_CASE(dead_mounts_leave_as_much_to_another),
		WORKERS_CASE(
			mounts_filled_one_after_the_other_keep_to_the_budget),
		WORKERS_CASE(optional_calls_leave_room_for_needed_ones),
		WORKERS_CASE(forced_entry_counts),
		WORKERS_CASE(files_leave_room_for_another_file),
		WORKERS_CASE(reserve_has_a_bound),
		WORKERS_CASE(folder_outlasts_a_short_pause),
		WORKERS_CASE(folder_outlasts_a_short_pause),
		WORKERS_CASE(few_workers_are_enough_for_one),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
