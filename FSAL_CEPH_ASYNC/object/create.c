/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * MKDIR, MKNOD and SYMLINK, and what OPEN does in common with them.
 *
 * The requester creates: Ganesha has checked the permissions on attributes that
 * may be old, libcephfs checks them on fresh ones.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "attributes.h"
#include "call.h"
#include "clock.h"
#include "create.h"
#include "errors.h"
#include "export.h"
#include "fd.h"
#include "ganesha.h"
#include "inode.h"
#include "layout.h"
#include "mount.h"
#include "new_name.h"
#include "obj_ops.h"
#include "object.h"
#include "privileges.h"

/* Attributes that were read before the others were set are old. */
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
	if (made->verifier != NULL &&
	    attrs->valid_mask == (ATTR_ATIME | ATTR_MTIME))
		return casync_getset_set_verifier(&made->obj->handle, attrs);
	return casync_setattr2(&made->obj->handle, false, made->state, attrs);
}

fsal_status_t casync_create_finish(const struct casync_created *made,
				   attrmask_t already_set,
				   struct fsal_attrlist *attrs_in,
				   struct fsal_attrlist *attrs_out)
{
	attrmask_t asked_for = attrs_in->valid_mask;
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);
	bool sets;

	FSAL_UNSET_MASK(attrs_in->valid_mask, already_set);
	sets = attrs_in->valid_mask != 0;
	if (sets)
		status = create_set(made, attrs_in);
	attrs_in->valid_mask = asked_for;
	if (!FSAL_IS_ERROR(status))
		status = casync_errors_status(casync_namespace_changed(
			made->dir, made->laid_out ? NULL : made->obj));
	if (FSAL_IS_ERROR(status))
		casync_create_undo(made);
	else if (sets && attrs_out != NULL)
		create_read_again(made->obj, attrs_out);
	return status;
}

/*
 * Remove the name, if it is still what was made: another client may have
 * renamed a file onto it.  CephFS cannot remove by inode, so a rename in the
 * moment between the two calls is not seen.
 */
static int create_remove(const struct casync_created *made, uint64_t fileid,
			 bool is_directory)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(made->dir);
	const UserPerm *root = casync_inode_root(made->dir);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc;

	rc = ceph_ll_lookup(ceph, made->dir->inode, made->name, &inode, &stx,
			    CEPH_STATX_INO, AT_SYMLINK_NOFOLLOW, root);
	if (rc < 0)
		return rc;
	ceph_ll_put(ceph, inode);
	if (stx.stx_ino != fileid)
		return -EEXIST;
	return is_directory
		       ? ceph_ll_rmdir(ceph, made->dir->inode, made->name, root)
		       : ceph_ll_unlink(ceph, made->dir->inode, made->name,
					root);
}

/* The name is the client's: it may have line ends in it. */
static void create_log_left(const struct casync_created *made, uint64_t fileid,
			    int rc)
{
	static uint64_t line_ns;

	if (!casync_clock_once_a_minute(&line_ns))
		return;
	LogWarn(COMPONENT_FSAL,
		"export %" PRIu16 ": fileid %" PRIu64 " in directory %" PRIu64
		" is left behind by a failed create: %s (no other such line for a minute)",
		made->dir->exp->export.export_id, fileid,
		made->dir->handle.fileid, strerror(-rc));
}

void casync_create_undo(const struct casync_created *made)
{
	struct fsal_obj_handle *handle = &made->obj->handle;
	uint64_t fileid = handle->fileid;
	bool is_directory = handle->type == DIRECTORY;
	int rc;

	if (made->state != NULL)
		(void)casync_close2(handle, made->state);
	casync_object_release(handle);

	rc = create_remove(made, fileid, is_directory);
	if (rc >= 0)
		return;
	create_log_left(made, fileid, rc);
	/* With these two the file is gone, or has another name. */
	if (made->verifier != NULL && rc != -ENOENT && rc != -EEXIST)
		casync_unfinished_add(
			&casync_inode_mount(made->dir)->unfinished, fileid,
			made->verifier);
}

fsal_status_t casync_create_set_layout(struct casync_created *made,
				       struct fsal_attrlist *attrs_out)
{
	struct casync_object *obj = made->obj;
	int rc = casync_layout_apply(&obj->exp->layout, made->dir, obj,
				     &made->laid_out);

	if (rc < 0)
		return casync_errors_status(rc);
	if (!made->laid_out)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	casync_fd_read_layout(obj);
	/* It has marked what cannot be read again. */
	if (attrs_out != NULL)
		(void)casync_getattrs(&obj->handle, attrs_out);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static fsal_status_t create_compare(struct casync_object *obj, char *verifier,
				    bool *same)
{
	struct fsal_attrlist attrs;
	fsal_status_t status;

	fsal_prepare_attrs(&attrs, ATTR_ATIME | ATTR_MTIME);
	status = casync_getattrs(&obj->handle, &attrs);
	*same = !FSAL_IS_ERROR(status) &&
		check_verifier_attrlist(&attrs, verifier, false);
	fsal_release_attrs(&attrs);
	return status;
}

/*
 * Ganesha makes EEXIST of "false".  With NFSv3 it always opens after a "true",
 * which compares again (casync_create_check_owner()) and can tell an error.  So
 * an error is "true" there.  With NFSv4 it may not open: then the owner has the
 * file open already.
 */
bool casync_check_verifier(struct fsal_obj_handle *obj_hdl,
			   fsal_verifier_t verifier)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	bool same;

	if (FSAL_IS_ERROR(create_compare(obj, verifier, &same)))
		return op_ctx->nfs_vers == NFS_V3;
	return same ||
	       casync_unfinished_has(&casync_inode_mount(obj)->unfinished,
				     obj->id.ino, verifier);
}

/* casync_create_finish() did not come to this.  The create set the mode. */
static fsal_status_t create_finish_again(struct casync_created *found,
					 struct fsal_attrlist *attrs_in)
{
	attrmask_t asked_for = attrs_in->valid_mask;
	fsal_status_t status = casync_create_set_layout(found, NULL);

	if (FSAL_IS_ERROR(status))
		return status;
	FSAL_UNSET_MASK(attrs_in->valid_mask, ATTR_MODE);
	status = casync_setattr2(&found->obj->handle, false, NULL, attrs_in);
	attrs_in->valid_mask = asked_for;
	return status;
}

fsal_status_t casync_create_check_owner(struct casync_created *found,
					struct fsal_attrlist *attrs_in)
{
	struct casync_object *obj = found->obj;
	struct casync_unfinished *unfinished =
		&casync_inode_mount(obj)->unfinished;
	uint64_t ino = obj->id.ino;
	char verifier[CASYNC_VERIFIER_BYTES];
	fsal_status_t status;
	bool same;

	memcpy(verifier, found->verifier, sizeof(verifier));
	status = create_compare(obj, verifier, &same);
	/* It was removed meanwhile: it had been in the way. */
	if (status.major == ERR_FSAL_STALE)
		return fsalstat(ERR_FSAL_EXIST, EEXIST);
	if (FSAL_IS_ERROR(status) || same)
		return status;
	if (!casync_unfinished_has(unfinished, ino, verifier))
		return fsalstat(ERR_FSAL_EXIST, EEXIST);
	status = create_finish_again(found, attrs_in);
	if (!FSAL_IS_ERROR(status))
		casync_unfinished_remove(unfinished, ino, verifier);
	return status;
}

/* A creation: what goes into the libcephfs call and what comes out of it. */
struct creation {
	struct casync_call call;
	struct ceph_mount_info *ceph;
	struct casync_object *dir;
	const char *name;
	const UserPerm *perms;
	mode_t mode;
	unsigned int wanted;
	struct Inode *inode;
	struct ceph_statx stx;
};

static fsal_status_t create_begin(struct creation *c,
				  struct fsal_obj_handle *dir_hdl,
				  const char *name, const UserPerm *perms,
				  const struct fsal_attrlist *attrs_in,
				  const struct fsal_attrlist *attrs_out)
{
	struct fsal_export *exp = op_ctx->fsal_export;
	fsal_status_t status;
	int rc;

	*c = (struct creation){
		.dir = casync_object_of(dir_hdl),
		.name = name,
		.perms = perms,
		.mode = fsal2unix_mode(attrs_in->mode) &
			~exp->exp_ops.fs_umask(exp),
		.wanted = casync_attributes_statx_wanted(
			attrs_out == NULL ? 0 : attrs_out->request_mask),
	};
	status = casync_call_begin_entry(&c->call, dir_hdl, name,
					 CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	c->ceph = casync_inode_ceph(c->dir);
	rc = casync_new_name_is_free(c->dir, name, perms);
	return rc == 0 ? status
		       : casync_call_end(&c->call, casync_errors_status(rc));
}

/**
 * Turn the result of the libcephfs call into the operation's.
 *
 * @param[in]     c            As create_begin() and the call left it.
 * @param[in]     rc           The result of the call.
 * @param[in]     already_set  Attributes that the call has taken care of.
 */
static fsal_status_t create_end(struct creation *c, int rc,
				attrmask_t already_set,
				struct fsal_attrlist *attrs_in,
				struct fsal_obj_handle **new_obj,
				struct fsal_attrlist *attrs_out)
{
	struct casync_created made = {.dir = c->dir, .name = c->name};
	struct fsal_obj_handle *created;
	fsal_status_t status;

	if (rc == 0) {
		rc = casync_new_name_check(c->dir, c->name, &c->stx, c->perms);
		if (rc < 0)
			ceph_ll_put(c->ceph, c->inode);
	}
	status = casync_errors_status(rc);
	if (FSAL_IS_SUCCESS(status)) {
		casync_object_from_lookup(c->inode, &c->stx, &created,
					  attrs_out);
		made.obj = casync_object_of(created);
		status = casync_create_finish(&made, already_set, attrs_in,
					      attrs_out);
		*new_obj = FSAL_IS_ERROR(status) ? NULL : created;
	}

	return casync_call_end(&c->call, status);
}

fsal_status_t casync_mkdir(
	struct fsal_obj_handle *dir_hdl, const char *name,
	struct fsal_attrlist *attrs_in, struct fsal_obj_handle **new_obj,
	struct fsal_attrlist *attrs_out CASYNC_GANESHA_PARENT_ATTRS(parent))
{
	CASYNC_ERRORS_REQUESTER(perms);
	struct creation c;
	fsal_status_t status;
	int rc;

	status = create_begin(&c, dir_hdl, name, perms, attrs_in, attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	rc = ceph_ll_mkdir(c.ceph, c.dir->inode, name, c.mode, &c.inode, &c.stx,
			   c.wanted, 0, perms);
	return create_end(&c, rc, ATTR_MODE, attrs_in, new_obj, attrs_out);
}

/* The S_IF* of what MKNOD may make; 0 for everything else. */
static mode_t create_mknode_format(object_file_type_t nodetype)
{
	switch (nodetype) {
	case BLOCK_FILE:
		return S_IFBLK;
	case CHARACTER_FILE:
		return S_IFCHR;
	case FIFO_FILE:
		return S_IFIFO;
	case SOCKET_FILE:
		return S_IFSOCK;
	default:
		return 0;
	}
}

static dev_t create_mknode_device(object_file_type_t nodetype,
				  const struct fsal_attrlist *attrs_in)
{
	if (nodetype != BLOCK_FILE && nodetype != CHARACTER_FILE)
		return 0;

	return makedev(attrs_in->rawdev.major, attrs_in->rawdev.minor);
}

fsal_status_t casync_mknode(
	struct fsal_obj_handle *dir_hdl, const char *name,
	object_file_type_t nodetype, struct fsal_attrlist *attrs_in,
	struct fsal_obj_handle **new_obj,
	struct fsal_attrlist *attrs_out CASYNC_GANESHA_PARENT_ATTRS(parent))
{
	mode_t format = create_mknode_format(nodetype);
	dev_t device = create_mknode_device(nodetype, attrs_in);
	CASYNC_ERRORS_REQUESTER(perms);
	struct creation c;
	fsal_status_t status;
	int rc;

	/* CephFS stores 32 bits of a device number; a larger one would come
	 * back as another device. */
	if (format == 0 || device > UINT32_MAX)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);

	status = create_begin(&c, dir_hdl, name, perms, attrs_in, attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	rc = ceph_ll_mknod(c.ceph, c.dir->inode, name,
			   casync_privileges_of_new(c.dir, c.mode) | format,
			   device, &c.inode, &c.stx, c.wanted, 0, perms);
	return create_end(&c, rc, ATTR_MODE | ATTR_RAWDEV, attrs_in, new_obj,
			  attrs_out);
}

fsal_status_t casync_symlink(
	struct fsal_obj_handle *dir_hdl, const char *name,
	const char *link_path, struct fsal_attrlist *attrs_in,
	struct fsal_obj_handle **new_obj,
	struct fsal_attrlist *attrs_out CASYNC_GANESHA_PARENT_ATTRS(parent))
{
	CASYNC_ERRORS_REQUESTER(perms);
	struct creation c;
	fsal_status_t status;
	int rc;

	status = create_begin(&c, dir_hdl, name, perms, attrs_in, attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	/* The mode of a symlink is 0777 and means nothing: "already set". */
	rc = ceph_ll_symlink(c.ceph, c.dir->inode, name, link_path, &c.inode,
			     &c.stx, c.wanted, 0, perms);
	return create_end(&c, rc, ATTR_MODE, attrs_in, new_obj, attrs_out);
}
