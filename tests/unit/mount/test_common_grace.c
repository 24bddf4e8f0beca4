/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "common_grace.h"
#include "stub_ganesha.h"

/* --- a clock that stands; a sleep takes no time */

static uint64_t now_ms = 1000;
static int sleeps;
static uint64_t slept_until_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = (time_t)(now_ms / 1000);
	now->tv_nsec = (long)(now_ms % 1000 * CASYNC_NS_PER_MS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left)
{
	(void)left;
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_int_equal(flags, TIMER_ABSTIME);
	sleeps++;
	slept_until_ms = (uint64_t)until->tv_sec * 1000 +
			 (uint64_t)until->tv_nsec / CASYNC_NS_PER_MS;
	return 0;
}

static int wakes; /* of Ganesha's reaper */

void reaper_wake(void)
{
	wakes++;
}

static int up(void **state)
{
	(void)state;
	stub_reset();
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	nfs_param.nfsv4_param.grace_period = 90;
	admin_shutdown = false;
	/* Another grace period is over, and its last look long ago. */
	now_ms += 100000;
	sleeps = wakes = 0;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

/* --- the lead */

CASE(lead_is_for_a_cluster)
{
	casync_common_grace_await_known();
	assert_int_equal(sleeps, 1);
	assert_true(slept_until_ms == now_ms + CASYNC_GRACE_LEAD_MS);
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_FS;
	casync_common_grace_await_known();
	assert_int_equal(sleeps, 1);
}

CASE(lead_at_the_start_is_given_once)
{
	casync_common_grace_await_known_once();
	casync_common_grace_await_known_once();
	assert_int_equal(sleeps, 1);
}

/* --- looks whether the grace period may end */

CASE(no_look_without_a_grace_period)
{
	assert_false(casync_common_grace_look());
	assert_int_equal(wakes, 0);
}

CASE(look_each_second_however_many_keepers_there_are)
{
	int i;

	casync_common_grace_begins();
	for (i = 0; i < 50; i++) {
		assert_true(casync_common_grace_look());
		now_ms += 100;
	}
	assert_int_equal(wakes, 5);
}

CASE(looks_end_with_the_grace_period)
{
	casync_common_grace_begins();
	now_ms += 89999;
	assert_true(casync_common_grace_look());
	now_ms += 1;
	assert_false(casync_common_grace_look());
	assert_int_equal(wakes, 1);
	/* A node is taken over. */
	casync_common_grace_begins();
	now_ms += CASYNC_GRACE_LOOK_MS;
	assert_true(casync_common_grace_look());
	assert_int_equal(wakes, 2);
}

/* Ganesha has stopped its reaper, and would log an error. */
CASE(no_look_while_ganesha_ends)
{
	casync_common_grace_begins();
	admin_shutdown = true;
	assert_false(casync_common_grace_look());
	assert_int_equal(wakes, 0);
}
