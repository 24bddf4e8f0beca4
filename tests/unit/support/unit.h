/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file unit.h
 * @brief cmocka, and cases that register themselves.
 *
 * unit.c has main().  It runs the cases of a program in the order in which they
 * stand in its file; with PROGRAM PATTERN… those whose name has a pattern in
 * it.
 *
 *	TEST(nothing_is_there_at_first)
 *	{
 *		assert_null(...);
 *	}
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/** Add a case that stands at @p line; before main() only. */
void unit_add(int line, const struct CMUnitTest *test);

/** Functions that run before the first case and after the last one, or NULL. */
void unit_set_fixture(CMFixtureFunction up, CMFixtureFunction down);

/** A function that runs before main(). */
#define UNIT_BEFORE_MAIN(name) \
	__attribute__((constructor)) static void name##_before_main(void)

/** A case.  Its body follows, with cmocka's `void **state`. */
#define TEST(test) TEST_WITH(test, NULL, NULL)

/** A case that has @p up before it and @p down after it; each may be NULL. */
#define TEST_WITH(test, up, down)                                            \
	static void test(void **state);                                      \
	UNIT_BEFORE_MAIN(test)                                               \
	{                                                                    \
		unit_add(__LINE__,                                           \
			 &(struct CMUnitTest){#test, test, up, down, NULL}); \
	}                                                                    \
	static void test(void **state)

/** A case for each row of @p table: a row has a name, and is the *state. */
#define TEST_ROWS(test, table, up, down)                                       \
	static void test(void **state);                                        \
	UNIT_BEFORE_MAIN(test)                                                 \
	{                                                                      \
		size_t row;                                                    \
                                                                               \
		for (row = 0; row < COUNT(table); row++)                       \
			unit_add(__LINE__,                                     \
				 &(struct CMUnitTest){(table)[row].name, test, \
						      up, down,                \
						      (void *)&(table)[row]}); \
	}                                                                      \
	static void test(void **state)

/** cmocka's group setup and teardown. */
#define TEST_FIXTURE(up, down)              \
	UNIT_BEFORE_MAIN(fixture)           \
	{                                   \
		unit_set_fixture(up, down); \
	}

#endif /* UNIT_H */
