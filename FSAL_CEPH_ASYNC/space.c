/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "errors.h"
#include "export.h"
#include "object.h"
#include "ops.h"

/*
 * DEALLOCATE punches a hole.  ALLOCATE cannot be promised: CephFS reserves no
 * space, and libcephfs refuses it too (EOPNOTSUPP).  Said without a line in
 * the log, because clients try it on every file they lay out.
 */
fsal_status_t casync_fallocate(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, uint64_t offset,
			       uint64_t length, bool allocate)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_fd temp_fd = {.fsal_fd = FSAL_FD_INIT};
	struct fsal_fd *fd;
	fsal_status_t status, completed;

	if (allocate)
		return fsalstat(ERR_FSAL_NOTSUPP, EOPNOTSUPP);
	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return fsalstat(ERR_FSAL_FBIG, EFBIG);

	status = fsal_start_io(&fd, obj_hdl, &obj->global_fd.fsal_fd,
			       &temp_fd.fsal_fd, state, FSAL_O_WRITE, false,
			       NULL, false, &obj->share);
	if (FSAL_IS_ERROR(status))
		return status;

	status = casync_status(
		ceph_ll_fallocate(obj->exp->ceph, casync_fd_of(fd)->fh,
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (int64_t)offset, (int64_t)length));

	completed = fsal_complete_io(obj_hdl, fd);
	if (FSAL_IS_ERROR(completed))
		LogDebug(COMPONENT_FSAL, "inode 0x%" PRIx64 ": %s", obj->id.ino,
			 fsal_err_txt(completed));
	if (state == NULL)
		update_share_counters_locked(obj_hdl, &obj->share, FSAL_O_WRITE,
					     FSAL_O_CLOSED);
	return status;
}
