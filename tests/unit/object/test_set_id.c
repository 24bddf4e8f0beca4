/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A write clears the set-id bits and no other: a chmod that comes between the
 * look at the mode and the change of it stands. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "case_table.h"

#include "fsal.h"

#include "getset.h"
#include "operations_rig.h"

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

static void bits_go(void **state)
{
	(void)state;
	use_objects();
	fake.mode = S_IFREG | 06777;
	assert_int_equal(casync_getset_drop_privileges(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 0777);
}

static void a_chmod_in_between_stands(void **state)
{
	(void)state;
	use_objects();
	fake.mode = S_IFREG | 04777;
	chmod_comes_between = true;
	assert_int_equal(casync_getset_drop_privileges(rig.obj), 0);
	assert_int_equal(fake.mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bits_go, operations_up,
						operations_down),
		cmocka_unit_test_setup_teardown(a_chmod_in_between_stands,
						operations_up, operations_down),
	};

	return cmocka_run_group_tests_name("set_id", tests, NULL, NULL);
}
