/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "fsal.h"
#include "fsal_convert.h"

#include "attributes.h"
#include "callers.h"
#include "export.h"
#include "fd.h"
#include "object.h"
#include "revive.h"
#include "snapshot.h"

/* Guards the change of an fd from an old Fh to a new one.  A leaf. */
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t revive_generation(const struct casync_object *obj)
{
	return casync_guard_generation(
		casync_mount_guard(casync_object_mount(obj)));
}

int casync_inode_of_id(const struct casync_export *exp,
		       const struct casync_fileid *id, unsigned int mask,
		       struct Inode **inode, struct ceph_statx *stx)
{
	struct ceph_mount_info *ceph = casync_export_ceph(exp);
	vinodeno_t vino = {.ino.val = id->ino, .snapid.val = id->snapid};
	int rc = ceph_ll_lookup_vino(ceph, vino, inode);

	if (rc < 0) /* no inode has that number (any more) */
		return rc == -ENOENT || rc == -EINVAL ? -ESTALE : rc;
	rc = ceph_ll_getattr(ceph, *inode, stx, mask, 0, exp->root_perms);
	if (rc == 0)
		rc = casync_snapshot_settle(ceph, *inode, id, stx,
					    exp->root_perms);
	if (rc < 0)
		ceph_ll_put(ceph, *inode);
	return rc == -ENOENT ? -ESTALE : rc;
}

/* Several threads may do this for one object; the first one wins. */
static int revive_ask(struct casync_object *obj, uint32_t generation)
{
	uint64_t size_generation = casync_file_size_generation(obj);
	struct casync_object_table *table =
		casync_mount_object_table(casync_object_mount(obj));
	struct ceph_statx stx;
	struct Inode *inode;
	int rc = casync_inode_of_id(obj->exp, &obj->id,
				    casync_statx_wanted(ATTR_SIZE | ATTR_MODE),
				    &inode, &stx);

	if (rc < 0)
		return rc;
	if (obj->handle.type == REGULAR_FILE) {
		if (stx.stx_mask & CEPH_STATX_SIZE)
			casync_file_size_seen(obj, stx.stx_size,
					      size_generation);
		casync_object_mode_seen(obj, &stx);
	}
	if (casync_object_table_renew(table, obj, inode, generation))
		ceph_ll_put(casync_object_ceph(obj), inode);
	return 0;
}

/* It waits for the MDS: only some threads may do so, as for attributes.  -ETIME
 * is a delay, as are EAGAIN, for a conflict of locks, and EBUSY, for want of
 * descriptors. */
static int revive_look_up(struct casync_object *obj, uint32_t generation)
{
	int rc = -ETIME;

	if (!casync_callers_enter(casync_object_mount(obj)))
		return rc;
	if (casync_getattr_enter(obj)) {
		rc = revive_ask(obj, generation);
		casync_getattr_leave(obj);
	}
	casync_callers_leave(casync_object_mount(obj));
	return rc;
}

int casync_revive_inode(struct casync_object *obj)
{
	uint32_t generation = revive_generation(obj);

	if (__atomic_load_n(&obj->generation, __ATOMIC_ACQUIRE) == generation)
		return 0;
	return revive_look_up(obj, generation);
}

int casync_revive_begin(struct casync_object *obj)
{
	struct casync_guard *guard =
		casync_mount_guard(casync_object_mount(obj));
	int rc;

	if (!casync_guard_enter(guard))
		return -CASYNC_EBLOCKLISTED;
	rc = casync_revive_inode(obj);
	if (rc < 0)
		casync_guard_leave(guard);
	return rc;
}

void casync_revive_end(const struct casync_object *obj)
{
	casync_guard_leave(casync_mount_guard(casync_object_mount(obj)));
}

fsal_status_t casync_revive_answer(const struct casync_object *obj,
				   fsal_status_t status)
{
	return casync_keeper_answer(
		casync_object_mount(obj), status,
		__atomic_load_n(&obj->locks.linked, __ATOMIC_RELAXED));
}

bool casync_revive_fd_is_lost(const struct casync_object *obj,
			      const struct casync_fd *fd)
{
	return __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE) !=
	       revive_generation(obj);
}

/* True: the Fh is the fd's now. */
static bool revive_set_fh(struct casync_object *obj, struct casync_fd *fd,
			  struct Fh *fh)
{
	bool lost;

	pthread_mutex_lock(&fds_lock);
	lost = casync_revive_fd_is_lost(obj, fd);
	if (lost) {
		fd->former_fh = NULL;
		__atomic_store_n(&fd->fh, fh, __ATOMIC_RELEASE);
		__atomic_store_n(&fd->generation, revive_generation(obj),
				 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&fds_lock);
	return lost;
}

int casync_revive_fd(struct casync_object *obj, struct casync_fd *fd)
{
	struct ceph_mount_info *ceph;
	int posix_flags = 0;
	struct Fh *fh = NULL; /* as in fd_open_fh() */
	int rc;

	if (casync_fd_fh(fd) == NULL || !casync_revive_fd_is_lost(obj, fd))
		return 0;
	ceph = casync_object_ceph(obj);
	if (!casync_callers_enter(casync_object_mount(obj)))
		return -ETIME;
	/* Not O_TRUNC and the like: that was done. */
	fsal2posix_openflags(fd->fh_flags & FSAL_O_RDWR, &posix_flags);
	rc = ceph_ll_open(ceph, obj->inode, posix_flags, &fh,
			  obj->exp->root_perms);
	casync_callers_leave(casync_object_mount(obj));
	if (rc < 0)
		return rc == -ENOENT ? -ESTALE : rc;
	if (!revive_set_fh(obj, fd, fh))
		(void)ceph_ll_close(ceph, fh);
	return 0;
}
