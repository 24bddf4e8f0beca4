/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file inode.h
 * @brief Finds an Inode: by its name, by its number for a handle, and for an
 * object whose client was lost.  Says through which client it is used.
 *
 * An object notes the generation of the client that its Inode is of.  After a
 * change of the client the Inode is looked up when the object is used next.
 * The old Inode ended with the old client.  An fd does the same with its Fh.
 */
#ifndef CASYNC_INODE_H
#define CASYNC_INODE_H

#include <stdbool.h>

#include <cephfs/libcephfs.h>

#include "filehandle.h"
#include "lane.h"

struct casync_fd;
struct casync_mount;
struct casync_object;
struct fsal_attrlist;

/**
 * Find an inode by its number, in a snapshot too.  It may ask the MDS.
 *
 * @param[in]  ceph   The caller is in the guard of its mount.
 * @param[in]  mask   CEPH_STATX_*, wanted in @p stx.
 * @param[in]  root   Credentials of root.
 * @param[out] inode  A reference for the caller.
 *
 * @return 0.  -ESTALE: there is no such inode (any more), its snapshot does not
 *         exist, or no path leads to a folder in a snapshot.  Another negative
 *         errno.
 */
int casync_inode_find(struct ceph_mount_info *ceph,
		      const struct casync_fileid *id, unsigned int mask,
		      const UserPerm *root, struct Inode **inode,
		      struct ceph_statx *stx);

/**
 * Look a name up in a directory, as the requester.  It may ask the MDS.
 *
 * @param[in]  ceph   The caller is in the guard of its mount.
 * @param[in]  attrs  The attributes that are wanted; may be NULL.
 * @param[out] inode  A reference for the caller.
 *
 * @return 0 or a negative errno.
 */
int casync_inode_lookup(struct ceph_mount_info *ceph, struct Inode *dir,
			const char *name, const struct fsal_attrlist *attrs,
			struct Inode **inode, struct ceph_statx *stx);

/**
 * Look up an object's Inode in the current client.  It asks the MDS.
 *
 * Several threads may do this for one object; the first one wins.
 *
 * @param[in] generation  Of the client.  The caller is in the guard.
 *
 * @return 0 or a negative errno, as casync_inode_find().
 */
int casync_inode_renew(struct casync_object *obj, uint32_t generation);

/** Is the fd's Fh of a client that is gone? */
bool casync_inode_fd_is_lost(const struct casync_object *obj,
			     const struct casync_fd *fd);

/**
 * Open the Fh of an fd again, in the current client.  It asks the MDS.
 *
 * Several threads may do this for one fd; the first one wins.  The caller is in
 * the guard.  I/O has been started on the fd, or it is a state's.
 *
 * @return 0 or a negative errno.
 */
int casync_inode_reopen(struct casync_object *obj, struct casync_fd *fd);

/** A folder was found; if it is in a snapshot, the mount keeps it for
 * casync_inode_snapshot_is_gone(). */
void casync_inode_note_snapshot(const struct casync_object *dir);

/**
 * Is an object in a snapshot that was removed?  It asks the MDS for the
 * snapshots that there are.  The objects in RADOS go seconds after the
 * snapshot.
 *
 * @return false also if it cannot be found out.
 */
bool casync_inode_snapshot_is_gone(const struct casync_object *obj);

/** The mount that an object belongs to. */
struct casync_mount *casync_inode_mount(const struct casync_object *obj);

/** A lane of its mount, for a job on the file. */
struct casync_lane *casync_inode_lane(const struct casync_object *obj,
				      enum casync_mount_lane which);

/** Its libcephfs handle.  The caller is in the mount's guard. */
struct ceph_mount_info *casync_inode_ceph(const struct casync_object *obj);

/** Credentials of root, for calls of libcephfs. */
const UserPerm *casync_inode_root(const struct casync_object *obj);

/**
 * Send changed attributes, for casync_flush_try_send().  It asks the MDS, in
 * vain, if libcephfs does not know the path of the file's folder.
 *
 * @return 0: they are in the queue of libcephfs' messenger.  A negative errno:
 *         they may not be.
 */
int casync_inode_send_attributes(struct casync_object *obj);

/**
 * Wait until the MDS has what was sent to it before.  The caller may block.
 *
 * @return 0: it has.  A negative errno: it may not have, or the file is gone.
 */
int casync_inode_ask_mds(const struct casync_object *obj);

#endif /* CASYNC_INODE_H */
