/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READ and WRITE: the op ends the call that they begin, and the client is asked
 * to retry if there is no client of CephFS.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>

#include "unit.h"

#include "fsal.h"

#include "errors.h"
#include "obj_ops.h"
#include "operations_rig.h"
#include "read_cache.h"
#include "stub_mount.h"

static sem_t came;
static fsal_status_t io_status;

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	(void)obj;
	(void)obj_data;
	(void)caller_data;
	io_status = status;
	sem_post(&came);
}

static void start_io(struct io *io, bool writes)
{
	if (writes)
		casync_write2(FILE_HDL, false, done, &io->arg, NULL);
	else
		casync_read2(FILE_HDL, false, done, &io->arg, NULL);
}

static uint32_t writers(void)
{
	return __atomic_load_n(&rig.obj->cached->file.writers,
			       __ATOMIC_ACQUIRE);
}

OPERATION_CASE(io_leaves_when_it_is_answered)
{
	struct io *io;
	int writes;

	sem_init(&came, 0, 0);
	fake.plan.when = FAKE_LATER;
	for (writes = 0; writes < 2; writes++) {
		new_client();
		io = new_io(0, 100);
		start_io(io, writes != 0);
		assert_ptr_equal(rig.obj->inode, fake.inode);
		assert_false(casync_guard_is_empty(&stub_mount.guard));
		assert_int_equal(writers(), writes);
		/* No worker waits for it. */
		assert_int_equal(*mount_inside(), 0);
		fake_complete_in_order();
		assert_true(rig_wait(&came));
		check_nothing_held();
		assert_int_equal(io_status.major, ERR_FSAL_NO_ERROR);
		assert_int_equal(io->arg.io_amount, 100);
		free_io(io);
	}
	stop_threads();
	sem_destroy(&came);
}

OPERATION_CASE(io_without_a_client_is_delayed)
{
	struct io *io = new_io(0, 100);
	int writes;

	sem_init(&came, 0, 0);
	lose_client();
	for (writes = 0; writes < 2; writes++) {
		io->arg.io_amount = 12345;
		start_io(io, writes != 0);
		assert_int_equal(sem_trywait(&came), 0);
		assert_int_equal(io_status.major, ERR_FSAL_DELAY);
		assert_int_equal(io->arg.io_amount, 0);
		assert_int_equal(io->arg.fsal_resume, FSAL_NORESUME);
		check_nothing_held();
	}
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(stub.ios_started, 0);
	free_io(io);
	sem_destroy(&came);
}

OPERATION_CASE(io_on_a_file_that_is_gone_is_stale)
{
	struct io *io = new_io(0, 100);
	int writes;

	sem_init(&came, 0, 0);
	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	for (writes = 0; writes < 2; writes++) {
		start_io(io, writes != 0);
		assert_int_equal(sem_trywait(&came), 0);
		assert_int_equal(io_status.major, ERR_FSAL_STALE);
		check_nothing_held();
	}
	free_io(io);
	sem_destroy(&came);
}

/* libcephfs answers with an error; nobody knows of the loss as yet. */
OPERATION_CASE(io_that_shows_the_loss_is_delayed)
{
	struct io *io = new_io(0, 100);

	sem_init(&came, 0, 0);
	fake.plan.result = -CASYNC_EBLOCKLISTED;
	start_io(io, true);
	assert_true(rig_wait(&came));
	assert_int_equal(io_status.major, ERR_FSAL_DELAY);
	assert_int_equal(io->arg.io_amount, 0);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	stop_threads();
	check_nothing_held();
	free_io(io);
	sem_destroy(&came);
}

/* Its requests are refused with an error that no lost session gives: exports
 * that share the mount go on. */
OPERATION_CASE(io_of_a_removed_export_is_no_loss)
{
	struct io *io = new_io(0, 100);
	int writes;

	sem_init(&came, 0, 0);
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	for (writes = 0; writes < 2; writes++) {
		start_io(io, writes != 0);
		assert_true(rig_wait(&came));
		assert_int_equal(io_status.major, ERR_FSAL_DELAY);
		assert_false(casync_session_error(io_status.minor));
		assert_int_equal(casync_session_state(&stub_mount.guard),
				 CASYNC_SESSION_SERVES);
	}
	assert_int_equal(fake.call_count, 0);
	stop_threads();
	check_nothing_held();
	free_io(io);
	sem_destroy(&came);
}
