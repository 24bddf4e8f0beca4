/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * LOCK, LOCKT and UNLOCK while the client is lost, or the mount full: Ganesha
 * takes a delay of a LOCK for a conflict, and repeats an UNLOCK that fails
 * without a pause.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "errors.h"
#include "lock_records.h"
#include "obj_ops.h"
#include "operations_rig.h"
#include "stub_mount.h"

static int owner;

static fsal_status_t lock_range(fsal_lock_op_t op, uint64_t start,
				uint64_t length)
{
	fsal_lock_param_t range = {.lock_type = FSAL_LOCK_W,
				   .lock_start = start,
				   .lock_length = length};

	return casync_lock_op2(FILE_HDL, &rig.state.state, &owner, op, &range,
			       NULL);
}

static fsal_errors_t lock_op(fsal_lock_op_t op)
{
	fsal_errors_t answer = lock_range(op, 10, 10).major;

	check_nothing_held();
	return answer;
}

static void hold_lock(void)
{
	const fsal_lock_param_t range = {
		.lock_type = FSAL_LOCK_W, .lock_start = 10, .lock_length = 20};

	casync_lock_records_locked(&rig.obj->locks, &rig.state.fd, &owner,
				   &range,
				   casync_guard_generation(&stub_mount.guard));
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

static unsigned int setlks(void)
{
	return fake_blocking_count(FAKE_SETLK);
}

OPERATION_CASE(lock_that_is_granted_is_granted)
{
	new_client();
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_NO_ERROR);
	assert_ptr_equal(rig.obj->inode, fake.inode);
	/* The Fh is got by Ganesha's library, the lock in the call. */
	assert_int_equal(seen.always, CASYNC_CALL_ASKS_MDS);
	assert_int_equal(setlks(), 1);
	assert_int_equal(records(), 1);
}

OPERATION_CASE(test_and_unlock_are_in_a_call_too)
{
	new_client();
	assert_int_equal(lock_op(FSAL_OP_LOCKT), ERR_FSAL_NO_ERROR);
	assert_int_equal(seen.always, CASYNC_CALL_ASKS_MDS);
	forget_seen();
	new_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_true(seen.calls > 0);
	assert_int_equal(seen.always, CASYNC_CALL_ASKS_MDS);
}

/* The MDS does not answer, and the mount's share of the workers waits. */
OPERATION_CASE(full_mount_asks_to_retry)
{
	*mount_inside() = 200;
	/* A delay would be a conflict. */
	assert_int_equal(lock_range(FSAL_OP_LOCK, 10, 10).major,
			 ERR_FSAL_IN_GRACE);
	assert_int_equal(lock_range(FSAL_OP_LOCKT, 10, 10).major,
			 ERR_FSAL_IN_GRACE);
	assert_int_equal(seen.calls, 0);
	/* Ganesha would repeat it without a pause. */
	assert_int_equal(lock_range(FSAL_OP_UNLOCK, 10, 10).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(setlks(), 1);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_int_equal(*mount_inside(), 200);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	*mount_inside() = 0;
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_NO_ERROR);
	assert_int_equal(*mount_inside(), 0);
}

OPERATION_CASE(unlock_without_a_client_drops_the_record)
{
	hold_lock();
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_int_equal(seen.calls, 0);
	/* Its range, and no more. */
	assert_int_equal(records(), 1);
	assert_int_equal(first_byte(), 20);
}

/* Its holder may go on after the next loss, too. */
OPERATION_CASE(unlock_without_a_client_ends_the_loss_of_a_lock)
{
	bool *lost = &rig.state.fd.lock_lost;

	*lost = true;
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_true(*lost);
	assert_int_equal(lock_range(FSAL_OP_UNLOCK, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_false(*lost);
}

OPERATION_CASE(unlock_that_shows_the_loss_drops_the_record)
{
	hold_lock();
	fake.blocking_result[FAKE_SETLK] = -ENOTCONN;
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_int_equal(setlks(), 1);
	assert_int_equal(first_byte(), 20);
}

OPERATION_CASE(unlock_whose_error_is_doubted_drops_the_record)
{
	hold_lock();
	fake.blocking_result[FAKE_SETLK] = -EIO;
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_int_equal(first_byte(), 20);
}

/* Ganesha has forgotten the lock, and repeats it. */
OPERATION_CASE(unlock_that_fails_drops_the_record)
{
	hold_lock();
	fake.blocking_result[FAKE_SETLK] = -EPERM;
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_PERM);
	/* Ganesha is short of descriptors. */
	stub.start_status = fsalstat(ERR_FSAL_DELAY, EBUSY);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_DELAY);
	assert_int_equal(first_byte(), 20);
}

/* Ganesha would repeat it for ever. */
OPERATION_CASE(unlock_succeeds_where_no_client_comes)
{
	hold_lock();
	stub_mount.keeper.reconnect = 0;
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_NO_ERROR);
	assert_int_equal(first_byte(), 20);
}

/* Ganesha takes a delay for a conflict. */
OPERATION_CASE(lock_without_a_client_is_asked_for_again)
{
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	assert_int_equal(lock_op(FSAL_OP_LOCKT), ERR_FSAL_IN_GRACE);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(records(), 0);
}

OPERATION_CASE(lock_where_no_client_comes_is_an_error)
{
	stub_mount.keeper.reconnect = 0;
	lose_client();
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_IO);
	assert_int_equal(lock_op(FSAL_OP_LOCKT), ERR_FSAL_IO);
}

OPERATION_CASE(lock_on_a_file_that_is_gone_is_stale)
{
	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_STALE);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK), ERR_FSAL_STALE);
	assert_int_equal(seen.calls, 0);
}

OPERATION_CASE(lock_that_shows_the_loss_is_asked_for_again)
{
	set_result(-CASYNC_EBLOCKLISTED);
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	assert_int_equal(lock_op(FSAL_OP_LOCKT), ERR_FSAL_IN_GRACE);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	assert_int_equal(records(), 0);
}

OPERATION_CASE(lock_whose_error_is_doubted_is_asked_for_again)
{
	fake.blocking_result[FAKE_SETLK] = -EBADF;
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
	assert_int_equal(records(), 0);
}

OPERATION_CASE(conflict_is_a_conflict)
{
	fake.others_lock = (struct flock){.l_type = F_WRLCK};
	assert_int_equal(lock_op(FSAL_OP_LOCK), ERR_FSAL_DELAY);
	assert_int_equal(lock_op(FSAL_OP_LOCKT), ERR_FSAL_DELAY);
	assert_int_equal(records(), 0);
}
