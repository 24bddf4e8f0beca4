/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What Ganesha asks of an export: which object a path or a handle is, how much
 * space there is, what is supported.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "unit.h"

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "FSAL/fsal_config.h"

#include "acl.h"
#include "handle_ops.h"
#include "module.h"
#include "operations_rig.h"
#include "stub_mount.h"

#define INO 0x10000000500

static struct export_ops ops;
static struct fsal_obj_handle *found;
static struct fsal_attrlist attrs;

/* --- libcephfs, Ganesha, acl.c and handle_ops.c, as the test says */

static struct {
	char walked[64]; /* The path that libcephfs was asked for. */
	int walk_result;
	bool offers_acls, offers_labels, handle_is_ours;
} with;

int ceph_ll_walk(struct ceph_mount_info *cmount, const char *name, Inode **i,
		 struct ceph_statx *stx, unsigned int want, unsigned int flags,
		 const UserPerm *perms)
{
	(void)snprintf(with.walked, sizeof(with.walked), "%s", name);
	if (with.walk_result < 0)
		return with.walk_result;
	*stx = (struct ceph_statx){
		.stx_mask = want,
		.stx_ino = INO,
		.stx_dev = CEPH_NOSNAP,
		.stx_mode = S_IFDIR | 0750,
	};
	*i = fake.inode;
	fake.inode_refs++;
	return 0;
}

int ceph_ll_statfs(struct ceph_mount_info *cmount, struct Inode *in,
		   struct statvfs *stbuf)
{
	assert_ptr_equal(in, rig.obj->inode);
	*stbuf = (struct statvfs){
		.f_frsize = 4096,
		.f_bsize = 1,
		.f_blocks = 7,
		.f_bfree = 5,
		.f_bavail = 3,
		.f_files = 70,
		.f_ffree = 50,
		.f_favail = 30,
	};
	return fake_names.result;
}

bool casync_acl_offered(void)
{
	return with.offers_acls;
}

bool casync_acl_label_offered(void)
{
	return with.offers_labels;
}

fsal_aclsupp_t fsal_acl_support(struct fsal_staticfsinfo_t *info)
{
	return info->acl_support;
}

attrmask_t fsal_supported_attrs(struct fsal_staticfsinfo_t *info)
{
	return info->supported_attrs;
}

bool casync_handle_ops_decode(const struct gsh_buffdesc *fh_desc,
			      struct casync_fileid *id)
{
	*id = (struct casync_fileid){
		.ino = INO, .snapid = CEPH_NOSNAP, .fscid = 0};
	return with.handle_is_ours;
}

/* --- */

static int up(void **state)
{
	int rc = operations_up(state);

	memset(&with, 0, sizeof(with));
	with.handle_is_ours = true;
	found = NULL;
	attrs = (struct fsal_attrlist){.request_mask = ATTR_MODE};
	casync_export_ops_init(&ops);
	return rc;
}

static void release_found(void)
{
	int refs = fake.inode_refs;

	found->obj_ops->release(found);
	found = NULL;
	assert_int_equal(fake.inode_refs, refs - 1);
}

/* The object is the one that libcephfs found. */
static void check_found(object_file_type_t type)
{
	assert_non_null(found);
	assert_int_equal(found->fileid, INO);
	assert_int_equal(found->type, type);
	assert_ptr_equal(casync_object_of(found)->exp, &rig.exp);
	assert_ptr_equal(casync_object_of(found)->inode, fake.inode);
}

/* --- paths */

static const struct path_case {
	const char *name;
	const char *root; /* Cmount_Path */
	const char *path;
	const char *walked; /* NULL: it is not below the root. */
} paths[] = {
	{"root", "/", "/", "/"},
	{"below_the_root", "/", "/a/b", "/a/b"},
	{"mount_itself", "/exp", "/exp", "/"},
	{"mount_with_a_slash", "/exp", "/exp/", "/"},
	{"below_the_mount", "/exp", "/exp/a/b", "/a/b"},
	{"name_that_goes_on", "/exp", "/exp10", NULL},
	{"part_of_the_name", "/exp", "/ex", NULL},
	{"beside_the_mount", "/exp", "/other", NULL},
	{"above_the_mount", "/exp/a", "/exp", NULL},
	{"mount_ends_in_a_slash", "/exp/", "/exp", "/"},
	{"below_a_mount_that_does", "/exp/", "/exp/a", "/a"},
	{"beside_a_mount_that_does", "/exp/", "/exp10", NULL},
	{"mount_without_a_path", "", "/a", "/a"},
};

TEST_ROWS(check_path, paths, up, operations_down)
{
	const struct path_case *c = *state;
	char root[32];
	fsal_status_t status;

	(void)snprintf(root, sizeof(root), "%s", c->root);
	stub_mount.identity.path = root;
	status = ops.lookup_path(&rig.exp.export, c->path, &found, &attrs);
	stub_mount.identity.path = NULL;
	check_nothing_held();
	if (c->walked == NULL) {
		assert_int_equal(status.major, ERR_FSAL_NOENT);
		assert_string_equal(with.walked, "");
		assert_null(found);
		return;
	}
	assert_int_equal(status.major, ERR_FSAL_NO_ERROR);
	assert_string_equal(with.walked, c->walked);
	check_found(DIRECTORY);
	assert_int_equal(attrs.mode, 0750);
	release_found();
}

TEST_WITH(path_that_is_not_there_is_noent, up, operations_down)
{
	with.walk_result = -ENOENT;
	assert_int_equal(
		ops.lookup_path(&rig.exp.export, "/a", &found, NULL).major,
		ERR_FSAL_NOENT);
	assert_null(found);
	with.walk_result = -ENOSPC;
	assert_int_equal(
		ops.lookup_path(&rig.exp.export, "/a", &found, NULL).major,
		ERR_FSAL_NOSPC);
	check_nothing_held();
}

/* --- handles */

static fsal_status_t create_handle(struct fsal_attrlist *out)
{
	struct gsh_buffdesc desc = {0};

	return ops.create_handle(&rig.exp.export, &desc, &found, out);
}

TEST_WITH(handle_of_a_file_gives_its_object, up, operations_down)
{
	with.handle_is_ours = true;
	fake.mode = S_IFREG | 0640;
	assert_int_equal(create_handle(&attrs).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.looked_up_ino, INO);
	assert_non_null(found);
	assert_int_equal(found->type, REGULAR_FILE);
	assert_ptr_equal(casync_object_of(found)->exp, &rig.exp);
	assert_int_equal(attrs.mode, 0640);
	release_found();
	check_nothing_held();
	assert_int_equal(create_handle(NULL).major, ERR_FSAL_NO_ERROR);
	release_found();
}

TEST_WITH(handle_of_nothing_is_stale, up, operations_down)
{
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(create_handle(&attrs).major, ERR_FSAL_STALE);
	assert_null(found);
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
	check_nothing_held();
}

/* It was found, and cannot be asked: its reference is dropped. */
TEST_WITH(handle_whose_file_cannot_be_asked_is_an_error, up, operations_down)
{
	fake.blocking_result[FAKE_GETATTR] = -ENOSPC;
	assert_int_equal(create_handle(&attrs).major, ERR_FSAL_NOSPC);
	assert_null(found);
	assert_int_equal(fake.inode_refs, 0);
	fake.blocking_result[FAKE_GETATTR] = 0;
	check_nothing_held();
}

TEST_WITH(bytes_that_are_no_handle_ask_nobody, up, operations_down)
{
	with.handle_is_ours = false;
	assert_int_equal(create_handle(&attrs).major, ERR_FSAL_BADHANDLE);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_null(found);
}

TEST_WITH(fd_tells_its_object, up, operations_down)
{
	struct fsal_obj_handle *handle = NULL;

	rig.obj->read_fd.obj = rig.obj;
	ops.get_fsal_obj_hdl(&rig.exp.export, &rig.obj->read_fd.fsal_fd,
			     &handle);
	assert_ptr_equal(handle, FILE_HDL);
}

/* --- space */

TEST_WITH(space_is_counted_in_bytes, up, operations_down)
{
	fsal_dynamicfsinfo_t info;

	use_objects();
	memset(&info, 0xff, sizeof(info));
	assert_int_equal(
		ops.get_fs_dynamic_info(&rig.exp.export, FILE_HDL, &info).major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(info.total_bytes, 7 * 4096);
	assert_int_equal(info.free_bytes, 5 * 4096);
	assert_int_equal(info.avail_bytes, 3 * 4096);
	assert_int_equal(info.total_files, 70);
	assert_int_equal(info.free_files, 50);
	assert_int_equal(info.avail_files, 30);
	assert_int_equal(info.time_delta.tv_sec, 0);
	assert_int_equal(info.time_delta.tv_nsec, 1);
	check_nothing_held();
}

TEST_WITH(space_that_nobody_tells_stays_unsaid, up, operations_down)
{
	fsal_dynamicfsinfo_t info = {.total_bytes = 99};

	use_objects();
	fake_names.result = -ENOSPC;
	assert_int_equal(
		ops.get_fs_dynamic_info(&rig.exp.export, FILE_HDL, &info).major,
		ERR_FSAL_NOSPC);
	assert_int_equal(info.total_bytes, 99);
	check_nothing_held();
}

/* --- what is supported */

TEST_WITH(acls_are_supported_where_they_are_offered, up, operations_down)
{
	struct fsal_staticfsinfo_t *info = &rig.exp.export.fsal->fs_info;

	info->acl_support = FSAL_ACLSUPPORT_ALLOW | FSAL_ACLSUPPORT_DENY;
	info->supported_attrs = ATTR_MODE | ATTR_ACL | ATTR4_SEC_LABEL;
	assert_int_equal(ops.fs_acl_support(&rig.exp.export), 0);
	assert_true(ops.fs_supported_attrs(&rig.exp.export) == ATTR_MODE);
	with.offers_acls = true;
	assert_int_equal(ops.fs_acl_support(&rig.exp.export),
			 FSAL_ACLSUPPORT_ALLOW | FSAL_ACLSUPPORT_DENY);
	assert_true(ops.fs_supported_attrs(&rig.exp.export) ==
		    (ATTR_MODE | ATTR_ACL));
	with.offers_labels = true;
	assert_true(ops.fs_supported_attrs(&rig.exp.export) ==
		    (ATTR_MODE | ATTR_ACL | ATTR4_SEC_LABEL));
	with.offers_acls = false;
	assert_int_equal(ops.fs_acl_support(&rig.exp.export), 0);
	assert_true(ops.fs_supported_attrs(&rig.exp.export) ==
		    (ATTR_MODE | ATTR4_SEC_LABEL));
	info->acl_support = 0;
	info->supported_attrs = 0;
}

TEST_WITH(largest_requests_are_the_keys, up, operations_down)
{
	rig.exp.keys.tuning.max_read = 4711;
	rig.exp.keys.tuning.max_write = 4712;
	assert_int_equal(ops.fs_maxread(&rig.exp.export), 4711);
	assert_int_equal(ops.fs_maxwrite(&rig.exp.export), 4712);
}

/* Two starts within a second must have unlike ones. */
TEST_WITH(verifier_is_the_time_of_the_mount, up, operations_down)
{
	uint8_t verifier[9];
	uint64_t stored;
	struct gsh_buffdesc desc = {.addr = verifier, .len = 8};

	stub_mount.mounted_ns = UINT64_C(0x1122334455667788);
	memset(verifier, 0xee, sizeof(verifier));
	ops.get_write_verifier(&rig.exp.export, &desc);
	memcpy(&stored, verifier, sizeof(stored));
	assert_true(stored == stub_mount.mounted_ns);
	assert_int_equal(verifier[8], 0xee);
	desc.len = 9;
	ops.get_write_verifier(&rig.exp.export, &desc);
	assert_int_equal(verifier[8], 0xee);
	memset(verifier, 0xee, sizeof(verifier));
	desc.len = 4;
	ops.get_write_verifier(&rig.exp.export, &desc);
	assert_memory_equal(verifier, &stub_mount.mounted_ns, 4);
	assert_int_equal(verifier[4], 0xee);
}
