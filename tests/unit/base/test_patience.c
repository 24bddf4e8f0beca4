/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The last moment of a wait for room.  For a futex a time of 0 is no limit: who
 * asks in the very nanosecond in which patience ends must not sleep.
 */
#include "config.h"

#include <time.h>

#include "unit.h"

#include "clock.h"
#include "room.h"

#define PATIENCE_MS 1000

/* The clock stands. */
static const uint64_t now_ns = 1000 * CASYNC_NS_PER_S;

int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	now->tv_sec = (time_t)(now_ns / CASYNC_NS_PER_S);
	now->tv_nsec = (long)(now_ns % CASYNC_NS_PER_S);
	return 0;
}

static struct casync_room room;
static int refused; /* atomic */

static void *enter(void *unused)
{
	if (!casync_room_enter(&room, 1, PATIENCE_MS))
		__atomic_store_n(&refused, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void check_refused(uint64_t since_ns)
{
	pthread_t thread;

	refused = 0;
	room = (struct casync_room){0};
	assert_true(casync_room_enter(&room, 1, PATIENCE_MS));
	room.progress_ns = now_ns - since_ns;
	assert_int_equal(pthread_create(&thread, NULL, enter, NULL), 0);
	RIG_UNTIL(NOW(refused) != 0);
	RIG_JOIN(thread, NULL);
}

TEST(patience_that_has_ended_does_not_sleep)
{
	check_refused(PATIENCE_MS * CASYNC_NS_PER_MS + 1);
}

TEST(patience_that_ends_now_does_not_sleep)
{
	check_refused(PATIENCE_MS * CASYNC_NS_PER_MS);
}
