/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include <cephfs/libcephfs.h>
#include "unit.h"

#include "fsal_types.h"
#include "fsal_convert.h"
#include "fsal.h"
#include "errors.h"

static int user_perm, user_perms;

UserPerm *__wrap_ceph_userperm_new(uid_t uid, gid_t gid, int ngids,
				   gid_t *gidlist);
UserPerm *__wrap_ceph_userperm_new(uid_t uid, gid_t gid, int ngids,
				   gid_t *gidlist)
{
	assert_int_equal(uid, 1000);
	assert_int_equal(gid, 100);
	assert_int_equal(ngids, 2);
	assert_int_equal(gidlist[1], 28);
	user_perms++;
	return (UserPerm *)&user_perm;
}

void __wrap_ceph_userperm_destroy(UserPerm *perms);
void __wrap_ceph_userperm_destroy(UserPerm *perms)
{
	assert_ptr_equal(perms, &user_perm);
	user_perms--;
}

static struct req_op_context context;

struct status_case {
	const char *name;
	int64_t rc;
	fsal_errors_t major;
	int minor;
};

static const struct status_case cases[] = {
	{"zero_is_success", 0, ERR_FSAL_NO_ERROR, 0},
	{"byte_count_is_success", 4096, ERR_FSAL_NO_ERROR, 0},
	{"byte_count_past_int_is_success", INT64_C(1) << 40, ERR_FSAL_NO_ERROR,
	 0},
	/* Lost sessions: an error the client reports, not one it retries. */
	{"blocklisted_is_io", -CASYNC_EBLOCKLISTED, ERR_FSAL_IO, ESHUTDOWN},
	{"not_connected_is_io", -ENOTCONN, ERR_FSAL_IO, ENOTCONN},
	{"unknown_fh_is_io_not_not_opened", -EBADF, ERR_FSAL_IO, EBADF},
	{"stale_inode_is_stale", -ESTALE, ERR_FSAL_STALE, ESTALE},
	{"missing_name_is_noent", -ENOENT, ERR_FSAL_NOENT, ENOENT},
	{"snapshot_write_is_rofs", -EROFS, ERR_FSAL_ROFS, EROFS},
	{"quota_is_dquot", -EDQUOT, ERR_FSAL_DQUOT, EDQUOT},
	{"full_pool_is_nospc", -ENOSPC, ERR_FSAL_NOSPC, ENOSPC},
	{"too_large_file_is_fbig", -EFBIG, ERR_FSAL_FBIG, EFBIG},
	{"unsupported_is_notsupp", -EOPNOTSUPP, ERR_FSAL_NOTSUPP, EOPNOTSUPP},
	/* Left to Ganesha. */
	{"non_empty_directory_is_notempty", -ENOTEMPTY, ERR_FSAL_NOTEMPTY,
	 ENOTEMPTY},
	{"existing_name_is_exist", -EEXIST, ERR_FSAL_EXIST, EEXIST},
	{"mode_denial_is_access", -EACCES, ERR_FSAL_ACCESS, EACCES},
	{"ownership_denial_is_perm", -EPERM, ERR_FSAL_PERM, EPERM},
	{"lookup_in_file_is_notdir", -ENOTDIR, ERR_FSAL_NOTDIR, ENOTDIR},
	{"rename_across_quota_is_xdev", -EXDEV, ERR_FSAL_XDEV, EXDEV},
	{"long_name_is_nametoolong", -ENAMETOOLONG, ERR_FSAL_NAMETOOLONG,
	 ENAMETOOLONG},
	{"unknown_errno_is_serverfault_and_keeps_minor", -ENOTRECOVERABLE,
	 ERR_FSAL_SERVERFAULT, ENOTRECOVERABLE},
};

TEST_ROWS(check_status, cases, NULL, NULL)
{
	const struct status_case *c = *state;
	fsal_status_t status = casync_errors_status(c->rc);

	assert_int_equal(status.major, c->major);
	assert_int_equal(status.minor, c->minor);
}

/* Ceph's number is written down in errors.h; Linux has to agree. */
TEST(blocklisted_is_eshutdown_on_this_system)
{
	assert_int_equal(CASYNC_EBLOCKLISTED, ESHUTDOWN);
}

TEST(credentials_have_all_groups_and_end_with_the_block)
{
	gid_t groups[] = {27, 28};

	context.creds = (struct user_cred){
		.caller_uid = 1000,
		.caller_gid = 100,
		.caller_glen = 2,
		.caller_garray = groups,
	};
	op_ctx = &context;
	{
		CASYNC_ERRORS_REQUESTER(perms);

		assert_ptr_equal(perms, &user_perm);
		assert_int_equal(user_perms, 1);
	}
	assert_int_equal(user_perms, 0);
}
