/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file acl.h
 * @brief POSIX ACLs of CephFS as NFSv4 ACLs, and security labels.
 *
 * CephFS keeps both in extended attributes; Ganesha's library translates
 * between the two kinds of ACL.
 */
#ifndef CASYNC_ACL_H
#define CASYNC_ACL_H

#include <cephfs/libcephfs.h>

#include "fsal_types.h"

struct casync_object;

/**
 * Add the ACL to attributes, made of the mode where a file has none of its
 * own: who may do what is asked the same way of all files.
 *
 * @return 0 or a negative errno.
 */
int casync_acl_get(struct casync_object *obj, const struct ceph_statx *stx,
		   const UserPerm *perms, struct fsal_attrlist *attrs);

/**
 * Set what attrs->acl says: the access ACL, and for a directory the default
 * ACL from the entries that are inherited (none: it is removed).
 *
 * @return 0 or a negative errno; -EINVAL for what POSIX ACLs cannot say.
 */
int casync_acl_set(struct casync_object *obj, const UserPerm *perms,
		   const struct fsal_attrlist *attrs);

/** Add the security label to attributes, if there is one. */
int casync_label_get(struct casync_object *obj, const UserPerm *perms,
		     struct fsal_attrlist *attrs);

/** Set the security label. */
int casync_label_set(struct casync_object *obj, const UserPerm *perms,
		     const struct fsal_attrlist *attrs);

/** Does the export of op_ctx offer ACLs?  (Disable_ACL) */
bool casync_acl_offered(void);

/** Does it offer security labels?  (SecLabel_Enable) */
bool casync_label_offered(void);

#endif /* CASYNC_ACL_H */
