/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The operations behind the guard are stand-ins, but for READ and WRITE.  The
 * keeper is real, without its thread.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "clock.h"
#include "errors.h"
#include "guarded.h"
#include "delegations.h"
#include "lock_records.h"
#include "obj_ops.h"
#include "object_table.h"
#include "request.h"
#include "revive.h"
#include "stay.h"
#include "stub_mount.h"

static const char old_inode, new_inode;
#define OLD_INODE ((struct Inode *)&old_inode)
#define NEW_INODE ((struct Inode *)&new_inode)

/* --- the operations */

static int calls;
static bool was_inside;
static bool inode_was_new;
static fsal_status_t result;

static fsal_status_t called(const struct fsal_obj_handle *obj_hdl)
{
	calls++;
	was_inside = !casync_guard_is_empty(&stub_mount.guard);
	inode_was_new =
		container_of(obj_hdl, const struct casync_object, handle)
			->inode == NEW_INODE;
	return result;
}

/* Parameters that nobody looks at. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

fsal_status_t casync_lookup(struct fsal_obj_handle *dir_hdl, const char *name,
			    struct fsal_obj_handle **handle,
			    struct fsal_attrlist *attrs_out)
{
	return called(dir_hdl);
}

fsal_status_t casync_mkdir(struct fsal_obj_handle *dir_hdl, const char *name,
			   struct fsal_attrlist *attrs_in,
			   struct fsal_obj_handle **new_obj,
			   struct fsal_attrlist *attrs_out,
			   struct fsal_attrlist *parent_pre,
			   struct fsal_attrlist *parent_post)
{
	return called(dir_hdl);
}

fsal_status_t casync_mknode(struct fsal_obj_handle *dir_hdl, const char *name,
			    object_file_type_t nodetype,
			    struct fsal_attrlist *attrs_in,
			    struct fsal_obj_handle **new_obj,
			    struct fsal_attrlist *attrs_out,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post)
{
	return called(dir_hdl);
}

fsal_status_t casync_symlink(struct fsal_obj_handle *dir_hdl, const char *name,
			     const char *link_path,
			     struct fsal_attrlist *attrs_in,
			     struct fsal_obj_handle **new_obj,
			     struct fsal_attrlist *attrs_out,
			     struct fsal_attrlist *parent_pre,
			     struct fsal_attrlist *parent_post)
{
	return called(dir_hdl);
}

fsal_status_t casync_readlink(struct fsal_obj_handle *obj_hdl,
			      utf8string *link_content, bool refresh)
{
	return called(obj_hdl);
}

fsal_status_t casync_link(struct fsal_obj_handle *obj_hdl,
			  struct fsal_obj_handle *destdir_hdl, const char *name,
			  struct fsal_attrlist *destdir_pre,
			  struct fsal_attrlist *destdir_post)
{
	return called(obj_hdl);
}

fsal_status_t casync_rename(
	struct fsal_obj_handle *obj_hdl, struct fsal_obj_handle *olddir_hdl,
	const char *old_name, struct fsal_obj_handle *newdir_hdl,
	const char *new_name, struct fsal_attrlist *olddir_pre,
	struct fsal_attrlist *olddir_post, struct fsal_attrlist *newdir_pre,
	struct fsal_attrlist *newdir_post)
{
	return called(obj_hdl);
}

fsal_status_t casync_unlink(struct fsal_obj_handle *dir_hdl,
			    struct fsal_obj_handle *obj_hdl, const char *name,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post)
{
	return called(dir_hdl);
}

fsal_status_t casync_readdir(struct fsal_obj_handle *dir_hdl,
			     fsal_cookie_t *whence, void *dir_state,
			     fsal_readdir_cb cb, attrmask_t attrmask, bool *eof)
{
	return called(dir_hdl);
}

fsal_status_t casync_getattrs(struct fsal_obj_handle *obj_hdl,
			      struct fsal_attrlist *attrs_out)
{
	return called(obj_hdl);
}

fsal_status_t casync_setattr2(struct fsal_obj_handle *obj_hdl, bool bypass,
			      struct state_t *state,
			      struct fsal_attrlist *attrib_set)
{
	return called(obj_hdl);
}

fsal_status_t
casync_open2(struct fsal_obj_handle *obj_hdl, struct state_t *state,
	     fsal_openflags_t openflags, enum fsal_create_mode createmode,
	     const char *name, struct fsal_attrlist *attrs_in,
	     fsal_verifier_t verifier, struct fsal_obj_handle **new_obj,
	     struct fsal_attrlist *attrs_out, bool *caller_perm_check,
	     struct fsal_attrlist *parent_pre,
	     struct fsal_attrlist *parent_post)
{
	return called(obj_hdl);
}

fsal_status_t casync_reopen2(struct fsal_obj_handle *obj_hdl,
			     struct state_t *state, fsal_openflags_t openflags)
{
	return called(obj_hdl);
}

fsal_status_t casync_fallocate(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, uint64_t offset,
			       uint64_t length, bool allocate)
{
	return called(obj_hdl);
}

fsal_status_t casync_seek2(struct fsal_obj_handle *obj_hdl,
			   struct state_t *state, struct io_info *info)
{
	return called(obj_hdl);
}

fsal_status_t casync_lock_op2(struct fsal_obj_handle *obj_hdl,
			      struct state_t *state, void *owner,
			      fsal_lock_op_t lock_op,
			      fsal_lock_param_t *request_lock,
			      fsal_lock_param_t *conflicting_lock)
{
	return called(obj_hdl);
}

fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg)
{
	return called(obj_hdl);
}

fsal_status_t casync_getxattrs(struct fsal_obj_handle *obj_hdl,
			       xattrkey4 *xa_name, xattrvalue4 *xa_value)
{
	return called(obj_hdl);
}

fsal_status_t casync_setxattrs(struct fsal_obj_handle *obj_hdl,
			       setxattr_option4 option, xattrkey4 *xa_name,
			       xattrvalue4 *xa_value)
{
	return called(obj_hdl);
}

fsal_status_t casync_removexattrs(struct fsal_obj_handle *obj_hdl,
				  xattrkey4 *xa_name)
{
	return called(obj_hdl);
}

fsal_status_t casync_listxattrs(struct fsal_obj_handle *obj_hdl,
				count4 la_maxcount, nfs_cookie4 *la_cookie,
				bool_t *lr_eof, xattrlist4 *lr_names)
{
	return called(obj_hdl);
}

/* From stay.c, which the thread would call. */

void casync_stay(void)
{
}

#pragma GCC diagnostic pop

/* --- */

static struct fsal_obj_ops ops;
static struct casync_object others[2];
static int owner;

static void set_up_object(struct casync_object *obj)
{
	obj->exp = &rig.exp;
	obj->inode = OLD_INODE;
	obj->handle.type = DIRECTORY;
	casync_file_size_init(&obj->size, &rig.cuts);
	(void)casync_object_table_enter(casync_mount_object_table(&stub_mount),
					obj);
}

static int up(void **state)
{
	struct casync_keeper *keeper = &stub_mount.keeper;
	int rc = request_up(state);
	uint64_t i;

	calls = 0;
	was_inside = false;
	inode_was_new = false;
	result = fsalstat(ERR_FSAL_NO_ERROR, 0);
	casync_guarded_init(&ops);
	fake.inode = NEW_INODE;
	rig.obj->inode = OLD_INODE;
	(void)casync_object_table_enter(casync_mount_object_table(&stub_mount),
					rig.obj);
	memset(others, 0, sizeof(others));
	for (i = 0; i < 2; i++) {
		others[i].id.ino = 100 + i;
		set_up_object(&others[i]);
	}
	pthread_mutex_init(&keeper->thread.lock, NULL);
	casync_cond_init(&keeper->thread.wake);
	keeper->thread.call = (struct casync_deadline_call *)&stub_mount;
	keeper->reconnect = 1;
	return rc;
}

static int down(void **state)
{
	pthread_cond_destroy(&stub_mount.keeper.thread.wake);
	pthread_mutex_destroy(&stub_mount.keeper.thread.lock);
	return request_down(state);
}

static void new_client(void)
{
	casync_guard_renew(&stub_mount.guard);
}

static void lose_client(void)
{
	casync_session_heard(&stub_mount.session, ENOTCONN);
	casync_guard_set(&stub_mount.guard, CASYNC_GUARD_RELEASES);
}

/* --- each operation */

#define HDL (&rig.obj->handle)
#define OTHER(i) (&others[i].handle)

static struct fsal_attrlist attrs;

struct op_case {
	const char *name;
	fsal_status_t (*call)(void);
	int objects; /* that are made ones of the current client */
};

#define OP(op, ...)                          \
	static fsal_status_t call_##op(void) \
	{                                    \
		return ops.op(__VA_ARGS__);  \
	}

OP(lookup, HDL, "a", NULL, NULL)
OP(mkdir, HDL, "a", NULL, NULL, NULL, NULL, NULL)
OP(mknode, HDL, "a", FIFO_FILE, NULL, NULL, NULL, NULL, NULL)
OP(symlink, HDL, "a", "b", NULL, NULL, NULL, NULL, NULL)
OP(readlink, HDL, NULL, false)
OP(link, HDL, OTHER(0), "a", NULL, NULL)
OP(rename, HDL, OTHER(0), "a", OTHER(1), "b", NULL, NULL, NULL, NULL)
OP(unlink, HDL, OTHER(0), "a", NULL, NULL)
OP(readdir, HDL, NULL, NULL, NULL, 0, NULL)
OP(getattrs, HDL, &attrs)
OP(setattr2, HDL, false, NULL, NULL)
OP(open2, HDL, NULL, FSAL_O_READ, FSAL_NO_CREATE, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL)
OP(reopen2, HDL, NULL, FSAL_O_READ)
OP(fallocate, HDL, NULL, 0, 1, false)
OP(seek2, HDL, NULL, NULL)
OP(getxattrs, HDL, NULL, NULL)
OP(setxattrs, HDL, SETXATTR4_EITHER, NULL, NULL)
OP(removexattrs, HDL, NULL)
OP(listxattrs, HDL, 1, NULL, NULL, NULL)

static fsal_status_t call_lease_op2(void)
{
	return ops.lease_op2(HDL, NULL, NULL, FSAL_DELEG_RD);
}

static const struct op_case op_cases[] = {
	{"lookup", call_lookup, 1},
	{"mkdir", call_mkdir, 1},
	{"mknode", call_mknode, 1},
	{"symlink", call_symlink, 1},
	{"readlink", call_readlink, 1},
	{"link", call_link, 2},
	{"rename", call_rename, 3},
	{"unlink", call_unlink, 1},
	{"readdir", call_readdir, 1},
	{"getattrs", call_getattrs, 1},
	{"setattr2", call_setattr2, 1},
	{"open2", call_open2, 1},
	{"reopen2", call_reopen2, 1},
	{"fallocate", call_fallocate, 1},
	{"seek2", call_seek2, 1},
	{"getxattrs", call_getxattrs, 1},
	{"setxattrs", call_setxattrs, 1},
	{"removexattrs", call_removexattrs, 1},
	{"listxattrs", call_listxattrs, 1},
	{"lease_op2", call_lease_op2, 1},
};

static void check_outside(void)
{
	assert_true(casync_guard_is_empty(&stub_mount.guard));
}

static void check_op(void **state)
{
	const struct op_case *c = *state;
	fsal_status_t status;

	/* Its objects are looked up, and it runs inside. */
	new_client();
	assert_int_equal(c->call().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 1);
	assert_true(was_inside);
	assert_true(inode_was_new);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), c->objects);
	check_outside();

	/* Its own error is the client's. */
	result = fsalstat(ERR_FSAL_NOENT, ENOENT);
	assert_int_equal(c->call().major, ERR_FSAL_NOENT);
	check_outside();

	/* An object of it is gone. */
	new_client();
	calls = 0;
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(c->call().major, ERR_FSAL_STALE);
	assert_int_equal(calls, 0);
	check_outside();
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;

	/* Its answer shows the loss. */
	result = casync_status(-CASYNC_EBLOCKLISTED);
	status = c->call();
	assert_int_equal(calls, 1);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
	check_outside();

	/* The client is being replaced. */
	lose_client();
	status = c->call();
	assert_int_equal(calls, 1);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, CASYNC_EBLOCKLISTED);
	check_outside();

	/* And is not any more. */
	stub_mount.keeper.reconnect = 0;
	assert_int_equal(c->call().major, ERR_FSAL_IO);
	check_outside();
}

static int lookups_until_gone;

static void lose_one_later(enum fake_blocking which)
{
	if (which == FAKE_LOOKUP_VINO && lookups_until_gone-- == 0)
		fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
}

static void each_object_of_rename_and_link_may_be_gone(void **state)
{
	int i;

	for (i = 1; i < 4; i++) {
		new_client();
		fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
		lookups_until_gone = i;
		fake.hook = lose_one_later;
		assert_int_equal(call_link().major,
				 i < 2 ? ERR_FSAL_STALE : ERR_FSAL_NO_ERROR);
		assert_int_equal(calls, i < 2 ? 0 : 1);
		check_outside();
		calls = 0;
		new_client();
		fake.blocking_result[FAKE_LOOKUP_VINO] = 0;
		lookups_until_gone = i;
		assert_int_equal(call_rename().major,
				 i < 3 ? ERR_FSAL_STALE : ERR_FSAL_NO_ERROR);
		assert_int_equal(calls, i < 3 ? 0 : 1);
		check_outside();
		calls = 0;
	}
}

/* NFSv3 brings any bytes, and libcephfs takes a name for a path. */
static void a_name_is_no_path(void **state)
{
	static const char *const paths[] = {"", "/", "a/b", "../a", "a/", "/a"};
	static const char *const names[] = {"a", "..", ".", "...", "a\\b", " "};
	const int ops_with_a_name = 9;
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *n = paths[i];
		fsal_status_t answers[] = {
			ops.lookup(HDL, n, NULL, NULL),
			ops.mkdir(HDL, n, NULL, NULL, NULL, NULL, NULL),
			ops.mknode(HDL, n, FIFO_FILE, NULL, NULL, NULL, NULL,
				   NULL),
			ops.symlink(HDL, n, "a/b", NULL, NULL, NULL, NULL,
				    NULL),
			ops.link(HDL, OTHER(0), n, NULL, NULL),
			ops.rename(HDL, OTHER(0), n, OTHER(1), "b", NULL, NULL,
				   NULL, NULL),
			ops.rename(HDL, OTHER(0), "a", OTHER(1), n, NULL, NULL,
				   NULL, NULL),
			ops.unlink(HDL, OTHER(0), n, NULL, NULL),
			ops.open2(HDL, NULL, FSAL_O_READ, FSAL_NO_CREATE, n,
				  NULL, NULL, NULL, NULL, NULL, NULL, NULL),
		};
		int op;

		for (op = 0; op < ops_with_a_name; op++)
			assert_int_equal(answers[op].minor, EACCES);
	}
	assert_int_equal(calls, 0);
	check_outside();
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(ops.lookup(HDL, names[i], NULL, NULL).major,
				 ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, (int)i);
	check_outside();
}

static void getattrs_marks_what_it_did_not_get(void **state)
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

/* A client that ends has nothing of it any more. */
static void delegation_is_given_back_without_a_client(void **state)
{
	lose_client();
	assert_int_equal(ops.lease_op2(HDL, NULL, NULL, FSAL_DELEG_NONE).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 1);
	assert_false(was_inside);
}

/* --- READ and WRITE */

static sem_t answered;
static fsal_status_t io_status;

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	(void)obj;
	(void)obj_data;
	(void)caller_data;
	io_status = status;
	sem_post(&answered);
}

static void start_io(struct io *io, bool writes)
{
	if (writes)
		ops.write2(HDL, false, done, &io->arg, NULL);
	else
		ops.read2(HDL, false, done, &io->arg, NULL);
}

static void io_leaves_when_it_is_answered(void **state)
{
	struct io *io;
	int writes;

	sem_init(&answered, 0, 0);
	fake.plan.when = FAKE_LATER;
	for (writes = 0; writes < 2; writes++) {
		io = new_io(0, 100);
		start_io(io, writes != 0);
		assert_false(casync_guard_is_empty(&stub_mount.guard));
		fake_complete_in_order();
		assert_true(rig_wait(&answered));
		check_outside();
		assert_int_equal(io_status.major, ERR_FSAL_NO_ERROR);
		assert_int_equal(io->arg.io_amount, 100);
		free_io(io);
	}
	stop_threads();
	sem_destroy(&answered);
}

static void io_without_a_client_is_delayed(void **state)
{
	struct io *io = new_io(0, 100);
	int writes;

	sem_init(&answered, 0, 0);
	lose_client();
	for (writes = 0; writes < 2; writes++) {
		io->arg.io_amount = 12345;
		start_io(io, writes != 0);
		assert_int_equal(sem_trywait(&answered), 0);
		assert_int_equal(io_status.major, ERR_FSAL_DELAY);
		assert_int_equal(io->arg.io_amount, 0);
		check_outside();
	}
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(stub.ios_started, 0);
	free_io(io);
	sem_destroy(&answered);
}

/* libcephfs answers with an error; nobody knows of the loss as yet. */
static void io_that_shows_the_loss_is_delayed(void **state)
{
	struct io *io = new_io(0, 100);

	sem_init(&answered, 0, 0);
	fake.plan.result = -CASYNC_EBLOCKLISTED;
	start_io(io, true);
	assert_true(rig_wait(&answered));
	assert_int_equal(io_status.major, ERR_FSAL_DELAY);
	assert_int_equal(io->arg.io_amount, 0);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
	stop_threads();
	check_outside();
	free_io(io);
	sem_destroy(&answered);
}

/* Its requests are refused with an error that no lost session gives: exports
 * that share the mount go on. */
static void io_of_a_removed_export_is_no_loss(void **state)
{
	struct io *io = new_io(0, 100);
	int writes;

	sem_init(&answered, 0, 0);
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	for (writes = 0; writes < 2; writes++) {
		start_io(io, writes != 0);
		assert_true(rig_wait(&answered));
		assert_int_equal(io_status.major, ERR_FSAL_DELAY);
		assert_false(casync_session_error(io_status.minor));
		assert_int_equal(casync_session_state(&stub_mount.session),
				 CASYNC_SESSION_SERVES);
	}
	assert_int_equal(fake.call_count, 0);
	stop_threads();
	check_outside();
	free_io(io);
	sem_destroy(&answered);
}

/* --- locks */

static fsal_status_t lock_range(fsal_lock_op_t op, uint64_t start,
				uint64_t length)
{
	fsal_lock_param_t range = {.lock_type = FSAL_LOCK_W,
				   .lock_start = start,
				   .lock_length = length};

	return ops.lock_op2(HDL, &rig.state.state, &owner, op, &range, NULL);
}

static fsal_status_t lock_op(fsal_lock_op_t op)
{
	return lock_range(op, 10, 10);
}

static void hold_lock(void)
{
	const fsal_lock_param_t range = {
		.lock_type = FSAL_LOCK_W, .lock_start = 10, .lock_length = 20};

	casync_lock_records_locked(rig.obj, &rig.state.fd, &owner, &range);
}

static size_t records(void)
{
	return glist_length(&rig.obj->locks.list);
}

static uint64_t first_byte(void)
{
	const struct casync_lock_record *record = glist_first_entry(
		&rig.obj->locks.list, struct casync_lock_record, link);

	return record != NULL ? record->first : UINT64_MAX;
}

/* The MDS does not answer, and the mount's share of the workers waits. */
static void full_mount_asks_to_retry(void **state)
{
	uint32_t *inside =
		&stub_mount.callers.lanes[CASYNC_LANE_COMPLETER].inside;

	*inside = 200;
	assert_int_equal(call_getattrs().major, ERR_FSAL_DELAY);
	/* A delay would be a conflict. */
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_IN_GRACE);
	assert_int_equal(calls, 0);
	/* Ganesha would repeat it without a pause. */
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 1);
	assert_int_equal(*inside, 200);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	*inside = 0;
	assert_int_equal(call_getattrs().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(*inside, 0);
}

static void unlock_without_a_client_drops_the_record(void **state)
{
	hold_lock();
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 0);
	/* Its range, and no more. */
	assert_int_equal(records(), 1);
	assert_int_equal(first_byte(), 20);
}

/* Its holder may go on after the next loss, too. */
static void unlock_without_a_client_ends_the_loss_of_a_lock(void **state)
{
	bool *lost = &rig.state.fd.lock_lost;

	*lost = true;
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_true(*lost);
	assert_int_equal(lock_range(FSAL_OP_UNLOCK, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_false(*lost);
}

static void unlock_that_shows_the_loss_drops_the_record(void **state)
{
	hold_lock();
	result = casync_status(-ENOTCONN);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 1);
	assert_int_equal(first_byte(), 20);
}

static void unlock_whose_error_is_doubted_drops_the_record(void **state)
{
	hold_lock();
	result = fsalstat(ERR_FSAL_IO, EIO);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(first_byte(), 20);
}

static void unlock_that_fails_keeps_the_record(void **state)
{
	hold_lock();
	result = fsalstat(ERR_FSAL_PERM, EPERM);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_PERM);
	/* Ganesha is short of descriptors. */
	result = fsalstat(ERR_FSAL_DELAY, EBUSY);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_DELAY);
	assert_int_equal(first_byte(), 10);
}

/* Ganesha would repeat it for ever. */
static void unlock_succeeds_where_no_client_comes(void **state)
{
	hold_lock();
	stub_mount.keeper.reconnect = 0;
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(first_byte(), 20);
}

/* Ganesha takes a delay for a conflict. */
static void lock_without_a_client_is_asked_for_again(void **state)
{
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_IN_GRACE);
	assert_int_equal(lock_op(FSAL_OP_LOCKT).major, ERR_FSAL_IN_GRACE);
	assert_int_equal(calls, 0);
	assert_int_equal(records(), 0);
}

static void lock_that_shows_the_loss_is_asked_for_again(void **state)
{
	result = casync_status(-CASYNC_EBLOCKLISTED);
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_IN_GRACE);
	assert_int_equal(lock_op(FSAL_OP_LOCKT).major, ERR_FSAL_IN_GRACE);
}

static void lock_whose_error_is_doubted_is_asked_for_again(void **state)
{
	result = casync_status(-EBADF);
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_IN_GRACE);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_SERVES);
}

static void conflict_is_a_conflict(void **state)
{
	result = fsalstat(ERR_FSAL_DELAY, EAGAIN);
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_DELAY);
	assert_int_equal(lock_op(FSAL_OP_LOCKT).major, ERR_FSAL_DELAY);
}

static void lock_that_is_granted_is_granted(void **state)
{
	assert_int_equal(lock_op(FSAL_OP_LOCK).major, ERR_FSAL_NO_ERROR);
	assert_true(was_inside);
	check_outside();
}

#define GUARDED_CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct CMUnitTest plain_tests[] = {
	GUARDED_CASE(each_object_of_rename_and_link_may_be_gone),
	GUARDED_CASE(a_name_is_no_path),
	GUARDED_CASE(getattrs_marks_what_it_did_not_get),
	GUARDED_CASE(delegation_is_given_back_without_a_client),
	GUARDED_CASE(io_leaves_when_it_is_answered),
	GUARDED_CASE(io_without_a_client_is_delayed),
	GUARDED_CASE(io_that_shows_the_loss_is_delayed),
	GUARDED_CASE(io_of_a_removed_export_is_no_loss),
	GUARDED_CASE(full_mount_asks_to_retry),
	GUARDED_CASE(unlock_without_a_client_drops_the_record),
	GUARDED_CASE(unlock_without_a_client_ends_the_loss_of_a_lock),
	GUARDED_CASE(unlock_that_shows_the_loss_drops_the_record),
	GUARDED_CASE(unlock_whose_error_is_doubted_drops_the_record),
	GUARDED_CASE(unlock_that_fails_keeps_the_record),
	GUARDED_CASE(unlock_succeeds_where_no_client_comes),
	GUARDED_CASE(lock_without_a_client_is_asked_for_again),
	GUARDED_CASE(lock_that_shows_the_loss_is_asked_for_again),
	GUARDED_CASE(lock_whose_error_is_doubted_is_asked_for_again),
	GUARDED_CASE(conflict_is_a_conflict),
	GUARDED_CASE(lock_that_is_granted_is_granted),
};

static struct CMUnitTest tests[COUNT(plain_tests) + COUNT(op_cases)];

int main(void)
{
	size_t i;

	memcpy(tests, plain_tests, sizeof(plain_tests));
	for (i = 0; i < COUNT(op_cases); i++)
		tests[COUNT(plain_tests) + i] = (struct CMUnitTest){
			.name = op_cases[i].name,
			.test_func = check_op,
			.setup_func = up,
			.teardown_func = down,
			.initial_state = (void *)&op_cases[i],
		};
	return cmocka_run_group_tests_name("guarded", tests, NULL, NULL);
}
