/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Names: look up, create, read links, move and remove.
 *
 * Everything is done as the requester: Ganesha has checked the permissions
 * on attributes that may be old, libcephfs checks them on fresh ones.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fsal.h"
#include "fsal_convert.h"

#include "attributes.h"
#include "create.h"
#include "errors.h"
#include "export.h"
#include "journal.h"
#include "object.h"
#include "obj_ops.h"
#include "read_cache.h"

static struct Inode *namespace_inode_of(struct fsal_obj_handle *handle)
{
	return casync_object_of(handle)->inode;
}

/* A name in this directory was changed. */
static void namespace_journal(const struct casync_object *dir)
{
	casync_journal_changed(dir->exp->mount, dir->id.ino);
}

static unsigned int namespace_wanted_by(const struct fsal_attrlist *attrs)
{
	return casync_statx_wanted(attrs == NULL ? 0 : attrs->request_mask);
}

fsal_status_t casync_lookup(struct fsal_obj_handle *dir_hdl, const char *name,
			    struct fsal_obj_handle **handle,
			    struct fsal_attrlist *attrs_out)
{
	UserPerm *perms = casync_userperm(&op_ctx->creds);
	struct Inode *inode = NULL;
	struct ceph_statx stx;
	int rc;

	if (perms == NULL)
		return casync_status(-ENOMEM);

	rc = ceph_ll_lookup(casync_export_ceph(casync_export_current()),
			    namespace_inode_of(dir_hdl), name, &inode, &stx,
			    namespace_wanted_by(attrs_out), AT_SYMLINK_NOFOLLOW,
			    perms);
	ceph_userperm_destroy(perms);

	if (rc == 0)
		casync_object_out(inode, &stx, handle, attrs_out);
	return casync_status(rc);
}

/* A creation: what goes into the libcephfs call and what comes out of it. */
struct creation {
	struct ceph_mount_info *ceph;
	struct casync_object *dir;
	const char *name;
	mode_t mode;
	unsigned int wanted;
	UserPerm *perms;
	struct Inode *inode;
	struct ceph_statx stx;
};

static fsal_status_t
namespace_creation_begin(struct creation *c, struct fsal_obj_handle *dir_hdl,
			 const char *name, const struct fsal_attrlist *attrs_in,
			 const struct fsal_attrlist *attrs_out)
{
	struct fsal_export *exp = op_ctx->fsal_export;

	*c = (struct creation){
		.ceph = casync_export_ceph(casync_export_current()),
		.dir = casync_object_of(dir_hdl),
		.name = name,
		.mode = fsal2unix_mode(attrs_in->mode) &
			~exp->exp_ops.fs_umask(exp),
		.wanted = namespace_wanted_by(attrs_out),
		.perms = casync_userperm(&op_ctx->creds),
	};
	return casync_status(c->perms == NULL ? -ENOMEM : 0);
}

/**
 * Turn the result of the libcephfs call into the operation's.
 *
 * @param[in]     c            As namespace_creation_begin() and the call left it.
 * @param[in]     rc           What the call returned.
 * @param[in]     already_set  Attributes that the call has taken care of.
 */
static fsal_status_t namespace_creation_end(struct creation *c, int rc,
					    attrmask_t already_set,
					    struct fsal_attrlist *attrs_in,
					    struct fsal_obj_handle **new_obj,
					    struct fsal_attrlist *attrs_out)
{
	struct casync_created made = {.dir = c->dir, .name = c->name};
	fsal_status_t status = casync_status(rc);
	struct fsal_obj_handle *created;

	if (FSAL_IS_SUCCESS(status)) {
		namespace_journal(c->dir);
		casync_object_out(c->inode, &c->stx, &created, attrs_out);
		made.obj = casync_object_of(created);
		status = casync_create_finish(&made, already_set, attrs_in,
					      attrs_out);
		*new_obj = FSAL_IS_ERROR(status) ? NULL : created;
	}

	ceph_userperm_destroy(c->perms);
	return status;
}

fsal_status_t casync_mkdir(struct fsal_obj_handle *dir_hdl, const char *name,
			   struct fsal_attrlist *attrs_in,
			   struct fsal_obj_handle **new_obj,
			   struct fsal_attrlist *attrs_out,
			   struct fsal_attrlist *parent_pre,
			   struct fsal_attrlist *parent_post)
{
	struct creation c;
	fsal_status_t status;
	int rc;

	(void)parent_pre;
	(void)parent_post;

	status = namespace_creation_begin(&c, dir_hdl, name, attrs_in,
					  attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	rc = ceph_ll_mkdir(c.ceph, c.dir->inode, name, c.mode, &c.inode, &c.stx,
			   c.wanted, 0, c.perms);
	return namespace_creation_end(&c, rc, ATTR_MODE, attrs_in, new_obj,
				      attrs_out);
}

/* The S_IF* of what MKNOD may make; 0 for everything else. */
static mode_t namespace_mknode_format(object_file_type_t nodetype)
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

static dev_t namespace_mknode_device(object_file_type_t nodetype,
				     const struct fsal_attrlist *attrs_in)
{
	if (nodetype != BLOCK_FILE && nodetype != CHARACTER_FILE)
		return 0;

	return makedev(attrs_in->rawdev.major, attrs_in->rawdev.minor);
}

fsal_status_t casync_mknode(struct fsal_obj_handle *dir_hdl, const char *name,
			    object_file_type_t nodetype,
			    struct fsal_attrlist *attrs_in,
			    struct fsal_obj_handle **new_obj,
			    struct fsal_attrlist *attrs_out,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post)
{
	mode_t format = namespace_mknode_format(nodetype);
	dev_t device = namespace_mknode_device(nodetype, attrs_in);
	struct creation c;
	fsal_status_t status;
	int rc;

	(void)parent_pre;
	(void)parent_post;

	/* CephFS stores 32 bits of a device number; a larger one would come
	 * back as another device. */
	if (format == 0 || device > UINT32_MAX)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);

	status = namespace_creation_begin(&c, dir_hdl, name, attrs_in,
					  attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	rc = ceph_ll_mknod(c.ceph, c.dir->inode, name, c.mode | format, device,
			   &c.inode, &c.stx, c.wanted, 0, c.perms);
	return namespace_creation_end(&c, rc, ATTR_MODE | ATTR_RAWDEV, attrs_in,
				      new_obj, attrs_out);
}

fsal_status_t casync_symlink(struct fsal_obj_handle *dir_hdl, const char *name,
			     const char *link_path,
			     struct fsal_attrlist *attrs_in,
			     struct fsal_obj_handle **new_obj,
			     struct fsal_attrlist *attrs_out,
			     struct fsal_attrlist *parent_pre,
			     struct fsal_attrlist *parent_post)
{
	struct creation c;
	fsal_status_t status;
	int rc;

	(void)parent_pre;
	(void)parent_post;

	status = namespace_creation_begin(&c, dir_hdl, name, attrs_in,
					  attrs_out);
	if (FSAL_IS_ERROR(status))
		return status;

	/* The mode of a symlink is 0777 and means nothing: "already set". */
	rc = ceph_ll_symlink(c.ceph, c.dir->inode, name, link_path, &c.inode,
			     &c.stx, c.wanted, 0, c.perms);
	return namespace_creation_end(&c, rc, ATTR_MODE, attrs_in, new_obj,
				      attrs_out);
}

fsal_status_t casync_readlink(struct fsal_obj_handle *obj_hdl,
			      utf8string *link_content, bool refresh)
{
	UserPerm *perms = casync_userperm(&op_ctx->creds);
	/* libcephfs cuts a target that does not fit without a word; one byte
	 * more than allowed shows it. */
	char target[PATH_MAX + 1];
	int rc;

	(void)refresh; /* We keep no copy, so it is fresh always. */

	if (perms == NULL)
		return casync_status(-ENOMEM);

	rc = ceph_ll_readlink(casync_export_ceph(casync_export_current()),
			      namespace_inode_of(obj_hdl), target,
			      sizeof(target), perms);
	ceph_userperm_destroy(perms);

	if (rc > PATH_MAX)
		rc = -ENAMETOOLONG;
	if (rc < 0)
		return casync_status(rc);

	/* The length does not count the NUL (NFSv4 goes by it), but there is
	 * one (NFSv3 goes by that). */
	copy_into_utf8string(link_content, target, rc);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_link(struct fsal_obj_handle *obj_hdl,
			  struct fsal_obj_handle *destdir_hdl, const char *name,
			  struct fsal_attrlist *destdir_pre,
			  struct fsal_attrlist *destdir_post)
{
	UserPerm *perms = casync_userperm(&op_ctx->creds);
	int rc;

	(void)destdir_pre;
	(void)destdir_post;

	if (perms == NULL)
		return casync_status(-ENOMEM);

	casync_read_cache_begin_change(casync_object_of(obj_hdl));
	rc = ceph_ll_link(casync_export_ceph(casync_export_current()),
			  namespace_inode_of(obj_hdl),
			  namespace_inode_of(destdir_hdl), name, perms);
	if (rc == 0)
		namespace_journal(casync_object_of(destdir_hdl));
	casync_read_cache_end_change(casync_object_of(obj_hdl));
	ceph_userperm_destroy(perms);
	return casync_status(rc);
}

/* A directory that gets another parent is written to, its ".." (POSIX allows
 * to ask for that right, Linux does); libcephfs does not look. */
static fsal_status_t
namespace_may_get_another_parent(struct fsal_obj_handle *obj_hdl)
{
	return obj_hdl->obj_ops->test_access(
		obj_hdl,
		FSAL_MODE_MASK_SET(FSAL_W_OK) |
			FSAL_ACE4_MASK_SET(FSAL_ACE_PERM_ADD_SUBDIRECTORY),
		NULL, NULL, false);
}

/*
 * libcephfs learns nothing of the directory that a name leaves, and goes on
 * answering with its old times and change attribute: other clients would list
 * the name for ever.  To read this attribute is to ask the MDS, whatever
 * capabilities we hold, and what it answers is taken over.
 */
static void namespace_refresh_left_directory(struct fsal_obj_handle *dir_hdl)
{
	struct casync_object *dir = casync_object_of(dir_hdl);
	char entries[24];
	int rc;

	rc = ceph_ll_getxattr(casync_export_ceph(dir->exp), dir->inode,
			      "ceph.dir.entries", entries, sizeof(entries),
			      dir->exp->root_perms);
	if (rc < 0)
		LogWarn(COMPONENT_FSAL,
			"fileid %" PRIu64 " may look unchanged to clients: %s",
			dir_hdl->fileid, strerror(-rc));
}

fsal_status_t casync_rename(
	struct fsal_obj_handle *obj_hdl, struct fsal_obj_handle *olddir_hdl,
	const char *old_name, struct fsal_obj_handle *newdir_hdl,
	const char *new_name, struct fsal_attrlist *olddir_pre,
	struct fsal_attrlist *olddir_post, struct fsal_attrlist *newdir_pre,
	struct fsal_attrlist *newdir_post)
{
	bool moves = namespace_inode_of(olddir_hdl) !=
		     namespace_inode_of(newdir_hdl);
	fsal_status_t status;
	UserPerm *perms;
	int rc;

	(void)olddir_pre;
	(void)olddir_post;
	(void)newdir_pre;
	(void)newdir_post;

	if (moves && obj_hdl->type == DIRECTORY) {
		status = namespace_may_get_another_parent(obj_hdl);
		if (FSAL_IS_ERROR(status))
			return status;
	}

	perms = casync_userperm(&op_ctx->creds);
	if (perms == NULL)
		return casync_status(-ENOMEM);

	casync_read_cache_begin_change(casync_object_of(obj_hdl));
	rc = ceph_ll_rename(casync_export_ceph(casync_export_current()),
			    namespace_inode_of(olddir_hdl), old_name,
			    namespace_inode_of(newdir_hdl), new_name, perms);
	if (rc == 0)
		namespace_journal(casync_object_of(newdir_hdl));
	casync_read_cache_end_change(casync_object_of(obj_hdl));
	ceph_userperm_destroy(perms);

	if (rc == 0 && moves)
		namespace_refresh_left_directory(olddir_hdl);

	/* RENAME onto a directory with entries is NFS4ERR_EXIST; NOTEMPTY is
	 * not among its errors (RFC 8881, 18.26.3). */
	return casync_status(rc == -ENOTEMPTY ? -EEXIST : rc);
}

fsal_status_t casync_unlink(struct fsal_obj_handle *dir_hdl,
			    struct fsal_obj_handle *obj_hdl, const char *name,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post)
{
	UserPerm *perms = casync_userperm(&op_ctx->creds);
	struct ceph_mount_info *ceph =
		casync_export_ceph(casync_export_current());
	struct Inode *dir = namespace_inode_of(dir_hdl);
	int rc;

	(void)parent_pre;
	(void)parent_post;

	if (perms == NULL)
		return casync_status(-ENOMEM);

	casync_read_cache_begin_change(casync_object_of(obj_hdl));
	if (obj_hdl->type == DIRECTORY)
		rc = ceph_ll_rmdir(ceph, dir, name, perms);
	else
		rc = ceph_ll_unlink(ceph, dir, name, perms);
	if (rc == 0)
		namespace_journal(casync_object_of(dir_hdl));
	casync_read_cache_end_change(casync_object_of(obj_hdl));

	ceph_userperm_destroy(perms);
	return casync_status(rc);
}
