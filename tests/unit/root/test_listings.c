/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A listing that an export keeps ends with its client, whatever becomes of the
 * export meanwhile. */
#include "config.h"

#include "unit.h"

#include "fsal.h"

#include "call.h"
#include "dir_cache.h"
#include "module.h"
#include "rig.h"
#include "stub_mount.h"
#include "upcalls.h"

/* From delegations.c and locks.c. */
void casync_delegations_return_all(struct casync_mount *mount)
{
}
void casync_lock_reclaim_save_versions(struct casync_mount *mount)
{
}
int casync_lock_reclaim_all(struct casync_mount *mount,
			    void (*lost)(struct casync_object *obj,
					 struct casync_fd *fd),
			    uint64_t *taken, uint64_t *gone)
{
	*taken = *gone = 0;
	return 0;
}
void up_ready_wait(struct fsal_up_vector *up_ops)
{
}

TEST_WITH(listing_of_a_leaving_export_ends_with_its_client, rig_up, rig_down)
{
	struct ceph_dir_result *dirp = (struct ceph_dir_result *)0x1000;
	struct casync_listing listing = {.dirp = dirp}, displaced;

	casync_dir_cache_init(&rig.exp.dir_cache);
	pthread_mutex_init(&stub_mount.upcalls.lock, NULL);
	pthread_cond_init(&stub_mount.upcalls.idle, NULL);
	glist_init(&stub_mount.upcalls.exports);
	casync_upcalls_join(&stub_mount.upcalls, &rig.exp);
	casync_dir_cache_keep(&rig.exp.dir_cache, &listing, &displaced);

	/* export_prepare_unexport(): the export goes on until its requests, and
	 * Ganesha's state_release_export(), have ended. */
	casync_upcalls_leave(&stub_mount.upcalls, &rig.exp);

	/* reconnect_replace_client(): the old client, and dirp with it, end. */
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	casync_restore_hooks.forget(&stub_mount);
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	fake.released = NULL; /* what the old client was given is right */
	casync_guard_renew(&stub_mount.guard);
	stub_mount_set_phase(CASYNC_GUARD_SERVES);

	/* export_release() -> export_free() -> export_drop_listings() */
	if (casync_call_begin_release(rig.exp.mount)) {
		casync_dir_cache_drop(
			&rig.exp.dir_cache, rig.exp.mount->client->ceph,
			casync_guard_generation(&rig.exp.mount->guard));
		casync_call_leave(rig.exp.mount);
	}
	/* The new client must not get it: it is freed. */
	assert_null(fake.released);
}
