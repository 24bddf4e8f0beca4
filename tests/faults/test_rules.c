/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules.h"

static struct fault_rules rules;
static char why[256];

static bool parse(const char *text)
{
	static char copy[65536];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	return fault_rules_parse(copy, &rules, why, sizeof(why));
}

static struct fault_hit match(enum fault_kind kind, uint64_t ino,
			      uint64_t offset, uint64_t length_bytes)
{
	struct fault_call_id call = {kind, ino, offset, length_bytes};

	return fault_rules_match(&rules, &call);
}

static void what_is_not_understood_is_refused(void **state)
{
	static const char *const wrong[] = {
		"raed error=EIO",
		"read eror=EIO",
		"read error=EWHATEVER",
		"read error=0",
		"read error=99999",
		"read error",
		"read",
		"read nth=1",
		"read nth=0 never",
		"read nth=-1 never",
		"read nth=1x never",
		"read nth=1 every=2 never",
		"read percent=0 never",
		"read percent=101 never",
		"read percent=many never",
		"read offset=9-3 never",
		"read hold never",
		"read hold=1",
		"read delay=5 delay=6",
		"read delay=5 hold",
		"read delay=9-3",
		"read short",
		"read short=all",
		"read reorder=1",
		"read after=5",
		"read duplicate=0",
		"flush never",
		"flush ino=5 error=EIO",
		"repair short=half",
		"lock reorder=2",
		"seed",
		"seed one",
		"seed 1 2",
		"release backwards",
	};
	char line[96];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(line, sizeof(line), "any never\n%s\n", wrong[i]);
		if (parse(line))
			fail_msg("'%s' is taken", wrong[i]);
		assert_non_null(strstr(why, "line 2"));
		assert_non_null(strstr(why, wrong[i]));
		assert_int_equal(rules.count, 0);
	}
}

static void nothing_comments_and_blank_lines_are_no_rules(void **state)
{
	(void)state;
	assert_true(parse(""));
	assert_true(parse("\n# read never\n  \t\n"));
	assert_int_equal(rules.count, 0);
	assert_int_equal(rules.release, FAULT_RELEASE_NOT);
	assert_int_equal(match(FAULT_READ, 1, 0, 1).action, FAULT_NONE);
}

static void each_action_gets_its_values(void **state)
{
	struct fault_hit hit;

	(void)state;
	assert_true(parse("read nth=1 error=ENOSPC delay=7\n"
			  "read nth=1 refuse=EBLOCKLISTED\n"
			  "read nth=1 short=half\n"
			  "read nth=1 short=100 # comment\n"
			  "read nth=1 reorder=16\n"
			  "read nth=1 duplicate=3\n"
			  "read nth=1 duplicate after=20\n"
			  "read nth=1 delay=5-5\n"
			  "read nth=1 hold\n"
			  "read nth=1 never\n"));
	hit = match(FAULT_READ, 1, 0, 4096);
	assert_int_equal(hit.action, FAULT_ERROR);
	assert_int_equal(hit.error, ENOSPC);
	assert_int_equal(hit.wait_ms, 7);
	assert_int_equal(hit.rule, 1);
	hit = match(FAULT_READ, 1, 0, 4096);
	assert_int_equal(hit.action, FAULT_REFUSE);
	assert_int_equal(hit.error, 108);
	hit = match(FAULT_READ, 1, 0, 4096);
	assert_int_equal(hit.action, FAULT_SHORT);
	assert_int_equal(hit.bytes, 2048);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).bytes, 100);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).times, 16);
	hit = match(FAULT_READ, 1, 0, 4096);
	assert_int_equal(hit.times, 3);
	assert_false(hit.later);
	hit = match(FAULT_READ, 1, 0, 4096);
	assert_int_equal(hit.times, 1);
	assert_true(hit.later);
	assert_int_equal(hit.wait_ms, 20);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).wait_ms, 5);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).action, FAULT_HOLD);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).action, FAULT_NEVER);
	assert_int_equal(match(FAULT_READ, 1, 0, 4096).action, FAULT_NONE);
}

static void a_release_is_told_from_none(void **state)
{
	(void)state;
	assert_true(parse("release\n"));
	assert_int_equal(rules.release, FAULT_RELEASE_IN_ORDER);
	assert_true(parse("release reversed\nany hold\n"));
	assert_int_equal(rules.release, FAULT_RELEASE_REVERSED);
	assert_int_equal(rules.count, 1);
}

static void kind_inode_and_range_choose(void **state)
{
	(void)state;
	assert_true(parse("write ino=7 offset=4096-8191 never\n"));
	assert_int_equal(match(FAULT_READ, 7, 4096, 1).action, FAULT_NONE);
	assert_int_equal(match(FAULT_WRITE, 8, 4096, 1).action, FAULT_NONE);
	assert_int_equal(match(FAULT_WRITE, 7, 0, 4096).action, FAULT_NONE);
	assert_int_equal(match(FAULT_WRITE, 7, 8192, 1).action, FAULT_NONE);
	assert_int_equal(match(FAULT_WRITE, 7, 0, 4097).action, FAULT_NEVER);
	assert_int_equal(match(FAULT_WRITE, 7, 8191, 9).action, FAULT_NEVER);
	assert_true(parse("any never\n"));
	assert_int_equal(match(FAULT_FLUSH, 0, 0, 0).action, FAULT_NONE);
	assert_int_equal(match(FAULT_REPAIR, 0, 0, 9).action, FAULT_NONE);
	assert_int_equal(match(FAULT_LOCK, 0, 0, 0).action, FAULT_NONE);
	assert_true(parse("lock delay=7\n"));
	assert_int_equal(match(FAULT_WRITE, 0, 0, 1).action, FAULT_NONE);
	assert_int_equal(match(FAULT_LOCK, 0, 0, 0).action, FAULT_DELAY);
	assert_true(parse("setattr hold\n"));
	assert_int_equal(match(FAULT_SETATTR, 0, 0, 0).action, FAULT_HOLD);
}

static void nth_every_and_count_count_what_they_concern(void **state)
{
	unsigned int i;

	(void)state;
	assert_true(parse("write nth=3 error=EIO\n"
			  "any every=4 count=2 never\n"));
	for (i = 1; i <= 2; i++)
		assert_int_equal(match(FAULT_WRITE, 1, 0, 1).action,
				 FAULT_NONE);
	/* Decided before the second rule sees it. */
	assert_int_equal(match(FAULT_WRITE, 1, 0, 1).action, FAULT_ERROR);
	for (i = 3; i <= 16; i++)
		assert_int_equal(match(FAULT_READ, 1, 0, 1).action,
				 i == 4 || i == 8 ? FAULT_NEVER : FAULT_NONE);
}

static void percent_is_about_right_and_repeats_with_its_seed(void **state)
{
	static unsigned char first[10000];
	unsigned int hits = 0, same = 0, i;

	(void)state;
	assert_true(parse("seed 1\nread percent=5 delay=10-20\n"));
	for (i = 0; i < sizeof(first); i++) {
		struct fault_hit hit = match(FAULT_READ, 1, i, 1);

		first[i] = hit.action == FAULT_DELAY ? hit.wait_ms : 0;
		assert_true(first[i] == 0 ||
			    (first[i] >= 10 && first[i] <= 20));
		hits += first[i] != 0;
	}
	assert_true(hits >= 400 && hits <= 600);

	assert_true(parse("seed 1\nread percent=5 delay=10-20\n"));
	for (i = 0; i < sizeof(first); i++)
		assert_int_equal(match(FAULT_READ, 1, i, 1).wait_ms, first[i]);

	assert_true(parse("seed 2\nread percent=5 delay=10-20\n"));
	for (i = 0; i < sizeof(first); i++)
		same += match(FAULT_READ, 1, i, 1).wait_ms != 0 &&
			first[i] != 0;
	assert_true(same <= 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(nothing_comments_and_blank_lines_are_no_rules),
		cmocka_unit_test(each_action_gets_its_values),
		cmocka_unit_test(a_release_is_told_from_none),
		cmocka_unit_test(kind_inode_and_range_choose),
		cmocka_unit_test(nth_every_and_count_count_what_they_concern),
		cmocka_unit_test(
			percent_is_about_right_and_repeats_with_its_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
