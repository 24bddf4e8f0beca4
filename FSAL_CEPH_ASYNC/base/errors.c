/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * One table from libcephfs' errno to the status an NFS client can act on.
 *
 * Ganesha's own table (posix2fsal_error) serves local file systems: it turns
 * a lost CephFS session into SERVERFAULT and EBADF into NOT_OPENED, which
 * NFSv3 answers by dropping the reply.  What is not in the table below is
 * right there and is left to it.
 */
#include "config.h"

#include <errno.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "errors.h"

static const struct {
	int error;
	fsal_errors_t major;
} ceph_errors[] = {
	/* The session is gone and nothing here brings it back yet, so an
	 * answer that makes the client retry for ever would be a hang. */
	{CASYNC_EBLOCKLISTED, ERR_FSAL_IO},
	{ENOTCONN, ERR_FSAL_IO},
	/* libcephfs does not know the Fh any more (eviction). */
	{EBADF, ERR_FSAL_IO},
	{ESTALE, ERR_FSAL_STALE},
	{ENOENT, ERR_FSAL_NOENT},
	{EROFS, ERR_FSAL_ROFS},
	{EDQUOT, ERR_FSAL_DQUOT},
	{ENOSPC, ERR_FSAL_NOSPC},
	{EFBIG, ERR_FSAL_FBIG},
	{EOPNOTSUPP, ERR_FSAL_NOTSUPP},
};

fsal_status_t casync_status(int64_t rc)
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
