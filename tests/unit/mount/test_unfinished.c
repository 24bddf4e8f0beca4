/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "clock.h"
#include "unfinished.h"

#define FILE_A UINT64_C(0x10000000500)
#define FILE_B UINT64_C(0x10000000501)
#define LIFE_NS (CASYNC_UNFINISHED_S * CASYNC_NS_PER_S)

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
	assert_false(casync_unfinished_has(&unfinished, FILE_A, 1));
	assert_false(casync_unfinished_take(&unfinished, FILE_A, 1));
}

static void one_caller_takes_it(void **unused)
{
	(void)unused;
	casync_unfinished_add(&unfinished, FILE_A, 1);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, 2));
	assert_false(casync_unfinished_take(&unfinished, FILE_B, 2));
	assert_true(casync_unfinished_take(&unfinished, FILE_A, 2));
	assert_false(casync_unfinished_take(&unfinished, FILE_A, 2));
	assert_false(casync_unfinished_has(&unfinished, FILE_A, 2));
}

static void it_is_forgotten_in_time(void **unused)
{
	(void)unused;
	casync_unfinished_add(&unfinished, FILE_A, 1);
	assert_true(casync_unfinished_has(&unfinished, FILE_A, 1 + LIFE_NS));
	assert_false(casync_unfinished_has(&unfinished, FILE_A, 2 + LIFE_NS));
	assert_false(casync_unfinished_take(&unfinished, FILE_A, 2 + LIFE_NS));
}

static void the_oldest_makes_room(void **unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i <= CASYNC_UNFINISHED_MAX; i++)
		casync_unfinished_add(&unfinished, FILE_A + i, 1);
	assert_false(casync_unfinished_take(&unfinished, FILE_A, 1));
	for (i = 1; i <= CASYNC_UNFINISHED_MAX; i++)
		assert_true(casync_unfinished_take(&unfinished, FILE_A + i, 1));
}

#define CASE(name) cmocka_unit_test_setup(name, up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_there_at_first),
		CASE(one_caller_takes_it),
		CASE(it_is_forgotten_in_time),
		CASE(the_oldest_makes_room),
	};

	return cmocka_run_group_tests_name("unfinished", tests, NULL, NULL);
}
