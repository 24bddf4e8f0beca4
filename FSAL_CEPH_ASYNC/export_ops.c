/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The operations of an export: paths, handles, space, supported attributes.
 *
 * fsal_api.h of Ganesha has the contracts (struct export_ops).  All operations
 * run on a Ganesha worker with op_ctx set, and may block.
 */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "FSAL/fsal_config.h"

#include "acl.h"
#include "attributes.h"
#include "call.h"
#include "errors.h"
#include "export.h"
#include "module.h"
#include "handle_ops.h"
#include "object.h"
#include "inode.h"

/* "/exp" is not a parent of "/exp10". */
const char *casync_export_ops_below_mount(const struct casync_export *exp,
					  const char *path)
{
	const char *root = exp->mount->identity.path;
	size_t len = strlen(root);

	if (len != 0 && root[len - 1] == '/')
		len--;
	if (strncmp(path, root, len) != 0)
		return NULL;
	if (path[len] == '\0')
		return "/";
	return path[len] == '/' ? path + len : NULL;
}

static fsal_status_t export_ops_walk(struct fsal_export *exp_hdl,
				     const char *path,
				     struct fsal_obj_handle **handle,
				     struct fsal_attrlist *attrs_out)
{
	struct casync_export *exp = casync_export_of(exp_hdl);
	attrmask_t mask = attrs_out != NULL ? attrs_out->request_mask : 0;
	const char *below = casync_export_ops_below_mount(exp, path);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc;

	if (below == NULL) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": path '%s' is not below '%s'",
			exp_hdl->export_id, path, exp->mount->identity.path);
		return fsalstat(ERR_FSAL_NOENT, ENOENT);
	}

	rc = ceph_ll_walk(casync_export_ceph(exp), below, &inode, &stx,
			  casync_attributes_statx_wanted(mask), 0,
			  exp->root_perms);
	if (rc < 0) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": cannot look up path '%s': %s",
			exp_hdl->export_id, path, strerror(-rc));
		return casync_errors_status(rc);
	}
	casync_object_from_lookup(inode, &stx, handle, attrs_out);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static fsal_status_t export_ops_lookup_path(struct fsal_export *exp_hdl,
					    const char *path,
					    struct fsal_obj_handle **handle,
					    struct fsal_attrlist *attrs_out)
{
	struct casync_export *exp = casync_export_of(exp_hdl);
	fsal_status_t status = casync_call_begin_mount(exp->mount);

	if (FSAL_IS_ERROR(status))
		return status;
	return casync_call_end_mount(
		exp->mount, export_ops_walk(exp_hdl, path, handle, attrs_out));
}

static fsal_status_t export_ops_find(struct casync_export *exp,
				     const struct casync_fileid *id,
				     struct fsal_obj_handle **handle,
				     struct fsal_attrlist *attrs_out)
{
	attrmask_t mask = attrs_out != NULL ? attrs_out->request_mask : 0;
	fsal_status_t status = casync_call_begin_mount(exp->mount);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc;

	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_inode_find(casync_export_ceph(exp), id,
			       casync_attributes_statx_wanted(mask),
			       exp->root_perms, &inode, &stx);
	if (rc == 0)
		casync_object_from_lookup(inode, &stx, handle, attrs_out);
	return casync_call_end_mount(exp->mount, casync_errors_status(rc));
}

static fsal_status_t export_ops_create_handle(struct fsal_export *exp_hdl,
					      struct gsh_buffdesc *fh_desc,
					      struct fsal_obj_handle **handle,
					      struct fsal_attrlist *attrs_out)
{
	struct casync_fileid id;
	fsal_status_t status;

	if (!casync_handle_ops_decode(fh_desc, &id))
		return fsalstat(ERR_FSAL_BADHANDLE, 0);
	do {
		status = export_ops_find(casync_export_of(exp_hdl), &id, handle,
					 attrs_out);
	} while (casync_call_is_to_repeat(&status));
	return status;
}

static void export_ops_get_fsal_obj_hdl(struct fsal_export *exp_hdl,
					struct fsal_fd *fd,
					struct fsal_obj_handle **handle)
{
	(void)exp_hdl;
	*handle = &casync_fd_of(fd)->obj->handle;
}

static fsal_status_t
export_ops_get_fs_dynamic_info(struct fsal_export *exp_hdl,
			       struct fsal_obj_handle *obj_hdl,
			       fsal_dynamicfsinfo_t *info)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_call call;
	fsal_status_t status;
	struct statvfs vfs = {0};
	int rc;

	(void)exp_hdl;
	/* It asks a monitor, and waits for it without a timeout. */
	status = casync_call_begin(
		&call, obj_hdl, CASYNC_CALL_CLIENT | CASYNC_CALL_STATFS_SLOT);
	if (FSAL_IS_ERROR(status))
		return status;
	/* By inode: below a quota CephFS answers with the quota's values. */
	rc = ceph_ll_statfs(casync_inode_ceph(obj), obj->inode, &vfs);
	status = casync_call_end(&call, casync_errors_status(rc));
	if (FSAL_IS_ERROR(status))
		return status;

	memset(info, 0, sizeof(*info));
	info->total_bytes = vfs.f_frsize * vfs.f_blocks;
	info->free_bytes = vfs.f_frsize * vfs.f_bfree;
	info->avail_bytes = vfs.f_frsize * vfs.f_bavail;
	info->total_files = vfs.f_files;
	info->free_files = vfs.f_ffree;
	info->avail_files = vfs.f_favail;
	info->time_delta.tv_nsec = 1;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/*
 * A client compares the verifier to find out whether unstable writes were lost.
 * Ganesha's own verifier counts seconds, so two starts within a second have the
 * same.
 */
static void export_ops_get_write_verifier(struct fsal_export *exp_hdl,
					  struct gsh_buffdesc *verf_desc)
{
	uint64_t verifier =
		casync_mount_time_ns(casync_export_of(exp_hdl)->mount);

	memcpy(verf_desc->addr, &verifier,
	       verf_desc->len < sizeof(verifier) ? verf_desc->len
						 : sizeof(verifier));
}

static attrmask_t export_ops_fs_supported_attrs(struct fsal_export *exp_hdl)
{
	attrmask_t mask = fsal_supported_attrs(&exp_hdl->fsal->fs_info);

	if (!casync_acl_offered())
		FSAL_UNSET_MASK(mask, ATTR_ACL);
	if (!casync_acl_label_offered())
		FSAL_UNSET_MASK(mask, ATTR4_SEC_LABEL);
	return mask;
}

static fsal_aclsupp_t export_ops_fs_acl_support(struct fsal_export *exp_hdl)
{
	return casync_acl_offered() ? fsal_acl_support(&exp_hdl->fsal->fs_info)
				    : 0;
}

static uint32_t export_ops_fs_maxread(struct fsal_export *exp_hdl)
{
	return casync_tuning_read(
		&casync_export_of(exp_hdl)->keys.tuning.max_read);
}

static uint32_t export_ops_fs_maxwrite(struct fsal_export *exp_hdl)
{
	return casync_tuning_read(
		&casync_export_of(exp_hdl)->keys.tuning.max_write);
}

void casync_export_ops_init(struct export_ops *ops)
{
	ops->lookup_path = export_ops_lookup_path;
	ops->wire_to_host = casync_wire_to_host;
	ops->host_to_key = casync_host_to_key;
	ops->create_handle = export_ops_create_handle;
	ops->get_fsal_obj_hdl = export_ops_get_fsal_obj_hdl;
	ops->get_fs_dynamic_info = export_ops_get_fs_dynamic_info;
	ops->get_write_verifier = export_ops_get_write_verifier;
	ops->fs_supported_attrs = export_ops_fs_supported_attrs;
	ops->fs_acl_support = export_ops_fs_acl_support;
	ops->fs_maxread = export_ops_fs_maxread;
	ops->fs_maxwrite = export_ops_fs_maxwrite;
	ops->alloc_state = casync_fd_alloc_state;
}
