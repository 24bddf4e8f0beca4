/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file clock.h
 * @brief One clock for everything: monotonic nanoseconds.
 */
#ifndef NFSLOAD_CLOCK_H
#define NFSLOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline int64_t seconds_ns(double seconds)
{
	return (int64_t)(seconds * (double)NS_PER_S);
}

#endif /* NFSLOAD_CLOCK_H */
