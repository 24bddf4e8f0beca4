/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <time.h>

#include "unit.h"

#include "clock.h"
#include "room.h"

#define ROOM 4

/* Of a worker and of a completion thread, for the attributes of a file. */
#define LONG_MS 1000
#define SHORT_MS 100

static struct casync_room room;

/* While this thread looks at the clock, another one leaves, so much later. */
static uint64_t leaves_later_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (leaves_later_ns != 0)
		room.progress_ns =
			casync_clock_timespec_ns(now) + leaves_later_ns;
	return rc;
}

static int up(void **state)
{
	room = (struct casync_room){0};
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static bool enter(void)
{
	return casync_room_enter(&room, ROOM, LONG_MS);
}

static void leave(unsigned int count)
{
	while (count-- != 0)
		casync_room_leave(&room, casync_clock_ns());
}

static void check_empty(void)
{
	assert_int_equal(room.inside, 0);
	assert_int_equal(room.sleepers, 0);
}

/* Time it takes to be let in, or not, in milliseconds. */
static uint64_t timed(uint32_t patience_ms, bool let_in)
{
	uint64_t began_ns = casync_clock_ns();

	assert_int_equal(casync_room_enter(&room, ROOM, patience_ms), let_in);
	return (casync_clock_ns() - began_ns) / 1000000;
}

/* Sooner than a worker that has just seen progress?  Of ten times one is
 * enough: this thread may have had no CPU. */
static bool is_turned_away_soon(uint32_t patience_ms)
{
	unsigned int tries;

	for (tries = 0; tries < 10; tries++) {
		if (timed(patience_ms, false) < LONG_MS / 2)
			return true;
		/* Progress: the next one has patience again. */
		leave(1);
		(void)timed(patience_ms, true);
	}
	return false;
}

CASE(nobody_waits_while_there_is_room)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		(void)timed(LONG_MS, true);
	leave(ROOM);
	check_empty();
}

CASE(stuck_file_turns_away_after_a_while_then_at_once)
{
	uint64_t ms;
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	ms = timed(LONG_MS, false);
	assert_true(ms >= LONG_MS - 50);
	assert_true(timed(LONG_MS, false) < LONG_MS / 2);
	leave(ROOM);
	assert_true(enter());
	leave(1);
	check_empty();
}

CASE(completion_thread_has_less_patience)
{
	unsigned int i;

	for (i = 0; i < ROOM; i++)
		assert_true(enter());
	assert_true(is_turned_away_soon(SHORT_MS));
	leave(ROOM);
	check_empty();
}

/* As soon as somebody waits, whenever that is on a slow machine. */
static void *come_out_when_awaited(void *unused)
{
	(void)RIG_COMES(NOW(room.sleepers) != 0);
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
	(void)timed(LONG_MS, true);
	RIG_JOIN(other, NULL);
	leave(ROOM);
	check_empty();
}

/* So the next one is turned away as soon as this one. */
CASE(to_leave_without_an_answer_is_no_progress)
{
	uint64_t then_ns;

	assert_true(enter());
	then_ns = room.progress_ns;
	assert_true(enter());
	casync_room_leave(&room, 0);
	assert_int_equal(room.progress_ns, then_ns);
	casync_room_leave(&room, then_ns + 1);
	assert_int_equal(room.progress_ns, then_ns + 1);
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
		assert_true(casync_room_enter(&room, ROOM, SHORT_MS));
	assert_true(timed(SHORT_MS, false) >= 50);
	leave(ROOM);
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

CASE(who_left_later_than_now_was_not_idle)
{
	room.answers = 7;
	leaves_later_ns = 1000;
	assert_true(casync_room_try(&room, ROOM));
	leaves_later_ns = 0;
	assert_int_equal(room.answers, 7);
	casync_room_leave(&room, 0);
}
