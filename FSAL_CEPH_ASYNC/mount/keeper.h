/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file keeper.h
 * @brief Notices that a mount's CephFS session is lost, and puts a new
 * libcephfs client in place of the one that lost it.
 *
 * Each mount has a thread of its own for that, its keeper.  It asks the MDS for
 * the root's attributes from time to time, so a loss shows without traffic too.
 * Answers of libcephfs to requests wake it earlier.  No thread waits for it.
 * It also ends sessions of dead nodes (take_over.h), queues removed files again
 * (upcalls.h), and shortens grace periods (common_grace.h).
 *
 * Requests are asked to retry while the client is replaced.  The steps, each
 * before the next:
 *
 * 1. No request enters the guard any more.
 * 2. The requests inside leave: Ceph has ended the session, so the calls fail.
 *    Then what is held of the old client is released, and the releases leave.
 *    READs that no OSD answers are left with the old client after
 *    CASYNC_KEEPER_DISOWN_MS.
 * 3. The old client ends, or is left behind with them (client.h).
 * 4. Sessions of dead nodes that this gateway has to end are ended
 *    (take_over.h).  The new client connects, if no other gateway has the
 *    mount's name by then (connect.h).  It ends the old session, if there
 *    still is one, as a restarted gateway does.
 * 5. Locks of clients are taken again.  An UNLOCK may enter.
 * 6. Requests enter.
 *
 * Nothing of the old client can reach an OSD after step 4: docs/design.md, A
 * lost session, has the reason.
 */
#ifndef CASYNC_KEEPER_H
#define CASYNC_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "deadline_call.h"

struct casync_client;
struct casync_mount;

/** Time between two looks at a session that serves. */
#define CASYNC_KEEPER_CHECK_MS 2000

/** From the loss until READs that are not answered are given up.  A WRITE that
 * libcephfs cancels has ended by then (0.1 s in the lab). */
#define CASYNC_KEEPER_DISOWN_MS 1000

/** Calls of the rooms above around a change of the client. */
struct casync_keeper_hooks {
	/** Step 2: leave the READs in flight with the mount's client.  @return
	 * how many they were. */
	unsigned int (*disown)(struct casync_mount *mount);
	/** Step 2: no request uses the old client any more, but READs that are
	 * going to be disowned; it still exists.  Called twice then. */
	void (*forget)(struct casync_mount *mount);
	/** Step 5: the new client is there; no request uses it yet.  @return 0
	 * or a negative errno: its session is lost too. */
	int (*restore)(struct casync_mount *mount);
};

/** Embedded in the mount; zero at first. */
struct casync_keeper {
	struct casync_deadline_thread thread;
	uint32_t reconnect; /**< Key Reconnect; atomic. */
	uint32_t timeout_s; /**< Reconnect_Timeout; atomic. */
	bool asked;	    /**< To ask the MDS; atomic. */
	/** Of the file of a READ that never ends; 0: none; atomic. */
	uint64_t unanswered_read_ino;
	uint64_t ended_ns; /**< When the keeper ended a session itself. */
	/** When the client was lost that nothing serves for yet; 0: it serves;
	 * CLOCK_MONOTONIC; the keeper's own. */
	uint64_t lost_ns;
	/** When an error of this client came that a loss may have caused (0:
	 * none came), and when it served after one; CLOCK_MONOTONIC; atomic. */
	uint64_t doubted_since_ns, checked_ns;
};

/** Start the thread of a mount that is connected.  The mount ends it by
 * casync_deadline_call_stop_thread().  @return 0 or a negative errno. */
int casync_keeper_start(struct casync_mount *mount);

/**
 * A READ waits for something that only the end of the session can give it: have
 * the keeper end the session.  Then it makes a new client, as after an
 * eviction.  Not more than once a minute.  Takes the lock of the keeper's
 * thread.
 *
 * @param[in] ino  Of the file, for the log.
 */
void casync_keeper_end_session(struct casync_mount *mount, uint64_t ino);

/** Have the keeper ask the MDS, for casync_budget_prove().  Takes the
 * lock of the keeper's thread. */
void casync_keeper_ask_mds(struct casync_mount *mount);

#endif /* CASYNC_KEEPER_H */
