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
	truncations = 5 * CASYNC_TRUNCATION_TOLD;
	casync_file_size_init(&size, &truncations);
	casync_file_size_set(&size, 1000);
	return 0;
}

static int down(void **state)
{
	casync_file_size_destroy(&size);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

/* As libcephfs' thread does. */
static void shorten(void)
{
	__atomic_add_fetch(&truncations, CASYNC_TRUNCATION_TOLD,
			   __ATOMIC_RELEASE);
}

static void shorten_to(uint64_t size_bytes)
{
	uint64_t begun = casync_file_size_truncates(&size);

	casync_file_size_truncated(&size, begun, size_bytes);
}

static void write_to(uint64_t end_bytes)
{
	casync_file_size_written(&size, end_bytes,
				 casync_file_size_truncations(&size));
}

static void ask(uint64_t size_bytes)
{
	casync_file_size_update(&size, size_bytes,
				casync_file_size_changes(&size));
}

CASE(nothing_is_known_at_first_so_all_has_grown)
{
	casync_file_size_set(&size, 0);
	assert_true(casync_file_size_grown(&size, 1));
	/* A file that ends at 0 has nothing to journal. */
	assert_false(casync_file_size_grown(&size, 0));
}

CASE(size_asked_for_before_truncate_is_old)
{
	uint64_t generation = casync_file_size_changes(&size);

	shorten_to(5000);
	casync_file_size_update(&size, 1000, generation);
	assert_int_equal(casync_file_size_hint(&size), 5000);
}

CASE(write_makes_the_file_as_long_as_it_reaches)
{
	write_to(5000);
	assert_int_equal(casync_file_size_hint(&size), 5000);
	write_to(3000);
	assert_int_equal(casync_file_size_hint(&size), 5000);
}

/* --- truncations that libcephfs tells of */

CASE(old_truncations_are_none_of_a_new_file)
{
	assert_false(casync_file_size_is_unknown(&size));
	assert_false(casync_file_size_truncated_recently(&size));
}

CASE(truncation_makes_the_size_unknown_until_one_comes)
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

CASE(size_asked_for_before_a_truncation_is_old)
{
	uint64_t generation = casync_file_size_changes(&size);

	shorten();
	casync_file_size_update(&size, 700, generation);
	assert_int_equal(casync_file_size_hint(&size), 1000);
	assert_true(casync_file_size_is_unknown(&size));
}

CASE(every_truncation_needs_a_later_size)
{
	shorten();
	shorten();
	ask(1000);
	assert_false(casync_file_size_is_unknown(&size));
	shorten();
	assert_true(casync_file_size_is_unknown(&size));
}

/* A write says nothing of what is before it. */
CASE(write_does_not_end_the_doubt)
{
	shorten();
	write_to(5000);
	assert_true(casync_file_size_is_unknown(&size));
}

CASE(truncate_of_ours_ends_the_doubt)
{
	shorten();
	shorten_to(100);
	assert_false(casync_file_size_is_unknown(&size));
	assert_int_equal(casync_file_size_hint(&size), 100);
}

/* They share a counter. */
/* The size that came last is not known. */
CASE(truncates_of_ours_at_once_leave_a_doubt)
{
	uint64_t first = casync_file_size_truncates(&size);
	uint64_t second = casync_file_size_truncates(&size);

	casync_file_size_truncated(&size, first, 0);
	casync_file_size_truncated(&size, second, 5000);
	assert_true(casync_file_size_is_unknown(&size));
	ask(0);
	assert_false(casync_file_size_is_unknown(&size));
}

CASE(nothing_is_known_while_we_truncate)
{
	uint64_t count = casync_file_size_truncations(&size);
	uint64_t begun = casync_file_size_truncates(&size);

	assert_true(casync_file_size_truncated_since(&size, count));
	/* It may be from before. */
	ask(1000);
	assert_true(casync_file_size_is_unknown(&size));
	assert_true(casync_file_size_truncated_since(&size, begun));
	casync_file_size_truncated(&size, begun, 100);
	assert_false(casync_file_size_is_unknown(&size));
	assert_int_equal(casync_file_size_hint(&size), 100);
	assert_true(casync_file_size_truncated_since(&size, begun));
	assert_false(casync_file_size_told_since(&size, count));
}

CASE(a_truncate_that_fails_leaves_a_doubt)
{
	(void)casync_file_size_truncates(&size);
	casync_file_size_not_truncated(&size);
	assert_true(casync_file_size_is_unknown(&size));
	ask(1000);
	assert_false(casync_file_size_is_unknown(&size));
}

/* It was answered before the truncate, and we see the answer after it. */
CASE(a_write_before_a_truncate_is_no_size)
{
	uint64_t count = casync_file_size_truncations(&size);

	shorten_to(0);
	casync_file_size_written(&size, 64, count);
	assert_int_equal(casync_file_size_hint(&size), 0);
	/* A COMMIT flushes all the same. */
	assert_true(casync_file_size_pending(&size));
}

CASE(truncation_of_another_file_costs_one_question)
{
	write_to(2000);
	shorten();
	assert_true(casync_file_size_is_unknown(&size));
	ask(2000);
	assert_false(casync_file_size_is_unknown(&size));
	assert_int_equal(casync_file_size_hint(&size), 2000);
	assert_true(casync_file_size_pending(&size));
}
