/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file clock.h
 * @brief The monotonic clock in nanoseconds, and deadlines by it.
 *
 * The clock is CLOCK_MONOTONIC: it never jumps.
 */
#ifndef CASYNC_CLOCK_H
#define CASYNC_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CASYNC_NS_PER_US UINT64_C(1000)
#define CASYNC_NS_PER_MS UINT64_C(1000000)
#define CASYNC_NS_PER_S UINT64_C(1000000000)

/** A time of any clock in nanoseconds. */
static inline uint64_t casync_clock_timespec_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * CASYNC_NS_PER_S +
	       (uint64_t)time->tv_nsec;
}

/** Now, by CLOCK_MONOTONIC. */
static inline uint64_t casync_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return casync_clock_timespec_ns(&now);
}

/**
 * The time from @p then_ns to @p now_ns; 0 if @p then_ns is later.  So it is if
 * another thread has stored it since the caller read the clock.  The clock
 * begins with the host: a time that is configured may be longer than all that
 * has passed.
 */
static inline uint64_t casync_clock_since_ns(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/** The time since @p then_ns. */
static inline uint64_t casync_clock_age_ns(uint64_t then_ns)
{
	return casync_clock_since_ns(casync_clock_ns(), then_ns);
}

/**
 * May a line be logged that a client can cause?  Once a minute: clients must
 * not fill the log.  Any thread.
 *
 * @param[in,out] last_ns  When it was logged last; 0 at first.
 */
static inline bool casync_clock_once_a_minute(uint64_t *last_ns)
{
	uint64_t then_ns = __atomic_load_n(last_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = casync_clock_ns();

	return (then_ns == 0 || casync_clock_since_ns(now_ns, then_ns) >=
					60 * CASYNC_NS_PER_S) &&
	       __atomic_compare_exchange_n(last_ns, &then_ns, now_ns, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/** The time @p timeout_ms from now, for a condition of
 * casync_clock_cond_init(). */
static inline struct timespec casync_clock_deadline(uint64_t timeout_ms)
{
	uint64_t then = casync_clock_ns() + timeout_ms * CASYNC_NS_PER_MS;

	return (struct timespec){.tv_sec = (time_t)(then / CASYNC_NS_PER_S),
				 .tv_nsec = (long)(then % CASYNC_NS_PER_S)};
}

/** Initialise a condition whose waits use this clock: the wall clock may be set
 * back. */
static inline void casync_clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

#endif /* CASYNC_CLOCK_H */
