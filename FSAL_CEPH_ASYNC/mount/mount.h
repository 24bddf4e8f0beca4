/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file mount.h
 * @brief libcephfs mounts by identity, shared by exports and counted.
 *
 * Exports with the same user, file system, cmount_path and secret share a
 * mount, as in FSAL_CEPH, unless Share_Client is false.  The registry lock
 * (mounts_lock in mount.c) is never held across a libcephfs call.  A mount that
 * is being built is already in the registry, and marked.  Other exports that
 * want it wait for the result.
 *
 * No two mounts have a session of the same name: the second client would end
 * the first one's session, and the first one's keeper the second one's, for
 * ever.
 */
#ifndef CASYNC_MOUNT_H
#define CASYNC_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"
#include "client.h"
#include "gsh_list.h"
#include "guard.h"
#include "identity.h"
#include "journal.h"
#include "lane.h"
#include "keeper.h"
#include "session.h"
#include "take_over.h"
#include "tuning.h"
#include "snapshots.h"
#include "unfinished.h"
#include "upcalls.h"

/**
 * How to build a mount.  Only the first export's values are used, and those of
 * its oldest export after a reload.  The options must be the same in all its
 * exports.
 */
struct casync_mount_params {
	const char *ceph_conf;
	char *ceph_options; /**< A list of ceph_options.h; or NULL. */
	/** End the session that a former run shared with other exports. */
	bool end_shared;
	/** Called when our session turns out to be older than the last restart
	 * of the MDS (stale_sessions.h).  NULL: this is no start, but a client
	 * after a loss. */
	void (*mds_was_restarted)(const char *filesystem,
				  const struct casync_mount_params *params);
	uint32_t timeout_s;
	uint32_t session_timeout_s;
	uint32_t drain_timeout_s;
	uint32_t reconnect; /**< boolean */
	uint32_t reconnect_timeout_s;
	const struct casync_keeper_hooks *hooks;
};

/** Most files that a mount fetches at once before anybody asks
 * (next_files.h). */
#define CASYNC_NEXT_FILES_AT_ONCE 8U

enum casync_mount_state {
	CASYNC_MOUNT_BUILDING,
	CASYNC_MOUNT_READY,
	CASYNC_MOUNT_FAILED,
	CASYNC_MOUNT_LEFT, /**< Ganesha ends (leave.h). */
	CASYNC_MOUNT_CLOSING
};

struct casync_mount {
	struct glist_head link;	       /**< In mount.c's registry. */
	enum casync_mount_state state; /**< Under its lock. */
	int error;		       /**< Of CASYNC_MOUNT_FAILED. */
	unsigned int users; /**< Exports and waiters; under its lock. */

	struct casync_identity identity; /**< Of all its clients. */
	char *uuid;			 /**< Of their sessions. */
	struct casync_client *client;	 /**< In the guard only; or NULL. */
	/** Clients that have not ended: it is not freed before.  Atomic. */
	uint32_t clients_alive;
	/** Reclaims of its session that have not returned; atomic. */
	uint32_t clients_reclaiming;
	uint32_t drain_timeout_s; /**< Atomic: a reload may change it. */
	struct casync_mount_params params;  /**< To connect again. */
	struct casync_guard guard;	    /**< Around all uses of it. */
	struct casync_budget_mount callers; /**< Its slots (call.h). */
	struct casync_keeper keeper;
	struct casync_journal journal;
	struct casync_unfinished unfinished;
	struct casync_snapshots snapshots;
	struct casync_lane lanes[CASYNC_MOUNT_LANES];
	/** Of its metadata lane: one UNLOCK for a client that is gone. */
	struct casync_lane_share unlocks;
	struct casync_lane_share next_files; /**< Of its LOOK lane. */
	struct casync_take_over take_overs[CASYNC_TAKE_OVERS_MAX];
	int64_t fscid; /**< Of the file system; third word of a handle.
			    Once built, it never changes. */
	struct casync_upcalls upcalls; /**< And the table of objects. */
	struct casync_session session;
	bool delegations; /**< libcephfs grants them; atomic. */
	/** Those that it has granted; delegations.c's, with the lock. */
	struct glist_head delegations_held;
	pthread_mutex_t delegations_lock;
	uint64_t mounted_ns; /**< CLOCK_REALTIME; atomic. */
};

/**
 * Find or build a mount.
 *
 * It waits for the cluster, at most @p params->timeout_s in each step.  On
 * failure one line has been logged that names the key or path, its value and
 * the reason; nothing stays mounted.
 *
 * @param[in]  identity  Copied.
 * @param[in]  params    How to build it.
 * @param[out] mount     The mount, with a reference for the caller.
 *
 * @return 0 or a negative errno.
 */
int casync_mount_get(const struct casync_identity *identity,
		     const struct casync_mount_params *params,
		     struct casync_mount **mount);

/**
 * Drop the reference on a mount; the last one unmounts.
 *
 * It may block in ceph_unmount, up to the unmount timeout: the MDS may be away.
 * A mount that did not end by then is never freed.  The caller must have
 * drained its I/O, because an unmount frees open Fhs.
 */
void casync_mount_put(struct casync_mount *mount);

/**
 * Ganesha ends and has a successor: leave the mount's session to it.
 *
 * For the thread that ends all exports, for each of them.  It waits for the
 * requests of all exports of the mount, and for Ceph, not longer than that by
 * more than 1 s.
 */
void casync_mount_leave(struct casync_mount *mount, uint32_t timeout_s);

/** Time of the mount: CLOCK_REALTIME in nanoseconds. */
static inline uint64_t casync_mount_time_ns(const struct casync_mount *mount)
{
	return __atomic_load_n(&mount->mounted_ns, __ATOMIC_RELAXED);
}

/**
 * Take over Drain_Timeout, Reconnect and Reconnect_Timeout after a reload.
 * Only those of the mount's oldest export are used.
 *
 * @return The oldest export's id.
 */
uint16_t casync_mount_tune(struct casync_mount *mount, uint16_t export_id,
			   const struct casync_tuning *tuning);

/**
 * End the CephFS sessions of another node: its clients now come here.  A mount
 * that cannot do it now tries again (take_over.h).
 *
 * @param[in] nodeid     The name from Ganesha's recovery backend.
 * @param[in] timeout_s  Longest wait for each mount.
 *
 * @return 0 or the first negative errno.  All mounts are tried in any case.
 */
int casync_mount_take_over(const char *nodeid, uint32_t timeout_s);

#endif /* CASYNC_MOUNT_H */
