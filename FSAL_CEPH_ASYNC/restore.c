/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "export.h"
#include "delegations.h"
#include "disown.h"
#include "lock_reclaim.h"
#include "object.h"
#include "module.h"
#include "watchdog.h"

static void restore_drop_listings(struct casync_export *exp, void *arg)
{
	(void)arg;
	casync_dir_cache_drop(&exp->dir_cache, casync_export_ceph(exp),
			      casync_guard_generation(&exp->mount->guard));
}

static void restore_forget(struct casync_mount *mount)
{
	casync_upcalls_visit_exports(&mount->upcalls, restore_drop_listings);
	casync_delegations_return_all(mount);
	casync_lock_reclaim_save_versions(mount);
}

/* Ganesha 9.14 lets no FSAL revoke a state.  So what comes with its id fails
 * instead (locks.c). */
static const char *restore_lost(struct casync_object *obj, struct casync_fd *fd)
{
	const struct state_t *state =
		&container_of(fd, struct casync_state, fd)->state;

	(void)obj;
	__atomic_store_n(&fd->lock_lost, true, __ATOMIC_RELEASE);
	return state->state_type == STATE_TYPE_LOCK
		       ? "its holder gets EIO until it unlocks the file"
		       : "NLM cannot tell its holder";
}

static int restore_restore(struct casync_mount *mount)
{
	struct casync_session *session = &mount->session;
	uint64_t taken, gone;
	int rc = casync_lock_reclaim_all(mount, restore_lost, &taken, &gone);

	if (gone != 0)
		__atomic_add_fetch(&session->locks_lost, gone,
				   __ATOMIC_RELAXED);
	if (taken + gone != 0)
		LogEvent(COMPONENT_FSAL,
			 "mount %s: %" PRIu64
			 " locks of clients are taken again, %" PRIu64
			 " are lost",
			 session->client, taken, gone);
	return rc;
}

static unsigned int restore_disown(struct casync_mount *mount)
{
	struct casync_disown_round round = {0};

	casync_watchdog_visit(&mount->guard, casync_disown_visit, &round);
	return casync_disown_answer(&round);
}

const struct casync_keeper_hooks casync_restore_hooks = {
	.disown = restore_disown,
	.forget = restore_forget,
	.restore = restore_restore,
};
