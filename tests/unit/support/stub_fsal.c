/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the operations call of Ganesha's library of FSALs, and of acl.c and
 * handle_ops.c, whose contents are not wanted.  stub_ganesha.c has what the data
 * path calls.
 */
#include "config.h"

#include <sys/stat.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"
#include "FSAL/fsal_config.h"
#include "nfs4_acls.h"
#include "nfs4_fs_locations.h"

#include "acl.h"
#include "fd.h"
#include "ganesha_unit.h"
#include "handle_ops.h"
#include "rig.h"

/* A test may have one of its own, or link the real file. */
#define WEAK __attribute__((weak))

static const fsal_status_t good = {ERR_FSAL_NO_ERROR, 0};

/* Parameters that nobody looks at. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

void fsal_obj_handle_init(struct fsal_obj_handle *obj, struct fsal_export *exp,
			  object_file_type_t type MORE_OF_HANDLE_INIT)
{
	obj->fsal = exp->fsal;
	obj->type = type;
	pthread_rwlock_init(&obj->obj_lock, NULL);
}

void fsal_obj_handle_fini(struct fsal_obj_handle *obj MORE_OF_HANDLE_FINI)
{
	pthread_rwlock_destroy(&obj->obj_lock);
	obj->obj_ops = NULL;
}

object_file_type_t posix2fsal_type(mode_t posix_type_in)
{
	switch (posix_type_in & S_IFMT) {
	case S_IFDIR:
		return DIRECTORY;
	case S_IFLNK:
		return SYMBOLIC_LINK;
	case S_IFIFO:
		return FIFO_FILE;
	default:
		return REGULAR_FILE;
	}
}

fsal_fsid_t posix2fsal_fsid(dev_t posix_devid)
{
	return (fsal_fsid_t){.major = posix_devid};
}

fsal_dev_t posix2fsal_devt(dev_t posix_devid)
{
	return (fsal_dev_t){.major = posix_devid};
}

fsal_status_t fsal_start_fd_work(struct fsal_fd *fsal_fd, bool is_reclaiming)
{
	atomic_inc_int32_t(&fsal_fd->fd_work);
	PTHREAD_MUTEX_lock(&fsal_fd->work_mutex);
	return good;
}

void fsal_complete_fd_work(struct fsal_fd *fsal_fd)
{
	atomic_dec_int32_t(&fsal_fd->fd_work);
	PTHREAD_MUTEX_unlock(&fsal_fd->work_mutex);
}

void insert_fd_lru(struct fsal_fd *fsal_fd)
{
}

fsal_status_t close_fsal_fd(struct fsal_obj_handle *obj_hdl,
			    struct fsal_fd *fsal_fd, bool is_reclaiming)
{
	return casync_fd_close(obj_hdl, fsal_fd);
}

fsal_status_t merge_share(struct fsal_obj_handle *orig_hdl,
			  struct fsal_share *orig_share,
			  struct fsal_share *dupe_share)
{
	return good;
}

void set_common_verifier(struct fsal_attrlist *attrs, fsal_verifier_t verifier,
			 bool trunc_verif)
{
	FSAL_SET_MASK(attrs->valid_mask, ATTR_ATIME | ATTR_MTIME);
}

bool check_verifier_attrlist(struct fsal_attrlist *attrs,
			     fsal_verifier_t verifier, bool trunc_verif)
{
	return false;
}

fsal_status_t fsal_listxattr_helper(const char *buf, size_t listlen,
				    uint32_t maxbytes, nfs_cookie4 *lr_cookie,
				    bool_t *lr_eof, xattrlist4 *lr_names)
{
	return good;
}

void nfs4_acl_release_entry(fsal_acl_t *pacl)
{
}

void nfs4_fs_locations_release(fsal_fs_locations_t *fs_locations)
{
}

WEAK fsal_aclsupp_t fsal_acl_support(struct fsal_staticfsinfo_t *info)
{
	return 0;
}

WEAK attrmask_t fsal_supported_attrs(struct fsal_staticfsinfo_t *info)
{
	return 0;
}

void up_ready_wait(struct fsal_up_vector *vec)
{
}

/* --- acl.c: the exports offer neither ACLs nor labels */

WEAK bool casync_acl_offered(void)
{
	return false;
}

WEAK bool casync_acl_label_offered(void)
{
	return false;
}

int casync_acl_get(const struct casync_acl_file *file,
		   const struct ceph_statx *stx, struct fsal_attrlist *attrs)
{
	return 0;
}

int casync_acl_set(const struct casync_acl_file *file,
		   const struct fsal_attrlist *attrs)
{
	return 0;
}

int casync_acl_label_get(const struct casync_acl_file *file,
			 struct fsal_attrlist *attrs)
{
	return 0;
}

int casync_acl_label_set(const struct casync_acl_file *file,
			 const struct fsal_attrlist *attrs)
{
	return 0;
}

/* --- handle_ops.c: each handle is the rig's file's */

fsal_status_t casync_wire_to_host(struct fsal_export *exp_hdl,
				  fsal_digesttype_t in_type,
				  struct gsh_buffdesc *fh_desc, int flags)
{
	return good;
}

fsal_status_t casync_host_to_key(struct fsal_export *exp_hdl,
				 struct gsh_buffdesc *fh_desc)
{
	return good;
}

WEAK bool casync_handle_ops_decode(const struct gsh_buffdesc *fh_desc,
				   struct casync_fileid *id)
{
	*id = rig.obj->id;
	return true;
}

#pragma GCC diagnostic pop
