/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file owner.h
 * @brief Which of an export's CephFS clients a file belongs to (Clients = N).
 *
 * libcephfs has one lock for all of a client.  So an export may have several
 * clients, each a mount of its own: session, guard, keeper, upcalls, object
 * table.  Client 0 has the names: all directories, symlinks and special files,
 * and everything in a snapshot.  A regular file belongs to the client that its
 * inode number says.  All that is its own goes there: attributes, data, opens,
 * locks, delegations, extended attributes.  So its capabilities stay in one
 * place.
 *
 * A name is found and made in client 0.  If it is a file of another client, its
 * object has no Inode at first, and gets it there when it is used: as an object
 * whose client was lost (revive.h).  Client 0 keeps no reference on it.  LINK
 * borrows one there.
 *
 * A request on a name is in client 0's guard, one on a file in that of the
 * file's client.  OPEN by name is in both, client 0 first.  Neither waits for
 * the other: to enter a guard never waits.
 *
 * With one client nothing of this is called.
 */
#ifndef CASYNC_OWNER_H
#define CASYNC_OWNER_H

#include "export.h"
#include "object.h"

/** The mount that an object belongs to. */
static inline struct casync_mount *
casync_object_mount(const struct casync_object *obj)
{
	return obj->exp->mounts[obj->client];
}

/** Its libcephfs handle.  The caller is in the mount's guard. */
static inline struct ceph_mount_info *
casync_object_ceph(const struct casync_object *obj)
{
	return casync_mount_ceph(casync_object_mount(obj));
}

static inline struct casync_session *
casync_object_session(const struct casync_object *obj)
{
	return obj->exp->sessions[obj->client];
}

/** The client that an inode belongs to.  Of @p stx the type, the inode number
 * and the device are used, which libcephfs always gives. */
unsigned int casync_owner_of(const struct casync_export *exp,
			     const struct ceph_statx *stx);

/**
 * What to ask client 0 for in a call that finds a name.
 *
 * With several clients it is nothing: the MDS would take capabilities from the
 * client that the file belongs to.  casync_owner_settle() asks then.
 *
 * @param[in] wanted  CEPH_STATX_* that are needed in the end.
 */
static inline unsigned int casync_owner_wanted(const struct casync_export *exp,
					       unsigned int wanted)
{
	return exp->client_count > 1 ? CEPH_STATX_INO : wanted;
}

/**
 * Client 0 has found a name: get its attributes, and let go of the Inode if it
 * is another client's.  It does nothing if the export has one client.
 *
 * The file's client is asked if it has the file: client 0 would take its
 * capabilities.  If it has not, it has none, and client 0 is asked.
 *
 * @param[in,out] inode   In: client 0's.  Out: the same, or NULL: the file is
 *                        of another client.
 * @param[in,out] stx     In: type, inode number and device.
 * @param[in]     wanted  As for casync_owner_wanted().
 *
 * @return 0, or a negative errno: *inode was put.
 */
int casync_owner_settle(const struct casync_export *exp, struct Inode **inode,
			struct ceph_statx *stx, unsigned int wanted,
			const UserPerm *perms);

/**
 * Within a request in client 0: go on with a file.  It enters the guard of the
 * file's client if that is another one, and makes the object's Inode one of it.
 * It may ask the MDS.
 *
 * @return Success: casync_owner_end() must be called.  Otherwise the answer to
 *         the client: a loss of that client is not taken for one of client 0.
 */
fsal_status_t casync_owner_begin(struct casync_object *obj);

/**
 * The object may have been freed.
 *
 * @param[in] mount   casync_object_mount().
 * @param[in] status  Of what was done.
 *
 * @return The answer to the client.
 */
fsal_status_t casync_owner_end(struct casync_mount *mount,
			       fsal_status_t status);

#endif /* CASYNC_OWNER_H */
