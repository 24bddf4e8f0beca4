/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file check.h
 * @brief States what must hold.  A Debug build aborts if it does not.
 *
 * A release does not even evaluate it.  So it must have no effect.  Where a
 * client, a daemon or a reload can make it false, it is no check: such a thing
 * has an answer.
 */
#ifndef CASYNC_CHECK_H
#define CASYNC_CHECK_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef CASYNC_DEBUG
/** Abort, with the place, if @p x does not hold. */
#define CASYNC_CHECK(x)                                                     \
	do {                                                                \
		if (!(x)) {                                                 \
			(void)fprintf(stderr, "%s:%d: %s: must hold: %s\n", \
				      __FILE__, __LINE__, __func__, #x);    \
			abort();                                            \
		}                                                           \
	} while (0)
#else
/** Nothing; the compiler still reads @p x. */
#define CASYNC_CHECK(x) ((void)(0 && (x)))
#endif

/** Somebody, the caller it should be, holds this mutex. */
#define CASYNC_CHECK_HELD(mutex) \
	CASYNC_CHECK(pthread_mutex_trylock(mutex) == EBUSY)

/** An atomic count goes down by one, and was not 0.  @return The count
 * that is left. */
#define CASYNC_CHECK_DOWN(count, order)                      \
	({                                                   \
		__typeof__(*(count)) left_of_count =         \
			__atomic_sub_fetch(count, 1, order); \
		CASYNC_CHECK(left_of_count + 1 != 0);        \
		left_of_count;                               \
	})

#endif /* CASYNC_CHECK_H */
