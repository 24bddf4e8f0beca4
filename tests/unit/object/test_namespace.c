/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * RENAME by somebody who may not write to what is moved; and "..", which leads
 * nowhere out of the export.
 */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "unit.h"

#include "fsal.h"

#include "ganesha_unit.h"
#include "module.h"
#include "obj_ops.h"
#include "operations_rig.h"

static unsigned int asked;

/* As fsal_test_access() of a requester who may not write. */
static fsal_status_t may_not(struct fsal_obj_handle *obj_hdl,
			     fsal_accessflags_t access_type,
			     fsal_accessflags_t *allowed,
			     fsal_accessflags_t *denied, bool owner_skip)
{
	(void)obj_hdl;
	(void)access_type;
	(void)allowed;
	(void)denied;
	(void)owner_skip;
	asked++;
	return fsalstat(ERR_FSAL_ACCESS, EACCES);
}

static int up(void **state)
{
	int rc = operations_up(state);

	casync_module_of(rig.exp.export.fsal)->obj_ops.test_access = may_not;
	asked = 0;
	use_objects();
	forget_seen();
	return rc;
}

static fsal_status_t rename_in(struct fsal_obj_handle *what,
			       struct fsal_obj_handle *from,
			       struct fsal_obj_handle *to)
{
	return casync_rename(what, from, "a", to,
			     "b" NO_PARENT_ATTRS NO_PARENT_ATTRS);
}

/* The folders that they are in have two Inodes. */
static const char left_inode;

TEST_WITH(file_is_not_asked_for_a_right, up, operations_down)
{
	dirs[1].inode = (struct Inode *)&left_inode;
	assert_int_equal(rename_in(FILE_HDL, DIR_HDL(0), DIR_HDL(0)).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(rename_in(FILE_HDL, DIR_HDL(0), DIR_HDL(1)).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(asked, 0);
}

/* Its ".." stays. */
TEST_WITH(directory_may_get_another_name_in_its_folder, up, operations_down)
{
	assert_int_equal(rename_in(DIR_HDL(1), DIR_HDL(0), DIR_HDL(0)).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(asked, 0);
	assert_string_equal(fake_names.log, "rename");
}

TEST_WITH(directory_that_may_not_be_written_stays_in_its_folder, up,
	  operations_down)
{
	dirs[1].inode = (struct Inode *)&left_inode;
	assert_int_equal(rename_in(DIR_HDL(0), DIR_HDL(0), DIR_HDL(1)).major,
			 ERR_FSAL_ACCESS);
	assert_int_equal(asked, 1);
	assert_string_equal(fake_names.log, "");
	check_nothing_held();
}

/* With its old times other clients would list the name for ever. */
TEST_WITH(folder_that_a_name_leaves_is_read_from_the_mds, up, operations_down)
{
	dirs[1].inode = (struct Inode *)&left_inode;
	assert_int_equal(rename_in(FILE_HDL, DIR_HDL(0), DIR_HDL(1)).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "rename getxattr");
	forget_seen();
	assert_int_equal(rename_in(FILE_HDL, DIR_HDL(0), DIR_HDL(0)).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "rename");
}

TEST_WITH(directory_with_entries_in_the_way_is_exist, up, operations_down)
{
	fake_names.fails = "rename";
	fake_names.result = -ENOTEMPTY;
	assert_int_equal(rename_in(DIR_HDL(0), DIR_HDL(0), DIR_HDL(1)).minor,
			 EEXIST);
	fake_names.result = -ENOSPC;
	assert_int_equal(rename_in(DIR_HDL(0), DIR_HDL(0), DIR_HDL(1)).minor,
			 ENOSPC);
}

/* --- LINK and UNLINK */

TEST_WITH(link_to_a_name_that_is_there_fails, up, operations_down)
{
	assert_int_equal(
		casync_link(FILE_HDL, DIR_HDL(0), "a" NO_PARENT_ATTRS).minor,
		EEXIST);
	assert_string_equal(fake_names.log, "lookup");
	check_nothing_held();
}

TEST_WITH(kind_of_the_object_says_how_its_name_goes, up, operations_down)
{
	assert_int_equal(
		casync_unlink(DIR_HDL(0), FILE_HDL, "a" NO_PARENT_ATTRS).major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(
		casync_unlink(DIR_HDL(0), DIR_HDL(1), "b" NO_PARENT_ATTRS)
			.major,
		ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "unlink rmdir");
}

/* --- ".." */

static struct fsal_obj_handle *found;

/* The object that a LOOKUP in dirs[0] finds. */
static uint64_t parent_of(uint64_t root)
{
	uint64_t ino;

	rig.exp.root_ino = root;
	assert_int_equal(casync_lookup(DIR_HDL(0), "..", &found, NULL).major,
			 ERR_FSAL_NO_ERROR);
	ino = found->fileid;
	found->obj_ops->release(found);
	return ino;
}

TEST_WITH(parent_that_is_the_root_is_found, up, operations_down)
{
	int refs = fake.inode_refs;

	assert_int_equal(parent_of(fake_names.ino), fake_names.ino);
	assert_string_equal(fake_names.log, "lookup");
	assert_int_equal(fake.inode_refs, refs);
}

/* The folder was moved out of the export.  The MDS shows nothing above. */
TEST_WITH(parent_outside_is_the_root_itself, up, operations_down)
{
	int refs = fake.inode_refs;

	fake_names.mode = S_IFDIR | 0755;
	(void)parent_of(4711);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_int_equal(fake.looked_up_ino, 4711);
	assert_int_equal(fake.inode_refs, refs);
}

/* Inode 1 has no parent, and libcephfs is not asked for one. */
TEST_WITH(root_of_the_file_system_is_outside, up, operations_down)
{
	fake_names.ino = 1;
	(void)parent_of(4711);
	assert_string_equal(fake_names.log, "lookup");
	assert_int_equal(fake.looked_up_ino, 4711);
}

TEST_WITH(parent_that_cannot_be_asked_for_is_an_error, up, operations_down)
{
	fake_names.fails = "lookup";
	fake_names.result = -ENOSPC;
	rig.exp.root_ino = 4711;
	assert_int_equal(casync_lookup(DIR_HDL(0), "..", &found, NULL).major,
			 ERR_FSAL_NOSPC);
	check_nothing_held();
}
