/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "call.h"
#include "clock.h"
#include "common_grace.h"
#include "errors.h"
#include "fsal.h"
#include "inode.h"
#include "nfs_core.h"
#include "lock_reclaim.h"
#include "obj_ops.h"
#include "rig_lanes.h"

static int up(void **state)
{
	int rc = rig_up(state);

	return rc != 0 ? rc : rig_lanes_up();
}

static int down(void **state)
{
	rig_lanes_down();
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static int owner;

static void others_lock(short type, off_t start, off_t length)
{
	fake.others_lock = (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = start,
		.l_len = length,
	};
}

static fsal_status_t lock_op(fsal_lock_op_t op, fsal_lock_t type,
			     uint64_t start, uint64_t length,
			     fsal_lock_param_t *conflict)
{
	fsal_lock_param_t wanted = {
		.lock_sle_type = FSAL_POSIX_LOCK,
		.lock_type = type,
		.lock_start = start,
		.lock_length = length,
	};

	return casync_lock_op2(&rig.obj->handle, &rig.state.state, &owner, op,
			       &wanted, conflict);
}

static void check_loan_ended(void)
{
	assert_int_equal(stub.ios_started, stub.ios_completed);
}

/* --- ranges */

struct range_case {
	const char *name;
	uint64_t start;
	uint64_t length;
	bool good;
};

#define MAX_OFFSET ((uint64_t)INT64_MAX)

static const struct range_case range_cases[] = {
	{"whole_file_is_locked", 0, 0, true},
	{"one_byte_is_locked", 0, 1, true},
	{"last_byte_of_a_file_is_locked", MAX_OFFSET - 1, 1, true},
	{"range_up_to_the_last_offset_is_locked", 0, MAX_OFFSET, true},
	{"from_the_last_offset_to_the_end_is_locked", MAX_OFFSET, 0, true},
	{"one_byte_past_the_last_offset_is_refused", MAX_OFFSET, 1, false},
	{"range_that_ends_past_it_is_refused", 1, MAX_OFFSET, false},
	{"range_beyond_is_refused", MAX_OFFSET + 1, 0, false},
	{"length_of_all_ones_is_refused", 0, UINT64_MAX, false},
	{"start_of_all_ones_is_refused", UINT64_MAX, 0, false},
	{"range_that_wraps_round_is_refused", UINT64_MAX, UINT64_MAX, false},
};

TEST_ROWS(check_range, range_cases, up, down)
{
	static const struct {
		fsal_lock_op_t op;
		enum fake_blocking call;
	} ways[] = {
		{FSAL_OP_LOCK, FAKE_SETLK},
		{FSAL_OP_UNLOCK, FAKE_SETLK},
		{FSAL_OP_LOCKT, FAKE_GETLK},
	};
	const struct range_case *c = *state;
	unsigned int before;
	fsal_status_t status;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		before = fake_blocking_count(ways[i].call);
		status = lock_op(ways[i].op, FSAL_LOCK_W, c->start, c->length,
				 NULL);
		assert_int_equal(status.major, c->good ? ERR_FSAL_NO_ERROR
						       : ERR_FSAL_BAD_RANGE);
		assert_int_equal(fake_blocking_count(ways[i].call),
				 before + c->good);
		if (!c->good)
			continue;
		assert_true(fake.asked_lock.l_start == (off_t)c->start);
		assert_true(fake.asked_lock.l_len == (off_t)c->length);
		assert_int_equal(fake.asked_lock.l_whence, SEEK_SET);
	}
	assert_int_equal(stub.ios_started, c->good ? 3 : 0);
	check_loan_ended();
}

/* --- what libcephfs is asked */

struct type_case {
	const char *name;
	fsal_lock_op_t op;
	fsal_lock_t type;
	short asked;
	fsal_openflags_t openflags;
	bool bypass;
};

static const struct type_case type_cases[] = {
	{"read_lock_wants_an_fh_to_read", FSAL_OP_LOCK, FSAL_LOCK_R, F_RDLCK,
	 FSAL_O_READ, false},
	{"write_lock_wants_an_fh_to_write", FSAL_OP_LOCK, FSAL_LOCK_W, F_WRLCK,
	 FSAL_O_WRITE, false},
	{"unlock_wants_any_fh", FSAL_OP_UNLOCK, FSAL_LOCK_W, F_UNLCK,
	 FSAL_O_ANY, false},
	{"unlock_of_a_read_lock_wants_any_fh", FSAL_OP_UNLOCK, FSAL_LOCK_R,
	 F_UNLCK, FSAL_O_ANY, false},
	{"test_wants_any_fh_past_denials", FSAL_OP_LOCKT, FSAL_LOCK_W, F_WRLCK,
	 FSAL_O_ANY, true},
};

TEST_ROWS(check_type, type_cases, up, down)
{
	const struct type_case *c = *state;

	assert_int_equal(lock_op(c->op, c->type, 10, 20, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.asked_lock.l_type, c->asked);
	assert_true(fake.asked_owner == (uintptr_t)&owner);
	assert_false(fake.asked_to_wait);
	assert_int_equal(stub.openflags, c->openflags);
	assert_int_equal(stub.bypass, c->bypass);
	assert_true(stub.for_locks);
	check_loan_ended();
}

CASE(waiting_is_refused)
{
	assert_int_equal(lock_op(FSAL_OP_LOCKB, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NOTSUPP);
	assert_int_equal(lock_op(FSAL_OP_CANCEL, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NOTSUPP);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 0);
	assert_int_equal(stub.ios_started, 0);
}

/* --- conflicts */

struct conflict_case {
	const char *name;
	fsal_lock_op_t op;
	short others_type;
	off_t others_start, others_length;
	fsal_lock_t type;
};

static const struct conflict_case conflict_cases[] = {
	{"lock_reports_a_write_lock", FSAL_OP_LOCK, F_WRLCK, 5, 10,
	 FSAL_LOCK_W},
	{"lock_reports_a_read_lock", FSAL_OP_LOCK, F_RDLCK, 5, 10, FSAL_LOCK_R},
	{"lock_reports_a_lock_to_the_end", FSAL_OP_LOCK, F_WRLCK, 7, 0,
	 FSAL_LOCK_W},
	{"test_reports_a_write_lock", FSAL_OP_LOCKT, F_WRLCK, 5, 10,
	 FSAL_LOCK_W},
	{"test_reports_a_lock_to_the_last_offset", FSAL_OP_LOCKT, F_RDLCK, 0,
	 INT64_MAX, FSAL_LOCK_R},
};

TEST_ROWS(check_conflict, conflict_cases, up, down)
{
	const struct conflict_case *c = *state;
	fsal_lock_param_t conflict;
	fsal_status_t status;

	memset(&conflict, 0xa5, sizeof(conflict));
	others_lock(c->others_type, c->others_start, c->others_length);
	status = lock_op(c->op, FSAL_LOCK_W, 0, 100, &conflict);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(conflict.lock_sle_type, FSAL_POSIX_LOCK);
	assert_int_equal(conflict.lock_type, c->type);
	assert_true(conflict.lock_start == (uint64_t)c->others_start);
	assert_true(conflict.lock_length == (uint64_t)c->others_length);
	check_loan_ended();
}

CASE(conflict_nobody_asks_for_is_not_reported)
{
	others_lock(F_WRLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_R, 0, 1, NULL).major,
			 ERR_FSAL_DELAY);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_R, 0, 1, NULL).major,
			 ERR_FSAL_DELAY);
	check_loan_ended();
}

CASE(two_read_locks_are_no_conflict)
{
	others_lock(F_RDLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_R, 0, 1, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_GETLK), 0);
}

/* --- the other one unlocks after setlk has failed */

static unsigned int gone_after; /* getlks */

static void unlock_before_getlk(enum fake_blocking which)
{
	if (which == FAKE_GETLK &&
	    fake_blocking_count(FAKE_GETLK) == gone_after)
		fake.others_lock.l_type = F_UNLCK;
}

CASE(conflict_that_is_gone_is_tried_again)
{
	others_lock(F_WRLCK, 0, 0);
	gone_after = 1;
	fake.hook = unlock_before_getlk;
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 3, 4, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 2);
	assert_int_equal(fake_blocking_count(FAKE_GETLK), 1);
	/* What was wanted, not what getlk left in its place. */
	assert_int_equal(fake.asked_lock.l_type, F_WRLCK);
	assert_true(fake.asked_lock.l_start == 3);
	assert_true(fake.asked_lock.l_len == 4);
	check_loan_ended();
}

/* Comes back whenever it is tried, goes whenever it is looked for. */
static void come_and_go(enum fake_blocking which)
{
	fake.others_lock.l_type = which == FAKE_GETLK ? F_UNLCK : F_WRLCK;
}

CASE(conflict_that_comes_and_goes_ends)
{
	fsal_lock_param_t conflict;

	memset(&conflict, 0xa5, sizeof(conflict));
	others_lock(F_WRLCK, 0, 0);
	fake.hook = come_and_go;
	assert_int_equal(
		lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 3, 4, &conflict).major,
		ERR_FSAL_DELAY);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 4);
	/* Nobody's: the range itself, so that it is tried again. */
	assert_true(conflict.lock_start == 3);
	assert_true(conflict.lock_length == 4);
	assert_int_equal(conflict.lock_type, FSAL_LOCK_W);
	check_loan_ended();
}

/* --- errors */

CASE(error_of_setlk_passes)
{
	fsal_status_t status;

	fake.blocking_result[FAKE_SETLK] = -ENOLCK;
	status = lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 0, 0, NULL);
	assert_int_equal(status.minor, ENOLCK);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 1);
	assert_int_equal(fake_blocking_count(FAKE_GETLK), 0);
	check_loan_ended();
}

CASE(eacces_of_setlk_is_a_conflict)
{
	fsal_lock_param_t conflict = {0};

	fake.blocking_result[FAKE_SETLK] = -EACCES;
	others_lock(F_WRLCK, 2, 3);
	assert_int_equal(
		lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 0, 0, &conflict).major,
		ERR_FSAL_DELAY);
	assert_true(conflict.lock_start == 2);
	check_loan_ended();
}

CASE(error_of_getlk_passes)
{
	fake.blocking_result[FAKE_GETLK] = -EIO;
	others_lock(F_WRLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 0, 0, NULL).minor,
			 EIO);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_W, 0, 0, NULL).minor,
			 EIO);
	check_loan_ended();
}

CASE(without_an_fh_nothing_is_locked)
{
	stub.start_status = fsalstat(ERR_FSAL_SHARE_DENIED, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_SHARE_DENIED);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 0);
	assert_int_equal(stub.ios_completed, 0);
}

/* --- NLM, where nothing can be written */

static int fd_work;

fsal_status_t fsal_start_fd_work(struct fsal_fd *fsal_fd, bool is_reclaiming)
{
	(void)fsal_fd;
	(void)is_reclaiming;
	fd_work++;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void fsal_complete_fd_work(struct fsal_fd *fsal_fd)
{
	(void)fsal_fd;
	fd_work--;
}

void insert_fd_lru(struct fsal_fd *fsal_fd)
{
	(void)fsal_fd;
}

fsal_status_t casync_fd_open_for_lock(struct casync_object *obj,
				      fsal_openflags_t openflags,
				      struct fsal_fd *fsal_fd, bool reclaim)
{
	bool writes = (openflags & FSAL_O_WRITE) != 0;
	int rc = ceph_ll_open(NULL, obj->inode, writes ? O_RDWR : O_RDONLY,
			      &casync_fd_of(fsal_fd)->fh, NULL);

	assert_int_equal(fd_work, 1);
	if (rc == 0)
		fsal_fd->openflags = openflags;
	casync_fd_of(fsal_fd)->generation = rig.obj->generation;
	return casync_errors_status(rc);
}

static int refused_with;

static void refuse_to_open_for_both(enum fake_blocking which)
{
	if (which == FAKE_OPEN)
		fake.blocking_result[FAKE_OPEN] =
			fake_blocking_count(FAKE_OPEN) == 1 ? refused_with : 0;
}

static void nlm_state(int open_rc)
{
	rig.state.state.state_type = STATE_TYPE_NLM_LOCK;
	init_fsal_fd(&rig.state.fd.fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	refused_with = open_rc;
	fake.hook = refuse_to_open_for_both;
}

static fsal_errors_t nlm_lock(fsal_lock_t type)
{
	return lock_op(FSAL_OP_LOCK, type, 0, 0, NULL).major;
}

static void check_nlm_read_lock(int open_rc)
{
	nlm_state(open_rc);
	assert_int_equal(nlm_lock(FSAL_LOCK_R), ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.last_open_flags & O_ACCMODE, O_RDONLY);
	assert_int_equal(fake.open_fhs, 1);
	assert_int_equal(nlm_lock(FSAL_LOCK_R), ERR_FSAL_NO_ERROR);
	/* Not "refused": its client would ask for ever. */
	assert_int_equal(nlm_lock(FSAL_LOCK_W), ERR_FSAL_ROFS);
	assert_int_equal(fake.open_fhs, 1);
	check_loan_ended();
}

CASE(nlm_read_lock_in_a_snapshot)
{
	check_nlm_read_lock(-EROFS);
}

CASE(nlm_read_lock_of_a_user_who_only_reads)
{
	check_nlm_read_lock(-EACCES);
}

CASE(nlm_write_lock_where_nothing_can_be_written)
{
	nlm_state(-EACCES);
	assert_int_equal(nlm_lock(FSAL_LOCK_W), ERR_FSAL_ROFS);
	assert_int_equal(fake.open_fhs, 0);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 0);
}

CASE(nlm_lock_may_become_a_write_lock)
{
	nlm_state(0);
	assert_int_equal(nlm_lock(FSAL_LOCK_R), ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.last_open_flags & O_ACCMODE, O_RDWR);
	/* The stub of Ganesha has changed it. */
	rig.state.fd.fsal_fd.openflags = FSAL_O_RDWR;
	assert_int_equal(nlm_lock(FSAL_LOCK_W), ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.open_fhs, 1);
}

/* --- through the next client */

static struct casync_fd *lost_fd;
static int losses;

static const char *lose(struct casync_object *obj, struct casync_fd *fd)
{
	assert_ptr_equal(obj, rig.obj);
	lost_fd = fd;
	losses++;
	__atomic_store_n(&fd->lock_lost, true, __ATOMIC_RELEASE);
	return "";
}

static struct Fh *old_fh; /* of the lost client */

/* As fsal_start_io() leaves the state's fd. */
static void open_state(void)
{
	struct casync_fd *fd = &rig.state.fd;

	assert_int_equal(ceph_ll_open(NULL, NULL, O_RDWR, &fd->fh, NULL), 0);
	old_fh = fd->fh;
	fd->fh_access = FSAL_O_RDWR;
	init_fsal_fd(&fd->fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	lost_fd = NULL;
	losses = 0;
}

static int take_again(uint64_t taken, uint64_t gone)
{
	uint64_t was_taken = 99, is_gone = 99;
	int rc;

	(void)ceph_ll_close(NULL, old_fh);
	casync_guard_renew(&stub_mount.guard);
	/* It is of another client, and of no other test's concern. */
	rig.obj->generation = casync_guard_generation(&stub_mount.guard);
	rc = casync_lock_reclaim_all(&stub_mount, lose, &was_taken, &is_gone);
	assert_int_equal(was_taken, taken);
	assert_int_equal(is_gone, gone);
	/* It has ended: rig_down() must not close it. */
	if (casync_inode_fd_is_lost(rig.obj, &rig.state.fd))
		rig.state.fd.fh = NULL;
	return rc;
}

static void lock(fsal_lock_t type, uint64_t start, uint64_t length)
{
	assert_int_equal(lock_op(FSAL_OP_LOCK, type, start, length, NULL).major,
			 ERR_FSAL_NO_ERROR);
}

struct again_case {
	const char *name;
	fsal_lock_t type;
	uint64_t start, length;
	short asked;
};

static const struct again_case again_cases[] = {
	{"read_lock_is_taken_again", FSAL_LOCK_R, 10, 20, F_RDLCK},
	{"write_lock_is_taken_again", FSAL_LOCK_W, 10, 20, F_WRLCK},
	{"lock_to_the_end_is_taken_again", FSAL_LOCK_W, 10, 0, F_WRLCK},
	{"lock_of_the_whole_file_is_taken_again", FSAL_LOCK_R, 0, 0, F_RDLCK},
	{"lock_of_the_last_byte_is_taken_again", FSAL_LOCK_W, MAX_OFFSET - 1, 1,
	 F_WRLCK},
};

TEST_ROWS(check_again, again_cases, up, down)
{
	const struct again_case *c = *state;

	open_state();
	lock(c->type, c->start, c->length);
	memset(&fake.asked_lock, 0, sizeof(fake.asked_lock));
	fake.asked_owner = 0;
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(fake.asked_lock.l_type, c->asked);
	assert_int_equal(fake.asked_lock.l_whence, SEEK_SET);
	assert_true(fake.asked_lock.l_start == (off_t)c->start);
	assert_true(fake.asked_lock.l_len == (off_t)c->length);
	assert_true(fake.asked_owner == (uintptr_t)&owner);
	assert_false(fake.asked_to_wait);
	/* Its fd was opened anew for that. */
	assert_int_equal(fake.open_fhs, 1);
	assert_int_equal(losses, 0);
}

CASE(nothing_is_taken_that_was_given_back)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(take_again(0, 0), 0);
}

/* The keeper is done with this file, but not with all. */
CASE(lock_that_was_taken_again_is_unlocked)
{
	unsigned int before;

	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	stub_mount_set_phase(CASYNC_GUARD_RESTORES);
	assert_int_equal(take_again(1, 0), 0);
	before = fake_blocking_count(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), before + 1);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_true(fake.asked_owner == (uintptr_t)&owner);
}

/* The keeper comes to the file between the two steps of an UNLOCK. */
static void take_again_in_unlock(enum fake_blocking which)
{
	uint64_t taken, gone;

	if (which != FAKE_SETLK)
		return;
	fake.hook = NULL;
	assert_int_equal(
		casync_lock_reclaim_all(&stub_mount, lose, &taken, &gone), 0);
	assert_int_equal(taken + gone, 0);
}

CASE(lock_that_is_being_unlocked_is_not_taken)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	(void)ceph_ll_close(NULL, old_fh);
	casync_guard_renew(&stub_mount.guard);
	stub_mount_set_phase(CASYNC_GUARD_RESTORES);
	rig.obj->generation = casync_guard_generation(&stub_mount.guard);
	fake.hook = take_again_in_unlock;
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_null(fake.hook);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
}

CASE(lock_that_was_refused_is_not_taken)
{
	open_state();
	others_lock(F_WRLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 0, 1, NULL).major,
			 ERR_FSAL_DELAY);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_W, 0, 1, NULL).major,
			 ERR_FSAL_DELAY);
	others_lock(F_UNLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_W, 0, 1, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(take_again(0, 0), 0);
}

/* Ganesha's own, for a request without a state. */
CASE(lock_of_no_state_is_not_taken)
{
	open_state();
	rig.state.fd.fsal_fd.fd_type = FSAL_FD_TEMP;
	lock(FSAL_LOCK_W, 0, 1);
	assert_int_equal(take_again(0, 0), 0);
}

/* RFC 8881, 9.6: until it has unlocked all, it gets an error. */
CASE(lock_that_somebody_else_got_is_lost)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	others_lock(F_WRLCK, 25, 1);
	assert_int_equal(take_again(0, 1), 0);
	assert_int_equal(losses, 1);
	assert_ptr_equal(lost_fd, &rig.state.fd);
	others_lock(F_UNLCK, 0, 0);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 50, 1, NULL).major,
			 ERR_FSAL_IO);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_W, 50, 1, NULL).major,
			 ERR_FSAL_IO);
	/* A part is not all. */
	assert_int_equal(
		lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 10, 20, NULL).major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(lock_op(FSAL_OP_LOCK, FSAL_LOCK_W, 50, 1, NULL).major,
			 ERR_FSAL_IO);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
	lock(FSAL_LOCK_W, 50, 1);
}

CASE(lock_of_a_removed_file_is_lost)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	fake.blocking_result[FAKE_OPEN] = -ENOENT;
	assert_int_equal(take_again(0, 1), 0);
	assert_int_equal(losses, 1);
}

CASE(lock_is_not_lost_with_the_next_session)
{
	static const int errors[] = {ENOTCONN, CASYNC_EBLOCKLISTED};
	size_t i;

	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	for (i = 0; i < 2; i++) {
		fake.blocking_result[FAKE_SETLK] = -errors[i];
		assert_int_equal(take_again(0, 0), -errors[i]);
		old_fh = rig.state.fd.fh;
	}
	fake.blocking_result[FAKE_SETLK] = 0;
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(losses, 0);
}

/* What the lost client knew, and what the next one finds. */
static void set_mtimes(time_t known_s, time_t found_s, long found_ns)
{
	fake.mtime = (struct timespec){.tv_sec = known_s, .tv_nsec = 5};
	casync_lock_reclaim_save_versions(&stub_mount);
	fake.mtime = (struct timespec){.tv_sec = found_s, .tv_nsec = found_ns};
}

/* The other one's clock is behind, or the mtime was set to the future. */
CASE(change_that_mtime_does_not_show_is_one)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	fake.version = 7;
	set_mtimes(100, 100, 5);
	fake.version = 8;
	assert_int_equal(take_again(0, 1), 0);
	assert_int_equal(losses, 1);
}

/* The MDS has not heard of our last WRITEs. */
CASE(lower_version_is_no_change)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	fake.version = 7;
	set_mtimes(100, 100, 5);
	fake.version = 6;
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(losses, 0);
}

/* Somebody else had the lock, and let go. */
CASE(lock_of_a_changed_file_is_lost)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	set_mtimes(100, 100, 6);
	assert_int_equal(take_again(0, 1), 0);
	assert_int_equal(losses, 1);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
}

CASE(lock_of_an_unchanged_file_is_kept)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	set_mtimes(100, 100, 5);
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(losses, 0);
}

/* The MDS has not heard of our last change. */
CASE(lock_of_an_older_file_is_kept)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	set_mtimes(100, 99, 0);
	assert_int_equal(take_again(1, 0), 0);
}

/* A refusal would be a lost lock. */
CASE(keeper_takes_locks_of_a_full_mount)
{
	uint32_t *inside = &stub_mount.callers.room.inside;

	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	*inside = 200;
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(*inside, 200);
	*inside = 0;
}

/* The next client is lost before it has taken the lock. */
CASE(change_is_seen_after_two_losses)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	set_mtimes(100, 101, 0);
	fake.blocking_result[FAKE_SETLK] = -ENOTCONN;
	assert_int_equal(take_again(0, 0), -ENOTCONN);
	old_fh = rig.state.fd.fh;
	casync_lock_reclaim_save_versions(&stub_mount);
	fake.blocking_result[FAKE_SETLK] = 0;
	assert_int_equal(take_again(0, 1), 0);
}

/* It is on the OSDs, and the lost client did not know. */
CASE(our_own_last_write_is_no_change)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	casync_lock_records_written(&rig.obj->locks);
	set_mtimes(100, time(NULL) - 1, 0);
	assert_int_equal(take_again(1, 0), 0);
	assert_int_equal(losses, 0);
}

CASE(change_after_our_last_write_is_one)
{
	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	casync_lock_records_written(&rig.obj->locks);
	set_mtimes(100, time(NULL) + 60, 0);
	assert_int_equal(take_again(0, 1), 0);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return casync_clock_timespec_ns(&now);
}

/* Two WRITEs look at the clock and note the time in the other order. */
CASE(a_later_write_stays_noted)
{
	uint64_t *written_ns = &rig.obj->locks.written_ns;
	uint64_t later_ns;

	open_state();
	lock(FSAL_LOCK_W, 10, 20);
	later_ns = *written_ns = wall_ns() + CASYNC_NS_PER_S / 2;
	casync_lock_records_written(&rig.obj->locks);
	assert_true(*written_ns == later_ns);
	/* The clock was set back. */
	*written_ns = wall_ns() + 3600 * CASYNC_NS_PER_S;
	casync_lock_records_written(&rig.obj->locks);
	assert_true(*written_ns <= wall_ns());
}

CASE(file_without_locks_notes_no_write)
{
	casync_lock_records_written(&rig.obj->locks);
	assert_true(rig.obj->locks.written_ns == 0);
}

/* --- a LOCK that a grace period may have overtaken */

/* Where the wall clock stands still, or 0: it is late after 0.25 s. */
static struct timespec stands;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (clock == CLOCK_REALTIME && stands.tv_sec != 0)
		*now = stands;
	return rc;
}

static void request_began_ms_ago(uint64_t ago_ms)
{
	uint64_t then;

	clock_gettime(CLOCK_REALTIME, &op_ctx->start_time);
	then = casync_clock_timespec_ns(&op_ctx->start_time) -
	       ago_ms * CASYNC_NS_PER_MS;
	op_ctx->start_time.tv_sec = (time_t)(then / CASYNC_NS_PER_S);
	op_ctx->start_time.tv_nsec = (long)(then % CASYNC_NS_PER_S);
}

static int up_in_a_cluster(void **state)
{
	int rc = up(state);

	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	clock_gettime(CLOCK_REALTIME, &stands);
	request_began_ms_ago(CASYNC_GRACE_LEAD_MS);
	return rc;
}

static int down_in_a_cluster(void **state)
{
	stands = (struct timespec){0};
	return down(state);
}

#define LATE(test) TEST_WITH(test, up_in_a_cluster, down_in_a_cluster)

static fsal_errors_t lock_status(fsal_lock_t type, uint64_t start)
{
	return lock_op(FSAL_OP_LOCK, type, start, 10, NULL).major;
}

LATE(late_lock_is_given_back)
{
	open_state();
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_IN_GRACE);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 2);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_int_equal(fake.asked_lock.l_start, 10);
	assert_int_equal(fake.asked_lock.l_len, 10);
	assert_true(fake.asked_owner == (uint64_t)&owner);
	assert_int_equal(take_again(0, 0), 0);
	check_loan_ended();
}

LATE(late_read_lock_is_given_back)
{
	open_state();
	assert_int_equal(lock_status(FSAL_LOCK_R, 10), ERR_FSAL_IN_GRACE);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
}

LATE(who_asks_again_is_not_sent_away)
{
	open_state();
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_IN_GRACE);
	/* It began before the first one was given back. */
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_IN_GRACE);
	rig.obj->locks.undone_ns -= 5 * CASYNC_NS_PER_S;
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_NO_ERROR);
	/* After a while it may be another failure. */
	rig.obj->locks.undone_ns -= 5 * CASYNC_NS_PER_S;
	assert_int_equal(lock_status(FSAL_LOCK_W, 50), ERR_FSAL_IN_GRACE);
}

LATE(lock_in_time_is_kept)
{
	open_state();
	request_began_ms_ago(0);
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_NO_ERROR);
	assert_int_equal(take_again(1, 0), 0);
}

LATE(late_lock_of_a_gateway_alone_is_kept)
{
	open_state();
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_FS_NG;
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_NO_ERROR);
}

LATE(request_of_unknown_age_is_kept)
{
	open_state();
	op_ctx->start_time = (struct timespec){0};
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_NO_ERROR);
}

LATE(late_reclaim_is_kept)
{
	fsal_lock_param_t wanted = {
		.lock_sle_type = FSAL_POSIX_LOCK,
		.lock_type = FSAL_LOCK_W,
		.lock_length = 10,
		.lock_reclaim = true,
	};

	open_state();
	assert_int_equal(casync_lock_op2(&rig.obj->handle, &rig.state.state,
					 &owner, FSAL_OP_LOCK, &wanted, NULL)
				 .major,
			 ERR_FSAL_NO_ERROR);
}

LATE(late_unlock_and_test_are_answered)
{
	open_state();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(lock_op(FSAL_OP_LOCKT, FSAL_LOCK_W, 0, 0, NULL).major,
			 ERR_FSAL_NO_ERROR);
}

/* It would lose what it had. */
LATE(late_lock_over_an_own_one_is_kept)
{
	open_state();
	request_began_ms_ago(0);
	lock(FSAL_LOCK_R, 0, 11);
	request_began_ms_ago(CASYNC_GRACE_LEAD_MS);
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_NO_ERROR);
	assert_int_equal(lock_status(FSAL_LOCK_W, 20), ERR_FSAL_IN_GRACE);
}

LATE(late_conflict_is_a_conflict)
{
	open_state();
	others_lock(F_WRLCK, 0, 0);
	assert_int_equal(lock_status(FSAL_LOCK_W, 10), ERR_FSAL_DELAY);
}
