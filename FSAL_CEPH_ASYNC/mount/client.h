/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file client.h
 * @brief One libcephfs handle, from ceph_create() to ceph_release().
 *
 * It is counted.  These use it:
 *
 *	- who made it: a mount, or who ends another session with it;
 *	- a call to reclaim a session or to flush one, until it returns.  That
 *	  may be never;
 *	- each READ that was left with it (disown.h), until libcephfs answers.
 *
 * The last reference that is given back begins the end of the client, on a
 * thread of its own.  It is the one place where a handle ends.  So none ends
 * while a call is inside it, and no READ loses the Inode that it still uses
 * (Ceph 20.2.4, C_Read_Sync_NonBlocking::finish()).  Requests are not counted:
 * the guard keeps the mount's client in place for them.
 *
 *	casync_client_new()	connect.c makes a handle of it
 *	in a mount		it serves; the guard is around all uses
 *	out of the mount	it is lost, or the mount ends
 *	the last reference	it ends: unmounted, or cut off if it is lost, or
 *				left to a successor (leave.h)
 *	freed			the mount's clients_alive is one less
 *
 * A mount is freed when none of its clients is alive.
 */
#ifndef CASYNC_CLIENT_H
#define CASYNC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <cephfs/libcephfs.h>

#include "deadline_call.h"
#include "identity.h"

struct casync_mount;
struct casync_mount_params;

/** Most lost clients of a mount that READs are left with.  Beyond that the next
 * client waits for the READs.  Each has some 15 threads, what libcephfs has
 * cached, and the buffers of its READs: at most Max_Inflight_Bytes.  Measured:
 * 4 of them in 28 minutes, with a network that was up for 7 s of each minute.
 */
#define CASYNC_CLIENTS_LEFT_MAX 16

struct casync_client {
	struct casync_deadline_call end; /**< The client is freed with it. */
	const struct casync_identity *identity; /**< Its maker's. */
	struct casync_mount *mount; /**< Whose session it has; or NULL. */
	struct ceph_mount_info *ceph;
	uint32_t users;		 /**< Atomic. */
	unsigned int reads_left; /**< READs that were left with it. */
	bool lost; /**< Its session is, or is left: do not ask the MDS. */
	/* casync_connect() has found these. */
	bool delegations; /**< libcephfs grants them. */
	int64_t fscid;
};

/**
 * A client without a handle, with one reference.
 *
 * @param[in] identity  Must stay valid as long as the caller has its reference.
 * @param[in] mount     Whose session it is for; NULL: another one's.
 */
struct casync_client *casync_client_new(const struct casync_identity *identity,
					struct casync_mount *mount);

/** Take another reference; any thread, no lock is taken. */
void casync_client_hold(struct casync_client *client);

/** Give a reference back, and wait for nothing.  Takes no lock of ours. */
void casync_client_put(struct casync_client *client);

/**
 * Give a reference back, and wait for the end of the client.
 *
 * @return false: it has not ended.  It ends later, when others have given it
 *	   back or Ceph answers, or never.
 */
bool casync_client_end(struct casync_client *client, uint32_t timeout_s);

/** The first half of it: several clients can end at once.  @return The client,
 * for casync_client_await(); or NULL. */
struct casync_client *casync_client_drop(struct casync_client *client);

/** The second half.  @return As casync_client_end(). */
bool casync_client_await(struct casync_client *client, uint32_t timeout_s);

/** How long to wait for the end of a client: @p timeout_s.  It is less if
 * another end has just timed out: all exports together have to end in time. */
uint32_t casync_client_end_time_s(uint32_t timeout_s);

/** Say that a client does not end.  Those that end next get less time. */
void casync_client_note_stuck(const struct casync_identity *identity,
			      uint32_t timeout_s);

/** May READs be left with the mount's client?  Else there are too many. */
bool casync_client_may_be_left(const struct casync_mount *mount);

/**
 * Have the MDS end the session with this uuid (ceph_start_reclaim, RESET).
 *
 * If no MDS has taken the rank yet, libcephfs waits for it without a timeout.
 * So the call has a thread of its own.  It takes timeout_s of the parameters at
 * most; up to 2^5 times as long if earlier tries still run.
 *
 * @return 0.  -ENOENT: there is no such session.  -ETIMEDOUT: the call still
 *         runs, and the client must only be given back.  Another negative
 *         errno.
 */
int casync_client_reclaim(struct casync_client *client,
			  const struct casync_mount_params *params,
			  const char *uuid);

/**
 * Have the MDS journal all that this client has changed (ceph_sync_fs).
 *
 * @return 0.  -ETIMEDOUT: the call still runs, and the client must only be
 *	   given back.  Another negative errno.
 */
int casync_client_sync(struct casync_client *client, uint32_t timeout_s);

/**
 * Wait until earlier tries have returned, 5 s at most: they would end a session
 * that is made now.
 *
 * @param[in] starts  Also for tries to end sessions of no mount: this mount's
 *                    name may be one of them.  Not after a loss: a take-over of
 *                    another node's session would cost its time.
 */
void casync_client_wait_for_late_reclaims(const struct casync_mount *mount,
					  bool starts);

#endif /* CASYNC_CLIENT_H */
