/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file futex.h
 * @brief The two calls of futex(2) that the plugin uses, within the process.
 */
#ifndef CASYNC_FUTEX_H
#define CASYNC_FUTEX_H

#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/**
 * Sleep until woken, unless *word differs from @p seen.  May wake up early.
 *
 * @param[in] timeout_ns  Longest sleep; 0: no limit.
 */
static inline void casync_futex_wait(uint32_t *word, uint32_t seen,
				     uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen,
		timeout_ns == 0 ? NULL : &timeout, NULL, 0);
}

/** Wake at most @p count sleepers. */
static inline void casync_futex_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

#endif /* CASYNC_FUTEX_H */
