/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "fsal.h"

#include "create.h"
#include "export.h"
#include "obj_ops.h"
#include "object.h"

/* What was read before the attributes were set is old. */
static void create_read_again(struct casync_object *obj,
			      struct fsal_attrlist *attrs_out)
{
	fsal_status_t status = casync_getattrs(&obj->handle, attrs_out);

	if (FSAL_IS_ERROR(status))
		attrs_out->valid_mask = attrs_out->request_mask &
					ATTR_RDATTR_ERR;
}

static fsal_status_t create_set(const struct casync_created *made,
				struct fsal_attrlist *attrs)
{
	/* Nothing but the verifier (set_common_verifier() of Ganesha). */
	if (made->exclusive && attrs->valid_mask == (ATTR_ATIME | ATTR_MTIME))
		return casync_set_verifier(&made->obj->handle, attrs);
	return casync_setattr2(&made->obj->handle, false, made->state, attrs);
}

fsal_status_t casync_create_finish(const struct casync_created *made,
				   attrmask_t already_set,
				   struct fsal_attrlist *attrs_in,
				   struct fsal_attrlist *attrs_out)
{
	attrmask_t asked_for = attrs_in->valid_mask;
	fsal_status_t status;

	FSAL_UNSET_MASK(attrs_in->valid_mask, already_set);
	if (attrs_in->valid_mask == 0) {
		attrs_in->valid_mask = asked_for;
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	}
	status = create_set(made, attrs_in);
	attrs_in->valid_mask = asked_for;
	if (FSAL_IS_ERROR(status))
		casync_create_undo(made);
	else if (attrs_out != NULL)
		create_read_again(made->obj, attrs_out);
	return status;
}

void casync_create_undo(const struct casync_created *made)
{
	struct casync_export *exp = made->dir->exp;
	struct fsal_obj_handle *handle = &made->obj->handle;
	uint64_t fileid = handle->fileid;
	bool is_directory = handle->type == DIRECTORY;
	int rc;

	if (made->state != NULL)
		(void)casync_close2(handle, made->state);
	casync_object_release(handle);

	rc = is_directory
		     ? ceph_ll_rmdir(casync_export_ceph(exp), made->dir->inode,
				     made->name, exp->root_perms)
		     : ceph_ll_unlink(casync_export_ceph(exp), made->dir->inode,
				      made->name, exp->root_perms);
	if (rc < 0)
		LogWarn(COMPONENT_FSAL,
			"'%s' (fileid %" PRIu64
			") is left behind by a failed create: %s",
			made->name, fileid, strerror(-rc));
}
