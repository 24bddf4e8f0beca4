/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "unfinished.h"

#define FILE_A UINT64_C(0x10000000500)
#define FILE_B UINT64_C(0x10000000501)
#define MINE "verifier"
#define OTHER "REIFIREV"

static struct casync_unfinished unfinished;

static int up(void **unused)
{
	(void)unused;
	memset(&unfinished, 0, sizeof(unfinished));
	return 0;
}

static void nothing_is_there_at_first(void **unused)
{
	(void)unused;
	assert_false(casync_unfinished_has(&unfinished, FILE_A, MINE));
	casync_unfinished_remove(&unfinished, FILE_A, MINE);
}

static void its_own_create_finds_it(void **unused)
{
	(void)unused;
	casync_unfinished_add(&unfinished, FILE_A, MINE);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, MINE));
	assert_false(casync_unfinished_has(&unfinished, FILE_A, OTHER));
	assert_false(casync_unfinished_has(&unfinished, FILE_B, MINE));
	casync_unfinished_remove(&unfinished, FILE_A, OTHER);
	casync_unfinished_remove(&unfinished, FILE_B, MINE);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, MINE));
	casync_unfinished_remove(&unfinished, FILE_A, MINE);
	assert_false(casync_unfinished_has(&unfinished, FILE_A, MINE));
}

/* Tries that fail again push nobody out. */
static void one_place_for_each_create(void **unused)
{
	unsigned int i;

	(void)unused;
	casync_unfinished_add(&unfinished, FILE_A, MINE);
	for (i = 0; i < CASYNC_UNFINISHED_MAX; i++)
		casync_unfinished_add(&unfinished, FILE_B, MINE);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, MINE));
}

static void the_oldest_makes_room(void **unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i <= CASYNC_UNFINISHED_MAX; i++)
		casync_unfinished_add(&unfinished, FILE_A + i, MINE);
	assert_false(casync_unfinished_has(&unfinished, FILE_A, MINE));
	for (i = 1; i <= CASYNC_UNFINISHED_MAX; i++)
		assert_true(
			casync_unfinished_has(&unfinished, FILE_A + i, MINE));
}

#define CASE(name) cmocka_unit_test_setup(name, up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_there_at_first),
		CASE(its_own_create_finds_it),
		CASE(one_place_for_each_create),
		CASE(the_oldest_makes_room),
	};

	return cmocka_run_group_tests_name("unfinished", tests, NULL, NULL);
}
