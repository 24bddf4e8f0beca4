/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* UNLOCK for a client that is gone: nobody waits for it, and the log alone tells
 * if the MDS refuses it. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"
#include "sal_data.h"

#include "lane.h"
#include "obj_ops.h"
#include "rig.h"
#include "stub_mount.h"

static int owner;
static state_owner_t expired_owner;
static nfs_client_id_t expired_client;
static int lines; /* atomic */

void __wrap_stub_log_line(log_levels_t level, const char *text)
{
	if (strstr(text, "for a client that is gone") == NULL)
		return;
	assert_int_equal(level, NIV_INFO);
	assert_non_null(strstr(text, "unlocking inode 0x10000000001 "));
	assert_non_null(strstr(text, strerror(EIO)));
	__atomic_add_fetch(&lines, 1, __ATOMIC_ACQ_REL);
}

static void unlock_late(int answer)
{
	fsal_lock_param_t all = {.lock_sle_type = FSAL_POSIX_LOCK,
				 .lock_type = FSAL_LOCK_R};

	component_log_level[COMPONENT_FSAL] = NIV_INFO;
	lines = 0;
	rig.state.state.state_owner = &expired_owner;
	rig.state.state.state_type = STATE_TYPE_LOCK;
	expired_owner.so_owner.so_nfs4_owner.so_clientrec = &expired_client;
	expired_client.cid_confirmed = EXPIRED_CLIENT_ID;
	stub_mount.unlocks.most = 1;
	assert_int_equal(ceph_ll_open(NULL, NULL, 0, &rig.state.fd.fh, NULL),
			 0);
	assert_int_equal(casync_lane_start_mount(stub_mount.lanes), 0);
	fake.blocking_result[FAKE_SETLK] = answer;
	assert_int_equal(casync_lock_op2(&rig.obj->handle, &rig.state.state,
					 &owner, FSAL_OP_UNLOCK, &all, NULL)
				 .major,
			 ERR_FSAL_NO_ERROR);
	assert_true(casync_lane_stop_mount(stub_mount.lanes, RIG_TIMEOUT_S));
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 1);
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 0);
}

TEST_WITH(unlock_that_is_done_is_not_told, rig_up, rig_down)
{
	unlock_late(0);
	assert_int_equal(lines, 0);
}

TEST_WITH(unlock_that_is_refused_is_told, rig_up, rig_down)
{
	unlock_late(-EIO);
	assert_int_equal(lines, 1);
}
