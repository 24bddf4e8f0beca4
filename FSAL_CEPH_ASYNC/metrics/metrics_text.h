/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file metrics_text.h
 * @brief Writes the metrics as text: a line of the log, and a file.
 */
#ifndef CASYNC_METRICS_TEXT_H
#define CASYNC_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "gsh_list.h"

struct casync_view;

/** Room for a line of the log: as much as Ganesha's log has. */
#define CASYNC_METRICS_TEXT_LINE_BYTES 2048

/**
 * Format the log line of Stats_Interval: all that is not 0, as
 * "10 s: requests_total read 8120, write 3; …; latency_us read queued 8120
 * mean 9 p99 16, read libcephfs …".  A line without enough room is cut off.
 *
 * @param[in] view  With the difference since the last line.
 *
 * @return @p line
 */
const char *casync_metrics_text_line(const struct casync_view *view,
				     uint64_t seconds, char *line, size_t size);

/**
 * Format all metrics as Prometheus' text exposition format 0.0.4 has them, as
 * node_exporter's textfile collector reads them.
 *
 * @param[in]  exports    List of struct casync_published, under its lock.  Of
 *                        two with one id the older one is shown.
 * @param[in]  process    Has the numbers of the process.
 * @param[in]  libcephfs  Its version.
 * @param[out] bytes      Length of the text.
 *
 * @return To be freed with free(); NULL: no memory.
 */
char *casync_metrics_text_file(const struct glist_head *exports,
			       const struct casync_view *process,
			       const char *libcephfs, size_t *bytes);

/**
 * Put the text in the file's place, by rename().
 *
 * A failure is logged once for each errno.  The caller sees to it that there is
 * one call at a time.
 *
 * @param[in] text  NULL: there was no memory for it.
 */
void casync_metrics_text_write(const char *path, const char *text,
			       size_t bytes);

#endif /* CASYNC_METRICS_TEXT_H */
