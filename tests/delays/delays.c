/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A library to be loaded before a unit test: its threads are held up at random
 * where they look at the clock, take or give a lock, wake another thread, or
 * start one, as on a machine that has no CPU for them.  delays.py runs it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ONE_IN 120     /* calls */
#define LONGEST_MS 300 /* of a delay */
#define ALL_MS 15000   /* of a program's delays */

static uint64_t seed;	  /* 0: nothing is held up */
static uint64_t threads;  /* atomic */
static unsigned int used; /* milliseconds; atomic */

/* Not the runner of the tests, nor a shell. */
__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("DELAYS_SEED");

	if (text != NULL &&
	    strncmp(program_invocation_short_name, "test_", 5) == 0)
		seed = strtoull(text, NULL, 10);
}

/* xorshift64, from the seed and the number of the thread. */
static uint64_t next_random(void)
{
	static __thread uint64_t state;

	if (state == 0)
		state = (seed * 1000003 +
			 __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED)) *
				UINT64_C(0x9E3779B97F4A7C15) |
			1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 20;
}

/* A program may have a clock or a nanosleep() of its own: so the kernel is
 * asked. */
static void hold_up(void)
{
	static int (*sleeps)(clockid_t, int, const struct timespec *,
			     struct timespec *);
	struct timespec delay = {0};
	uint64_t random;

	if (seed == 0 || (random = next_random()) % ONE_IN != 0 ||
	    __atomic_load_n(&used, __ATOMIC_RELAXED) > ALL_MS)
		return;
	delay.tv_nsec = (long)(random / ONE_IN % LONGEST_MS) * 1000000;
	__atomic_add_fetch(&used, (unsigned int)(delay.tv_nsec / 1000000),
			   __ATOMIC_RELAXED);
	if (sleeps == NULL)
		*(void **)&sleeps = dlsym(RTLD_NEXT, "clock_nanosleep");
	sleeps(CLOCK_MONOTONIC, 0, &delay, NULL);
}

#define HOLD_UP(type, name, parameters, arguments)                  \
	__attribute__((visibility("default"))) type name parameters \
	{                                                           \
		static type(*real) parameters;                      \
		type result;                                        \
                                                                    \
		if (real == NULL)                                   \
			*(void **)&real = dlsym(RTLD_NEXT, #name);  \
		hold_up();                                          \
		result = real arguments;                            \
		hold_up();                                          \
		return result;                                      \
	}

HOLD_UP(int, clock_gettime, (clockid_t clock, struct timespec *now),
	(clock, now))
HOLD_UP(int, pthread_mutex_lock, (pthread_mutex_t * lock), (lock))
HOLD_UP(int, pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
HOLD_UP(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
HOLD_UP(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
HOLD_UP(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
HOLD_UP(int, pthread_cond_signal, (pthread_cond_t * cond), (cond))
HOLD_UP(int, pthread_cond_broadcast, (pthread_cond_t * cond), (cond))
HOLD_UP(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *),
	 void *arg),
	(thread, attr, run, arg))
HOLD_UP(int, usleep, (useconds_t microseconds), (microseconds))
