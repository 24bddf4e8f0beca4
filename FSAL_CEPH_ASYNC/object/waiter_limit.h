/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file waiter_limit.h
 * @brief How many threads one file may keep waiting for its attributes.
 *
 * Asking for attributes waits, without a timeout, for a client that does not
 * give its capabilities back.  Ganesha asks before and after each NFSv3 WRITE,
 * so the requests for one such file would take all workers, and its answers
 * all completion threads.
 *
 * So there is room for some; the others wait for room, and when none has come
 * out for a while they are told to come again (NFS4ERR_DELAY; NFSv3 WRITE
 * leaves attributes out of its answer, which they are no necessary part of).
 * Workers and completion threads do not take each other's room.
 */
#ifndef CASYNC_WAITER_LIMIT_H
#define CASYNC_WAITER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/** Who asks. */
enum casync_lane { CASYNC_LANE_WORKER, CASYNC_LANE_COMPLETER, CASYNC_LANES };

/** Milliseconds without progress after which nobody waits any more. */
#define CASYNC_WAITER_LIMIT_WORKER_MS 1000
#define CASYNC_WAITER_LIMIT_COMPLETER_MS 100

/** Embedded in the object; zero to begin with.  All members are atomic. */
struct casync_waiter_limit {
	struct {
		uint32_t inside;
		uint32_t sleepers; /**< Waiting for room. */
		uint32_t left;	   /**< Counts who came out; a futex. */
	} lanes[CASYNC_LANES];
	uint64_t progress_ns; /**< When somebody came out, or the first one
				   went in; CLOCK_MONOTONIC. */
};

/**
 * Ask to be let in.
 *
 * @param[in] room  How many of this lane may be inside, 1 at least.
 *
 * @return Whether; if so, casync_waiter_limit_leave() is due.
 */
bool casync_waiter_limit_enter(struct casync_waiter_limit *limit,
			       enum casync_lane lane, uint32_t room);

/** The same without waiting. */
bool casync_waiter_limit_try(struct casync_waiter_limit *limit,
			     enum casync_lane lane, uint32_t room);

void casync_waiter_limit_leave(struct casync_waiter_limit *limit,
			       enum casync_lane lane);

/** The room that a file has: a quarter of Ganesha's workers, so that it takes
 * several to be in everybody's way. */
uint32_t casync_waiter_limit_workers(void);

#endif /* CASYNC_WAITER_LIMIT_H */
