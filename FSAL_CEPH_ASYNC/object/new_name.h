/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file new_name.h
 * @brief Sees to it that a new name is made in its directory, and nowhere else.
 *
 * ceph_ll_mkdir(), _mknod(), _symlink() and _link() follow a symlink that has
 * the name, and make the object where it leads to: perhaps in another export.
 * Each call of them stands between these two.  ceph_ll_create() with O_EXCL and
 * ceph_ll_rename() follow none.
 */
#ifndef CASYNC_NEW_NAME_H
#define CASYNC_NEW_NAME_H

#include <cephfs/libcephfs.h>

struct casync_object;

/**
 * Is the name free?  The call looks it up again.  In a folder that libcephfs
 * knows completely both looks are answered from its memory; else each asks the
 * MDS.
 *
 * @return 0.  -EEXIST: it is taken, if only by a symlink.  Another negative
 * errno.
 */
int casync_new_name_is_free(const struct casync_object *dir, const char *name,
			    const UserPerm *perms);

/**
 * Was it made there?  A symlink may have come between the look and the call.
 *
 * If so, what was made at its end is removed, with the rights of the requester
 * who made it: root could be led to another file by one more symlink.  A
 * symlink that has gone again by now is not seen.
 *
 * @param[in] made  With inode number and type.
 *
 * @return 0.  -EEXIST: it was made elsewhere.
 */
int casync_new_name_check(const struct casync_object *dir, const char *name,
			  const struct ceph_statx *made, const UserPerm *perms);

#endif /* CASYNC_NEW_NAME_H */
