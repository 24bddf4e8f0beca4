/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file watchdog.h
 * @brief A thread that finds requests, answers and jobs that do not advance.
 *
 * Ten times a second it
 *	- adds completion threads if answers are blocked (complete.h),
 *	- adds threads to lanes of workers that stand still (workers.h),
 *	- releases writes that a flush has held for too long (flush.h),
 *	- refuses requests that waited too long for a place (inflight.h),
 *	- logs requests older than the export's Slow_Op_Warn, once each,
 *	- logs how often libcephfs completed a part twice (submit.h),
 *	- brings the metrics up to date (publish.h).
 */
#ifndef CASYNC_WATCHDOG_H
#define CASYNC_WATCHDOG_H

#include <stdbool.h>

#include "gsh_list.h"

struct casync_export;

/** An export's place in the watchdog's list; embedded in it. */
struct casync_watched {
	struct glist_head link;
	bool listed;
};

/** Most slow requests of one export that are logged at one tick.  Further ones
 * are only counted. */
#define CASYNC_WATCHDOG_LINES 8

/** @return 0 or a negative errno. */
int casync_watchdog_start(void);

/** Call it before casync_complete_stop(): the watchdog adds threads there. */
void casync_watchdog_stop(void);

/** Watch an export until casync_watchdog_remove(). */
void casync_watchdog_add(struct casync_export *exp);

/** Returns when the watchdog no longer uses it; no-op if it was not added. */
void casync_watchdog_remove(struct casync_export *exp);

/**
 * Log the oldest CASYNC_WATCHDOG_LINES requests of an export at LogCrit level.
 *
 * @param[in] why  Text before each, for example "did not end".
 */
void casync_watchdog_list(struct casync_export *exp, const char *why);

/**
 * An export is being removed.  If Ganesha has been told to end, its workers
 * have ended, and the watchdog does not end the process any more (ending.h).
 */
void casync_watchdog_exports_go(void);

#endif /* CASYNC_WATCHDOG_H */
