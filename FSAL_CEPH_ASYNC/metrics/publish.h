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

/** An export's entry in the list of published exports. */
struct casync_published {
	struct glist_head link;
	struct casync_publish_source of;
	struct casync_prometheus *prometheus; /**< NULL: none. */
	struct casync_view now;		      /**< A second old at most. */
	struct casync_view before_line;	      /**< Subtracted in the log. */
	/** Subtracted from the session's counts, which all exports of a mount
	 * share. */
	uint64_t reconnects_at_add, locks_lost_at_add;
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

#endif /* CASYNC_PUBLISH_H */
