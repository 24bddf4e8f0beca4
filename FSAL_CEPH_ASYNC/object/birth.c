/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "birth.h"
#include "owner.h"

/*
 * libcephfs waits for the requests on an Inode that the MDS has answered before
 * it has journaled them.  They hold the Inode in its memory.
 */
int casync_birth_sync(const struct casync_object *obj)
{
	struct casync_mount *names = obj->exp->mount;
	vinodeno_t vino = {.ino.val = obj->id.ino,
			   .snapid.val = obj->id.snapid};
	struct casync_guard *guard = casync_mount_guard(names);
	struct ceph_mount_info *ceph;
	struct Inode *inode;
	int rc;

	if (obj->client == 0)
		return 0;
	if (!casync_guard_enter(guard))
		return -ETIME;
	ceph = casync_mount_ceph(names);
	rc = ceph_ll_lookup_vino(ceph, vino, &inode);
	if (rc == 0) {
		rc = ceph_ll_sync_inode(ceph, inode, 0);
		ceph_ll_put(ceph, inode);
	} else if (rc == -ENOENT || rc == -EINVAL || rc == -ESTALE) {
		rc = 0; /* removed: nothing of it has to last */
	}
	casync_session_heard(casync_mount_session(names), -rc);
	casync_guard_leave(guard);
	/* Client 0's loss is not that of the file's client. */
	return casync_session_error(-rc) ? -ETIME : rc;
}
