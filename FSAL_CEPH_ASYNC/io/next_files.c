/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sys/stat.h>
#include <time.h>

#include "fsal.h"
#include "export_mgr.h"
#include "FSAL/fsal_commonlib.h"
#include "nfs_core.h"

#include "buffer.h"
#include "call.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "listing_order.h"
#include "next_files.h"
#include "object.h"
#include "read_cache.h"

#define WANTED                                                \
	(CEPH_STATX_MODE | CEPH_STATX_INO | CEPH_STATX_SIZE | \
	 CEPH_STATX_MTIME | CEPH_STATX_CTIME | CEPH_STATX_NLINK)

/* A READ has two ends: whichever comes second frees the file. */
enum { CALLED = 1, ANSWERED = 2, BOTH = 3 };

/* One file that is fetched. */
struct next_file {
	struct casync_work work;
	struct casync_export *exp;
	struct gsh_export *gsh_export; /* A reference. */
	struct casync_object *obj;     /* Our own. */
	uint64_t ino;
	uint32_t ended; /* Atomic. */
	struct casync_ganesha_read read;
};

static void next_files_free(struct next_file *file)
{
	struct casync_export *exp = file->exp;
	struct req_op_context ctx;

	init_op_context_simple(&ctx, file->gsh_export, &exp->export);
	if (file->obj != NULL)
		casync_object_release(&file->obj->handle);
	casync_lane_release_share(&exp->mount->lanes[CASYNC_LANE_LOOK],
				  &exp->mount->next_files);
	__atomic_sub_fetch(&exp->next_files, 1, __ATOMIC_RELEASE);
	gsh_free(file);
	/* The export may go with it. */
	release_op_context();
}

static void next_files_run_free(struct casync_work *work)
{
	next_files_free(container_of(work, struct next_file, work));
}

/* true: the other part has ended before. */
static bool next_files_ends(struct next_file *file, uint32_t part)
{
	return __atomic_or_fetch(&file->ended, part, __ATOMIC_ACQ_REL) == BOTH;
}

/* On any thread, so the file is closed on a worker. */
void casync_next_files_done(struct fsal_obj_handle *obj_hdl,
			    fsal_status_t status, void *read_arg,
			    void *caller_arg)
{
	struct next_file *file = caller_arg;

	(void)obj_hdl;
	(void)status;
	(void)read_arg;
	if (!next_files_ends(file, ANSWERED))
		return;
	file->work.run = next_files_run_free;
	casync_lane_submit(&file->exp->mount->lanes[CASYNC_LANE_DATA],
			   &file->work);
}

static bool next_files_is_old(const struct ceph_statx *stx)
{
	time_t now_s = time(NULL);

	return stx->stx_mtime.tv_sec + CASYNC_NEXT_FILES_AGE_S <= now_s &&
	       stx->stx_ctime.tv_sec + CASYNC_NEXT_FILES_AGE_S <= now_s;
}

static bool next_files_is_wanted(const struct ceph_statx *stx)
{
	return (stx->stx_mask & WANTED) == WANTED && S_ISREG(stx->stx_mode) &&
	       stx->stx_size != 0 && stx->stx_nlink != 0 &&
	       next_files_is_old(stx);
}

/* Does nobody wait for a place in flight, and is half of it free? */
static bool next_files_has_room(struct casync_export *exp)
{
	struct casync_inflight_sample look;

	casync_inflight_sample(&exp->inflight, &look);
	return look.waiting == 0 &&
	       look.ops < exp->keys.tuning.max_inflight / 2;
}

/* In the guard.  An object of our own: MDCACHE's may go at any time. */
static void next_files_find(struct next_file *file)
{
	const struct casync_fileid id = {.ino = file->ino,
					 .snapid = CEPH_NOSNAP,
					 .fscid = file->exp->mount->fscid};
	struct casync_export *exp = file->exp;
	struct ceph_statx stx;
	struct Inode *inode;

	if (casync_inode_find(casync_export_ceph(exp), &id, WANTED,
			      exp->root_perms, &inode, &stx) != 0)
		return;
	if (!next_files_is_wanted(&stx)) {
		ceph_ll_put(casync_export_ceph(exp), inode);
		return;
	}
	file->obj = casync_object_new(exp, inode, &stx);
	casync_ganesha_read_init(&file->read,
				 stx.stx_size < CASYNC_NEXT_FILES_BYTES
					 ? (size_t)stx.stx_size
					 : CASYNC_NEXT_FILES_BYTES);
}

/* Its data would stay, and are not there; and its open recalls nothing. */
static bool next_files_is_to_fetch(const struct next_file *file)
{
	struct casync_object_table *table = &file->exp->mount->upcalls.table;
	struct casync_object *obj = file->obj;

	return obj != NULL &&
	       __atomic_load_n(&obj->cached->file.index, __ATOMIC_RELAXED) ==
		       NULL &&
	       !casync_object_table_is_alone(table, &obj->id) &&
	       !casync_object_table_is_delegated(table, &obj->id);
}

static void next_files_run(struct casync_work *work)
{
	struct next_file *file = container_of(work, struct next_file, work);
	struct casync_mount *mount = file->exp->mount;
	struct req_op_context ctx;
	bool fetches = false;

	get_gsh_export_ref(file->gsh_export);
	init_op_context_simple(&ctx, file->gsh_export, &file->exp->export);
	if (next_files_has_room(file->exp) &&
	    !FSAL_IS_ERROR(casync_call_begin_mount(mount))) {
		next_files_find(file);
		(void)casync_call_end_mount(mount,
					    fsalstat(ERR_FSAL_NO_ERROR, 0));
		fetches = next_files_is_to_fetch(file);
	}
	if (fetches)
		file->obj->handle.obj_ops->read2(&file->obj->handle, true,
						 casync_next_files_done,
						 &file->read.arg, file);
	if (!fetches || next_files_ends(file, CALLED))
		next_files_free(file);
	release_op_context();
}

/* @return false: the export has enough. */
static bool next_files_queue(const struct casync_op *op, uint64_t ino)
{
	struct casync_export *exp = op->exp;
	struct next_file *file;

	if (__atomic_add_fetch(&exp->next_files, 1, __ATOMIC_ACQ_REL) >
	    CASYNC_NEXT_FILES_MOST) {
		__atomic_sub_fetch(&exp->next_files, 1, __ATOMIC_RELEASE);
		return false;
	}
	file = gsh_calloc(1, sizeof(*file));
	file->work.run = next_files_run;
	file->exp = exp;
	file->gsh_export = op->gsh_export;
	file->ino = ino;
	get_gsh_export_ref(file->gsh_export);
	casync_lane_submit_shared(&exp->mount->lanes[CASYNC_LANE_LOOK],
				  &exp->mount->next_files, &file->work);
	return true;
}

void casync_next_files_read(const struct casync_op *op)
{
	uint64_t next[CASYNC_NEXT_FILES];
	unsigned int count, i;
	uint64_t place;

	if (op->offset != 0 || casync_buffer_budget() == 0 ||
	    op->obj->cached == NULL || op->obj->id.snapid != CEPH_NOSNAP ||
	    op->ahead)
		return;
	place = __atomic_load_n(&op->obj->cached->place, __ATOMIC_RELAXED);
	count = casync_listing_order_read(place, op->exp->export.export_id,
					  op->obj->id.ino, next);
	for (i = 0; i < count; i++)
		if (!next_files_queue(op, next[i]))
			return;
}
