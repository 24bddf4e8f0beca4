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
	memset(&unfinished, 0, sizeof(unfinished));
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

CASE(nothing_is_there_at_first)
{
	assert_false(casync_unfinished_has(&unfinished, FILE_A, MINE));
	casync_unfinished_remove(&unfinished, FILE_A, MINE);
}

CASE(its_own_create_finds_it)
{
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
CASE(one_place_for_each_create)
{
	unsigned int i;

	casync_unfinished_add(&unfinished, FILE_A, MINE);
	for (i = 0; i < CASYNC_UNFINISHED_MAX; i++)
		casync_unfinished_add(&unfinished, FILE_B, MINE);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, MINE));
}

CASE(the_oldest_makes_room)
{
	unsigned int i;

	for (i = 0; i <= CASYNC_UNFINISHED_MAX; i++)
		casync_unfinished_add(&unfinished, FILE_A + i, MINE);
	assert_false(casync_unfinished_has(&unfinished, FILE_A, MINE));
	for (i = 1; i <= CASYNC_UNFINISHED_MAX; i++)
		assert_true(
			casync_unfinished_has(&unfinished, FILE_A + i, MINE));
}
