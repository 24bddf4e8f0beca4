/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file acl.h
 * @brief Converts CephFS' POSIX ACLs to NFSv4 ACLs and back; security labels.
 *
 * CephFS keeps both in extended attributes.  Ganesha's library makes POSIX ACLs
 * of NFSv4 ACLs.
 */
#ifndef CASYNC_ACL_H
#define CASYNC_ACL_H

#include <cephfs/libcephfs.h>

#include "fsal_types.h"

/** A file, and the user who asks for its extended attributes. */
struct casync_acl_file {
	struct ceph_mount_info *ceph; /**< The caller is in its guard. */
	struct Inode *inode;
	object_file_type_t type;
	const UserPerm *perms;
};

/**
 * Add the ACL to attributes.  For a file without an ACL it is made from the
 * mode, so access is checked in the same way for all files.
 *
 * @return 0 or a negative errno.
 */
int casync_acl_get(const struct casync_acl_file *file,
		   const struct ceph_statx *stx, struct fsal_attrlist *attrs);

/**
 * Set the ACL of attrs->acl: the access ACL, and for a directory the default
 * ACL from the inherited entries (none: the default ACL is removed).
 *
 * @return 0 or a negative errno; -EINVAL for an ACL that POSIX ACLs cannot
 *         express.
 */
int casync_acl_set(const struct casync_acl_file *file,
		   const struct fsal_attrlist *attrs);

/** Add the security label to attributes, if there is one. */
int casync_acl_label_get(const struct casync_acl_file *file,
			 struct fsal_attrlist *attrs);

/** Set the security label. */
int casync_acl_label_set(const struct casync_acl_file *file,
			 const struct fsal_attrlist *attrs);

/** Does the export of op_ctx offer ACLs?  (Disable_ACL) */
bool casync_acl_offered(void);

/** Does it offer security labels?  (SecLabel_Enable) */
bool casync_acl_label_offered(void);

#endif /* CASYNC_ACL_H */
