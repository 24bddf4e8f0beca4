/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "policy.h"

#define GHOSTS 64U

static uint64_t sets[GHOSTS];
static struct casync_cache_ghosts ghosts;

/* Keys as the cache makes them: each bit depends on all of the number. */
static uint64_t key_of(uint64_t number)
{
	number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return number ^ number >> 27;
}

static int up(void **state)
{
	memset(sets, 0, sizeof(sets));
	ghosts = (struct casync_cache_ghosts){.sets = sets, .count = GHOSTS};
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

CASE(ghost_is_found_once)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(2), GHOSTS));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(1), GHOSTS));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), GHOSTS));
}

CASE(old_ghost_counts_no_more)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	casync_policy_ghosts_add(&ghosts, key_of(2));
	casync_policy_ghosts_add(&ghosts, key_of(3));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), 1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(2), 1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(3), 0));
}

CASE(ghost_that_comes_again_is_young)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	casync_policy_ghosts_add(&ghosts, key_of(2));
	casync_policy_ghosts_add(&ghosts, key_of(1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(1), 0));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), GHOSTS));
}

/* Not all of the last 32: some sets had more than four of 1000. */
CASE(newest_take_the_place_of_the_oldest)
{
	unsigned int i, found = 0;

	for (i = 0; i < 1000; i++)
		casync_policy_ghosts_add(&ghosts, key_of(i));
	for (i = 1000 - GHOSTS / 2; i < 1000; i++)
		found += casync_policy_ghosts_take(&ghosts, key_of(i), GHOSTS);
	print_message("%u of the last %u are known\n", found, GHOSTS / 2);
	assert_in_range(found, GHOSTS / 2 * 3 / 4, GHOSTS / 2);
	for (i = 0; i < 1000 - 4 * GHOSTS; i++)
		assert_false(casync_policy_ghosts_take(&ghosts, key_of(i),
						       4 * GHOSTS));
}

TEST(without_memory_nothing_is_remembered)
{
	struct casync_cache_ghosts none = {0};

	casync_policy_ghosts_add(&none, key_of(1));
	assert_false(casync_policy_ghosts_take(&none, key_of(1), GHOSTS));
}
