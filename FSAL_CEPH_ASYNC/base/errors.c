/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Converts libcephfs' errno to a status that an NFS client can act on.
 *
 * Ganesha's own table (posix2fsal_error) is made for local file systems.  It
 * turns a lost CephFS session into SERVERFAULT.  It turns EBADF into
 * NOT_OPENED, and NFSv3 then drops the reply.  For errors that are not in the
 * table below, Ganesha's table is right and is used.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "errors.h"

static const struct {
	int error;
	fsal_errors_t major;
} ceph_errors[] = {
	/* The session is lost.  Where a new one comes, the client is asked to
	 * retry (keeper.h); else that would hang it for ever. */
	{CASYNC_EBLOCKLISTED, ERR_FSAL_IO},
	{ENOTCONN, ERR_FSAL_IO},
	/* libcephfs no longer knows the Fh, after an eviction. */
	{EBADF, ERR_FSAL_IO},
	/* Ours: no more workers may wait for it (call.h). */
	{ETIME, ERR_FSAL_DELAY},
	{ESTALE, ERR_FSAL_STALE},
	{ENOENT, ERR_FSAL_NOENT},
	{EROFS, ERR_FSAL_ROFS},
	{EDQUOT, ERR_FSAL_DQUOT},
	{ENOSPC, ERR_FSAL_NOSPC},
	{EFBIG, ERR_FSAL_FBIG},
	{EOPNOTSUPP, ERR_FSAL_NOTSUPP},
};

fsal_status_t casync_errors_status(int64_t rc)
{
	size_t i;

	if (rc >= 0)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);

	for (i = 0; i < sizeof(ceph_errors) / sizeof(ceph_errors[0]); i++) {
		if (ceph_errors[i].error == -rc)
			return fsalstat(ceph_errors[i].major, (int)-rc);
	}

	return posix2fsal_status((int)-rc);
}

UserPerm *casync_errors_userperm(const struct user_cred *cred)
{
	UserPerm *perms = ceph_userperm_new(cred->caller_uid, cred->caller_gid,
					    (int)cred->caller_glen,
					    cred->caller_garray);

	if (perms == NULL)
		abort();
	return perms;
}

void casync_errors_userperm_end(const UserPerm **perms)
{
	ceph_userperm_destroy((UserPerm *)*perms);
}
