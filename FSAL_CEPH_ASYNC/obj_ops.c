/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "guarded.h"
#include "handle_ops.h"
#include "obj_ops.h"
#include "object.h"

void casync_obj_ops_init(struct fsal_obj_ops *ops)
{
	fsal_default_obj_ops_init(ops);

	ops->release = casync_object_release;
	ops->merge = casync_object_merge;
	ops->handle_to_wire = casync_handle_to_wire;
	ops->handle_to_key = casync_handle_to_key;

	/* These release, which they may do without the guard, or ask for
	 * nothing. */
	ops->status2 = casync_status2;
	ops->close = casync_close;
	ops->close2 = casync_close2;
	ops->close_func = casync_fd_close;
	ops->io_advise = casync_io_advise;
	/* Within the guard already: an operation on the object needs the fd. */
	ops->reopen_func = casync_fd_reopen;

	casync_guarded_init(ops);
}
