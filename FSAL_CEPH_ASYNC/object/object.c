/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sys/stat.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "attributes.h"
#include "call.h"
#include "clock.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "delegations.h"
#include "module.h"
#include "object.h"
#include "read_cache.h"

static void object_init_global_fd(struct casync_object *obj,
				  struct casync_fd *fd)
{
	init_fsal_fd(&fd->fsal_fd, FSAL_FD_GLOBAL, &obj->exp->export);
	fd->obj = obj;
}

struct casync_object *casync_object_new(struct casync_export *exp,
					struct Inode *inode,
					const struct ceph_statx *stx)
{
	struct casync_object *obj = gsh_calloc(1, sizeof(*obj));

	obj->exp = exp;
	obj->inode = inode;
	obj->generation = casync_guard_generation(&exp->mount->guard);
	obj->id.ino = stx->stx_ino;
	/* libcephfs reports the snapshot as the device. */
	obj->id.snapid = stx->stx_dev;
	obj->id.fscid = exp->mount->fscid;
	casync_filehandle_key(&obj->id, exp->export.export_id, obj->key);

	casync_ganesha_handle_init(&obj->handle, &exp->export,
				   posix2fsal_type(stx->stx_mode));
	obj->handle.obj_ops = &casync_module_of(exp->export.fsal)->obj_ops;
	obj->handle.fsid = posix2fsal_fsid(stx->stx_dev);
	obj->handle.fileid = stx->stx_ino;

	casync_file_size_init(
		&obj->size,
		casync_upcalls_truncations(&casync_inode_mount(obj)->upcalls,
					   obj->id.ino, obj->id.snapid));
	casync_queue_init(&obj->queue);
	casync_delegations_init(&obj->delegations);
	casync_lock_records_init(&obj->locks);
	object_init_global_fd(obj, &obj->read_fd);
	object_init_global_fd(obj, &obj->write_fd);
	if (obj->handle.type == REGULAR_FILE) {
		casync_file_size_set(&obj->size, stx->stx_size);
		/* No time of the file tells whether the MDS has journaled it:
		 * clocks differ, and clients set it.  libcephfs knows, and its
		 * flush waits for nothing if there is nothing. */
		casync_queue_mark_new(&obj->queue);
	}
	casync_object_note_links(obj, stx);
	obj->privileged = 1;
	if (obj->handle.type == REGULAR_FILE)
		obj->cached = gsh_calloc(1, sizeof(*obj->cached));
	if (obj->handle.type == DIRECTORY)
		casync_inode_note_snapshot(obj);
	if (casync_object_table_enter(&exp->mount->upcalls.table, obj))
		ceph_ll_put(casync_inode_ceph(obj), inode);
	return obj;
}

void casync_object_note_links(struct casync_object *obj,
			      const struct ceph_statx *stx)
{
	if (!(stx->stx_mask & CEPH_STATX_NLINK) || stx->stx_nlink != 0 ||
	    obj->id.snapid != CEPH_NOSNAP ||
	    __atomic_exchange_n(&obj->has_no_name, true, __ATOMIC_RELAXED))
		return;
	casync_upcalls_removed(&casync_inode_mount(obj)->upcalls, obj->id.ino,
			       obj->id.snapid);
}

void casync_object_fill_attrs(struct casync_export *exp,
			      const struct ceph_statx *stx,
			      struct fsal_attrlist *attrs)
{
	casync_attributes_from_statx(stx, casync_mount_time_ns(exp->mount),
				     attrs);
	/* Not all exports offer ACLs and labels. */
	attrs->supported = exp->export.exp_ops.fs_supported_attrs(&exp->export);
}

void casync_object_from_lookup(struct Inode *inode,
			       const struct ceph_statx *stx,
			       struct fsal_obj_handle **handle,
			       struct fsal_attrlist *attrs)
{
	struct casync_export *exp = casync_export_current();

	*handle = &casync_object_new(exp, inode, stx)->handle;
	if (attrs != NULL)
		casync_object_fill_attrs(exp, stx, attrs);
}

/* The last object of an Inode drops the reference. */
static void object_put_inode(struct casync_object *obj, bool in_guard)
{
	struct casync_mount *mount = casync_inode_mount(obj);
	uint32_t generation = casync_guard_generation(&mount->guard);
	bool last = casync_object_table_leave(&mount->upcalls.table, obj);

	/* Those of a lost client ended with it. */
	if (last && in_guard && obj->generation == generation)
		ceph_ll_put(mount->client->ceph, obj->inode);
}

void casync_object_release(struct fsal_obj_handle *obj_hdl)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_mount *mount = casync_inode_mount(obj);
	bool in_guard;

	if (casync_fd_abandoned(obj->exp, &obj->read_fd) ||
	    casync_fd_abandoned(obj->exp, &obj->write_fd))
		return;
	if (obj_hdl->type == REGULAR_FILE) {
		casync_lock_records_forget(&obj->locks);
		(void)casync_close(obj_hdl);
	}

	destroy_fsal_fd(&obj->read_fd.fsal_fd);
	destroy_fsal_fd(&obj->write_fd.fsal_fd);
	casync_file_size_destroy(&obj->size);
	casync_queue_destroy(&obj->queue);
	casync_delegations_destroy(&obj->delegations);
	casync_ganesha_handle_fini(obj_hdl);
	in_guard = casync_call_begin_release(mount);
	object_put_inode(obj, in_guard);
	if (in_guard)
		casync_call_leave(mount);
	casync_read_cache_free(obj->cached);
	gsh_free(obj);
}

fsal_status_t casync_object_merge(struct fsal_obj_handle *orig_hdl,
				  struct fsal_obj_handle *dupe_hdl)
{
	struct casync_object *orig = casync_object_of(orig_hdl);
	struct casync_object *dupe = casync_object_of(dupe_hdl);

	if (orig_hdl->type != REGULAR_FILE || dupe_hdl->type != REGULAR_FILE)
		return fsalstat(ERR_FSAL_NO_ERROR, 0);

	casync_object_may_be_privileged(orig);
	/* A state's fd may have been opened through the duplicate only.
	 * Without the layout its reads would not be cut at object borders. */
	if (dupe->object_span != 0)
		__atomic_store_n(&orig->object_span, dupe->object_span,
				 __ATOMIC_RELAXED);
	return merge_share(orig_hdl, &orig->share, &dupe->share);
}

#define OBJECT_TIMES (CEPH_STATX_MTIME | CEPH_STATX_CTIME)

/* A capability of a file is seen by its ctime alone: a change of the data sets
 * the mtime too. */
void casync_object_note_mode(struct casync_object *obj,
			     const struct ceph_statx *stx)
{
	uint64_t ctime_ns = casync_clock_timespec_ns(&stx->stx_ctime);

	if ((stx->stx_mask & CEPH_STATX_MODE) &&
	    (stx->stx_mode & (S_ISUID | S_ISGID)) != 0)
		casync_object_may_be_privileged(obj);
	if ((stx->stx_mask & OBJECT_TIMES) != OBJECT_TIMES ||
	    ctime_ns == casync_clock_timespec_ns(&stx->stx_mtime) ||
	    ctime_ns ==
		    __atomic_load_n(&obj->suspect_ctime_ns, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&obj->suspect_ctime_ns, ctime_ns, __ATOMIC_RELAXED);
	casync_object_may_be_privileged(obj);
}

bool casync_object_privileged(const struct casync_object *obj)
{
	return __atomic_load_n(&obj->privileged, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&obj->unprivileged, __ATOMIC_RELAXED);
}
