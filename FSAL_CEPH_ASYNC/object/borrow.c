/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "borrow.h"
#include "export.h"
#include "object.h"

fsal_status_t casync_borrow(struct casync_borrowed *borrowed,
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
			     &casync_global_fd(obj, openflags)->fsal_fd,
			     &borrowed->temp_fd.fsal_fd, state, openflags,
			     for_lock, NULL, bypass, &obj->share);
}

void casync_give_back(struct casync_borrowed *borrowed)
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
