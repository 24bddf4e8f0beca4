/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file publish.h
 * @brief The outputs of the metrics: Prometheus, a file and the log.
 *
 *	Prometheus	Ganesha's own endpoint, updated each second
 *	a file		Metrics_File, in Prometheus' text format, written each
 *			second; less often, if that would take over 1 % of a CPU
 *	the log		a line every Stats_Interval seconds
 *
 * They show the same counters (metrics.h).
 */
#ifndef CASYNC_PUBLISH_H
#define CASYNC_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "budget.h"
#include "gsh_list.h"
#include "inflight.h"
#include "metrics.h"
#include "session.h"

struct casync_prometheus;
struct casync_tuning;

/** The metrics of an export as they are shown. */
struct casync_publish_source {
	uint16_t export_id;
	struct casync_metrics *metrics;
	struct casync_inflight *inflight;
	const struct casync_guard *guard; /**< Has the mount's phase. */
	const struct casync_session *session;
	/** Of its mount.  Looked at under publish.c's lock. */
	struct casync_budget_age *callers_age;
	const struct casync_tuning *tuning;
};

/** Counts of an export's session since the export was added. */
struct casync_session_counts {
	uint64_t reconnects;
	uint64_t locks_lost;
};

/** The metrics of an export at one moment. */
struct casync_view {
	struct casync_totals totals;
	uint64_t state[CASYNC_STATE_METRICS];
	struct casync_process_numbers process; /**< For the log's line only. */
};

/** An export's entry in the list of published exports. */
struct casync_published {
	struct glist_head link;
	struct casync_publish_source of;
	struct casync_prometheus *prometheus; /**< NULL: none. */
	struct casync_view now;		      /**< A second old at most. */
	struct casync_totals before_line;     /**< Subtracted in the log. */
	/** Subtracted from the session's counts, which all exports of a mount
	 * share. */
	struct casync_session_counts session_at_add;
	struct casync_session_counts session_at_line;
	struct casync_process_numbers process_at_line;
	uint64_t line_ns; /**< When the last line was due. */
};

/** Publish an export until casync_publish_remove(). */
struct casync_published *
casync_publish_add(const struct casync_publish_source *source);

/** Publish its last counts, stop, and free the entry.  NULL does nothing. */
void casync_publish_remove(struct casync_published *entry);

/** A reload has begun (@p good), or a part of it was refused. */
void casync_publish_reload(bool good);

/**
 * Write the metrics to this file from now on; NULL: to no file.
 *
 * The file of before is removed.  If the disk does not answer within 2 s, a
 * line is logged and all stays as it was.
 */
void casync_publish_set_file(const char *path);

/** Update all outputs.  The watchdog calls it ten times a second. */
void casync_publish_tick(void);

/** Room for the longest line of the log. */
#define CASYNC_STATS_LOG_BYTES 1280

/**
 * Format the log line of Stats_Interval (stats_log.c):
 * "10 s: READ 8120 of 33259520 bytes, mean us queued 9 libcephfs 402 handover
 * 21 finish 4, total p99 <= 1024, errors 0; WRITE …; COMMIT 3; …".
 *
 * @param[in] view  With the difference since the last line.
 *
 * @return @p line
 */
const char *casync_stats_log_format(const struct casync_view *view,
				    uint64_t seconds, char *line, size_t size);

/**
 * Format all metrics as Prometheus' text exposition format 0.0.4 has them, as
 * node_exporter's textfile collector reads them (text_file.c).
 *
 * @param[in]  exports    List of struct casync_published, under its lock.  Of
 *                        two with one id the older one is shown.
 * @param[in]  libcephfs  Its version.
 * @param[out] bytes      Length of the text.
 *
 * @return To be freed with free(); NULL: no memory.
 */
char *casync_text_file_format(const struct glist_head *exports,
			      const struct casync_process_numbers *process,
			      const char *libcephfs, size_t *bytes);

/**
 * Put the text in the file's place, by rename().
 *
 * A failure is logged once for each errno.  The caller sees to it that there is
 * one call at a time.
 *
 * @param[in] text  NULL: there was no memory for it.
 */
void casync_text_file_write(const char *path, const char *text, size_t bytes);

#endif /* CASYNC_PUBLISH_H */
