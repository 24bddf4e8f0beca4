/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Each operation begins and ends a call: what it holds while it calls libcephfs,
 * on which Inodes, and what it answers if the client is lost.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "errors.h"
#include "ganesha_unit.h"
#include "journal.h"
#include "module.h"
#include "obj_ops.h"
#include "object_table.h"
#include "operations_rig.h"
#include "stub_mount.h"

/* With the 200 workers of the stub. */
#define MOUNT_SLOTS 150

/* --- the operations, in short */

static struct fsal_obj_handle *made;
static struct fsal_attrlist attrs;
static bool flag;

/* Ganesha releases what it was given. */
static fsal_status_t answered(fsal_status_t status)
{
	if (made != NULL)
		made->obj_ops->release(made);
	made = NULL;
	return status;
}

static struct fsal_attrlist *mode_to_set(void)
{
	attrs = (struct fsal_attrlist){.valid_mask = ATTR_MODE, .mode = 0644};
	return &attrs;
}

static fsal_status_t lookup(const char *name)
{
	return answered(casync_lookup(DIR_HDL(0), name, &made, NULL));
}

static fsal_status_t call_lookup(void)
{
	return lookup("a");
}

static fsal_status_t make_dir(const char *name)
{
	fake_names.nothing_yet = true;
	return answered(casync_mkdir(DIR_HDL(0), name, mode_to_set(), &made,
				     NULL NO_PARENT_ATTRS));
}

static fsal_status_t call_mkdir(void)
{
	return make_dir("a");
}

static fsal_status_t make_fifo(const char *name)
{
	fake_names.nothing_yet = true;
	return answered(casync_mknode(DIR_HDL(0), name, FIFO_FILE,
				      mode_to_set(), &made,
				      NULL NO_PARENT_ATTRS));
}

static fsal_status_t call_mknode(void)
{
	return make_fifo("a");
}

static fsal_status_t make_symlink(const char *name)
{
	fake_names.nothing_yet = true;
	return answered(casync_symlink(DIR_HDL(0), name, "a/b", mode_to_set(),
				       &made, NULL NO_PARENT_ATTRS));
}

static fsal_status_t call_symlink(void)
{
	return make_symlink("a");
}

static fsal_status_t call_readlink(void)
{
	casync_ganesha_target_t target = {0};
	fsal_status_t status = casync_readlink(FILE_HDL, &target, false);

	gsh_free(target_memory(&target));
	return status;
}

static fsal_status_t make_link(const char *name)
{
	fake_names.nothing_yet = true;
	return casync_link(FILE_HDL, DIR_HDL(0), name NO_PARENT_ATTRS);
}

static fsal_status_t call_link(void)
{
	return make_link("a");
}

static fsal_status_t rename_to(const char *old_name, const char *new_name)
{
	return casync_rename(FILE_HDL, DIR_HDL(0), old_name, DIR_HDL(1),
			     new_name NO_PARENT_ATTRS NO_PARENT_ATTRS);
}

static fsal_status_t call_rename(void)
{
	return rename_to("a", "b");
}

static fsal_status_t unlink_name(const char *name)
{
	return casync_unlink(DIR_HDL(0), FILE_HDL, name NO_PARENT_ATTRS);
}

static fsal_status_t call_unlink(void)
{
	return unlink_name("a");
}

static fsal_status_t call_rmdir(void)
{
	return casync_unlink(DIR_HDL(0), DIR_HDL(1), "a" NO_PARENT_ATTRS);
}

static fsal_status_t call_readdir(void)
{
	return casync_readdir(DIR_HDL(0), NULL, NULL, NULL, 0, &flag);
}

static fsal_status_t call_getattrs(void)
{
	return casync_getattrs(FILE_HDL, &attrs);
}

static fsal_status_t call_setattr2(void)
{
	return casync_setattr2(FILE_HDL, false, NULL, mode_to_set());
}

static fsal_status_t call_setattr2_of_the_size(void)
{
	attrs = (struct fsal_attrlist){.valid_mask = ATTR_SIZE, .filesize = 10};
	return casync_setattr2(FILE_HDL, false, NULL, &attrs);
}

static fsal_status_t open_name(const char *name,
			       enum fsal_create_mode createmode)
{
	return answered(casync_open2(DIR_HDL(0), NULL, FSAL_O_READ, createmode,
				     name, mode_to_set(), NULL, &made, NULL,
				     &flag NO_PARENT_ATTRS));
}

static fsal_status_t call_open2_of_a_name(void)
{
	return open_name("a", FSAL_NO_CREATE);
}

static fsal_status_t call_open2_that_creates(void)
{
	return open_name("a", FSAL_UNCHECKED);
}

/* What libcephfs is asked to open must be closed before. */
static struct state_t *closed_state(void)
{
	rig_close(&rig.state.fd);
	init_fsal_fd(&rig.state.fd.fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	return &rig.state.state;
}

static fsal_status_t call_open2_of_a_file(void)
{
	return casync_open2(FILE_HDL, closed_state(), FSAL_O_READ,
			    FSAL_NO_CREATE, NULL, NULL, NULL, NULL, NULL,
			    &flag NO_PARENT_ATTRS);
}

/* As NFSv3's CREATE. */
static fsal_status_t call_open2_that_truncates(void)
{
	return casync_open2(FILE_HDL, NULL, FSAL_O_WRITE | FSAL_O_TRUNC,
			    FSAL_NO_CREATE, NULL, NULL, NULL, NULL, NULL,
			    &flag NO_PARENT_ATTRS);
}

/* What a create before has left. */
static fsal_status_t call_open2_that_takes_over(void)
{
	char verifier[] = "verifier";

	casync_unfinished_add(&stub_mount.unfinished, rig.obj->id.ino,
			      verifier);
	return casync_open2(FILE_HDL, NULL, FSAL_O_READ, FSAL_EXCLUSIVE, NULL,
			    mode_to_set(), verifier, NULL, NULL,
			    &flag NO_PARENT_ATTRS);
}

static fsal_status_t call_reopen2(void)
{
	return casync_reopen2(FILE_HDL, closed_state(), FSAL_O_READ);
}

static fsal_status_t call_commit2(void)
{
	/* There is something to flush. */
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	rig_grow(RIG_OBJECTS * OBJ + 1);
	return casync_commit2(FILE_HDL, 0, 0);
}

static fsal_status_t call_fallocate(void)
{
	return casync_fallocate(FILE_HDL, NULL, 0, 1, false);
}

static fsal_status_t call_seek2(void)
{
	struct io_info info = {.io_content.what = NFS4_CONTENT_DATA};

	return casync_seek2(FILE_HDL, NULL, &info);
}

static xattrkey4 key = {.utf8string_len = 1, .utf8string_val = "k"};

static fsal_status_t call_getxattrs(void)
{
	xattrvalue4 value = {0};

	return casync_getxattrs(FILE_HDL, &key, &value);
}

static fsal_status_t call_setxattrs(void)
{
	xattrvalue4 value = {0};

	return casync_setxattrs(FILE_HDL, SETXATTR4_EITHER, &key, &value);
}

static fsal_status_t call_removexattrs(void)
{
	return casync_removexattrs(FILE_HDL, &key);
}

static fsal_status_t call_listxattrs(void)
{
	nfs_cookie4 cookie = 0;
	xattrlist4 names;
	bool_t eof;

	return casync_listxattrs(FILE_HDL, 4096, &cookie, &eof, &names);
}

/* The client gives it back at once. */
static fsal_status_t delegate(fsal_deleg_t kind)
{
	struct state_t *state = &rig.state.state;
	fsal_status_t status;

	state->state_type = STATE_TYPE_DELEG;
	status = casync_lease_op2(FILE_HDL, state, NULL, kind);
	if (!FSAL_IS_ERROR(status))
		(void)casync_lease_op2(FILE_HDL, state, NULL, FSAL_DELEG_NONE);
	return status;
}

static fsal_status_t call_lease_op2(void)
{
	return delegate(FSAL_DELEG_RD);
}

static fsal_status_t call_lease_op2_to_write(void)
{
	static struct state_hdl file_state;

	closed_state()->state_obj = FILE_HDL;
	FILE_HDL->state_hdl = &file_state;
	return delegate(FSAL_DELEG_WR);
}

static fsal_status_t call_get_fs_dynamic_info(void)
{
	fsal_dynamicfsinfo_t info;
	struct export_ops ops;

	casync_export_ops_init(&ops);
	return ops.get_fs_dynamic_info(&rig.exp.export, FILE_HDL, &info);
}

/* --- what is checked of each of them */

#define MDS CASYNC_CALL_ASKS_MDS
#define ATTR CASYNC_CALL_ATTR_SLOT
#define SLOT CASYNC_CALL_SETATTR_SLOT
#define CHANGE CASYNC_CALL_ANNOUNCES
#define STATFS (CASYNC_CALL_CLIENT | CASYNC_CALL_STATFS_SLOT)

struct op_case {
	const char *name;
	fsal_status_t (*call)(void);
	unsigned int objects; /* that are made ones of the current client */
	const char *log;      /* its calls that are of fake_names.c */
	uint32_t always;      /* What it holds in each of its calls... */
	uint32_t also;	      /* ...and in one at least. */
	bool as_root;	      /* It needs no credentials. */
};

static const struct op_case op_cases[] = {
	{"lookup", call_lookup, 1, "lookup", MDS, 0, false},
	{"mkdir", call_mkdir, 1, "lookup mkdir lookup", MDS, 0, false},
	{"mknode", call_mknode, 1, "lookup mknod lookup", MDS, 0, false},
	{"symlink", call_symlink, 1, "lookup symlink lookup", MDS, 0, false},
	{"readlink", call_readlink, 1, "readlink", MDS, 0, false},
	{"link", call_link, 2, "lookup link lookup", MDS | CHANGE, 0, false},
	{"rename", call_rename, 3, "rename", MDS | CHANGE, 0, false},
	{"unlink", call_unlink, 1, "unlink", MDS | CHANGE, 0, false},
	{"rmdir", call_rmdir, 1, "rmdir", MDS, 0, false},
	{"readdir", call_readdir, 1, "opendir readdir", MDS, 0, false},
	{"getattrs", call_getattrs, 1, "", MDS | ATTR, 0, false},
	{"setattr2", call_setattr2, 1, "setattr getxattr", MDS | SLOT | CHANGE,
	 0, false},
	{"setattr2_of_the_size", call_setattr2_of_the_size, 1,
	 "setattr getxattr", MDS, SLOT | CHANGE, false},
	{"open2_of_a_name", call_open2_of_a_name, 1, "lookup", MDS, 0, false},
	{"open2_that_creates", call_open2_that_creates, 1, "create", MDS, 0,
	 false},
	{"open2_of_a_file", call_open2_of_a_file, 1, "", MDS, 0, true},
	{"open2_that_truncates", call_open2_that_truncates, 1, "getxattr", MDS,
	 SLOT | CHANGE, false},
	{"open2_that_takes_over", call_open2_that_takes_over, 1,
	 "setattr getxattr", MDS, SLOT | CHANGE | CASYNC_CALL_ATTR_SLOT, false},
	{"reopen2", call_reopen2, 1, "", MDS, 0, true},
	{"commit2", call_commit2, 1, "", MDS | SLOT, 0, true},
	{"fallocate", call_fallocate, 1,
	 "getxattr fallocate fallocate fallocate", MDS, SLOT | CHANGE, true},
	{"seek2", call_seek2, 1, "", MDS, 0, true},
	{"getxattrs", call_getxattrs, 1, "getxattr", MDS, 0, false},
	{"setxattrs", call_setxattrs, 1, "setxattr", MDS | CHANGE, 0, false},
	{"removexattrs", call_removexattrs, 1, "removexattr", MDS | CHANGE, 0,
	 false},
	{"listxattrs", call_listxattrs, 1, "listxattr", MDS, 0, false},
	{"lease_op2", call_lease_op2, 1, "", CASYNC_CALL_CLIENT,
	 CASYNC_CALL_MOUNT_SLOT, true},
	{"lease_op2_to_write", call_lease_op2_to_write, 1, "",
	 CASYNC_CALL_CLIENT, CASYNC_CALL_MOUNT_SLOT, true},
	{"get_fs_dynamic_info", call_get_fs_dynamic_info, 1, "statfs", STATFS,
	 0, true},
};

/* Its objects are looked up, and it holds what it needs. */
static void check_success(const struct op_case *c)
{
	new_client();
	assert_int_equal(c->call().major, ERR_FSAL_NO_ERROR);
	assert_true(seen.calls > 0);
	assert_string_equal(fake_names.log, c->log);
	assert_int_equal(seen.always, c->always);
	assert_int_equal(seen.ever, c->always | c->also);
	assert_false(seen.old_inode);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), c->objects);
	/* One for each object, and none for what was made and released. */
	assert_int_equal(fake.inode_refs, c->objects);
	check_nothing_held();
}

static void check_own_error(const struct op_case *c)
{
	forget_seen();
	set_result(-ENOSPC);
	assert_int_equal(c->call().major, ERR_FSAL_NOSPC);
	assert_true(seen.calls > 0);
	check_nothing_held();
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
	set_result(0);
}

static void check_object_is_gone(const struct op_case *c)
{
	new_client();
	forget_seen();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(c->call().major, ERR_FSAL_STALE);
	assert_int_equal(seen.calls, 0);
	check_nothing_held();
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
	use_objects();
}

static void check_credentials(const struct op_case *c)
{
	forget_seen();
	fake_names.perms_made = 0;
	assert_int_equal(c->call().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_names.perms_made == 0, c->as_root);
	check_nothing_held();
}

static void check_full_mount(const struct op_case *c)
{
	if (!((c->always | c->also) & CASYNC_CALL_MOUNT_SLOT))
		return;
	forget_seen();
	forget_answers();
	*mount_inside() = MOUNT_SLOTS;
	stub_mount.callers.room.progress_ns = 0;
	assert_int_equal(c->call().major, ERR_FSAL_DELAY);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS);
	*mount_inside() = 0;
	check_nothing_held();
}

static void check_loss(const struct op_case *c)
{
	fsal_status_t status;

	/* Its answer shows the loss. */
	forget_seen();
	set_result(-CASYNC_EBLOCKLISTED);
	status = c->call();
	assert_true(seen.calls > 0);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	check_nothing_held();
	set_result(0);

	/* The client is being replaced. */
	forget_seen();
	lose_client();
	status = c->call();
	assert_int_equal(seen.calls, 0);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, ETIME);
	check_nothing_held();

	/* And is not any more. */
	stub_mount.keeper.reconnect = 0;
	assert_int_equal(c->call().major, ERR_FSAL_IO);
	assert_int_equal(seen.calls, 0);
	check_nothing_held();
}

TEST_ROWS(check_op, op_cases, operations_up, operations_down)
{
	const struct op_case *c = *state;

	check_success(c);
	check_own_error(c);
	check_object_is_gone(c);
	check_credentials(c);
	check_full_mount(c);
	check_loss(c);
}

static int lookups_until_gone;

static void lose_one_later(enum fake_blocking which)
{
	if (which == FAKE_LOOKUP_VINO && lookups_until_gone-- == 0)
		fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
}

/* The first so many look-ups find their object. */
static fsal_errors_t with_objects(fsal_status_t (*call)(void), int found)
{
	fsal_errors_t answer;

	new_client();
	forget_seen();
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
	lookups_until_gone = found;
	fake.hook = lose_one_later;
	answer = call().major;
	check_nothing_held();
	return answer;
}

OPERATION_CASE(each_object_of_rename_and_link_may_be_gone)
{
	int i;

	for (i = 0; i < 4; i++) {
		assert_int_equal(with_objects(call_link, i),
				 i < 2 ? ERR_FSAL_STALE : ERR_FSAL_NO_ERROR);
		assert_int_equal(seen.calls, i < 2 ? 0 : 3);
		assert_int_equal(with_objects(call_rename, i),
				 i < 3 ? ERR_FSAL_STALE : ERR_FSAL_NO_ERROR);
		assert_int_equal(seen.calls, i < 3 ? 0 : 1);
	}
}

OPERATION_CASE(rename_gives_back_the_right_to_write)
{
	int open, refs;

	use_objects();
	open = fake.open_fhs;
	refs = fake.inode_refs;
	fake.last_open_flags = 0;
	assert_int_equal(call_rename().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.last_open_flags, O_RDONLY | O_DIRECTORY);
	assert_int_equal(fake.open_fhs, open);
	assert_int_equal(fake.inode_refs, refs);

	fake.last_open_flags = 0;
	fake.patch = 3;
	assert_int_equal(call_rename().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.last_open_flags, 0);
}

/* NFSv3 brings any bytes, and libcephfs takes a name for a path. */
OPERATION_CASE(a_name_is_no_path)
{
	static const char *const paths[] = {"", "/", "a/b", "../a", "a/", "/a"};
	size_t i, op;

	for (i = 0; i < COUNT(paths); i++) {
		const char *n = paths[i];
		const fsal_status_t answers[] = {
			lookup(n),
			make_dir(n),
			make_fifo(n),
			make_symlink(n),
			make_link(n),
			rename_to(n, "b"),
			rename_to("a", n),
			unlink_name(n),
			open_name(n, FSAL_NO_CREATE),
			open_name(n, FSAL_UNCHECKED),
		};

		for (op = 0; op < COUNT(answers); op++)
			assert_int_equal(answers[op].minor, EACCES);
	}
	assert_int_equal(seen.calls, 0);
	check_nothing_held();
}

OPERATION_CASE(any_other_bytes_are_a_name)
{
	static const char *const names[] = {"a", "..", ".", "...", "a\\b", " "};
	size_t i;

	for (i = 0; i < COUNT(names); i++)
		assert_int_equal(lookup(names[i]).major, ERR_FSAL_NO_ERROR);
	/* Is ".." in the export?  It asks for the parent of what it has found. */
	assert_int_equal(seen.calls, i + 1);
	check_nothing_held();
}

OPERATION_CASE(getattrs_marks_what_it_did_not_get)
{
	attrs = (struct fsal_attrlist){.request_mask = ATTR_RDATTR_ERR,
				       .valid_mask = ATTR_SIZE};
	lose_client();
	assert_int_equal(call_getattrs().major, ERR_FSAL_DELAY);
	assert_true(attrs.valid_mask == ATTR_RDATTR_ERR);
	attrs = (struct fsal_attrlist){.valid_mask = ATTR_SIZE};
	assert_int_equal(call_getattrs().major, ERR_FSAL_DELAY);
	assert_true(attrs.valid_mask == ATTR_SIZE);
}

/* By libcephfs' error, too. */
OPERATION_CASE(getattrs_that_fails_marks_it_too)
{
	use_objects();
	set_result(-ENOTCONN);
	attrs = (struct fsal_attrlist){.request_mask = ATTR_RDATTR_ERR,
				       .valid_mask = ATTR_SIZE};
	assert_int_equal(call_getattrs().major, ERR_FSAL_DELAY);
	assert_true(attrs.valid_mask == ATTR_RDATTR_ERR);
}

/* --- operations within others: one slot, one guard */

static struct fsal_attrlist out;

static fsal_status_t make_dir_with_owner(void)
{
	attrs = (struct fsal_attrlist){
		.valid_mask = ATTR_MODE | ATTR_OWNER, .mode = 0755, .owner = 7};
	out = (struct fsal_attrlist){.request_mask = ATTR_MODE};
	fake_names.nothing_yet = true;
	return answered(casync_mkdir(DIR_HDL(0), "a", &attrs, &made,
				     &out NO_PARENT_ATTRS));
}

OPERATION_CASE(creation_sets_attributes_in_its_own_call)
{
	*mount_inside() = MOUNT_SLOTS - 1;
	assert_int_equal(make_dir_with_owner().major, ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "lookup mkdir lookup setattr");
	assert_int_equal(fake_names.set_mask, CEPH_SETATTR_UID);
	assert_int_equal(*mount_inside(), MOUNT_SLOTS - 1);
	*mount_inside() = 0;
	assert_int_equal(seen.always & MDS, MDS);
	check_nothing_held();
}

/* A directory that the client did not ask for in this way is no use to it. */
OPERATION_CASE(creation_whose_attributes_fail_is_undone)
{
	fake_names.fails = "setattr";
	fake_names.result = -ENOSPC;
	assert_int_equal(make_dir_with_owner().major, ERR_FSAL_NOSPC);
	assert_string_equal(fake_names.log,
			    "lookup mkdir lookup setattr lookup rmdir");
	assert_int_equal(fake.inode_refs, 0);
	check_nothing_held();
}

OPERATION_CASE(creation_whose_attributes_show_the_loss_is_delayed)
{
	fake_names.fails = "setattr";
	fake_names.result = -ENOTCONN;
	assert_int_equal(make_dir_with_owner().major, ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	check_nothing_held();
}

/* The name may be lost, so there must be none. */
OPERATION_CASE(creation_whose_name_is_not_journaled_is_undone)
{
	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	assert_int_equal(make_dir("a").major, ERR_FSAL_IO);
	assert_string_equal(fake_names.log, "lookup mkdir lookup lookup rmdir");
	check_nothing_held();
}

OPERATION_CASE(change_of_a_name_waits_for_the_journal)
{
	static fsal_status_t (*const changes[])(void) = {call_link, call_rename,
							 call_unlink};
	size_t i;

	use_objects();
	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		unsigned int before = fake_blocking_count(FAKE_SYNC_INODE);

		fake.blocking_result[FAKE_SYNC_INODE] = 0;
		assert_int_equal(changes[i]().major, ERR_FSAL_NO_ERROR);
		fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
		assert_int_equal(changes[i]().major, ERR_FSAL_IO);
		assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE),
				 before + 2);
	}
	check_nothing_held();
}

OPERATION_CASE(name_waits_for_the_journal)
{
	struct casync_object made = {.queue.create = CASYNC_CREATE_UNJOURNALED};

	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	assert_int_equal(casync_namespace_changed(&dirs[0], NULL), 0);
	assert_int_equal(casync_namespace_changed(&dirs[0], &made), 0);
	assert_false(casync_queue_is_unjournaled(&made.queue));
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	assert_false(stub_mount.journal.pending);
}

OPERATION_CASE(name_that_may_be_lost_is_an_error)
{
	struct casync_object made = {.queue.create = CASYNC_CREATE_UNJOURNALED};

	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	fake.blocking_result[FAKE_SYNC_INODE] = -ESHUTDOWN;
	assert_int_equal(casync_namespace_changed(&dirs[0], &made), -ESHUTDOWN);
	assert_true(casync_queue_is_unjournaled(&made.queue));
}

OPERATION_CASE(name_asks_for_the_journal)
{
	struct casync_object made = {.queue.create = CASYNC_CREATE_UNJOURNALED};

	made.handle.type = SYMBOLIC_LINK;
	assert_int_equal(casync_namespace_changed(&dirs[0], &made), 0);
	assert_true(stub_mount.journal.pending);
	assert_false(stub_mount.journal.new_file);
	made.handle.type = REGULAR_FILE;
	assert_int_equal(casync_namespace_changed(&dirs[0], &made), 0);
	assert_true(stub_mount.journal.new_file);
	assert_true(casync_queue_is_unjournaled(&made.queue));
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	memset(&stub_mount.journal.changed, 0,
	       sizeof(stub_mount.journal.changed));
	stub_mount.journal.pending = false;
	stub_mount.journal.new_file = false;
}

/* --- SETATTR */

OPERATION_CASE(what_the_mds_has_is_not_of_a_size)
{
	use_objects();
	fake_names.log[0] = '\0';
	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	assert_int_equal(call_setattr2().major, ERR_FSAL_NO_ERROR);
	assert_null(strstr(fake_names.log, "getxattr"));
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_MDS;
	assert_int_equal(call_setattr2().major, ERR_FSAL_NO_ERROR);
	assert_non_null(strstr(fake_names.log, "getxattr"));
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_int_equal(call_setattr2_of_the_size().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	check_nothing_held();
}

/* Also for the look at the owner that comes before a chown. */
OPERATION_CASE(credentials_are_made_once)
{
	use_objects();
	attrs = (struct fsal_attrlist){.valid_mask = ATTR_OWNER, .owner = 7};
	fake_names.log[0] = '\0';
	fake_names.perms_made = 0;
	assert_int_equal(casync_setattr2(FILE_HDL, false, NULL, &attrs).major,
			 ERR_FSAL_NO_ERROR);
	assert_non_null(strstr(fake_names.log, "setattr"));
	assert_int_equal(fake_names.perms_made, 1);
	check_nothing_held();
}

static void chown_to(uint64_t owner, const char *log, unsigned int flushes)
{
	unsigned int before = fake_blocking_count(FAKE_SYNC_INODE);

	attrs = (struct fsal_attrlist){.valid_mask = ATTR_OWNER,
				       .owner = owner};
	op_ctx->creds.caller_uid = 0;
	fake_names.log[0] = '\0';
	assert_int_equal(casync_setattr2(FILE_HDL, false, NULL, &attrs).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, log);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE) - before,
			 flushes);
}

/* The fake's files are root's. */
OPERATION_CASE(owner_that_the_mds_has_is_told_to_nobody)
{
	struct casync_object second = {.id = rig.obj->id};

	use_objects();
	chown_to(0, "setattr", 0);
	assert_int_equal(fake_names.set_mask, 0);
	chown_to(7, "setattr getxattr getxattr", 0);
	rig.obj->chowns = 1;
	chown_to(0, "setattr getxattr getxattr", 0);
	rig.obj->chowns = 0;
	/* Another export may have a chown of its own under way. */
	(void)casync_object_table_enter(&stub_mount.upcalls.table, &second);
	chown_to(0, "setattr getxattr getxattr", 0);
	(void)casync_object_table_leave(&stub_mount.upcalls.table, &second);
	rig.obj->chown_failed = true;
	chown_to(0, "setattr getxattr getxattr", 0);
	check_nothing_held();
}

/* The journal may not have what the MDS has. */
OPERATION_CASE(owner_that_is_not_journaled_is_waited_for)
{
	use_objects();
	chown_to(0, "setattr", 0);
	rig.exp.keys.tuning.stable_metadata = CASYNC_METADATA_JOURNAL;
	chown_to(0, "setattr getxattr", 1);
	assert_int_not_equal(fake_names.set_mask, 0);
	chown_to(0, "setattr", 1);
	assert_int_equal(fake_names.set_mask, 0);
	check_nothing_held();
}

/* --- delegations */

/* A client that ends has nothing of it any more. */
OPERATION_CASE(delegation_is_given_back_without_a_client)
{
	lose_client();
	rig.state.state.state_type = STATE_TYPE_DELEG;
	assert_int_equal(casync_lease_op2(FILE_HDL, &rig.state.state, NULL,
					  FSAL_DELEG_NONE)
				 .major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(seen.calls, 0);
	check_nothing_held();
}

/* --- what an export is asked */

static struct export_ops export_ops(void)
{
	struct export_ops ops;

	casync_export_ops_init(&ops);
	return ops;
}

static fsal_status_t call_lookup_path(void)
{
	return answered(
		export_ops().lookup_path(&rig.exp.export, "/", &made, NULL));
}

static fsal_status_t call_create_handle(void)
{
	struct gsh_buffdesc desc = {0};

	return answered(export_ops().create_handle(&rig.exp.export, &desc,
						   &made, NULL));
}

struct export_case {
	const char *name;
	fsal_status_t (*call)(void);
	fsal_errors_t gone;
};

static const struct export_case export_cases[] = {
	{"lookup_path", call_lookup_path, ERR_FSAL_NOENT},
	{"create_handle", call_create_handle, ERR_FSAL_STALE},
};

static void set_find_result(int rc)
{
	fake_names.result = rc;
	fake.blocking_result[FAKE_LOOKUP_VINO] = rc;
}

static void count_slots(enum fake_blocking which)
{
	if (which == FAKE_LOOKUP_VINO)
		seen.ever |= *mount_inside() == 1 && !casync_guard_is_empty(
							     &stub_mount.guard)
				     ? MDS
				     : 0;
}

TEST_ROWS(check_export_op, export_cases, operations_up, operations_down)
{
	const struct export_case *c = *state;

	fake.hook = count_slots;
	assert_int_equal(c->call().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(seen.ever, MDS);
	check_nothing_held();
	set_find_result(-ENOENT);
	assert_int_equal(c->call().major, c->gone);
	check_nothing_held();
	set_find_result(0);
	*mount_inside() = MOUNT_SLOTS;
	stub_mount.callers.room.progress_ns = 0;
	assert_int_equal(c->call().major, ERR_FSAL_DELAY);
	*mount_inside() = 0;
	set_find_result(-ENOTCONN);
	assert_int_equal(c->call().major, ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	set_find_result(0);
	lose_client();
	assert_int_equal(c->call().major, ERR_FSAL_DELAY);
	check_nothing_held();
	stub_mount.keeper.reconnect = 0;
	assert_int_equal(c->call().major, ERR_FSAL_IO);
	check_nothing_held();
}

/* A monitor that does not answer keeps a few workers of the export. */
OPERATION_CASE(full_statfs_slots_are_a_delay)
{
	uint32_t *inside = &rig.exp.statfs.inside;

	*inside = 8;
	assert_int_equal(call_get_fs_dynamic_info().major, ERR_FSAL_DELAY);
	assert_int_equal(*inside, 8);
	*inside = 0;
	check_nothing_held();
}

/* Nor does the MDS keep a request for space, or the other way round. */
OPERATION_CASE(full_mount_answers_for_space)
{
	use_objects();
	*mount_inside() = MOUNT_SLOTS;
	assert_int_equal(call_get_fs_dynamic_info().major, ERR_FSAL_NO_ERROR);
	*mount_inside() = 0;
}

/* --- slots of a file */

OPERATION_CASE(full_slots_of_a_file_are_a_delay)
{
	static fsal_status_t (*const changes[])(void) = {
		call_setattr2, call_setattr2_of_the_size, call_fallocate,
		call_commit2};
	uint32_t *attr = &rig.obj->getattr[0].inside;
	uint32_t *change = &rig.obj->change.inside;
	size_t i;

	use_objects();
	forget_seen();
	rig.obj->getattr[0].progress_ns = 0;
	*attr = casync_budget_quarter();
	assert_int_equal(call_getattrs().major, ERR_FSAL_DELAY);
	assert_int_equal(seen.calls, 0);
	*attr = 0;
	*change = casync_budget_quarter();
	for (i = 0; i < COUNT(changes); i++)
		assert_int_equal(changes[i]().major, ERR_FSAL_DELAY);
	assert_string_equal(fake_names.log, "");
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	*change = 0;
	check_nothing_held();
}
