/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "call.h"
#include "clock.h"
#include "fd.h"
#include "inode.h"
#include "lock_reclaim.h"
#include "mount.h"
#include "object.h"

/* They show that a file was changed, see lock_reclaim_file_was_changed(). */
#define RECLAIM_VERSION (CEPH_STATX_MTIME | CEPH_STATX_VERSION)

/* From memory: the client is lost. */
static void lock_reclaim_save_version(struct casync_object *obj)
{
	struct ceph_statx stx;

	/* This client has not taken the locks: what it knows may be somebody
	 * else's change.  The knowledge of the client before it stands. */
	if (obj->locks.generation !=
	    casync_guard_generation(&casync_inode_mount(obj)->guard))
		return;
	if (ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
			    RECLAIM_VERSION, AT_STATX_DONT_SYNC,
			    casync_inode_root(obj)) != 0)
		return;
	obj->locks.seen_version = stx.stx_version;
	obj->locks.seen_mtime_ns = casync_clock_timespec_ns(&stx.stx_mtime);
}

void casync_lock_reclaim_save_versions(struct casync_mount *mount)
{
	casync_lock_records_visit(mount, lock_reclaim_save_version);
}

/*
 * Another client may have had the lock, have changed the file and let go: then
 * our holder works with old data.  The MDS does not say so, but:
 * - The change attribute is larger than the lost client knew.  It is not if
 *   that client had changes that the MDS had not heard of: the other one counts
 *   from what the MDS knows.
 * - The mtime is later, if the other one's clock is right, and nobody had set
 *   it to the future.  The OSDs may have our last WRITEs although the lost
 *   client got no answer.  The MDS takes the mtime from the objects
 *   (durability.md).  It is not later than the submission of the WRITEs.
 */
static bool lock_reclaim_file_was_changed(struct casync_object *obj)
{
	uint64_t known_ns =
		__atomic_load_n(&obj->locks.written_ns, __ATOMIC_RELAXED);
	struct ceph_statx stx;

	if (known_ns < obj->locks.seen_mtime_ns)
		known_ns = obj->locks.seen_mtime_ns;
	if (ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, &stx,
			    RECLAIM_VERSION, 0, casync_inode_root(obj)) != 0)
		return true;
	return stx.stx_version > obj->locks.seen_version ||
	       casync_clock_timespec_ns(&stx.stx_mtime) > known_ns;
}

static int lock_reclaim_set_range(struct casync_object *obj,
				  const struct casync_lock_record *record,
				  int type)
{
	struct flock fl = {
		.l_type = (short)type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)record->first,
	};

	if (record->last != UINT64_MAX)
		fl.l_len = (off_t)(record->last - record->first + 1);
	return ceph_ll_setlk(casync_inode_ceph(obj), casync_fd_fh(record->fd),
			     &fl, (uint64_t)record->owner, false);
}

static int lock_reclaim_one(struct casync_object *obj,
			    const struct casync_lock_record *record,
			    bool unlock)
{
	int rc = casync_call_renew_inode(obj);

	if (rc == 0)
		rc = casync_call_use_fd(obj, record->fd);
	if (rc == 0 && casync_fd_fh(record->fd) == NULL)
		rc = -ESTALE;
	if (rc == 0)
		rc = lock_reclaim_set_range(obj, record,
					    unlock		? F_UNLCK
					    : record->exclusive ? F_WRLCK
								: F_RDLCK);
	/* Nobody who takes locks can change the file from here on. */
	if (rc == 0 && !unlock && lock_reclaim_file_was_changed(obj)) {
		(void)lock_reclaim_set_range(obj, record, F_UNLCK);
		rc = -EAGAIN;
	}
	if (rc == 0 || casync_session_error(-rc))
		return rc;
	/* Somebody else has it, or had it, or the file is gone. */
	return -EAGAIN;
}

int casync_lock_reclaim_all(struct casync_mount *mount, casync_lock_loser *lost,
			    uint64_t *taken, uint64_t *gone)
{
	int rc;

	casync_call_take_mount_slot(mount);
	rc = casync_lock_records_reclaim(mount, lock_reclaim_one, lost, taken,
					 gone);
	casync_call_drop_mount_slot(mount);
	return rc;
}
