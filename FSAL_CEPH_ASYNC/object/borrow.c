/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "borrow.h"
#include "call.h"
#include "errors.h"
#include "inode.h"
#include "mount.h"
#include "object.h"

/* Guards the change of an fd from an old Fh to a new one.  A leaf. */
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t borrow_generation(const struct casync_object *obj)
{
	return casync_guard_generation(&casync_inode_mount(obj)->guard);
}

bool casync_borrow_fd_is_lost(const struct casync_object *obj,
			      const struct casync_fd *fd)
{
	return __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE) !=
	       borrow_generation(obj);
}

/* True: the Fh is the fd's now. */
static bool borrow_set_fh(struct casync_object *obj, struct casync_fd *fd,
			  struct Fh *fh)
{
	bool lost;

	pthread_mutex_lock(&fds_lock);
	lost = casync_borrow_fd_is_lost(obj, fd);
	if (lost) {
		fd->former_fh = NULL;
		__atomic_store_n(&fd->fh, fh, __ATOMIC_RELEASE);
		__atomic_store_n(&fd->generation, borrow_generation(obj),
				 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&fds_lock);
	return lost;
}

int casync_borrow_renew_fd(struct casync_object *obj, struct casync_fd *fd)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	struct casync_call slot;
	int posix_flags = 0;
	struct Fh *fh = NULL; /* as in fd_open_fh() */
	int rc;

	if (casync_fd_fh(fd) == NULL || !casync_borrow_fd_is_lost(obj, fd))
		return 0;
	rc = casync_call_take(&slot, obj, CASYNC_CALL_MOUNT_SLOT);
	if (rc < 0)
		return rc;
	/* Not O_TRUNC and the like: that was done. */
	fsal2posix_openflags(fd->fh_flags & FSAL_O_RDWR, &posix_flags);
	rc = ceph_ll_open(ceph, obj->inode, posix_flags, &fh,
			  casync_inode_root(obj));
	casync_call_drop(&slot);
	if (rc < 0)
		return rc == -ENOENT ? -ESTALE : rc;
	if (!borrow_set_fh(obj, fd, fh))
		(void)ceph_ll_close(ceph, fh);
	return 0;
}

static fsal_status_t borrow_start(struct casync_borrowed *borrowed,
				  struct state_t *state, bool for_lock,
				  bool bypass)
{
	struct casync_object *obj = borrowed->obj;
	fsal_openflags_t openflags = borrowed->openflags;

	return fsal_start_io(&borrowed->fsal_fd, &obj->handle,
			     &casync_object_global_fd(obj, openflags)->fsal_fd,
			     &borrowed->temp_fd.fsal_fd, state, openflags,
			     for_lock, NULL, bypass, &obj->share);
}

fsal_status_t casync_borrow(struct casync_borrowed *borrowed,
			    struct casync_object *obj, struct state_t *state,
			    fsal_openflags_t openflags, bool for_lock,
			    bool bypass)
{
	fsal_status_t status;
	int rc;

	borrowed->obj = obj;
	borrowed->openflags = openflags;
	/* fsal_start_io takes a reservation only where no state has one. */
	borrowed->share_held = state == NULL;
	borrowed->temp_fd = (struct casync_fd){.fsal_fd = FSAL_FD_INIT};
	status = borrow_start(borrowed, state, for_lock, bypass);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_borrow_renew_fd(obj, casync_fd_of(borrowed->fsal_fd));
	if (rc < 0)
		casync_borrow_return(borrowed);
	return casync_errors_status(rc);
}

void casync_borrow_return(struct casync_borrowed *borrowed)
{
	struct casync_object *obj = borrowed->obj;
	fsal_status_t status;

	status = fsal_complete_io(&obj->handle, borrowed->fsal_fd);
	if (FSAL_IS_ERROR(status))
		LogDebug(COMPONENT_FSAL, "inode 0x%" PRIx64 ": %s", obj->id.ino,
			 fsal_err_txt(status));
	if (borrowed->share_held)
		update_share_counters_locked(&obj->handle, &obj->share,
					     borrowed->openflags,
					     FSAL_O_CLOSED);
}
