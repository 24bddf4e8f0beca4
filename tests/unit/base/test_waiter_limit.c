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

/* While this thread looks at the clock, another one leaves, so much later. */
static uint64_t leaves_later_ns;

/* Where the clock stands still, or 0: places depend on the last 0.1 s. */
static uint64_t stands_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (stands_ns != 0 && clock == CLOCK_MONOTONIC) {
		now->tv_sec = (time_t)(stands_ns / CASYNC_NS_PER_S);
		now->tv_nsec = (long)(stands_ns % CASYNC_NS_PER_S);
	}
	if (leaves_later_ns != 0)
		limit.progress_ns =
			casync_clock_timespec_ns(now) + leaves_later_ns;
	return rc;
}

static int up(void **state)
{
	limit = (struct casync_waiter_limit){0};
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static bool enter(void)
{
	return casync_waiter_limit_enter(&limit, CASYNC_WAITER_WORKER, ROOM);
}

static void leave(unsigned int count)
{
	while (count-- != 0)
		casync_waiter_limit_leave(&limit, CASYNC_WAITER_WORKER);
}

static void check_empty(void)
{
	int lane;

	for (lane = 0; lane < CASYNC_WAITER_KINDS; lane++) {
		assert_int_equal(limit.kinds[lane].inside, 0);
		assert_int_equal(limit.kinds[lane].sleepers, 0);
	}
}

/* Time it takes to be let in, or not, in milliseconds. */
static uint64_t timed(enum casync_waiter_kind lane, bool let_in)
{
	uint64_t began_ns = casync_clock_ns();

	assert_int_equal(casync_waiter_limit_enter(&limit, lane, ROOM), let_in);
	return (casync_clock_ns() - began_ns) / 1000000;
}

/* Sooner than a worker that has just seen progress?  Of ten times one is
 * enough: this thread may have had no CPU. */
static bool is_turned_away_soon(enum casync_waiter_kind lane)
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

CASE(nobody_waits_while_there_is_room)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		(void)timed(CASYNC_WAITER_WORKER, true);
	leave(ROOM);
	check_empty();
}

CASE(stuck_file_turns_away_after_a_while_then_at_once)
{
	uint64_t ms;
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	ms = timed(CASYNC_WAITER_WORKER, false);
	assert_true(ms >= CASYNC_WAITER_LIMIT_WORKER_MS - 50);
	assert_true(timed(CASYNC_WAITER_WORKER, false) <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2);
	leave(ROOM);
	assert_true(enter());
	leave(1);
	check_empty();
}

CASE(completion_thread_has_less_patience_and_its_own_room)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	for (i = 0; i < ROOM; i++)
		(void)timed(CASYNC_WAITER_COMPLETER, true);
	assert_true(is_turned_away_soon(CASYNC_WAITER_COMPLETER));
	for (i = 0; i < ROOM; i++)
		casync_waiter_limit_leave(&limit, CASYNC_WAITER_COMPLETER);
	leave(ROOM);
	check_empty();
}

/* As soon as somebody waits, whenever that is on a slow machine. */
static void *come_out_when_awaited(void *unused)
{
	(void)RIG_COMES(NOW(limit.kinds[CASYNC_WAITER_WORKER].sleepers) != 0);
	leave(1);
	return NULL;
}

CASE(who_waits_gets_the_room_of_who_comes_out)
{
	pthread_t other;
	unsigned int i;

	assert_int_equal(
		pthread_create(&other, NULL, come_out_when_awaited, NULL), 0);
	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	(void)timed(CASYNC_WAITER_WORKER, true);
	RIG_JOIN(other, NULL);
	leave(ROOM);
	check_empty();
}

CASE(pause_is_not_a_lack_of_progress)
{
	const struct timespec pause = {.tv_nsec = 150000000};
	unsigned int i;

	assert_true(enter());
	leave(1);
	/* Longer than a completion thread's patience. */
	nanosleep(&pause, NULL);
	for (i = 0; i < ROOM; i++)
		assert_true(casync_waiter_limit_enter(
			&limit, CASYNC_WAITER_COMPLETER, ROOM));
	assert_true(timed(CASYNC_WAITER_COMPLETER, false) >= 50);
	for (i = 0; i < ROOM; i++)
		casync_waiter_limit_leave(&limit, CASYNC_WAITER_COMPLETER);
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

CASE(file_that_answers_turns_nobody_away)
{
	pthread_t threads[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, come_and_go, NULL),
			0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	assert_int_equal(too_many, 0);
	assert_int_equal(turned_away, 0);
	check_empty();
}

/* --- the limits of mounts, which share a budget */

#define MOUNTS 20

static struct casync_waiter_limit mounts[MOUNTS];

/* It has answered often, and a moment ago. */
static void make_busy(struct casync_waiter_limit *mount)
{
	mount->credit = 1000;
	mount->progress_ns = casync_clock_ns();
}

static int workers_up(void **state)
{
	unsigned int i;

	memset(mounts, 0, sizeof(mounts));
	for (i = 0; i < MOUNTS; i++)
		make_busy(&mounts[i]);
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	return 0;
}

#define WORKERS_CASE(test) TEST_WITH(test, workers_up, NULL)

/* Nobody waits in these: so a slow machine changes nothing. */
static int stopped_up(void **state)
{
	stands_ns = casync_clock_ns();
	return workers_up(state);
}

static int stopped_down(void **state)
{
	stands_ns = 0;
	return 0;
}

#define STOPPED_CASE(test) TEST_WITH(test, stopped_up, stopped_down)

/* As many as get in without a pause. */
static unsigned int fill(struct casync_waiter_limit *mount,
			 enum casync_caller who)
{
	unsigned int count = 0;

	while (casync_waiter_limit_try_mount(mount, who))
		count++;
	return count;
}

static void empty(struct casync_waiter_limit *mount, unsigned int count)
{
	while (count-- != 0)
		casync_waiter_limit_leave_mount(mount, NULL);
}

/* Requests to mounts that do not answer come in turn. */
static void fill_in_turn(unsigned int dead, unsigned int *counts)
{
	unsigned int i, before, all = 0;

	memset(counts, 0, dead * sizeof(*counts));
	do {
		before = all;
		for (i = 0; i < dead; i++) {
			unsigned int more = casync_waiter_limit_try_mount(
				&mounts[i], CASYNC_CALLER_NEXT);

			counts[i] += more;
			all += more;
		}
	} while (all != before);
}

STOPPED_CASE(dead_mounts_leave_as_much_to_another)
{
	unsigned int counts[MOUNTS], dead, i, all;

	for (dead = 1; dead < MOUNTS; dead++) {
		fill_in_turn(dead, counts);
		for (i = 0, all = 0; i < dead; i++)
			all += counts[i];
		assert_true(all >= 75 && all <= 150 - counts[dead - 1]);
		assert_true(fill(&mounts[dead], CASYNC_CALLER_NEXT) != 0);
		empty(&mounts[dead],
		      mounts[dead].kinds[CASYNC_WAITER_COMPLETER].inside);
		for (i = 0; i < dead; i++)
			empty(&mounts[i], counts[i]);
	}
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 75);
	empty(&mounts[0], 75);
}

/* Whoever comes first, nobody gets at the last quarter. */
STOPPED_CASE(mounts_filled_one_after_the_other_keep_to_the_budget)
{
	unsigned int counts[MOUNTS], i, all = 0;

	for (i = 0; i < MOUNTS; i++)
		all += counts[i] = fill(&mounts[i], CASYNC_CALLER_NEXT);
	assert_int_equal(counts[0], 75);
	assert_int_equal(counts[1], 38);
	assert_int_equal(all, 150);
	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i], counts[i]);
}

STOPPED_CASE(optional_calls_leave_room_for_needed_ones)
{
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_OPTIONAL), 50);
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 25);
	empty(&mounts[0], 75);
}

STOPPED_CASE(forced_entry_counts)
{
	unsigned int i;

	for (i = 0; i < 160; i++)
		casync_waiter_limit_force_mount(&mounts[0]);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 0);
	empty(&mounts[0], 160);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 75);
	empty(&mounts[1], 75);
}

STOPPED_CASE(files_leave_room_for_another_file)
{
	struct casync_waiter_limit files[61] = {0};
	const enum casync_waiter_kind lane = CASYNC_WAITER_WORKER;
	unsigned int counts[61] = {0};
	unsigned int i, before, all = 0;

	do {
		before = all;
		for (i = 0; i < 60; i++) {
			if (!casync_waiter_limit_try(
				    &files[i], lane,
				    casync_waiter_limit_file_room(&files[i],
								  &mounts[0])))
				continue;
			if (!casync_waiter_limit_try_mount(
				    &mounts[0], CASYNC_CALLER_NEXT)) {
				casync_waiter_limit_leave(&files[i], lane);
				continue;
			}
			counts[i]++;
			all++;
		}
	} while (all != before);
	assert_true(all >= 60 && all <= 74);
	assert_true(casync_waiter_limit_try(
		&files[60], lane,
		casync_waiter_limit_file_room(&files[60], &mounts[0])));
	assert_true(
		casync_waiter_limit_try_mount(&mounts[0], CASYNC_CALLER_NEXT));
	empty(&mounts[0], all + 1);
}

/* Each file takes as many as it may, as the first one and as the next ones. */
static unsigned int fill_by_files(struct casync_waiter_limit *mount,
				  struct casync_waiter_limit *files,
				  unsigned int count)
{
	unsigned int i, all = 0;
	uint32_t room;

	for (i = 0; i < count; i++) {
		enum casync_caller who = CASYNC_CALLER_FIRST;

		do {
			room = casync_waiter_limit_file_room(&files[i], mount);
			if (!casync_waiter_limit_try(
				    &files[i], CASYNC_WAITER_COMPLETER, room) ||
			    !casync_waiter_limit_try_mount(mount, who))
				break;
			all++;
			who = CASYNC_CALLER_NEXT;
		} while (true);
	}
	return all;
}

/* Eight mounts that were idle, 60 files that were idle, and one more file. */
STOPPED_CASE(what_was_idle_keeps_few_places)
{
	static struct casync_waiter_limit away[8][100], files[61];
	unsigned int i, all;

	memset(away, 0, sizeof(away));
	memset(files, 0, sizeof(files));
	memset(mounts, 0, 8 * sizeof(mounts[0]));
	for (i = 0, all = 0; i < 8; i++)
		all += fill_by_files(&mounts[i], away[i], 100);
	/* A quarter of the budget, and four for each of the others. */
	assert_int_equal(all, 40 + 7 * 4);
	assert_int_equal(fill_by_files(&mounts[8], files, 60), 60);
	assert_int_equal(fill_by_files(&mounts[8], &files[60], 1), 1);
	empty(&mounts[8], 61);
	for (i = 0; i < 8; i++)
		empty(&mounts[i],
		      mounts[i].kinds[CASYNC_WAITER_COMPLETER].inside);
}

/* A mount's answers may come from libcephfs' memory, so they bring it none. */
STOPPED_CASE(each_answer_brings_a_file_a_place)
{
	struct casync_waiter_limit file = {0};
	unsigned int all;

	memset(&mounts[1], 0, sizeof(mounts[1]));
	all = fill(&mounts[0], CASYNC_CALLER_NEXT);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 4);
	assert_int_equal(casync_waiter_limit_file_room(&file, &mounts[1]), 1);
	assert_true(casync_waiter_limit_try(&file, CASYNC_WAITER_COMPLETER, 1));
	casync_waiter_limit_leave_mount(&mounts[1], &file);
	assert_int_equal(file.kinds[CASYNC_WAITER_COMPLETER].inside, 0);
	assert_int_equal(file.credit, 1);
	assert_int_equal(casync_waiter_limit_file_room(&file, &mounts[1]), 2);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 1);
	/* To be refused is no answer. */
	assert_true(casync_waiter_limit_try(&file, CASYNC_WAITER_COMPLETER, 1));
	casync_waiter_limit_cancel(&file, CASYNC_WAITER_COMPLETER);
	assert_int_equal(file.credit, 1);
	empty(&mounts[1], 4);
	empty(&mounts[0], all);
}

/* It has to be idle for 0.1 s to lose it. */
STOPPED_CASE(proof_holds_while_the_mount_is_in_use)
{
	unsigned int all;

	memset(&mounts[1], 0, sizeof(mounts[1]));
	all = fill(&mounts[0], CASYNC_CALLER_NEXT);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 4);
	casync_waiter_limit_prove(&mounts[1]);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 38 - 4);
	empty(&mounts[1], 38);
	mounts[1].progress_ns = casync_clock_ns();
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 38);
	empty(&mounts[1], 38);
	mounts[1].progress_ns = 0;
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_FIRST), 4);
	empty(&mounts[1], 4);
	empty(&mounts[0], all);
}

/* Milliseconds until FULL, which did something 50 ms ago, turns this worker
 * away: the least of ten times, as it may have had no CPU. */
static uint64_t turned_away_after_ms(struct casync_waiter_limit *full)
{
	uint64_t began_ns, took_ms, least_ms = UINT64_MAX;
	unsigned int tries;

	for (tries = 0; tries < 10; tries++) {
		began_ns = casync_clock_ns();
		full->progress_ns = began_ns - 50 * CASYNC_NS_PER_MS;
		assert_false(casync_waiter_limit_enter_mount(
			full, CASYNC_CALLER_NEXT));
		took_ms = (casync_clock_ns() - began_ns) / CASYNC_NS_PER_MS;
		if (took_ms < least_ms)
			least_ms = took_ms;
	}
	return least_ms;
}

/* 75 + 38 + 19 + 9 + 4 + 2 + 1 are 148 of 150. */
WORKERS_CASE(crowd_has_little_patience_with_the_unproved)
{
	struct casync_waiter_limit *idle = &mounts[7];
	unsigned int i, all = 0;

	memset(idle, 0, sizeof(*idle));
	all += fill(&mounts[0], CASYNC_CALLER_NEXT);
	assert_int_equal(fill(idle, CASYNC_CALLER_NEXT), 4);
	assert_true(turned_away_after_ms(idle) >= 40);
	empty(idle, 4);
	idle->progress_ns = 0;
	for (i = 1; i < 7; i++)
		all += fill(&mounts[i], CASYNC_CALLER_NEXT);
	all += fill(idle, CASYNC_CALLER_NEXT);
	while (casync_waiter_limit_try_reserve(&mounts[0]))
		all++;
	assert_true(all >= 150);
	assert_true(turned_away_after_ms(idle) < 40);
	casync_waiter_limit_prove(idle);
	assert_true(turned_away_after_ms(idle) >= 40);
	for (i = 0; i < 8; i++)
		empty(&mounts[i],
		      mounts[i].kinds[CASYNC_WAITER_COMPLETER].inside);
}

static void *enter_mount(void *mount)
{
	return casync_waiter_limit_enter_mount(mount, CASYNC_CALLER_NEXT)
		       ? mount
		       : NULL;
}

/* The MDS answers at the moment when the first one waits. */
WORKERS_CASE(who_waits_gets_in_when_the_mds_answers)
{
	struct casync_waiter_limit *idle = &mounts[1];
	pthread_t waiter;
	void *entered;

	memset(idle, 0, sizeof(*idle));
	assert_false(casync_waiter_limit_wants_proof(idle));
	/* Alone, it may not have one more without the proof. */
	assert_int_equal(fill(idle, CASYNC_CALLER_NEXT), 40);
	assert_true(casync_waiter_limit_wants_proof(idle));
	empty(idle, 40);
	idle->credit = 0;
	idle->progress_ns = 0;
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 75);
	assert_false(casync_waiter_limit_wants_proof(&mounts[0]));
	assert_int_equal(fill(idle, CASYNC_CALLER_NEXT), 4);
	assert_true(casync_waiter_limit_wants_proof(idle));
	/* It waits for 0.1 s, and this thread may have no CPU for so long. */
	idle->progress_ns = casync_clock_ns() + 60 * CASYNC_NS_PER_S;
	assert_int_equal(pthread_create(&waiter, NULL, enter_mount, idle), 0);
	RIG_UNTIL(NOW(idle->kinds[CASYNC_WAITER_COMPLETER].sleepers) != 0);
	casync_waiter_limit_prove(idle);
	RIG_JOIN(waiter, &entered);
	assert_non_null(entered);
	assert_false(casync_waiter_limit_wants_proof(idle));
	assert_int_equal(fill(idle, CASYNC_CALLER_NEXT), 38 - 5);
	empty(idle, 38);
	empty(&mounts[0], 75);
}

/* But for half of the budget, and if the MDS has answered. */
STOPPED_CASE(first_of_a_file_need_not_leave_as_much)
{
	unsigned int all;

	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 75);
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_NEXT), 38);
	all = fill(&mounts[1], CASYNC_CALLER_FIRST);
	assert_int_equal(all, 22);
	empty(&mounts[1], all);
	mounts[1].credit = 0;
	assert_int_equal(fill(&mounts[1], CASYNC_CALLER_FIRST), 0);
	empty(&mounts[1], 38);
	empty(&mounts[0], 75);
}

/* Half of the last quarter. */
STOPPED_CASE(reserve_has_a_bound)
{
	unsigned int i, all = 0, more = 0;

	for (i = 0; i < MOUNTS; i++)
		all += fill(&mounts[i], CASYNC_CALLER_NEXT);
	while (casync_waiter_limit_try_reserve(&mounts[0]))
		more++;
	assert_int_equal(all + more, 175);
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 0);
	for (i = 0; i < MOUNTS; i++)
		empty(&mounts[i],
		      mounts[i].kinds[CASYNC_WAITER_COMPLETER].inside);
}

static void *come_and_leave(void *file)
{
	if (!casync_waiter_limit_enter_both(file, &mounts[0], true))
		return NULL;
	casync_waiter_limit_leave_mount(&mounts[0], file);
	return file;
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
		assert_int_equal(
			pthread_create(&threads[i], NULL, come_and_leave, full),
			0);
	nanosleep(&pause, NULL);
	return __atomic_load_n(&full->kinds[CASYNC_WAITER_COMPLETER].sleepers,
			       __ATOMIC_ACQUIRE);
}

/* The file has 38 places and goes on after 0.3 s.  A quarter of the workers
 * wait for that, if the budget has room for them. */
WORKERS_CASE(folder_outlasts_a_short_pause)
{
	struct casync_waiter_limit folder = {0};
	pthread_t threads[60];
	unsigned int i, inside, waiting, entered = 0;
	uint64_t began_ns;
	void *did;

	/* All was idle. */
	memset(&mounts[0], 0, sizeof(mounts[0]));
	for (inside = 0; casync_waiter_limit_try(
		     &folder, CASYNC_WAITER_COMPLETER,
		     casync_waiter_limit_file_room(&folder, &mounts[0]));
	     inside++)
		assert_true(casync_waiter_limit_try_mount(&mounts[0],
							  CASYNC_CALLER_NEXT));
	assert_int_equal(inside, 38);
	/* One that has not answered lately does not wait for so long. */
	began_ns = casync_clock_ns();
	assert_false(
		casync_waiter_limit_enter_both(&folder, &mounts[0], false));
	assert_true(casync_clock_ns() - began_ns <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2 * 1000000);
	waiting = still_waiting(&folder, threads, 60);
	assert_int_equal(waiting, casync_waiter_limit_workers());
	empty(&mounts[0], inside);
	for (i = 0; i < inside; i++)
		casync_waiter_limit_leave(&folder, CASYNC_WAITER_COMPLETER);
	for (i = 0; i < 60; i++) {
		RIG_JOIN(threads[i], &did);
		entered += did != NULL;
	}
	assert_int_equal(entered, waiting);
}

/* Others are at work, and it has a call that is not answered. */
WORKERS_CASE(file_that_was_idle_is_not_patient)
{
	struct casync_waiter_limit file = {0};
	unsigned int others = 9;
	uint64_t began_ns;

	while (others-- != 0)
		assert_true(casync_waiter_limit_try_mount(&mounts[1],
							  CASYNC_CALLER_NEXT));
	assert_true(casync_waiter_limit_enter_both(&file, &mounts[0], true));
	began_ns = casync_clock_ns();
	assert_false(casync_waiter_limit_enter_both(&file, &mounts[0], true));
	assert_true(casync_clock_ns() - began_ns <
		    CASYNC_WAITER_LIMIT_WORKER_MS / 2 * CASYNC_NS_PER_MS);
	assert_false(casync_waiter_limit_try_both(&file, &mounts[0]));
	casync_waiter_limit_leave_mount(&mounts[0], &file);
	assert_true(casync_waiter_limit_try_both(&file, &mounts[0]));
	casync_waiter_limit_leave_mount(&mounts[0], &file);
	assert_int_equal(file.kinds[CASYNC_WAITER_COMPLETER].inside, 0);
	empty(&mounts[1], 9);
}

WORKERS_CASE(few_workers_are_enough_for_one)
{
	nfs_param.core_param.rpc.ioq_thrd_max = 2;
	assert_int_equal(fill(&mounts[0], CASYNC_CALLER_NEXT), 1);
	empty(&mounts[0], 1);
}

/* Looks at 1 s, 2 s, and so on. */
CASE(oldest_call_has_an_age)
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

CASE(who_left_later_than_now_was_not_idle)
{
	limit.credit = 7;
	leaves_later_ns = 1000;
	assert_true(
		casync_waiter_limit_try(&limit, CASYNC_WAITER_COMPLETER, ROOM));
	leaves_later_ns = 0;
	assert_int_equal(limit.credit, 7);
	casync_waiter_limit_cancel(&limit, CASYNC_WAITER_COMPLETER);
}
