/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file watchdog.h
 * @brief The thread that looks after what does not move.
 *
 * Ten times a second it
 *	- gives help to answers that are held up (complete.h),
 *	- gives help to lanes of workers that stand still (workers.h),
 *	- lets go writes that a flush has held for too long (flush.h),
 *	- refuses requests that have waited too long for a place (inflight.h),
 *	- logs requests older than the export's Slow_Op_Warn, once,
 *	- logs what libcephfs completed twice (submit.h),
 *	- brings the metrics up to date (publish.h).
 */
#ifndef CASYNC_WATCHDOG_H
#define CASYNC_WATCHDOG_H

#include "gsh_list.h"

struct casync_export;

/** An export's place in the watchdog's list; embedded in it. */
struct casync_watched {
	struct glist_head link;
	bool listed;
};

/** Most requests of one export that one look logs each; more are counted. */
#define CASYNC_WATCHDOG_LINES 8

/** @return 0 or a negative errno. */
int casync_watchdog_start(void);

/** To be called before casync_complete_stop(): it is who adds threads. */
void casync_watchdog_stop(void);

/** Watch an export until casync_watchdog_remove(). */
void casync_watchdog_add(struct casync_export *exp);

/** Returns when the watchdog has let go of it; no-op if it was not added. */
void casync_watchdog_remove(struct casync_export *exp);

/**
 * Log the oldest CASYNC_WATCHDOG_LINES requests of an export at LogCrit level.
 *
 * @param[in] why  What becomes of them.
 */
void casync_watchdog_list(struct casync_export *exp, const char *why);

#endif /* CASYNC_WATCHDOG_H */
