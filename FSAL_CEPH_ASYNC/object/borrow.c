/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "atomic_utils.h"

#include "borrow.h"
#include "call.h"
#include "delegations.h"
#include "errors.h"
#include "ganesha.h"
#include "object.h"

static fsal_status_t borrow_start(struct casync_borrowed *borrowed,
				  struct state_t *state, bool for_lock,
				  bool bypass)
{
	struct casync_object *obj = borrowed->obj;
	fsal_openflags_t openflags = borrowed->openflags;

	return casync_ganesha_start_io(
		&borrowed->fsal_fd, &obj->handle,
		&casync_object_global_fd(obj, openflags)->fsal_fd,
		&borrowed->temp_fd.fsal_fd, state, openflags, for_lock, bypass,
		&obj->share);
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
	/* It takes a reservation only where no state has one. */
	borrowed->share_held = state == NULL;
	borrowed->temp_fd = (struct casync_fd){.fsal_fd = FSAL_FD_INIT};
	status = borrow_start(borrowed, state, for_lock, bypass);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_call_use_fd(obj, casync_fd_of(borrowed->fsal_fd));
	if (rc < 0)
		casync_borrow_return(borrowed);
	return casync_errors_status(rc);
}

static struct casync_state *borrow_state_of(const struct fsal_fd *fsal_fd)
{
	return container_of(fsal_fd, struct casync_state, fd.fsal_fd);
}

bool casync_borrow_ends_in_libcephfs(const struct fsal_fd *fsal_fd)
{
	return fsal_fd->close_on_complete ||
	       (fsal_fd->fd_type == FSAL_FD_STATE &&
		__atomic_load_n(&borrow_state_of(fsal_fd)->freed,
				__ATOMIC_RELAXED) != NULL);
}

void casync_borrow_end_io(struct casync_state *st)
{
	struct fsal_fd *fsal_fd = &st->fd.fsal_fd;
	void (*freed)(struct casync_state *st);

	if (!PTHREAD_MUTEX_dec_int32_t_and_lock(&fsal_fd->io_work,
						&fsal_fd->work_mutex))
		return;
	PTHREAD_COND_signal(&fsal_fd->fd_work_cond);
	freed = st->freed;
	PTHREAD_MUTEX_unlock(&fsal_fd->work_mutex);
	if (freed != NULL)
		freed(st);
}

fsal_status_t casync_borrow_complete_io(struct casync_object *obj,
					struct fsal_fd *fsal_fd)
{
	fsal_status_t status;

	if (fsal_fd->fd_type != FSAL_FD_STATE)
		return fsal_complete_io(&obj->handle, fsal_fd);
	/* Ganesha looks at the fd once more after its count: one for us. */
	atomic_inc_int32_t(&fsal_fd->io_work);
	status = fsal_complete_io(&obj->handle, fsal_fd);
	casync_borrow_end_io(borrow_state_of(fsal_fd));
	return status;
}

void casync_borrow_return(struct casync_borrowed *borrowed)
{
	struct casync_object *obj = borrowed->obj;
	fsal_status_t status;

	status = casync_borrow_complete_io(obj, borrowed->fsal_fd);
	if (FSAL_IS_ERROR(status))
		LogDebug(COMPONENT_FSAL, "inode 0x%" PRIx64 ": %s", obj->id.ino,
			 fsal_err_txt(status));
	if (borrowed->share_held)
		update_share_counters_locked(&obj->handle, &obj->share,
					     borrowed->openflags,
					     FSAL_O_CLOSED);
}
