/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "fsal.h"

#include "errors.h"
#include "owner.h"
#include "revive.h"

unsigned int casync_owner_of(const struct casync_export *exp,
			     const struct ceph_statx *stx)
{
	/* libcephfs reports the snapshot as the device. */
	if (!S_ISREG(stx->stx_mode) || stx->stx_dev != CEPH_NOSNAP)
		return 0;
	return casync_mount_index_of(stx->stx_ino, exp->client_count);
}

/* Ask the file's client, if an object of the file has an Inode of it. */
static int owner_ask(struct casync_mount *mount, struct ceph_statx *stx,
		     unsigned int wanted, const UserPerm *perms)
{
	vinodeno_t vino = {.ino.val = stx->stx_ino, .snapid.val = stx->stx_dev};
	struct casync_guard *guard = casync_mount_guard(mount);
	struct ceph_mount_info *ceph;
	struct ceph_statx fresh;
	struct Inode *inode;
	int rc = -EAGAIN;

	if (!casync_guard_enter(guard))
		return rc;
	if (casync_object_table_has(casync_mount_object_table(mount),
				    stx->stx_ino, stx->stx_dev,
				    casync_guard_generation(guard))) {
		ceph = casync_mount_ceph(mount);
		rc = ceph_ll_lookup_vino(ceph, vino, &inode);
		if (rc == 0) {
			rc = ceph_ll_getattr(ceph, inode, &fresh, wanted, 0,
					     perms);
			ceph_ll_put(ceph, inode);
		}
		casync_session_heard(casync_mount_session(mount), -rc);
	}
	casync_guard_leave(guard);
	if (rc == 0)
		*stx = fresh;
	return rc;
}

int casync_owner_settle(const struct casync_export *exp, struct Inode **inode,
			struct ceph_statx *stx, unsigned int wanted,
			const UserPerm *perms)
{
	struct ceph_mount_info *ceph = casync_export_ceph(exp);
	unsigned int client = casync_owner_of(exp, stx);
	int rc = -EAGAIN;

	if (exp->client_count < 2)
		return 0;
	if (client != 0)
		rc = owner_ask(exp->mounts[client], stx, wanted, perms);
	/* Also if the file's client is lost: what it had is the MDS' again. */
	if (rc < 0)
		rc = ceph_ll_getattr(ceph, *inode, stx, wanted, 0, perms);
	if (rc < 0 || client != 0) {
		ceph_ll_put(ceph, *inode);
		*inode = NULL;
	}
	return rc;
}

/* A loss of the file's client, as client 0's guard may hear it. */
static fsal_status_t owner_answer(struct casync_mount *mount,
				  fsal_status_t status)
{
	/* Nobody has locks through an object that was just found or made. */
	status = casync_keeper_answer(mount, status, false);
	if (FSAL_IS_ERROR(status) && casync_session_error(status.minor))
		status.minor = status.major == ERR_FSAL_DELAY ? EAGAIN : EIO;
	return status;
}

fsal_status_t casync_owner_begin(struct casync_object *obj)
{
	fsal_status_t status;

	if (obj->client == 0)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	status = owner_answer(casync_object_mount(obj),
			      casync_status(casync_revive_begin(obj)));
	/* The request has its name, and that is gone too. */
	if (status.major == ERR_FSAL_STALE)
		return fsalstat(ERR_FSAL_NOENT, ENOENT);
	return status;
}

fsal_status_t casync_owner_end(struct casync_mount *mount, fsal_status_t status)
{
	if (casync_mount_client(mount) == 0)
		return status;
	status = owner_answer(mount, status);
	casync_guard_leave(casync_mount_guard(mount));
	return status;
}
