/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "unit.h"

#include "clock.h"
#include "watchdog.h"

#define LIMIT_S 10

static struct casync_ending ending;

static int up(void **state)
{
	ending = (struct casync_ending){0};
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static bool hangs(bool busy, uint64_t second)
{
	return casync_watchdog_ending_hangs(&ending, busy, LIMIT_S,
					    (1000 + second) * CASYNC_NS_PER_S);
}

CASE(who_waits_for_ceph_is_given_up_after_the_limit)
{
	assert_false(hangs(true, 0));
	assert_false(hangs(true, LIMIT_S - 1));
	assert_true(hangs(true, LIMIT_S));
}

CASE(the_time_counts_from_the_last_moment_without_waiters)
{
	assert_false(hangs(true, 0));
	assert_false(hangs(false, LIMIT_S - 1));
	assert_false(hangs(true, LIMIT_S));
	assert_false(hangs(true, 2 * LIMIT_S - 1));
	assert_true(hangs(true, 2 * LIMIT_S));
}

/* They have time limits of their own, one after the other. */
CASE(exports_that_go_are_not_hurried)
{
	assert_false(hangs(true, 0));
	casync_watchdog_ending_exports_removed(&ending);
	assert_false(hangs(true, LIMIT_S));
	assert_false(hangs(true, 10 * LIMIT_S));
}
