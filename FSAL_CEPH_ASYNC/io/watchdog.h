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
 *	- brings the metrics up to date (publish.h),
 *	- has a CephFS session ended in which a READ waits for itself,
 *	- ends a Ganesha that cannot end, because its workers wait for Ceph.
 *
 * The last of these: at its end Ganesha waits for its workers first, without a
 * timeout, and removes its exports after that.  A worker in a call of libcephfs
 * that waits for the MDS cannot be called back: ceph_abort_conn() itself waits
 * until no thread is inside.  So the process ends without them, as if it had
 * crashed.  The next one takes the sessions over, and nothing acknowledged is
 * lost.
 */
#ifndef CASYNC_WATCHDOG_H
#define CASYNC_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight.h"

struct casync_guard;
struct casync_metrics;
struct casync_mount;
struct casync_tuning;

/** The watched state of an export. */
struct casync_watchdog_source {
	uint16_t export_id;
	struct casync_metrics *metrics;
	struct casync_inflight *inflight;
	struct casync_guard *guard; /**< Of its mount; NULL: none yet. */
	struct casync_mount *mount;
	const struct casync_tuning *tuning;
};

/** An export's entry in the watchdog's list. */
struct casync_watched;

/** Most slow requests of one export that are logged at one tick.  Further ones
 * are only counted. */
#define CASYNC_WATCHDOG_LINES 8

/**
 * From when on a READ whose file was truncated meanwhile is taken for one that
 * libcephfs never answers (rw_clamp_to_size() in rw.c).  If it is an OSD that
 * is slow, a new client costs less than a second.
 */
#define CASYNC_WATCHDOG_HANG_MS 5000

/** @return 0 or a negative errno. */
int casync_watchdog_start(void);

/** Call it before casync_complete_stop(): the watchdog adds threads there. */
void casync_watchdog_stop(void);

/** Watch an export until casync_watchdog_remove(). */
struct casync_watched *
casync_watchdog_add(const struct casync_watchdog_source *source);

/** Returns when the watchdog no longer uses it; NULL does nothing. */
void casync_watchdog_remove(struct casync_watched *entry);

/** Visit the requests in flight of all exports whose mount has this guard. */
void casync_watchdog_visit(const struct casync_guard *guard,
			   casync_inflight_visitor *visit, void *arg);

/**
 * Log the oldest CASYNC_WATCHDOG_LINES requests of an export at LogCrit level.
 *
 * @param[in] why  Text before each, for example "did not end".
 */
void casync_watchdog_list(struct casync_inflight *inflight, uint16_t export_id,
			  const char *why);

/**
 * An export is being removed.  If Ganesha has been told to end, its workers
 * have ended, and the watchdog does not end the process any more.
 */
void casync_watchdog_exports_removed(void);

/** Does a Ganesha that was told to end go on to its exports?  Zero at first. */
struct casync_ending {
	bool exports_go; /**< No worker is waited for any more; atomic. */
	uint64_t busy_since_ns; /**< 0: no request waits for Ceph. */
};

/** An export is being removed.  Ganesha does so once its workers have ended. */
void casync_watchdog_ending_exports_removed(struct casync_ending *ending);

/**
 * Look, again and again, from the time that Ganesha has been told to end.
 *
 * @param[in] busy     Some request waits for Ceph.
 * @param[in] limit_s  Longest uninterrupted wait, in seconds.
 *
 * @return the process has to be ended.
 */
bool casync_watchdog_ending_hangs(struct casync_ending *ending, bool busy,
				  uint32_t limit_s, uint64_t now_ns);

#endif /* CASYNC_WATCHDOG_H */
