/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "fsal.h"

#include "inode.h"
#include "object.h"
#include "privileges.h"

#define CAPABILITY "security.capability"

static int privileges_get(const struct casync_object *obj, unsigned int wanted,
			  struct ceph_statx *stx)
{
	return ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, stx, wanted,
			       0, casync_inode_root(obj));
}

/* The bits alone, and not the mode: a chmod may come between. */
static int privileges_kill(const struct casync_object *obj, int bits)
{
	struct ceph_statx nothing = {0};

	return ceph_ll_setattr(casync_inode_ceph(obj), obj->inode, &nothing,
			       bits, casync_inode_root(obj));
}

/* As in the kernel: setgid without group execute means mandatory locks, and is
 * kept. */
static int privileges_set_id(uint16_t mode)
{
	return ((mode & S_ISUID) ? CEPH_SETATTR_KILL_SUID : 0) |
	       ((mode & S_ISGID) && (mode & S_IXGRP) ? CEPH_SETATTR_KILL_SGID
						     : 0);
}

/* libcephfs knows all extended attributes of a file, or none. */
static int privileges_drop_capability(const struct casync_object *obj)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	const UserPerm *root = casync_inode_root(obj);
	int rc = ceph_ll_getxattr(ceph, obj->inode, CAPABILITY, NULL, 0, root);

	if (rc >= 0)
		rc = ceph_ll_removexattr(ceph, obj->inode, CAPABILITY, root);
	return rc == -ENODATA ? 0 : rc;
}

static int privileges_drop(struct casync_object *obj, bool set_id)
{
	/* A chmod that comes after the look at the mode counts on. */
	uint32_t looked_at =
		__atomic_load_n(&obj->privileged, __ATOMIC_RELAXED);
	struct ceph_statx stx;
	int bits, rc;

	rc = privileges_get(obj, CEPH_STATX_MODE, &stx);
	if (rc < 0)
		return rc;
	bits = privileges_set_id(stx.stx_mode);
	if (bits != 0 && set_id)
		rc = privileges_kill(obj, bits);
	if (rc == 0)
		rc = privileges_drop_capability(obj);
	if (rc == 0 && bits == 0)
		__atomic_store_n(&obj->unprivileged, looked_at,
				 __ATOMIC_RELAXED);
	return rc;
}

int casync_privileges_drop(struct casync_object *obj)
{
	return privileges_drop(obj, op_ctx->creds.caller_uid != 0);
}

int casync_privileges_chowned(struct casync_object *obj)
{
	return obj->handle.type == REGULAR_FILE ? privileges_drop(obj, true)
						: 0;
}

/* Root counts as a member of each group. */
static bool privileges_is_member(gid_t gid)
{
	const struct user_cred *creds = &op_ctx->creds;
	unsigned int i;

	if (creds->caller_uid == 0 || creds->caller_gid == gid)
		return true;
	for (i = 0; i < creds->caller_glen; i++)
		if (creds->caller_garray[i] == gid)
			return true;
	return false;
}

int casync_privileges_before_acl(struct casync_object *obj)
{
	struct ceph_statx stx;
	int rc;

	if (op_ctx->creds.caller_uid == 0 || obj->handle.type != REGULAR_FILE)
		return 0;
	rc = privileges_get(
		obj, CEPH_STATX_MODE | CEPH_STATX_UID | CEPH_STATX_GID, &stx);
	/* Only the owner may set an ACL.  Another user changes nothing. */
	if (rc < 0 || stx.stx_uid != op_ctx->creds.caller_uid ||
	    !(stx.stx_mode & S_ISGID) || privileges_is_member(stx.stx_gid))
		return rc;
	return privileges_kill(obj, CEPH_SETATTR_KILL_SGID);
}

mode_t casync_privileges_of_new(const struct casync_object *dir, mode_t mode)
{
	struct ceph_statx stx;

	if (!(mode & S_ISGID) || !(mode & S_IXGRP) ||
	    op_ctx->creds.caller_uid == 0)
		return mode;
	if (privileges_get(dir, CEPH_STATX_MODE | CEPH_STATX_GID, &stx) == 0 &&
	    (!(stx.stx_mode & S_ISGID) || privileges_is_member(stx.stx_gid)))
		return mode;
	return mode & ~(mode_t)S_ISGID;
}
