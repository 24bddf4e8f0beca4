/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which WRITEs and COMMITs flush the file's metadata, as the keys have it.
 */
#include "config.h"

#include <errno.h>

#include "unit.h"

#include "complete.h"
#include "op.h"
#include "obj_ops.h"
#include "request.h"
#include "rig_lanes.h"

CASE(full_mode_flushes_before_the_answer)
{
	struct io *io = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_true(io->arg.fsal_stable);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_false(io->on_completer);
	assert_false(fake.calls[0].asked.fsync);
	free_io(io);
}

CASE(failing_flush_is_not_acknowledged)
{
	struct io *io = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.blocking_result[FAKE_SYNC_INODE] = -ENOSPC;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_NOSPC);
	free_io(io);
}

CASE(failed_write_is_not_flushed)
{
	struct io *io = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.plan.result = -EDQUOT;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_DQUOT);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	free_io(io);
}

CASE(full_mode_closes_temporary_fd_after_flush)
{
	struct io *io = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	stub.global_fd_busy = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

static void write_and_settle(uint64_t offset, bool stable, bool says_stable)
{
	struct io *io = new_io(offset, 100);

	start_write(io, stable);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(io->arg.fsal_stable, says_stable);
	free_io(io);
	assert_int_equal(rig_lanes_up(), 0);
	assert_int_equal(casync_complete_start(casync_finish), 0);
}

CASE(fdatasync_mode_flushes_growth_only)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	write_and_settle(0, true, true); /* nothing known: flushes all */
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(200, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(4 * OBJ, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	write_and_settle(4 * OBJ, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
}

CASE(unstable_write_is_promoted_where_that_is_free)
{
	rig.exp.keys.tuning.promote_unstable = true;
	write_and_settle(0, false, true);
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	write_and_settle(0, false, false);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
}

/* A reload while writes are in flight: each keeps what it began with. */
CASE(mode_that_changes_holds_for_writes_to_come)
{
	struct io *before = new_io(0, 100);
	struct io *after = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_write(before, true);
	__atomic_store_n(&rig.exp.keys.tuning.stable_write, CASYNC_STABLE_FULL,
			 __ATOMIC_RELAXED);
	start_write(after, true);
	fake_complete(0);
	assert_true(rig_wait(&before->came));
	assert_int_equal(sem_post(&before->came), 0);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	fake_complete(1);
	settle(after);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	check_ok(before, 100);
	check_ok(after, 100);
	assert_true(before->arg.fsal_stable);
	assert_true(after->arg.fsal_stable);
	free_io(before);
	free_io(after);
}

CASE(mode_that_is_lowered_leaves_writes_their_flush)
{
	struct io *before = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.plan.when = FAKE_LATER;
	start_write(before, true);
	__atomic_store_n(&rig.exp.keys.tuning.stable_write, CASYNC_STABLE_DATA,
			 __ATOMIC_RELAXED);
	fake_complete(0);
	settle(before);
	check_ok(before, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(before);
}

static void commit(fsal_errors_t major)
{
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major, major);
}

CASE(commit_flushes_as_the_mode_says)
{
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(4 * OBJ, false, false);
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
}

CASE(commit_reports_failing_flush)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.blocking_result[FAKE_SYNC_INODE] = -EDQUOT;
	commit(ERR_FSAL_DQUOT);
	fake.blocking_result[FAKE_SYNC_INODE] = 0;
	commit(ERR_FSAL_NO_ERROR);
}

static struct io *grower;

static void grow_during_getattr(enum fake_blocking which)
{
	if (which != FAKE_GETATTR || grower == NULL)
		return;
	/* The getattr has the old size; the write is answered before it. */
	fake_complete_in_order();
	(void)rig_wait(&grower->came);
}

/*
 * A size that getattr brings may be older than a write that was answered
 * while it was under way; storing it lowers the hint below that write, and
 * COMMIT (fdatasync) then finds nothing grown and flushes nothing.
 */
CASE(commit_after_racing_getattr_still_flushes)
{
	struct io *reader;
	unsigned int flushes;

	reader = new_io(3 * OBJ, OBJ);
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR); /* the MDS knows all there is */
	flushes = fake_blocking_count(FAKE_SYNC_INODE);
	assert_int_equal(flushes, 1);

	grower = new_io(4 * OBJ, 100);
	fake_special(0, (struct fake_plan){FAKE_LATER, FAKE_TRUE_RESULT, 0, 0});
	start_write(grower, false);
	in_blocking = grow_during_getattr;
	start_read(reader);
	assert_true(rig_wait(&reader->came));
	commit(ERR_FSAL_NO_ERROR);
	stop_threads();
	assert_int_equal(grower->calls, 1);
	free_io(grower);
	grower = NULL;
	free_io(reader);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), flushes + 1);
}

static struct io *second_grower;

static void grow_flush_and_grow(enum fake_blocking which)
{
	if (which != FAKE_GETATTR || grower == NULL)
		return;
	in_blocking = NULL; /* the flush asks for attributes, too */
	fake_complete(0);
	(void)rig_wait(&grower->came);
	(void)casync_flush_wait(rig.obj);
	/* Not before: the flush would wait for it. */
	op_ctx = &rig.request;
	start_write(second_grower, false);
	op_ctx = NULL;
	fake_complete(2);
	(void)rig_wait(&second_grower->came);
}

/* The size that getattr brings is older than a flush, too: the write after
 * the flush still has to be covered by COMMIT. */
CASE(commit_after_getattr_older_than_flush_still_flushes)
{
	const struct fake_plan later = {FAKE_LATER, FAKE_TRUE_RESULT, 0, 0};
	struct io *reader = new_io(3 * OBJ, OBJ);
	unsigned int flushes;

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR); /* the MDS knows all there is */
	grower = new_io(4 * OBJ, 100);
	second_grower = new_io(5 * OBJ, 100);
	fake_special(0, later);
	fake_special(2, later); /* after the read */
	start_write(grower, false);
	in_blocking = grow_flush_and_grow;
	start_read(reader);
	assert_true(rig_wait(&reader->came));
	flushes = fake_blocking_count(FAKE_SYNC_INODE);
	commit(ERR_FSAL_NO_ERROR);
	stop_threads();
	free_io(grower);
	grower = NULL;
	free_io(second_grower);
	free_io(reader);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), flushes + 1);
}

/* Another client truncates and a getattr tells us: what we had written does
 * not count as journaled by the next flush. */
CASE(flush_after_foreign_truncate_forgets_old_end)
{
	struct io *reader;

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	write_and_settle(4 * OBJ, false, false);
	fake.size_bytes = 100;
	rig.obj->size.hint = 0; /* so that the read asks */
	reader = new_io(0, 50);
	start_read(reader);
	settle(reader);
	free_io(reader);
	assert_int_equal(rig_lanes_up(), 0);
	assert_int_equal(casync_complete_start(casync_finish), 0);
	commit(ERR_FSAL_NO_ERROR);
	assert_true(casync_file_size_grown(&rig.obj->size, 500));
}

static void cut(void)
{
	/* As getset_set_statx() and the flush of a SETATTR do. */
	rig_set_size(0);
}

static void submission_cuts(void)
{
	fake.submission = NULL;
	cut();
}

/* fdatasync: a WRITE that was decided on before a SETATTR of the size, and is
 * submitted after it, makes the file larger. */
CASE(growth_is_looked_at_when_the_write_is_done)
{
	struct io *io = new_io(0, 100);
	unsigned int flushes = fake_blocking_count(FAKE_SYNC_INODE);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	rig.obj->size.flushed = RIG_OBJECT * RIG_OBJECTS;
	fake.submission = submission_cuts;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_true(io->arg.fsal_stable);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), flushes + 1);
	free_io(io);
}
