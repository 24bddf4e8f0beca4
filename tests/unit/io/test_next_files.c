/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "call.h"
#include "export.h"
#include "inode.h"
#include "listing_order.h"
#include "next_files.h"
#include "obj_ops.h"
#include "object.h"
#include "object_table.h"
#include "read_cache.h"
#include "stub_ganesha.h"

#define FOLDERS 40
#define FOLDER_FILES 6
/* A first READ of a listing names a quarter. */
#define NAMED (CASYNC_NEXT_FILES / 4)
#define EXPORT 7

static struct casync_mount mount;
static struct casync_client ceph_client;
static struct casync_export exp;
static struct gsh_export gsh_export;
static struct fsal_obj_ops obj_ops;
static struct casync_object first, next;
static struct casync_cached_file first_cached, next_cached;
static struct casync_op op;
static uint64_t ino = 1000; /* The ring of the listings stays. */

/* What the stand-ins below say and have seen. */
static uint64_t budget_bytes, waiting;
static time_t changed_s;
static uint64_t size_bytes;
static bool alone, delegated;
static struct casync_work *queued[2 * FOLDERS * NAMED];
static unsigned int queued_count, shares, looks, puts_seen, releases, reads;
static size_t read_bytes;
static fsal_async_cb read_cb;
static void *read_caller;
static struct casync_work *closing;

uint64_t casync_buffer_budget(void)
{
	return budget_bytes;
}

void casync_inflight_sample(struct casync_inflight *set,
			    struct casync_inflight_sample *look)
{
	memset(look, 0, sizeof(*look));
	look->waiting = waiting;
}

fsal_status_t casync_call_begin_mount(struct casync_mount *of)
{
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_call_end_mount(struct casync_mount *of,
				    fsal_status_t status)
{
	return status;
}

int casync_inode_find(struct ceph_mount_info *ceph,
		      const struct casync_fileid *id, unsigned int mask,
		      const UserPerm *root, struct Inode **inode,
		      struct ceph_statx *stx)
{
	looks++;
	memset(stx, 0, sizeof(*stx));
	stx->stx_mask = mask;
	stx->stx_mode = S_IFREG | 0644;
	stx->stx_nlink = 1;
	stx->stx_size = size_bytes;
	stx->stx_mtime.tv_sec = stx->stx_ctime.tv_sec = changed_s;
	*inode = (struct Inode *)stx;
	return 0;
}

int ceph_ll_put(struct ceph_mount_info *ceph, struct Inode *inode)
{
	puts_seen++;
	return 0;
}

/* stub_ganesha.c has them for other tests. */
int ceph_ll_open(struct ceph_mount_info *ceph, struct Inode *inode, int flags,
		 struct Fh **fh, const UserPerm *perms)
{
	return -EIO;
}

int ceph_ll_close(struct ceph_mount_info *ceph, struct Fh *fh)
{
	return -EIO;
}

struct casync_object *casync_object_new(struct casync_export *of,
					struct Inode *inode,
					const struct ceph_statx *stx)
{
	return &next;
}

void casync_object_release(struct fsal_obj_handle *obj_hdl)
{
	assert_ptr_equal(obj_hdl, &next.handle);
	releases++;
}

bool casync_object_table_is_alone(struct casync_object_table *table,
				  const struct casync_fileid *id)
{
	return alone;
}

bool casync_object_table_is_delegated(struct casync_object_table *table,
				      const struct casync_fileid *id)
{
	return delegated;
}

void casync_lane_submit_shared(struct casync_lane *lane,
			       struct casync_lane_share *share,
			       struct casync_work *work)
{
	assert_ptr_equal(share, &mount.next_files);
	queued[queued_count++] = work;
	shares++;
}

void casync_lane_release_share(struct casync_lane *lane,
			       struct casync_lane_share *share)
{
	assert_ptr_equal(share, &mount.next_files);
	shares--;
}

void casync_lane_submit(struct casync_lane *lane, struct casync_work *work)
{
	closing = work;
}

static void read2(struct fsal_obj_handle *obj_hdl, bool bypass,
		  fsal_async_cb done_cb, struct fsal_io_arg *arg, void *caller)
{
	assert_ptr_equal(obj_hdl, &next.handle);
	assert_int_equal(arg->offset, 0);
	reads++;
	read_bytes = arg->iov[0].iov_len;
	read_cb = done_cb;
	read_caller = caller;
}

static int up(void **state)
{
	stub_reset();
	mount.client = &ceph_client;
	memset(&exp, 0, sizeof(exp));
	exp.mount = &mount;
	exp.export.export_id = EXPORT;
	exp.keys.tuning.max_inflight = 8;
	obj_ops.read2 = read2;
	next.handle.obj_ops = &obj_ops;
	next.cached = &next_cached;
	first.cached = &first_cached;
	first.id.snapid = CEPH_NOSNAP;
	op = (struct casync_op){
		.exp = &exp, .obj = &first, .gsh_export = &gsh_export};
	budget_bytes = 1;
	waiting = 0;
	changed_s = time(NULL) - CASYNC_NEXT_FILES_AGE_S;
	size_bytes = 100;
	alone = delegated = false;
	queued_count = shares = looks = puts_seen = releases = reads = 0;
	closing = NULL;
	return 0;
}

/* A folder of its own; its first file is read. */
static void read_first_of_a_folder(void)
{
	struct casync_listed_walk walk = {
		.dir = ++ino, .export_id = EXPORT, .first = true};
	unsigned int i;

	first.id.ino = ++ino;
	first_cached.place = casync_listing_order_note(&walk, ino);
	for (i = 1; i < FOLDER_FILES; i++)
		(void)casync_listing_order_note(&walk, ++ino);
	casync_listing_order_end(&walk);
	casync_next_files_read(&op);
}

static void run_all_from(unsigned int number)
{
	for (; number < queued_count; number++)
		queued[number]->run(queued[number]);
}

static void run_all(void)
{
	run_all_from(0);
}

static int down(void **state)
{
	assert_int_equal(shares, 0);
	assert_int_equal(exp.next_files, 0);
	assert_int_equal(stub.export_refs, 0);
	assert_int_equal(stub.op_contexts, 0);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(export_has_no_more_files_than_its_bound)
{
	unsigned int i;

	for (i = 0; i < FOLDERS; i++)
		read_first_of_a_folder();
	assert_int_equal(queued_count, CASYNC_NEXT_FILES_MOST);
	assert_int_equal(exp.next_files, CASYNC_NEXT_FILES_MOST);
	changed_s = time(NULL);
	run_all();
	assert_int_equal(exp.next_files, 0);
	read_first_of_a_folder();
	assert_int_equal(queued_count, CASYNC_NEXT_FILES_MOST + NAMED);
	run_all_from(CASYNC_NEXT_FILES_MOST);
}

CASE(without_a_cache_none_is_named)
{
	budget_bytes = 0;
	read_first_of_a_folder();
	assert_int_equal(queued_count, 0);
}

CASE(our_own_read_names_none)
{
	op.ahead = true;
	read_first_of_a_folder();
	assert_int_equal(queued_count, 0);
}

CASE(file_that_was_changed_lately_is_not_read)
{
	changed_s = time(NULL) - CASYNC_NEXT_FILES_AGE_S + 5;
	read_first_of_a_folder();
	run_all();
	assert_int_equal(looks, NAMED);
	assert_int_equal(puts_seen, NAMED);
	assert_int_equal(reads, 0);
}

CASE(who_waits_for_a_place_goes_first)
{
	waiting = 1;
	read_first_of_a_folder();
	run_all();
	assert_int_equal(looks, 0);
}

CASE(delegated_file_is_not_opened)
{
	delegated = true;
	read_first_of_a_folder();
	run_all();
	assert_int_equal(releases, NAMED);
	assert_int_equal(reads, 0);
}

CASE(file_that_ganesha_does_not_know_any_more_is_not_read)
{
	alone = true;
	read_first_of_a_folder();
	run_all();
	assert_int_equal(releases, NAMED);
	assert_int_equal(reads, 0);
}

/* The READ of the first one of them; the others are not run. */
static void read_one(void)
{
	read_first_of_a_folder();
	alone = true;
	run_all_from(1);
	alone = false;
	queued[0]->run(queued[0]);
	assert_int_equal(reads, 1);
	assert_int_equal(shares, 1);
}

CASE(old_file_is_read_and_closed_on_a_thread_that_may_wait)
{
	read_one();
	assert_int_equal(read_bytes, 100);
	read_cb(&next.handle, fsalstat(ERR_FSAL_NO_ERROR, 0), NULL,
		read_caller);
	assert_int_equal(releases, NAMED - 1);
	closing->run(closing);
	assert_int_equal(releases, NAMED);
}

CASE(large_file_is_read_in_part)
{
	size_bytes = 10 * CASYNC_NEXT_FILES_BYTES;
	read_one();
	assert_int_equal(read_bytes, CASYNC_NEXT_FILES_BYTES);
	read_cb(&next.handle, fsalstat(ERR_FSAL_IO, EIO), NULL, read_caller);
	closing->run(closing);
}
