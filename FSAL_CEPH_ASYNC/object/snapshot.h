/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file snapshot.h
 * @brief Makes handles of files and folders in a snapshot usable.
 */
#ifndef CASYNC_SNAPSHOT_H
#define CASYNC_SNAPSHOT_H

#include <cephfs/libcephfs.h>

#include "filehandle.h"

/**
 * Make an inode usable that was found by its number, if it is in a snapshot.
 *
 * @param[in] stx  Its attributes.
 * @return 0; -ESTALE: the snapshot does not exist (any more), or there is no
 *         path to the folder; another negative errno.
 */
int casync_snapshot_settle(struct ceph_mount_info *ceph, struct Inode *inode,
			   const struct casync_fileid *id,
			   const struct ceph_statx *stx, const UserPerm *root);

#endif /* CASYNC_SNAPSHOT_H */
