/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Names: look up, read links, link, move and remove.
 *
 * Everything is done as the requester: Ganesha has checked the permissions
 * on attributes that may be old, libcephfs checks them on fresh ones.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "fsal.h"

#include "attributes.h"
#include "call.h"
#include "clock.h"
#include "durability.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "journal.h"
#include "mount.h"
#include "new_name.h"
#include "object.h"
#include "obj_ops.h"

/* CEPH_INO_ROOT of Ceph's ceph_fs.h, which libcephfs-dev leaves out. */
#define ROOT_INO 1

static struct Inode *namespace_inode_of(struct fsal_obj_handle *handle)
{
	return casync_object_of(handle)->inode;
}

static struct ceph_mount_info *namespace_ceph_of(struct fsal_obj_handle *handle)
{
	return casync_inode_ceph(casync_object_of(handle));
}

int casync_namespace_changed(struct casync_object *dir,
			     struct casync_object *made)
{
	const uint32_t *when = &dir->exp->keys.tuning.stable_metadata;
	int rc;

	if (casync_tuning_read(when) == CASYNC_METADATA_MDS) {
		casync_journal_changed(casync_inode_mount(dir), dir->id.ino,
				       made != NULL && made->handle.type ==
							       REGULAR_FILE);
		return 0;
	}
	rc = casync_flush_wait(dir);
	if (rc == 0 && made != NULL)
		casync_queue_mark_journaled(&made->queue);
	return rc;
}

/* Folders between the export's root and a folder below it. */
#define DEPTH_MAX 1024

/* ".." must not lead out of the export, also not with Sign_Handles.  Ganesha
 * asks only whether a folder is the export's root.  But a folder may have been
 * moved out of the export, and libcephfs takes the parent of the root for the
 * parent of the root's .snap. */
static int namespace_check_inside(const struct casync_object *dir,
				  struct Inode *inode, uint64_t ino)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(dir);
	struct Inode *at = inode, *parent;
	struct ceph_statx stx;
	unsigned int depth;
	int rc = 0;

	for (depth = 0; ino != dir->exp->root_ino; depth++) {
		rc = ino == ROOT_INO || depth == DEPTH_MAX
			     ? -ESTALE
			     : ceph_ll_lookup(ceph, at, "..", &parent, &stx,
					      CEPH_STATX_INO,
					      AT_SYMLINK_NOFOLLOW,
					      casync_inode_root(dir));
		if (rc < 0)
			break;
		/* If the MDS refuses it, libcephfs gives the folder itself. */
		if (parent == at) {
			ceph_ll_put(ceph, parent);
			rc = -ESTALE;
			break;
		}
		if (at != inode)
			ceph_ll_put(ceph, at);
		at = parent;
		ino = stx.stx_ino;
	}
	if (at != inode)
		ceph_ll_put(ceph, at);
	return rc;
}

static int namespace_look_up(struct casync_object *dir, const char *name,
			     const struct fsal_attrlist *attrs,
			     struct Inode **inode, struct ceph_statx *stx)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(dir);
	int rc = casync_inode_lookup(ceph, dir->inode, name, attrs, inode, stx);

	if (rc < 0 || strcmp(name, "..") != 0)
		return rc;
	rc = namespace_check_inside(dir, *inode, stx->stx_ino);
	if (rc == 0)
		return 0;
	ceph_ll_put(ceph, *inode);
	if (rc != -ESTALE)
		return rc;
	/* As of the root itself.  No error: READDIR asks for "..". */
	return casync_inode_find(
		ceph,
		&(struct casync_fileid){.ino = dir->exp->root_ino,
					.snapid = CEPH_NOSNAP,
					.fscid = dir->id.fscid},
		casync_attributes_statx_wanted(
			attrs != NULL ? attrs->request_mask : 0),
		casync_inode_root(dir), inode, stx);
}

fsal_status_t casync_lookup(struct fsal_obj_handle *dir_hdl, const char *name,
			    struct fsal_obj_handle **handle,
			    struct fsal_attrlist *attrs_out)
{
	struct casync_call call;
	struct ceph_statx stx;
	fsal_status_t status;
	struct Inode *inode;
	int rc;

	status = casync_call_begin_entry(&call, dir_hdl, name,
					 CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = namespace_look_up(casync_object_of(dir_hdl), name, attrs_out,
			       &inode, &stx);
	if (rc == 0)
		casync_object_from_lookup(inode, &stx, handle, attrs_out);
	return casync_call_end(&call, casync_errors_status(rc));
}

fsal_status_t casync_readlink(struct fsal_obj_handle *obj_hdl,
			      casync_ganesha_target_t *link_content,
			      bool refresh)
{
	/* libcephfs cuts a target that does not fit without a word; one byte
	 * more than allowed shows it. */
	char target[PATH_MAX + 1];
	struct casync_call call;
	CASYNC_ERRORS_REQUESTER(perms);
	fsal_status_t status;
	int rc;

	(void)refresh; /* We keep no copy, so it is fresh always. */

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = ceph_ll_readlink(namespace_ceph_of(obj_hdl),
			      namespace_inode_of(obj_hdl), target,
			      sizeof(target), perms);
	if (rc > PATH_MAX)
		rc = -ENAMETOOLONG;
	if (rc >= 0)
		casync_ganesha_set_target(link_content, target, (size_t)rc);
	return casync_call_end(&call, casync_errors_status(rc));
}

static int namespace_link(struct casync_object *obj, struct casync_object *dir,
			  const char *name)
{
	const struct ceph_statx made = {.stx_ino = obj->id.ino};
	CASYNC_ERRORS_REQUESTER(perms);
	int rc = casync_new_name_is_free(dir, name, perms);

	if (rc == 0)
		rc = ceph_ll_link(casync_inode_ceph(obj), obj->inode,
				  dir->inode, name, perms);
	if (rc == 0)
		rc = casync_new_name_check(dir, name, &made, perms);
	return rc == 0 ? casync_namespace_changed(dir, NULL) : rc;
}

fsal_status_t casync_link(struct fsal_obj_handle *obj_hdl,
			  struct fsal_obj_handle *destdir_hdl,
			  const char *name CASYNC_GANESHA_PARENT_ATTRS(destdir))
{
	struct casync_object *dir = casync_object_of(destdir_hdl);
	struct casync_call call;
	fsal_status_t status;
	int rc;

	status = casync_call_begin_entry(&call, obj_hdl, name,
					 CASYNC_CALL_ASKS_MDS |
						 CASYNC_CALL_ANNOUNCES);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_call_renew_inode(dir);
	if (rc == 0)
		rc = namespace_link(casync_object_of(obj_hdl), dir, name);
	return casync_call_end(&call, casync_errors_status(rc));
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

/* libcephfs learns nothing of the directory that a name leaves: with its old
 * times and change attribute other clients would list the name for ever.  This
 * attribute is always read from the MDS, and what it answers is taken over. */
static void namespace_refresh_left_directory(struct fsal_obj_handle *dir_hdl)
{
	struct casync_object *dir = casync_object_of(dir_hdl);
	static uint64_t line_ns;
	char entries[24];
	int rc;

	rc = ceph_ll_getxattr(casync_inode_ceph(dir), dir->inode,
			      "ceph.dir.entries", entries, sizeof(entries),
			      casync_inode_root(dir));
	if (rc < 0 && casync_clock_once_a_minute(&line_ns))
		LogWarn(COMPONENT_FSAL,
			"fileid %" PRIu64
			" may look unchanged to clients: %s (no other such line for a minute)",
			dir_hdl->fileid, strerror(-rc));
}

/* The entry that RENAME moves. */
struct move {
	struct fsal_obj_handle *obj_hdl, *olddir_hdl, *newdir_hdl;
	const char *old_name, *new_name;
};

/* In the guard, with current Inodes. */
static fsal_status_t namespace_move(const struct move *m)
{
	struct Inode *olddir = namespace_inode_of(m->olddir_hdl);
	struct Inode *newdir = namespace_inode_of(m->newdir_hdl);
	CASYNC_ERRORS_REQUESTER(perms);
	struct casync_call change;
	fsal_status_t status;
	int rc;

	if (olddir != newdir && m->obj_hdl->type == DIRECTORY) {
		status = namespace_may_get_another_parent(m->obj_hdl);
		if (FSAL_IS_ERROR(status))
			return status;
	}
	casync_call_announce(&change, m->obj_hdl);
	rc = ceph_ll_rename(namespace_ceph_of(m->olddir_hdl), olddir,
			    m->old_name, newdir, m->new_name, perms);
	/* If the file was just written, the MDS grants to write it again.
	 * libcephfs would keep that, and another client's stat() wait 5 s. */
	if (rc == 0)
		(void)casync_flush_try_send(casync_object_of(m->obj_hdl));
	casync_call_drop(&change);
	if (rc == 0 && olddir != newdir)
		namespace_refresh_left_directory(m->olddir_hdl);
	/* libcephfs counts a RENAME among the changes of the new directory. */
	if (rc == 0)
		rc = casync_namespace_changed(casync_object_of(m->newdir_hdl),
					      NULL);

	/* RENAME onto a directory with entries is NFS4ERR_EXIST; NOTEMPTY is
	 * not among its errors (RFC 8881, 18.26.3). */
	return casync_errors_status(rc == -ENOTEMPTY ? -EEXIST : rc);
}

fsal_status_t
casync_rename(struct fsal_obj_handle *obj_hdl,
	      struct fsal_obj_handle *olddir_hdl, const char *old_name,
	      struct fsal_obj_handle *newdir_hdl,
	      const char *new_name CASYNC_GANESHA_PARENT_ATTRS(olddir)
		      CASYNC_GANESHA_PARENT_ATTRS(newdir))
{
	const struct move move = {obj_hdl, olddir_hdl, newdir_hdl, old_name,
				  new_name};
	struct casync_call call;
	fsal_status_t status;
	int rc;

	status = casync_errors_status(casync_call_check_name(new_name));
	if (!FSAL_IS_ERROR(status))
		status = casync_call_begin_entry(&call, olddir_hdl, old_name,
						 CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = casync_call_renew_inode(casync_object_of(newdir_hdl));
	if (rc == 0)
		rc = casync_call_renew_inode(casync_object_of(obj_hdl));
	status = rc == 0 ? namespace_move(&move) : casync_errors_status(rc);
	return casync_call_end(&call, status);
}

fsal_status_t
casync_unlink(struct fsal_obj_handle *dir_hdl, struct fsal_obj_handle *obj_hdl,
	      const char *name CASYNC_GANESHA_PARENT_ATTRS(parent))
{
	CASYNC_ERRORS_REQUESTER(perms);
	struct casync_call call, change;
	struct ceph_mount_info *ceph;
	fsal_status_t status;
	struct Inode *dir;
	int rc;

	status = casync_call_begin_entry(&call, dir_hdl, name,
					 CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;

	ceph = namespace_ceph_of(dir_hdl);
	dir = namespace_inode_of(dir_hdl);
	casync_call_announce(&change, obj_hdl);
	if (obj_hdl->type == DIRECTORY)
		rc = ceph_ll_rmdir(ceph, dir, name, perms);
	else
		rc = ceph_ll_unlink(ceph, dir, name, perms);
	casync_call_drop(&change);
	if (rc == 0)
		rc = casync_namespace_changed(casync_object_of(dir_hdl), NULL);
	return casync_call_end(&call, casync_errors_status(rc));
}
