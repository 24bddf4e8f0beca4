/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What an object is made of, and what becomes of two of one file; and the name
 * of the FSAL that they belong to.
 */
#include "config.h"

#include <string.h>
#include <sys/stat.h>

#include "unit.h"

#include "fsal.h"

#include "module.h"
#include "name.h"
#include "object.h"
#include "operations_rig.h"
#include "snapshots.h"
#include "stub_mount.h"

#define INO 0x10000000500
#define SNAPID 7

static struct casync_object *make(mode_t mode, uint64_t snapid)
{
	const struct ceph_statx stx = {
		.stx_mask = CEPH_STATX_INO | CEPH_STATX_MODE,
		.stx_ino = INO,
		.stx_dev = snapid,
		.stx_mode = (uint16_t)mode,
		.stx_size = 99,
	};

	fake.inode_refs++;
	return casync_object_new(&rig.exp, fake.inode, &stx);
}

static void end(struct casync_object *obj)
{
	obj->handle.obj_ops->release(&obj->handle);
}

static fsal_status_t merge(struct casync_object *orig,
			   struct casync_object *dupe)
{
	return casync_object_merge(&orig->handle, &dupe->handle);
}

OPERATION_CASE(file_is_what_libcephfs_has_found)
{
	struct casync_object *obj = make(S_IFREG | 0644, CEPH_NOSNAP);

	assert_int_equal(obj->id.ino, INO);
	assert_true(obj->id.snapid == CEPH_NOSNAP);
	assert_int_equal(obj->handle.fileid, INO);
	assert_int_equal(obj->handle.type, REGULAR_FILE);
	assert_int_equal(casync_file_size_hint(&obj->size), 99);
	/* The MDS may not have journaled it. */
	assert_true(casync_queue_is_unjournaled(&obj->queue));
	assert_non_null(obj->cached);
	assert_true(casync_object_privileged(obj));
	end(obj);
	assert_int_equal(fake.inode_refs, 0);
}

OPERATION_CASE(folder_has_no_data)
{
	struct casync_object *obj = make(S_IFDIR | 0755, CEPH_NOSNAP);

	assert_null(obj->cached);
	assert_int_equal(casync_file_size_hint(&obj->size), 0);
	assert_int_equal(
		casync_snapshots_folder(&stub_mount.snapshots, CEPH_NOSNAP), 0);
	end(obj);
}

/* It tells later whether its snapshot is still there. */
OPERATION_CASE(folder_of_a_snapshot_is_noted)
{
	struct casync_object *obj = make(S_IFDIR | 0755, SNAPID);

	assert_int_equal(casync_snapshots_folder(&stub_mount.snapshots, SNAPID),
			 INO);
	end(obj);
}

OPERATION_CASE(file_of_a_snapshot_is_not)
{
	struct casync_object *obj = make(S_IFREG | 0644, SNAPID);

	assert_int_equal(casync_snapshots_folder(&stub_mount.snapshots, SNAPID),
			 0);
	end(obj);
}

/* Two look-ups of one file at once: an fd may know the layout from the second
 * one only. */
OPERATION_CASE(duplicate_hands_on_what_it_knows)
{
	struct casync_object *orig = make(S_IFREG | 0644, CEPH_NOSNAP);
	struct casync_object *dupe = make(S_IFREG | 0644, CEPH_NOSNAP);

	orig->privileged = 0;
	orig->object_span = 0;
	dupe->object_span = 4096;
	assert_int_equal(merge(orig, dupe).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(orig->object_span, 4096);
	assert_true(casync_object_privileged(orig));
	/* What it does not know changes nothing. */
	dupe->object_span = 0;
	assert_int_equal(merge(orig, dupe).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(orig->object_span, 4096);
	end(dupe);
	end(orig);
	assert_int_equal(fake.inode_refs, 0);
}

OPERATION_CASE(what_is_no_file_hands_on_nothing)
{
	struct casync_object *file = make(S_IFREG | 0644, CEPH_NOSNAP);
	struct casync_object *folder = make(S_IFDIR | 0755, CEPH_NOSNAP);

	file->object_span = 4096;
	folder->privileged = 0;
	assert_int_equal(merge(folder, file).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(folder->object_span, 0);
	assert_false(casync_object_privileged(folder));
	file->privileged = 0;
	folder->object_span = 1;
	assert_int_equal(merge(file, folder).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(file->object_span, 4096);
	end(folder);
	end(file);
}

/* Two configurations depend on it: which block is read, and how strictly. */
TEST(this_is_not_the_stand_in_for_fsal_ceph)
{
	assert_string_equal(casync_name, CASYNC_OWN_NAME);
	assert_false(casync_compat);
}
