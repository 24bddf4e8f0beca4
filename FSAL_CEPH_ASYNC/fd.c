/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "errors.h"
#include "export.h"
#include "object.h"
#include "parts.h"

bool casync_fd_abandoned(const struct casync_export *exp,
			 const struct casync_fd *fd)
{
	return __atomic_load_n(&exp->abandoned, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&fd->fsal_fd.io_work, __ATOMIC_ACQUIRE) != 0;
}

static void state_free(struct state_t *state)
{
	struct casync_state *st =
		container_of(state, struct casync_state, state);
	const struct casync_export *exp = container_of(
		st->fd.fsal_fd.fsal_export, struct casync_export, export);

	if (casync_fd_abandoned(exp, &st->fd))
		return;
	casync_lease_give_back(&st->lease);
	destroy_fsal_fd(&st->fd.fsal_fd);
	gsh_free(st);
}

struct state_t *casync_state_alloc(struct fsal_export *exp_hdl,
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
	return init_state(&st->state, state_free, state_type, related_state);
}

/* The layout is fixed once a file has data; reading it is local. */
void casync_fd_learn_layout(struct casync_object *obj)
{
	struct ceph_file_layout layout = {0};

	(void)ceph_ll_file_layout(obj->exp->ceph, obj->inode, &layout);
	__atomic_store_n(&obj->object_span, casync_parts_span(&layout),
			 __ATOMIC_RELAXED);
}

static int close_fh(struct casync_object *obj, struct Fh *fh)
{
	int rc = ceph_ll_close(obj->exp->ceph, fh);

	if (rc != 0)
		LogWarn(COMPONENT_FSAL, "closing inode 0x%" PRIx64 ": %s",
			obj->id.ino, strerror(-rc));
	return rc;
}

void casync_fd_opened(struct casync_object *obj, struct casync_fd *fd,
		      struct Fh *fh, fsal_openflags_t openflags)
{
	fd->fh = fh;
	fd->fsal_fd.openflags = FSAL_O_NFS_FLAGS(openflags);
	casync_fd_learn_layout(obj);
}

fsal_status_t casync_fd_reopen(struct fsal_obj_handle *obj_hdl,
			       fsal_openflags_t openflags,
			       struct fsal_fd *fsal_fd)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_fd *fd = casync_fd_of(fsal_fd);
	/* libcephfs remembers what was there before when it fails. */
	struct Fh *fh = NULL;
	struct Fh *old;
	int posix_flags = 0;
	int rc;

	casync_lease_yield(obj, openflags);
	fsal2posix_openflags(openflags, &posix_flags);
	rc = ceph_ll_open(obj->exp->ceph, obj->inode, posix_flags, &fh,
			  obj->exp->root_perms);
	casync_session_heard(obj->exp->session, -rc);
	if (rc == -ENOENT) /* by handle: the file is gone, not the name */
		return fsalstat(ERR_FSAL_STALE, ENOENT);
	if (rc < 0)
		return casync_status(rc);

	if (openflags & FSAL_O_TRUNC)
		casync_flush_truncated(obj, 0);
	old = casync_lease_keeps_fh(fd) ? NULL : fd->fh;
	casync_fd_opened(obj, fd, fh, openflags);
	/* The new one is in place: trouble with the old one is only logged. */
	if (old != NULL)
		(void)close_fh(obj, old);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_fd_close(struct fsal_obj_handle *obj_hdl,
			      struct fsal_fd *fsal_fd)
{
	struct casync_fd *fd = casync_fd_of(fsal_fd);
	struct Fh *fh = fd->fh;

	if (fh == NULL)
		return fsalstat(ERR_FSAL_NOT_OPENED, 0);

	fd->fh = NULL;
	fsal_fd->openflags = FSAL_O_CLOSED;
	if (casync_lease_keeps_fh(fd))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	return casync_status(close_fh(casync_object_of(obj_hdl), fh));
}

fsal_status_t casync_close(struct fsal_obj_handle *obj_hdl)
{
	struct casync_object *obj = casync_object_of(obj_hdl);

	if (casync_fd_abandoned(obj->exp, &obj->global_fd))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	return close_fsal_fd(obj_hdl, &obj->global_fd.fsal_fd, false);
}

fsal_status_t casync_close2(struct fsal_obj_handle *obj_hdl,
			    struct state_t *state)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_fd *fd = casync_state_fd(state);

	/* Only states that open a file hold a share reservation. */
	if (state->state_type == STATE_TYPE_SHARE ||
	    state->state_type == STATE_TYPE_NLM_SHARE ||
	    state->state_type == STATE_TYPE_9P_FID)
		update_share_counters_locked(obj_hdl, &obj->share,
					     fd->fsal_fd.openflags,
					     FSAL_O_CLOSED);

	if (casync_fd_abandoned(obj->exp, fd))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	return close_fsal_fd(obj_hdl, &fd->fsal_fd, false);
}

fsal_openflags_t casync_status2(struct fsal_obj_handle *obj_hdl,
				struct state_t *state)
{
	(void)obj_hdl;
	return casync_state_fd(state)->fsal_fd.openflags;
}

fsal_status_t casync_fd_borrow(struct casync_borrowed *borrowed,
			       struct casync_object *obj, struct state_t *state,
			       fsal_openflags_t openflags, bool for_lock,
			       bool bypass)
{
	borrowed->obj = obj;
	borrowed->openflags = openflags;
	/* fsal_start_io takes a reservation only where no state has one. */
	borrowed->share_held = state == NULL;
	borrowed->temp_fd = (struct casync_fd){.fsal_fd = FSAL_FD_INIT};
	return fsal_start_io(&borrowed->fsal_fd, &obj->handle,
			     &obj->global_fd.fsal_fd,
			     &borrowed->temp_fd.fsal_fd, state, openflags,
			     for_lock, NULL, bypass, &obj->share);
}

void casync_fd_give_back(struct casync_borrowed *borrowed)
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
