/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file connect.h
 * @brief Makes a handle of a client, mounts it, and names its session.
 *
 * The functions that connect may wait for Ceph, within the times of the
 * parameters.  They hold no lock.
 */
#ifndef CASYNC_CONNECT_H
#define CASYNC_CONNECT_H

#include <stddef.h>
#include <stdint.h>

struct casync_client;
struct casync_identity;
struct casync_mount;
struct casync_mount_params;

/** Another session has this mount's name, or its user may not mount. */
#define CASYNC_CONNECT_NAME_TAKEN (-EEXIST)

/**
 * Make a client of the mount that is created, configured and mounted.
 *
 * A session that is older than the last restart of the MDS takes two handles:
 * connect_reclaim_uuid() has the reason.
 *
 * A name has one owner.  A start takes the name: it ends the session that has
 * it.  A mount that has lost its session takes the name only if nobody has it.
 * So two gateways of one name do not end each other's sessions by turns.
 *
 * @param[out] client  With one reference.  The mount does not have it yet.
 *
 * @return 0.  A negative errno: nothing is mounted.  CASYNC_CONNECT_NAME_TAKEN,
 *         which is not logged.  For any other one a log line has named the key
 *         at fault.
 */
int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params,
		   struct casync_client **client);

/**
 * Let the MDS end a session that has this client's identity.  Nothing is
 * mounted.  The caller gives its new client back in any case.
 *
 * @param[in] nodeid  Whose session: another node's; NULL: that of a former run.
 *
 * @return 0; -ENOENT: there was no session; another negative errno.
 */
int casync_connect_end_session(struct casync_client *client,
			       const struct casync_mount_params *params,
			       const char *nodeid);

/** The uuid of the session of this identity on this node.  @return 0 or a
 * negative errno: this node's id cannot be read. */
int casync_connect_own_uuid(const struct casync_identity *identity, char *uuid,
			    size_t size);

/** The uuid of its session on that node. */
void casync_connect_uuid(const struct casync_identity *identity,
			 const char *nodeid, char *uuid, size_t size);

/** Set mounted_ns: change attributes are from now on higher than those that an
 * ended session has shown. */
void casync_connect_set_time(struct casync_mount *mount);

/** Text for an error of libcephfs. */
const char *casync_connect_reason(int rc);

/** Log one line with key, value and reason.  @return @p rc. */
int casync_connect_failed(const struct casync_identity *identity, int rc,
			  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* CASYNC_CONNECT_H */
