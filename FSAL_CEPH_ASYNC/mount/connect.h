/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file connect.h
 * @brief Connects a libcephfs client from its identity, and disconnects it.
 *
 * mount.c and stale_sessions.c call it.  All functions may wait for Ceph,
 * within the times of the parameters.  They hold no lock.
 */
#ifndef CASYNC_CONNECT_H
#define CASYNC_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "mount.h"

/** Free the texts of a client's identity. */
void casync_connect_free_client(struct casync_client *client);

/** Not an errno: this handle cannot be used, try again with a new one. */
#define CASYNC_CONNECT_AGAIN 1

/**
 * Create, configure and mount.
 *
 * @param[in] first  The first try; only it may return CASYNC_CONNECT_AGAIN.
 *
 * @return 0.  CASYNC_CONNECT_AGAIN: our session is older than the last restart
 *         of the MDS; who builds a mount must end the sessions of exports that
 *         have none yet (stale_sessions.h); the caller must call
 *         casync_connect_close() before the second try.  A negative
 *         errno: a log line has named the key at fault; the caller must call
 *         casync_connect_close().
 */
int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params, bool first);

/**
 * Let the MDS end a session that has this client's identity.  Nothing is
 * mounted.  The caller must call casync_connect_close() in any case.
 *
 * @param[in] nodeid  Whose session: another node's; NULL: that of a former run.
 *
 * @return 0; -ENOENT: there was no session; another negative errno.
 */
int casync_connect_end_session(struct casync_client *client,
			       const struct casync_mount_params *params,
			       const char *nodeid);

/**
 * Unmount, if it was mounted, and release the handle.
 *
 * @return False if it did not end in time: then the mount must never be changed
 *         or freed.
 */
bool casync_connect_close(struct casync_client *client, uint32_t timeout_s);

/** The two halves of casync_connect_close(): several mounts can end at once. */
void casync_connect_close_begin(struct casync_client *client);
bool casync_connect_close_end(struct casync_client *client, uint32_t timeout_s);

/** How long a disconnect may take.  It is less if another disconnect has just
 * timed out: all exports together have to end in time. */
uint32_t casync_connect_close_time_s(const struct casync_client *client);

/**
 * Say that a client does not end.  The clients that end next get less time.
 *
 * It changes nothing of the client: a thread that is left behind may use it.
 *
 * @param[in] timeout_s  For how long it was waited for.
 */
void casync_connect_note_stuck(const struct casync_client *client,
			       uint32_t timeout_s);

/** The uuid of this client's own session.  @return 0 or a negative errno: this
 * node's id cannot be read. */
int casync_connect_own_uuid(const struct casync_client *client, char *uuid,
			    size_t size);

/** The uuid of this mount's session on that node. */
void casync_connect_uuid(const struct casync_client *client, const char *nodeid,
			 char *uuid, size_t size);

/** Set mounted_ns: change attributes are from now on higher than those that an
 * ended session has shown. */
void casync_connect_set_time(struct casync_mount *mount);

/** Text for an error of libcephfs. */
const char *casync_connect_reason(int rc);

/** Log one line with key, value and reason.  @return @p rc. */
int casync_connect_failed(const struct casync_mount_params *params, int rc,
			  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* CASYNC_CONNECT_H */
