/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file connect.h
 * @brief A mount, from its identity to a mounted libcephfs client and back.
 *
 * For mount.c, which shares and counts them, and stale_sessions.c.  Everything here
 * may wait for Ceph, within the times in the parameters; no lock is held.
 */
#ifndef CASYNC_CONNECT_H
#define CASYNC_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "mount.h"
#include "session.h"

enum casync_mount_state {
	CASYNC_MOUNT_BUILDING,
	CASYNC_MOUNT_READY,
	CASYNC_MOUNT_FAILED,
	CASYNC_MOUNT_CLOSING
};

struct casync_mount {
	struct glist_head link;	       /**< In mount.c's registry. */
	enum casync_mount_state state; /**< Under its lock. */
	int error;		       /**< Why CASYNC_MOUNT_FAILED. */
	unsigned int users; /**< Exports and waiters; under its lock. */

	char *user_id;
	char *filesystem;
	char *path;
	char *secret;
	char *ceph_options;
	/* Of the export that came first. */
	uint16_t export_id;
	uint32_t unmount_timeout_s; /* atomic: a reload may change it */
	bool use_old_uuid;

	struct ceph_mount_info *ceph;
	bool stuck; /**< A call does not return: left behind. */
	struct casync_deadline_call
		*ending; /**< Between the halves of a disconnect. */
	int64_t fscid;
	struct casync_upcalls upcalls;
	struct casync_session session;
	bool delegations;    /**< libcephfs grants them. */
	uint64_t mounted_ns; /**< CLOCK_REALTIME; atomic. */
};

/** Not an errno: the handle is spent, another one will do. */
#define CASYNC_CONNECT_AGAIN 1

/**
 * Create, configure and mount.
 *
 * @param[in] first  The first try; only it may return CASYNC_CONNECT_AGAIN.
 *
 * @return 0; CASYNC_CONNECT_AGAIN when our session is from before a restart of
 *         the MDS: the sessions of all exports are to be ended (stale_sessions.h)
 *         and casync_disconnect() called before the second try; or a negative
 *         errno that has been logged with the key that is to blame;
 *         casync_disconnect() is due in either case.
 */
int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params, bool first);

/**
 * Have the MDS end the session that a former self of this mount had, and no
 * more: nothing is mounted.  casync_disconnect() is due in any case.
 *
 * @return 0, also when there was none.
 */
int casync_connect_end_session(struct casync_mount *mount,
			       const struct casync_mount_params *params);

/**
 * Unmount, if it was mounted, and release the handle.
 *
 * @return False if that did not end in time: then the mount must stay as it
 *         is, for good.
 */
bool casync_disconnect(struct casync_mount *mount, uint32_t timeout_s);

/** Its two halves: several can end side by side. */
void casync_disconnect_begin(struct casync_mount *mount);
bool casync_disconnect_end(struct casync_mount *mount, uint32_t timeout_s);

/** How long a disconnect may take: less where another one has just not ended,
 * since all exports together have to end in time. */
uint32_t casync_connect_end_time_s(const struct casync_mount *mount);

/** The session uuid that this mount has, or had, on that node. */
void casync_connect_uuid(const struct casync_mount *mount, const char *nodeid,
			 char *uuid, size_t size);

/** From now on what we show is later than what a session that is gone
 * showed. */
void casync_connect_set_time(struct casync_mount *mount);

/** What an error of libcephfs means. */
const char *casync_connect_reason(int rc);

/** Log one line that names key, value and reason.  @return @p rc. */
int casync_connect_failed(const struct casync_mount_params *params, int rc,
			  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* CASYNC_CONNECT_H */
