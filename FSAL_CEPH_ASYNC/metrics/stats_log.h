/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stats_log.h
 * @brief Formats the log line of Stats_Interval.
 */
#ifndef CASYNC_STATS_LOG_H
#define CASYNC_STATS_LOG_H

#include <stddef.h>
#include <stdint.h>

struct casync_view;

/** Room for the longest line. */
#define CASYNC_STATS_LOG_BYTES 1280

/**
 * "10 s: READ 8120 of 33259520 bytes, mean us queued 9 libcephfs 402 handover
 * 21 finish 4, total p99 <= 1024, errors 0; WRITE …; COMMIT 3; …".
 *
 * @param[in] view  With the difference since the last line.
 *
 * @return @p line
 */
const char *casync_stats_log_format(const struct casync_view *view,
				    uint64_t seconds, char *line, size_t size);

#endif /* CASYNC_STATS_LOG_H */
