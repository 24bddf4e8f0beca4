/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "filehandle.h"
#include "guarded.h"
#include "obj_ops.h"
#include "object.h"

static fsal_status_t
obj_ops_handle_to_wire(const struct fsal_obj_handle *obj_hdl,
		       fsal_digesttype_t output_type,
		       struct gsh_buffdesc *fh_desc)
{
	const struct casync_object *obj =
		container_of(obj_hdl, const struct casync_object, handle);

	(void)output_type; /* NFSv3 and NFSv4 get the same bytes */
	if (fh_desc->len < CASYNC_WIRE_BYTES)
		return fsalstat(ERR_FSAL_TOOSMALL, 0);
	casync_wire_encode(&obj->id, fh_desc->addr);
	fh_desc->len = CASYNC_WIRE_BYTES;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static void obj_ops_handle_to_key(struct fsal_obj_handle *obj_hdl,
				  struct gsh_buffdesc *fh_desc)
{
	fh_desc->addr = casync_object_of(obj_hdl)->key;
	fh_desc->len = CASYNC_KEY_BYTES;
}

void casync_obj_ops_init(struct fsal_obj_ops *ops)
{
	fsal_default_obj_ops_init(ops);

	ops->release = casync_object_release;
	ops->merge = casync_object_merge;
	ops->handle_to_wire = obj_ops_handle_to_wire;
	ops->handle_to_key = obj_ops_handle_to_key;

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
