/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "call.h"
#include "clock.h"
#include "delegations.h"
#include "errors.h"
#include "export.h"
#include "fd.h"
#include "inode.h"
#include "object.h"
#include "parts.h"
#include "state_calls.h"

bool casync_fd_abandoned(const struct casync_export *exp,
			 const struct casync_fd *fd)
{
	return __atomic_load_n(&exp->abandoned, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&fd->fsal_fd.io_work, __ATOMIC_ACQUIRE) != 0;
}

/* Close the Fhs, in the guard.  Those of a lost client ended with it. */
static int fd_close_in_guard(struct casync_mount *mount, struct casync_fd *fd)
{
	bool lost = __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE) !=
		    casync_guard_generation(&mount->guard);
	struct Fh *fh = lost ? NULL : fd->fh;
	struct Fh *former = lost ? NULL : fd->narrow_fh;

	fd->fh = NULL;
	fd->narrow_fh = NULL;
	if (former != NULL)
		(void)ceph_ll_close(mount->client->ceph, former);
	if (fh == NULL || casync_delegations_take_fh(mount, fd))
		return 0;
	return ceph_ll_close(mount->client->ceph, fh);
}

/* Ganesha has freed the state, and no I/O is in flight.  Object and export may
 * be gone. */
static void fd_state_end(struct casync_state *st)
{
	if (st->fd.fh != NULL && casync_call_begin_release(st->mount)) {
		(void)fd_close_in_guard(st->mount, &st->fd);
		casync_call_leave(st->mount);
	}
	destroy_fsal_fd(&st->fd.fsal_fd);
	gsh_free(st);
}

static void fd_state_free(struct state_t *state)
{
	struct casync_state *st =
		container_of(state, struct casync_state, state);
	bool idle;

	casync_lock_records_forget_fd(&st->fd);
	/* Other states have no delegation, and need not wait for the lock. */
	if (state->state_type == STATE_TYPE_DELEG)
		casync_delegations_return(&st->delegation);
	PTHREAD_MUTEX_lock(&st->fd.fsal_fd.work_mutex);
	idle = atomic_fetch_int32_t(&st->fd.fsal_fd.io_work) == 0;
	if (!idle)
		__atomic_store_n(&st->freed, fd_state_end, __ATOMIC_RELAXED);
	PTHREAD_MUTEX_unlock(&st->fd.fsal_fd.work_mutex);
	if (idle)
		fd_state_end(st);
}

struct state_t *casync_fd_alloc_state(struct fsal_export *exp_hdl,
				      enum state_type state_type,
				      struct state_t *related_state)
{
	struct casync_state *st;

	/* Ganesha finds the fd by stepping over the state_t. */
	_Static_assert(offsetof(struct casync_state, fd) ==
			       sizeof(struct state_t),
		       "the fd must follow state_t immediately");

	st = gsh_calloc(1, sizeof(*st));
	init_fsal_fd(&st->fd.fsal_fd, FSAL_FD_STATE, exp_hdl);
	st->mount = casync_export_of(exp_hdl)->mount;
	return init_state(&st->state, fd_state_free, state_type, related_state);
}

/* The layout is fixed once a file has data.  libcephfs reads it from memory. */
void casync_fd_read_layout(struct casync_object *obj)
{
	struct ceph_file_layout layout = {0};

	(void)ceph_ll_file_layout(casync_inode_ceph(obj), obj->inode, &layout);
	__atomic_store_n(&obj->object_span, casync_parts_span(&layout),
			 __ATOMIC_RELAXED);
}

static void fd_log_close(const struct casync_object *obj, int rc)
{
	static uint64_t line_ns;

	if (!casync_clock_once_a_minute(&line_ns))
		return;
	LogWarn(COMPONENT_FSAL,
		"closing inode 0x%" PRIx64
		": %s (no other such line for a minute)",
		obj->id.ino, strerror(-rc));
}

static void fd_close_fh(struct casync_object *obj, struct Fh *fh)
{
	int rc = ceph_ll_close(casync_inode_ceph(obj), fh);

	if (rc != 0)
		fd_log_close(obj, rc);
}

void casync_fd_opened(struct casync_object *obj, struct casync_fd *fd,
		      struct Fh *fh, fsal_openflags_t openflags)
{
	__atomic_store_n(&fd->fh, fh, __ATOMIC_RELEASE);
	__atomic_store_n(
		&fd->generation,
		casync_guard_generation(&casync_inode_mount(obj)->guard),
		__ATOMIC_RELEASE);
	fd->fh_access = openflags;
	/* Ganesha reads the flags without a lock.  A thread that sees them must
	 * see the Fh. */
	__atomic_store_n(&fd->fsal_fd.openflags, FSAL_O_NFS_FLAGS(openflags),
			 __ATOMIC_RELEASE);
	casync_fd_read_layout(obj);
}

/* No I/O is in flight on it any more. */
static void fd_close_former(struct casync_object *obj, struct casync_fd *fd)
{
	struct Fh *fh = fd->narrow_fh;

	fd->narrow_fh = NULL;
	if (fh != NULL)
		fd_close_fh(obj, fh);
}

/* The Fhs of a lost client ended with it. */
static void fd_drop_lost(struct casync_object *obj, struct casync_fd *fd)
{
	if (!casync_inode_fd_is_lost(obj, fd))
		return;
	fd->fh = NULL;
	fd->narrow_fh = NULL;
}

/* A truncation lasts when it is acknowledged, as that by SETATTR does. */
static int fd_flush_truncation(struct casync_object *obj, struct Fh *fh)
{
	int rc = casync_flush_wait(obj);

	if (rc < 0)
		fd_close_fh(obj, fh);
	return rc;
}

/*
 * NFSv3's CREATE of a file that is there is truncated before Ganesha has
 * checked who may: so libcephfs checks the requester.  I/O may come from
 * another user, so each other open is root's.
 */
static int fd_open_and_truncate(struct casync_object *obj, int posix_flags,
				struct Fh **fh)
{
	CASYNC_ERRORS_REQUESTER(perms);
	uint64_t begun = casync_file_size_truncates(&obj->size);
	int rc = ceph_ll_open(casync_inode_ceph(obj), obj->inode, posix_flags,
			      fh, perms);

	if (rc < 0) {
		casync_file_size_not_truncated(&obj->size);
		return rc;
	}
	casync_file_size_truncated(&obj->size, begun, 0);
	return fd_flush_truncation(obj, *fh);
}

/* OF_STATE: Ganesha may hold the lock of the file's state, and the wait has a
 * limit. */
static int fd_open_fh(struct casync_object *obj, fsal_openflags_t openflags,
		      bool of_state, struct Fh **fh)
{
	uint32_t needs = CASYNC_CALL_MOUNT_SLOT;
	struct casync_call slot;
	int posix_flags = 0;
	int rc;

	if (openflags & FSAL_O_TRUNC)
		needs |= CASYNC_CALL_ANNOUNCES | CASYNC_CALL_SETATTR_SLOT;
	/* On failure libcephfs leaves the old value there. */
	*fh = NULL;
	rc = casync_call_take(&slot, obj, needs);
	if (rc < 0)
		return rc;
	casync_delegations_return_conflicting(&obj->delegations, openflags);
	if (openflags & FSAL_O_WRITE)
		casync_object_may_be_privileged(obj);
	fsal2posix_openflags(openflags, &posix_flags);
	if (openflags & FSAL_O_TRUNC)
		rc = fd_open_and_truncate(obj, posix_flags, fh);
	else if (of_state)
		rc = casync_state_calls_open(obj, posix_flags, fh);
	else
		rc = ceph_ll_open(casync_inode_ceph(obj), obj->inode,
				  posix_flags, fh, casync_inode_root(obj));
	if (rc == -ETIME)
		casync_call_drop_unanswered(&slot);
	else
		casync_call_drop(&slot);
	return rc;
}

static fsal_status_t fd_open_status(int rc)
{
	if (rc == -ENOENT) /* by handle: the file is gone, not the name */
		return fsalstat(ERR_FSAL_STALE, ENOENT);
	return casync_errors_status(rc);
}

int casync_fd_truncate(struct casync_object *obj)
{
	struct Fh *fh;
	int rc = fd_open_fh(obj, FSAL_O_WRITE | FSAL_O_TRUNC, false, &fh);

	if (rc == 0)
		fd_close_fh(obj, fh);
	return rc;
}

/* The Fh that another one replaces, unless a delegation goes on with it. */
static struct Fh *fd_given_up(struct casync_object *obj, struct casync_fd *fd)
{
	return casync_delegations_take_fh(casync_inode_mount(obj), fd) ? NULL
								       : fd->fh;
}

fsal_status_t casync_fd_change(struct casync_object *obj, struct casync_fd *fd,
			       fsal_openflags_t openflags)
{
	fsal_openflags_t mode = openflags & FSAL_O_RDWR;
	struct Fh *fh;
	int rc = casync_call_use_fd(obj, fd);

	if (rc < 0)
		return fd_open_status(rc);
	if (mode & ~fd->fh_access) {
		rc = fd_open_fh(obj, openflags | (fd->fh_access & FSAL_O_RDWR),
				true, &fh);
		if (rc < 0)
			return fd_open_status(rc);
		/* From one mode to both, so this happens once at most. */
		fd->narrow_fh = fd_given_up(obj, fd);
		casync_fd_opened(obj, fd, fh,
				 openflags | (fd->fh_access & FSAL_O_RDWR));
	} else if (openflags & FSAL_O_TRUNC) {
		rc = casync_fd_truncate(obj);
	}
	if (rc < 0)
		return fd_open_status(rc);
	fd->fsal_fd.openflags = FSAL_O_NFS_FLAGS(openflags);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static fsal_status_t fd_reopen(struct casync_object *obj,
			       fsal_openflags_t openflags, bool of_state,
			       struct casync_fd *fd)
{
	struct Fh *fh, *old;
	int rc = fd_open_fh(obj, openflags, of_state, &fh);

	if (rc < 0)
		return fd_open_status(rc);
	fd_drop_lost(obj, fd);
	old = fd_given_up(obj, fd);
	casync_fd_opened(obj, fd, fh, openflags);
	/* The new Fh is in place: an error of the old one is only logged. */
	if (old != NULL)
		fd_close_fh(obj, old);
	fd_close_former(obj, fd);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_fd_reopen(struct fsal_obj_handle *obj_hdl,
			       fsal_openflags_t openflags,
			       struct fsal_fd *fsal_fd)
{
	return fd_reopen(casync_object_of(obj_hdl), openflags,
			 fsal_fd->fd_type == FSAL_FD_STATE,
			 casync_fd_of(fsal_fd));
}

fsal_status_t casync_fd_open_for_lock(struct casync_object *obj,
				      fsal_openflags_t openflags,
				      struct fsal_fd *fsal_fd, bool reclaim)
{
	return fd_reopen(obj, openflags, !reclaim, casync_fd_of(fsal_fd));
}

fsal_status_t casync_fd_close(struct fsal_obj_handle *obj_hdl,
			      struct fsal_fd *fsal_fd)
{
	const struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_mount *mount = casync_inode_mount(obj);
	struct casync_fd *fd = casync_fd_of(fsal_fd);
	int rc = 0;

	if (fd->fh == NULL)
		return fsalstat(ERR_FSAL_NOT_OPENED, 0);

	fsal_fd->openflags = FSAL_O_CLOSED;
	if (casync_call_begin_release(mount)) {
		rc = fd_close_in_guard(mount, fd);
		casync_call_leave(mount);
	}
	/* Else its client ends, and the Fh with it. */
	fd->fh = NULL;
	fd->narrow_fh = NULL;
	if (rc != 0)
		fd_log_close(obj, rc);
	return casync_errors_status(rc);
}

static fsal_status_t fd_close_global(struct casync_object *obj,
				     struct casync_fd *fd)
{
	if (casync_fd_abandoned(obj->exp, fd))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	return close_fsal_fd(&obj->handle, &fd->fsal_fd, false);
}

fsal_status_t casync_close(struct fsal_obj_handle *obj_hdl)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	fsal_status_t first = fd_close_global(obj, &obj->read_fd);
	fsal_status_t second = fd_close_global(obj, &obj->write_fd);

	return FSAL_IS_ERROR(first) ? first : second;
}

fsal_status_t casync_close2(struct fsal_obj_handle *obj_hdl,
			    struct state_t *state)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_fd *fd = casync_fd_of_state(state);
	struct fsal_fd *fsal_fd = &fd->fsal_fd;
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);

	/* Only states that open a file hold a share reservation. */
	if (state->state_type == STATE_TYPE_SHARE ||
	    state->state_type == STATE_TYPE_NLM_SHARE ||
	    state->state_type == STATE_TYPE_9P_FID)
		update_share_counters_locked(obj_hdl, &obj->share,
					     fsal_fd->openflags, FSAL_O_CLOSED);

	casync_lock_records_forget_fd(fd);
	/* As close_fsal_fd(), but it does not wait for I/O in flight. */
	atomic_inc_int32_t(&fsal_fd->fd_work);
	PTHREAD_MUTEX_lock(&fsal_fd->work_mutex);
	if (atomic_fetch_int32_t(&fsal_fd->io_work) == 0)
		status = casync_fd_close(obj_hdl, fsal_fd);
	else /* No more I/O begins on it. */
		__atomic_store_n(&fsal_fd->openflags, FSAL_O_CLOSED,
				 __ATOMIC_RELEASE);
	fsal_complete_fd_work(fsal_fd);
	if (status.major == ERR_FSAL_NOT_OPENED)
		status = fsalstat(ERR_FSAL_NO_ERROR, 0);
	return status;
}

fsal_openflags_t casync_status2(struct fsal_obj_handle *obj_hdl,
				struct state_t *state)
{
	(void)obj_hdl;
	return casync_fd_of_state(state)->fsal_fd.openflags;
}
