/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A write takes the set-id bits, no other bits, and the file capability: a chmod
 * that comes between the look at the mode and the change of it stands.  When a
 * write has to look again. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "operations_rig.h"
#include "privileges.h"

static bool chmod_comes_between;

/* The MDS: one change after the other. */
int ceph_ll_setattr(struct ceph_mount_info *cmount, struct Inode *in,
		    struct ceph_statx *stx, int mask, const UserPerm *perms)
{
	(void)cmount;
	(void)in;
	(void)perms;
	if (chmod_comes_between)
		fake.mode = S_IFREG | 0600; /* acknowledged to its client */
	chmod_comes_between = false;
	if (mask & CEPH_SETATTR_MODE)
		fake.mode = (uint16_t)(S_IFREG | (stx->stx_mode & 07777));
	if (mask & CEPH_SETATTR_KILL_SUID)
		fake.mode &= (uint16_t)~S_ISUID;
	if (mask & CEPH_SETATTR_KILL_SGID)
		fake.mode &= (uint16_t)~S_ISGID;
	return 0;
}

static int a_user_asks(void **state)
{
	int rc = operations_up(state);

	op_ctx->creds.caller_uid = 1000;
	rig.obj->privileged = 1;
	return rc;
}

#define USER_CASE(test) TEST_WITH(test, a_user_asks, operations_down)

USER_CASE(bits_go)
{
	use_objects();
	fake.mode = S_IFREG | 06777;
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 0777);
}

USER_CASE(a_chmod_in_between_stands)
{
	use_objects();
	fake.mode = S_IFREG | 04777;
	chmod_comes_between = true;
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 0600);
}

static void chmod_at(const char *call, const struct Inode *in)
{
	(void)in;
	if (strcmp(call, "getxattr") == 0)
		casync_object_may_be_privileged(rig.obj);
}

/* The mode has been looked at, and the capability is asked for. */
USER_CASE(a_chmod_after_the_look_is_looked_at_by_the_next_write)
{
	void (*seen_by)(const char *, const struct Inode *) = fake_names.hook;

	use_objects();
	fake.mode = S_IFREG | 0755;
	fake_names.hook = chmod_at;
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	fake_names.hook = seen_by;
	assert_true(casync_object_privileged(rig.obj));
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_false(casync_object_privileged(rig.obj));
}

USER_CASE(root_takes_the_capability_alone)
{
	use_objects();
	fake.mode = S_IFREG | 04777;
	fake_names.capability = true;
	op_ctx->creds.caller_uid = 0;
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 04777);
	assert_false(fake_names.capability);
	/* A user's write still has to look. */
	assert_true(casync_object_privileged(rig.obj));
	assert_int_equal(casync_privileges_chowned(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 0777);
}

USER_CASE(what_cannot_be_taken_is_an_error)
{
	use_objects();
	fake_names.capability = true;
	fake_names.fails = "removexattr";
	fake_names.result = -EIO;
	assert_int_equal(casync_privileges_drop(rig.obj), -EIO);
	assert_true(casync_object_privileged(rig.obj));
}

/* A GETATTR shows these times; has the next write to look? */
static bool looks(time_t mtime, time_t ctime, uint16_t mode)
{
	const struct ceph_statx stx = {.stx_mask = CEPH_STATX_MODE |
						   CEPH_STATX_MTIME |
						   CEPH_STATX_CTIME,
				       .stx_mode = mode,
				       .stx_mtime.tv_sec = mtime,
				       .stx_ctime.tv_sec = ctime};

	casync_object_note_mode(rig.obj, &stx);
	return casync_object_privileged(rig.obj);
}

USER_CASE(a_write_looks_after_a_change_of_other_things)
{
	use_objects();
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_false(looks(5, 5, 0755)); /* of data alone */
	assert_true(looks(5, 6, 0755));
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_false(looks(5, 6, 0755)); /* It has looked since. */
	assert_true(looks(5, 7, 0755));
	assert_int_equal(casync_privileges_drop(rig.obj), 0);
	assert_true(looks(8, 8, 04755));
}
