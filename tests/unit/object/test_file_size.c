/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What is known of a file's size.  How a flush makes it known to the MDS is in
 * test_flush.c, what READs do with it in test_hazards.c.
 */
#include "config.h"

#include "unit.h"

#include "file_size.h"

static uint64_t truncations;
static struct casync_file_size size;

static int up(void **state)
{
	truncations = 5;
	casync_file_size_init(&size, &truncations);
	casync_file_size_set(&size, 1000);
	return 0;
}

static int down(void **state)
{
	casync_file_size_destroy(&size);
	return 0;
}

/* As libcephfs' thread does. */
static void shorten(void)
{
	__atomic_add_fetch(&truncations, 1, __ATOMIC_RELEASE);
}

static void ask(uint64_t size_bytes)
{
	casync_file_size_update(&size, size_bytes,
				casync_file_size_generation(&size));
}

static void nothing_is_known_at_first_so_all_has_grown(void **state)
{
	casync_file_size_set(&size, 0);
	assert_true(casync_file_size_grown(&size, 1));
	/* A file that ends at 0 has nothing to journal. */
	assert_false(casync_file_size_grown(&size, 0));
}

static void size_asked_for_before_truncate_is_old(void **state)
{
	uint64_t generation = casync_file_size_generation(&size);

	casync_file_size_truncated(&size, 5000);
	casync_file_size_update(&size, 1000, generation);
	assert_int_equal(casync_file_size_hint(&size), 5000);
}

static void write_makes_the_file_as_long_as_it_reaches(void **state)
{
	casync_file_size_written(&size, 5000);
	assert_int_equal(casync_file_size_hint(&size), 5000);
	casync_file_size_written(&size, 3000);
	assert_int_equal(casync_file_size_hint(&size), 5000);
}

/* --- truncations that libcephfs tells of */

static void old_truncations_are_none_of_a_new_file(void **state)
{
	assert_false(casync_file_size_is_unknown(&size));
	assert_false(casync_file_size_truncated_recently(&size));
}

static void truncation_makes_the_size_unknown_until_one_comes(void **state)
{
	uint64_t before = casync_file_size_truncations(&size);

	shorten();
	assert_true(casync_file_size_truncations(&size) != before);
	assert_true(casync_file_size_is_unknown(&size));
	assert_true(casync_file_size_truncated_recently(&size));
	ask(1000);
	assert_false(casync_file_size_is_unknown(&size));
	/* More of them are expected. */
	assert_true(casync_file_size_truncated_recently(&size));
}

static void size_asked_for_before_a_truncation_is_old(void **state)
{
	uint64_t generation = casync_file_size_generation(&size);

	shorten();
	casync_file_size_update(&size, 700, generation);
	assert_int_equal(casync_file_size_hint(&size), 1000);
	assert_true(casync_file_size_is_unknown(&size));
}

static void every_truncation_needs_a_later_size(void **state)
{
	shorten();
	shorten();
	ask(1000);
	assert_false(casync_file_size_is_unknown(&size));
	shorten();
	assert_true(casync_file_size_is_unknown(&size));
}

/* A write says nothing of what is before it. */
static void write_does_not_end_the_doubt(void **state)
{
	shorten();
	casync_file_size_written(&size, 5000);
	assert_true(casync_file_size_is_unknown(&size));
}

static void truncate_of_ours_ends_the_doubt(void **state)
{
	shorten();
	casync_file_size_truncated(&size, 100);
	assert_false(casync_file_size_is_unknown(&size));
	assert_int_equal(casync_file_size_hint(&size), 100);
}

/* They share a counter. */
static void truncation_of_another_file_costs_one_question(void **state)
{
	casync_file_size_written(&size, 2000);
	shorten();
	assert_true(casync_file_size_is_unknown(&size));
	ask(2000);
	assert_false(casync_file_size_is_unknown(&size));
	assert_int_equal(casync_file_size_hint(&size), 2000);
	assert_true(casync_file_size_pending(&size));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_known_at_first_so_all_has_grown),
		CASE(size_asked_for_before_truncate_is_old),
		CASE(write_makes_the_file_as_long_as_it_reaches),
		CASE(old_truncations_are_none_of_a_new_file),
		CASE(truncation_makes_the_size_unknown_until_one_comes),
		CASE(size_asked_for_before_a_truncation_is_old),
		CASE(every_truncation_needs_a_later_size),
		CASE(write_does_not_end_the_doubt),
		CASE(truncate_of_ours_ends_the_doubt),
		CASE(truncation_of_another_file_costs_one_question),
	};

	return cmocka_run_group_tests_name("file_size", tests, NULL, NULL);
}
