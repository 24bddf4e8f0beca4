/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "cred.h"

UserPerm *casync_userperm(const struct user_cred *cred)
{
	return ceph_userperm_new(cred->caller_uid, cred->caller_gid,
				 (int)cred->caller_glen, cred->caller_garray);
}
