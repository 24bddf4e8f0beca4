/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "policy.h"

#define COUNT 64U

static uint64_t sets[COUNT];
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
	ghosts = (struct casync_cache_ghosts){.sets = sets, .count = COUNT};
	return 0;
}

static void ghost_is_found_once(void **state)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(2), COUNT));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(1), COUNT));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), COUNT));
}

static void old_ghost_counts_no_more(void **state)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	casync_policy_ghosts_add(&ghosts, key_of(2));
	casync_policy_ghosts_add(&ghosts, key_of(3));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), 1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(2), 1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(3), 0));
}

static void ghost_that_comes_again_is_young(void **state)
{
	casync_policy_ghosts_add(&ghosts, key_of(1));
	casync_policy_ghosts_add(&ghosts, key_of(2));
	casync_policy_ghosts_add(&ghosts, key_of(1));
	assert_true(casync_policy_ghosts_take(&ghosts, key_of(1), 0));
	assert_false(casync_policy_ghosts_take(&ghosts, key_of(1), COUNT));
}

/* Not all of the last 32: some sets had more than four of 1000. */
static void newest_take_the_place_of_the_oldest(void **state)
{
	unsigned int i, found = 0;

	for (i = 0; i < 1000; i++)
		casync_policy_ghosts_add(&ghosts, key_of(i));
	for (i = 1000 - COUNT / 2; i < 1000; i++)
		found += casync_policy_ghosts_take(&ghosts, key_of(i), COUNT);
	print_message("%u of the last %u are known\n", found, COUNT / 2);
	assert_in_range(found, COUNT / 2 * 3 / 4, COUNT / 2);
	for (i = 0; i < 1000 - 4 * COUNT; i++)
		assert_false(casync_policy_ghosts_take(&ghosts, key_of(i),
						       4 * COUNT));
}

static void without_memory_nothing_is_remembered(void **state)
{
	struct casync_cache_ghosts none = {0};

	casync_policy_ghosts_add(&none, key_of(1));
	assert_false(casync_policy_ghosts_take(&none, key_of(1), COUNT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ghost_is_found_once, up),
		cmocka_unit_test_setup(old_ghost_counts_no_more, up),
		cmocka_unit_test_setup(ghost_that_comes_again_is_young, up),
		cmocka_unit_test_setup(newest_take_the_place_of_the_oldest, up),
		cmocka_unit_test(without_memory_nothing_is_remembered),
	};

	return cmocka_run_group_tests_name("cache_ghost", tests, NULL, NULL);
}
