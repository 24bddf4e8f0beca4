/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * OPEN: the share reservation of what it opens or creates, what it refuses, and
 * who is asked for permission.
 */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "unit.h"

#include "fsal.h"

#include "ganesha_unit.h"
#include "obj_ops.h"
#include "operations_rig.h"

static struct fsal_attrlist attrs;
static struct fsal_obj_handle *made;
static bool permission_is_asked;

static int up(void **state)
{
	int rc = operations_up(state);

	made = NULL;
	rig.state.state.state_type = STATE_TYPE_SHARE;
	/* What libcephfs is asked to open must be closed before. */
	rig_close(&rig.state.fd);
	init_fsal_fd(&rig.state.fd.fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	use_objects();
	return rc;
}

static int down(void **state)
{
	if (made != NULL)
		made->obj_ops->release(made);
	return operations_down(state);
}

static fsal_status_t open_name(struct state_t *state,
			       enum fsal_create_mode createmode)
{
	attrs = (struct fsal_attrlist){
		.valid_mask = ATTR_MODE | ATTR_OWNER, .mode = 0644, .owner = 7};
	return casync_open2(DIR_HDL(0), state, FSAL_O_RDWR, createmode, "a",
			    &attrs, NULL, &made, NULL,
			    &permission_is_asked NO_PARENT_ATTRS);
}

static fsal_status_t open_file(fsal_openflags_t openflags)
{
	return casync_open2(FILE_HDL, &rig.state.state, openflags,
			    FSAL_NO_CREATE, NULL, NULL, NULL, NULL, NULL,
			    &permission_is_asked NO_PARENT_ATTRS);
}

static void close_made(void)
{
	assert_int_equal(casync_close2(made, &rig.state.state).major,
			 ERR_FSAL_NO_ERROR);
}

/* Or a second client could open it against its DENY. */
TEST_WITH(what_open_creates_is_reserved_until_its_close, up, down)
{
	assert_int_equal(open_name(&rig.state.state, FSAL_UNCHECKED).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "create setattr getxattr getxattr");
	assert_int_equal(stub.reservations, 1);
	assert_int_equal(rig.state.fd.fsal_fd.openflags, FSAL_O_RDWR);
	assert_false(permission_is_asked);
	close_made();
	assert_int_equal(stub.reservations, 0);
}

TEST_WITH(create_without_a_state_reserves_nothing, up, down)
{
	assert_int_equal(open_name(NULL, FSAL_UNCHECKED).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(stub.reservation_changes, 0);
	assert_null(rig.state.fd.fh);
}

TEST_WITH(create_that_is_undone_reserves_nothing, up, down)
{
	fake_names.fails = "setattr";
	fake_names.result = -ENOSPC;
	assert_int_equal(open_name(&rig.state.state, FSAL_UNCHECKED).major,
			 ERR_FSAL_NOSPC);
	assert_string_equal(fake_names.log, "create setattr lookup unlink");
	assert_int_equal(stub.reservations, 0);
	assert_int_equal(fake.open_fhs, 0);
	assert_null(made);
}

TEST_WITH(what_is_opened_by_name_is_reserved, up, down)
{
	assert_int_equal(open_name(&rig.state.state, FSAL_NO_CREATE).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "lookup");
	assert_int_equal(stub.reservations, 1);
	assert_true(permission_is_asked);
	close_made();
	assert_int_equal(stub.reservations, 0);
}

TEST_WITH(what_is_opened_by_its_handle_is_reserved, up, down)
{
	assert_int_equal(open_file(FSAL_O_READ).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(stub.reservations, 1);
	assert_true(permission_is_asked);
	assert_int_equal(casync_close2(FILE_HDL, &rig.state.state).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(stub.reservations, 0);
}

TEST_WITH(open_that_fails_reserves_nothing, up, down)
{
	fake.blocking_result[FAKE_OPEN] = -ENOSPC;
	assert_int_equal(open_file(FSAL_O_READ).major, ERR_FSAL_NOSPC);
	assert_false(permission_is_asked);
	assert_int_equal(stub.reservation_changes, 2);
	assert_int_equal(stub.reservations, 0);
}

/* It is taken for the truncation alone. */
TEST_WITH(truncation_without_a_state_leaves_no_reservation, up, down)
{
	assert_int_equal(
		casync_open2(FILE_HDL, NULL, FSAL_O_WRITE | FSAL_O_TRUNC,
			     FSAL_NO_CREATE, NULL, NULL, NULL, NULL, NULL,
			     &permission_is_asked NO_PARENT_ATTRS)
			.major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(stub.reservation_changes, 2);
	assert_int_equal(stub.reservations, 0);
}

TEST_WITH(second_open_in_the_same_way_asks_nothing, up, down)
{
	assert_int_equal(open_file(FSAL_O_READ).major, ERR_FSAL_NO_ERROR);
	forget_seen();
	assert_int_equal(open_file(FSAL_O_READ).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(stub.reservations, 1);
	assert_int_equal(open_file(FSAL_O_READ | FSAL_O_TRUNC).major,
			 ERR_FSAL_NO_ERROR);
	assert_true(seen.calls > 0);
	(void)casync_close2(FILE_HDL, &rig.state.state);
}

/* --- names that are there, or come and go */

TEST_WITH(guarded_create_of_a_name_that_is_there_fails, up, down)
{
	fake_names.fails = "create";
	fake_names.result = -EEXIST;
	assert_int_equal(open_name(&rig.state.state, FSAL_GUARDED).major,
			 ERR_FSAL_EXIST);
	assert_string_equal(fake_names.log, "create");
	assert_int_equal(stub.reservation_changes, 0);
}

TEST_WITH(unchecked_create_of_a_name_that_is_there_opens_it, up, down)
{
	fake_names.fails = "create";
	fake_names.result = -EEXIST;
	assert_int_equal(open_name(&rig.state.state, FSAL_UNCHECKED).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(fake_names.log, "create lookup");
	assert_true(permission_is_asked);
	assert_int_equal(stub.reservations, 1);
	close_made();
}

/* It is there for each create, and gone for each look-up. */
static void race(const char *call, const struct Inode *in)
{
	fake_names.fails = call;
	fake_names.result = in != NULL && call[0] == 'c' ? -EEXIST : -ENOENT;
}

TEST_WITH(name_that_comes_and_goes_is_a_delay, up, down)
{
	fake_names.hook = race;
	assert_int_equal(open_name(&rig.state.state, FSAL_UNCHECKED).major,
			 ERR_FSAL_DELAY);
	assert_int_equal(fake_names.calls, 16);
	assert_int_equal(stub.reservations, 0);
}

/* --- what is no file */

static const struct type_case {
	const char *name;
	mode_t mode;
	fsal_errors_t answer;
} types[] = {
	{"directory", S_IFDIR | 0755, ERR_FSAL_ISDIR},
	{"symbolic_link", S_IFLNK | 0777, ERR_FSAL_SYMLINK},
	{"fifo", S_IFIFO | 0644, ERR_FSAL_BADTYPE},
	{"regular_file", S_IFREG | 0644, ERR_FSAL_NO_ERROR},
};

TEST_ROWS(check_type, types, up, down)
{
	const struct type_case *c = *state;
	int refs = fake.inode_refs;

	fake_names.mode = c->mode;
	assert_int_equal(open_name(&rig.state.state, FSAL_NO_CREATE).major,
			 c->answer);
	if (c->answer == ERR_FSAL_NO_ERROR) {
		close_made();
		return;
	}
	assert_null(made);
	assert_int_equal(fake.inode_refs, refs);
	assert_int_equal(stub.reservation_changes, 0);
}

/* --- CLOSE */

TEST_WITH(close_of_what_is_not_open_is_told, up, down)
{
	assert_int_equal(casync_fd_close(FILE_HDL, &rig.state.fd.fsal_fd).major,
			 ERR_FSAL_NOT_OPENED);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

/* A client that repeats its CLOSE gets the same answer. */
TEST_WITH(close_of_a_state_that_is_not_open_is_no_error, up, down)
{
	assert_int_equal(open_file(FSAL_O_READ).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_close2(FILE_HDL, &rig.state.state).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_close2(FILE_HDL, &rig.state.state).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 1);
	assert_int_equal(stub.reservations, 0);
}
