/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file waiter_limit.h
 * @brief Limits how many threads wait for the MDS or a monitor.
 *
 * Some calls of libcephfs wait without a timeout.  A question for attributes
 * waits for a client that does not return its capabilities.  Ganesha asks
 * before and after each NFSv3 WRITE, so the requests for one such file would
 * block all workers, and its answers all completion threads.
 *
 * So only some threads may wait for one file.  The others wait for room.  If no
 * thread has left for a while, the client is asked to retry (NFS4ERR_DELAY).
 * An NFSv3 WRITE is answered without attributes instead: they are optional
 * there.  Workers and completion threads have separate room.
 *
 * A file has one limit for GETATTR, one for SETATTR, COMMIT, DEALLOCATE and
 * WRITEs to setuid files, and one for all that keeps a worker.  An export has one
 * for statfs, which asks a monitor.  A mount has one for all that keeps a worker
 * (call.h).
 *
 * The limits of all mounts share one budget: three quarters of Ganesha's
 * workers.  A mount may keep as many as are left of it.  So one that does not
 * answer keeps half of the budget, eight of them keep a ninth each, and another
 * one always finds as much.  The rule is known from switches that share a
 * buffer (dynamic thresholds, Choudhury and Hahne 1998).
 */
#ifndef CASYNC_WAITER_LIMIT_H
#define CASYNC_WAITER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/** The kind of thread that asks. */
enum casync_lane { CASYNC_LANE_WORKER, CASYNC_LANE_COMPLETER, CASYNC_LANES };

/** Milliseconds without progress after which threads stop waiting. */
#define CASYNC_WAITER_LIMIT_WORKER_MS 1000
#define CASYNC_WAITER_LIMIT_COMPLETER_MS 100

/** Embedded in the object, export or mount; zero at first.  All members are
 * atomic. */
struct casync_waiter_limit {
	struct {
		uint32_t inside;
		uint32_t sleepers; /**< Waiting for room. */
		uint32_t left;	   /**< Counts threads that left; a futex. */
	} lanes[CASYNC_LANES];
	uint64_t progress_ns; /**< When a thread last left, or the first one
				   entered; CLOCK_MONOTONIC. */
};

/**
 * Enter, or wait for room.
 *
 * @param[in] room  How many threads of this lane may be inside; at least 1.
 *
 * @return true: the thread is inside and must call casync_waiter_limit_leave();
 *	   false: there was no room.
 */
bool casync_waiter_limit_enter(struct casync_waiter_limit *limit,
			       enum casync_lane lane, uint32_t room);

/** Enter if there is a place now; never wait. */
bool casync_waiter_limit_try(struct casync_waiter_limit *limit,
			     enum casync_lane lane, uint32_t room);

void casync_waiter_limit_leave(struct casync_waiter_limit *limit,
			       enum casync_lane lane);

/** The room of a file for workers: a quarter of Ganesha's.  So a single file
 * cannot block all of them. */
uint32_t casync_waiter_limit_workers(void);

/** How many workers all mounts together may keep. */
uint32_t casync_waiter_limit_budget(void);

/** How many workers a file may keep: as many as its mount may take still; at
 * least 1.  So files that do not answer leave room for one that does. */
uint32_t casync_waiter_limit_file_room(const struct casync_waiter_limit *mount);

/**
 * As casync_waiter_limit_enter(), for a worker, into the limit of a file.
 *
 * For files that answer, a quarter of the workers may wait there for
 * CASYNC_WAITER_LIMIT_WORKER_MS without progress, as long as half of the
 * workers stay free.  All others wait for CASYNC_WAITER_LIMIT_COMPLETER_MS.
 *
 * @param[in] answers  Ceph has answered for the file a moment ago.
 */
bool casync_waiter_limit_enter_file(struct casync_waiter_limit *limit,
				    const struct casync_waiter_limit *mount,
				    bool answers);

/** As casync_waiter_limit_enter(), for a worker, into the limit of a mount. */
bool casync_waiter_limit_enter_mount(struct casync_waiter_limit *limit);

/** As casync_waiter_limit_try(), for a worker, into the limit of a mount.
 * @param[in] part  2: the mount may have half of what is left, 1: all. */
bool casync_waiter_limit_try_mount(struct casync_waiter_limit *limit,
				   uint32_t part);

/**
 * Enter the limit of a mount that is full, for a file that answers: half of the
 * workers that are left are for such files, the other half is for requests that
 * ask Ceph nothing.
 */
bool casync_waiter_limit_try_reserve(struct casync_waiter_limit *mount);

/** Enter the limit of a mount although it is full. */
void casync_waiter_limit_force_mount(struct casync_waiter_limit *limit);

void casync_waiter_limit_leave_mount(struct casync_waiter_limit *limit);

/**
 * How long the oldest call of a mount has kept its worker.
 *
 * A list of all calls would take a lock for each.  Two generations are counted
 * instead.  Calls enter the young one.  When the old one is empty at a look, the
 * two change their parts, and all calls of the new old one began before that.
 *
 * Zero at first.  All members are atomic but since_ns, which is the looker's.
 */
struct casync_waiter_age {
	uint32_t inside[2]; /**< Calls of each generation. */
	uint32_t young;	    /**< The one that calls enter. */
	uint64_t since_ns;  /**< All calls of the old one began before. */
};

/** @return The generation, for casync_waiter_limit_leave_age(). */
uint32_t casync_waiter_limit_enter_age(struct casync_waiter_age *age);
void casync_waiter_limit_leave_age(struct casync_waiter_age *age,
				   uint32_t generation);

/**
 * One thread looks at a time, about once a second.
 *
 * @return The age of the oldest call in ns, or less: while one waits, others are
 *	   not dated, and when it ends, they count from then on.  0: all calls
 *	   began after the last look but one.
 */
uint64_t casync_waiter_limit_look_at_age(struct casync_waiter_age *age,
					 uint64_t now_ns);

#endif /* CASYNC_WAITER_LIMIT_H */
