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

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/** Longest wait for anything; passing tests never get near it. */
#define RIG_TIMEOUT_S 30

/** Longest wait for the end of a thread, which may have much to do. */
#define RIG_JOIN_S 40

/** The present value of a variable that other threads change. */
#define NOW(variable) __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)

/** Wait until @p condition holds.  @return Does it?  In any thread. */
#define RIG_COMES(condition)                                  \
	({                                                    \
		unsigned int rig_looks = 0;                   \
		bool rig_holds;                               \
                                                              \
		do                                            \
			rig_holds = (condition);              \
		while (!rig_holds && rig_pause(rig_looks++)); \
		rig_holds;                                    \
	})

/** The same in the test's thread: the case fails if it does not hold. */
#define RIG_UNTIL(condition)                                            \
	do {                                                            \
		if (!RIG_COMES(condition))                              \
			fail_msg("in vain for %d s: %s", RIG_TIMEOUT_S, \
				 #condition);                           \
	} while (0)

/** pthread_join() that gives up; in the test's thread. */
#define RIG_JOIN(thread, result) assert_int_equal(rig_join(thread, result), 0)

/** A moment.  @return Is the time not over, after so many @p looks? */
bool rig_pause(unsigned int looks);

/** sem_wait() that gives up. */
bool rig_wait(sem_t *sem);

int rig_join(pthread_t thread, void **result);

/** Called after each unlock by this thread, if there is one: what may another
 * thread do just then? */
extern __thread void (*rig_after_unlock)(pthread_mutex_t *mutex);

#endif /* UNIT_H */
