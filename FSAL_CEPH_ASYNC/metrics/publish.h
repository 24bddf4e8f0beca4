/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file publish.h
 * @brief The doors through which an export's metrics are seen.
 *
 *	Prometheus	Ganesha's own endpoint, brought up to date each second
 *	DBus		ganesha_stats, GetFSALStats and ResetStats
 *	the log		a line every Stats_Interval seconds
 *
 * All three show the same counters (metrics.h).
 */
#ifndef CASYNC_PUBLISH_H
#define CASYNC_PUBLISH_H

#include <stdint.h>

#include "gsh_list.h"
#include "inflight.h"
#include "metrics.h"
#include "session.h"

struct casync_export;
struct casync_prometheus;

/** An export's place in the list of what is shown; embedded in it. */
struct casync_published {
	struct glist_head link;
	bool listed;
	struct casync_prometheus *prometheus; /**< NULL: not there. */
	struct casync_totals before_reset;    /**< DBus shows what is since. */
	struct casync_totals before_line;     /**< And the log. */
	uint64_t line_ns; /**< When the last line was due. */
};

/** An export at one moment. */
struct casync_view {
	uint16_t export_id;
	struct casync_totals totals;
	struct casync_inflight_look inflight;
	enum casync_session_state session;
};

/** Show an export until casync_publish_remove(). */
void casync_publish_add(struct casync_export *exp);

/** Shows the last of it; no-op if it was not added. */
void casync_publish_remove(struct casync_export *exp);

/** Bring all doors up to date.  The watchdog's, ten times a second. */
void casync_publish_tick(void);

typedef void casync_view_visitor(const struct casync_view *view, void *arg);

/** Visit what each export has done since the last reset. */
void casync_publish_visit(casync_view_visitor *visit, void *arg);

/** Begin anew for casync_publish_visit(). */
void casync_publish_reset(void);

#endif /* CASYNC_PUBLISH_H */
