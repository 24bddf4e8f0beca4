/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "obj_ops.h"
#include "module.h"
#include "rig.h"
#include "stub_mount.h"

static int listings_dropped, delegations_forgotten, locks_seen;
static int take_rc;
static uint64_t gone_now;
static struct casync_fd *lost_now;
static const char *told_now;
static const struct casync_keeper_hooks *const hooks = &casync_restore_hooks;

/* From upcalls.c, dir_cache.c, delegations.c and locks.c. */

void casync_upcalls_visit_exports(struct casync_upcalls *upcalls,
				  void (*visit)(struct casync_export *exp,
						void *arg))
{
	assert_ptr_equal(upcalls, &stub_mount.upcalls);
	visit(&rig.exp, NULL);
}

void casync_dir_cache_drop(struct casync_dir_cache *cache,
			   struct ceph_mount_info *ceph, uint32_t generation)
{
	assert_ptr_equal(cache, &rig.exp.dir_cache);
	assert_ptr_equal(ceph, stub_mount.client->ceph);
	listings_dropped++;
}

void casync_delegations_return_all(struct casync_mount *mount)
{
	assert_ptr_equal(mount, &stub_mount);
	delegations_forgotten++;
}

void casync_lock_reclaim_save_versions(struct casync_mount *mount)
{
	assert_ptr_equal(mount, &stub_mount);
	locks_seen++;
}

int casync_lock_reclaim_all(struct casync_mount *mount, casync_lock_loser *lost,
			    uint64_t *taken, uint64_t *gone)
{
	assert_ptr_equal(mount, &stub_mount);
	*taken = 1;
	*gone = gone_now;
	if (lost_now != NULL)
		told_now = lost(rig.obj, lost_now);
	return take_rc;
}

static int up(void **state)
{
	int rc = rig_up(state);

	listings_dropped = delegations_forgotten = locks_seen = 0;
	take_rc = 0;
	gone_now = 0;
	lost_now = NULL;
	return rc;
}

#define CASE(test) TEST_WITH(test, up, rig_down)

CASE(old_client_gives_all_back)
{
	hooks->forget(&stub_mount);
	assert_int_equal(listings_dropped, 1);
	assert_int_equal(delegations_forgotten, 1);
	assert_int_equal(locks_seen, 1);
}

CASE(locks_that_are_lost_are_counted)
{
	gone_now = 3;
	assert_int_equal(hooks->restore(&stub_mount), 0);
	assert_int_equal(hooks->restore(&stub_mount), 0);
	assert_int_equal(stub_mount.session.locks_lost, 6);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
}

CASE(holder_of_a_lost_lock_is_marked)
{
	lost_now = &rig.state.fd;
	rig.state.state.state_type = STATE_TYPE_LOCK;
	assert_false(casync_fd_lost_lock(&rig.state.state));
	assert_int_equal(hooks->restore(&stub_mount), 0);
	assert_true(casync_fd_lost_lock(&rig.state.state));
	assert_non_null(strstr(told_now, "EIO until it unlocks the file"));
	rig.state.state.state_type = STATE_TYPE_NLM_LOCK;
	assert_int_equal(hooks->restore(&stub_mount), 0);
	assert_non_null(strstr(told_now, "NLM cannot tell its holder"));
}

CASE(next_loss_is_told)
{
	take_rc = -ENOTCONN;
	assert_int_equal(hooks->restore(&stub_mount), -ENOTCONN);
}
