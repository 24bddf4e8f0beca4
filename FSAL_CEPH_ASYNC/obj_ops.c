/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "filehandle.h"
#include "leases.h"
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

	ops->lookup = casync_lookup;
	ops->mkdir = casync_mkdir;
	ops->mknode = casync_mknode;
	ops->symlink = casync_symlink;
	ops->readlink = casync_readlink;
	ops->link = casync_link;
	ops->rename = casync_rename;
	ops->unlink = casync_unlink;
	ops->readdir = casync_readdir;
	ops->getattrs = casync_getattrs;
	ops->setattr2 = casync_setattr2;

	ops->open2 = casync_open2;
	ops->reopen2 = casync_reopen2;
	ops->status2 = casync_status2;
	ops->close = casync_close;
	ops->close2 = casync_close2;
	ops->close_func = casync_fd_close;
	ops->reopen_func = casync_fd_reopen;

	ops->read2 = casync_read2;
	ops->write2 = casync_write2;
	ops->commit2 = casync_commit2;
	ops->fallocate = casync_fallocate;
	ops->seek2 = casync_seek2;
	ops->io_advise = casync_io_advise;
	ops->lock_op2 = casync_lock_op2;
	ops->lease_op2 = casync_lease_op2;

	ops->getxattrs = casync_getxattrs;
	ops->setxattrs = casync_setxattrs;
	ops->removexattrs = casync_removexattrs;
	ops->listxattrs = casync_listxattrs;
}
