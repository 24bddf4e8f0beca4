/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the data path counts, request by request.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "obj_ops.h"
#include "request.h"
#include "stub_mount.h"

static struct casync_view totals;

static uint64_t count_of(unsigned int counter)
{
	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.numbers[counter];
}

static uint64_t observed(unsigned int histogram)
{
	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return casync_metrics_histogram_count(&totals.histograms[histogram]);
}

static uint64_t stage_sum_us(unsigned int op, unsigned int stage)
{
	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return casync_metrics_histogram_sum_us(
		&totals.histograms[CASYNC_H_STAGES + op * CASYNC_STAGES +
				   stage]);
}

static unsigned int error(unsigned int op, unsigned int class)
{
	return CASYNC_C_ERRORS + op * CASYNC_ERROR_CLASSES + class;
}

static void run_read(uint64_t offset, size_t length)
{
	struct io *io = new_io(offset, length);

	start_read(io);
	settle(io);
	free_io(io);
}

static void run_write(size_t length, bool stable)
{
	struct io *io = new_io(0, length);

	start_write(io, stable);
	settle(io);
	free_io(io);
}

/* The stages are the whole: each ends where the next begins. */
CASE(read_is_counted_in_every_stage)
{
	const unsigned int read = CASYNC_H_STAGES;
	uint64_t sum_us = 0;
	unsigned int stage;

	run_read(0, 1000);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_READ), 1);
	assert_int_equal(count_of(CASYNC_C_BYTES + CASYNC_METRIC_READ), 1000);
	assert_int_equal(count_of(CASYNC_C_BYTES + CASYNC_METRIC_WRITE), 0);
	for (stage = 0; stage < CASYNC_STAGES; stage++) {
		assert_int_equal(observed(read + stage), 1);
		assert_int_equal(observed(read + CASYNC_STAGES + stage), 0);
		if (stage != CASYNC_STAGE_TOTAL)
			sum_us += stage_sum_us(CASYNC_METRIC_READ, stage);
	}
	/* Each is rounded. */
	assert_in_range(stage_sum_us(CASYNC_METRIC_READ, CASYNC_STAGE_TOTAL),
			sum_us < 2 ? 0 : sum_us - 2, sum_us + 2);
}

CASE(read_past_the_end_has_a_total_only)
{
	run_read(OBJ * RIG_OBJECTS, 100);
	assert_int_equal(count_of(CASYNC_C_BLOCKING_READS), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_TOTAL), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_LIBCEPHFS), 0);
}

CASE(read_up_to_the_end_asks_for_the_size)
{
	run_read(OBJ * (RIG_OBJECTS - 1), OBJ);
	assert_int_equal(count_of(CASYNC_C_SIZE_CHECKS), 1);
	assert_int_equal(count_of(CASYNC_C_SHORT_READS), 0);
}

CASE(read_of_a_hole_is_repaired)
{
	fake_punch(0);
	run_read(0, 100);
	assert_int_equal(count_of(CASYNC_C_SHORT_READS), 1);
	assert_int_equal(count_of(CASYNC_C_SIZE_CHECKS), 0);
}

CASE(stable_write_without_flush)
{
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_DATA), 1);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 1);
	assert_int_equal(count_of(CASYNC_C_FLUSH_REQUESTS), 0);
	assert_int_equal(count_of(CASYNC_C_BYTES + CASYNC_METRIC_WRITE), 500);
}

CASE(stable_write_with_flush)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_FULL), 1);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSH_REQUESTS), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 1);
}

CASE(promoted_and_unstable_write)
{
	rig.exp.keys.tuning.promote_unstable = 1;
	run_write(500, false);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 1);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_DATA), 0);
}

CASE(unstable_write_is_not_counted_as_stable)
{
	rig.exp.keys.tuning.promote_unstable = 0;
	run_write(500, false);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 0);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_WRITE), 1);
}

CASE(error_is_counted_and_its_bytes_are_not)
{
	fake_special(0, (struct fake_plan){.when = FAKE_ON_THREAD,
					   .result = -ENOSPC});
	run_write(500, true);
	assert_int_equal(
		count_of(error(CASYNC_METRIC_WRITE, CASYNC_ERROR_SPACE)), 1);
	assert_int_equal(count_of(CASYNC_C_BYTES + CASYNC_METRIC_WRITE), 0);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_DATA), 0);
}

/* No room: the client is asked to retry; the request was never let in. */
CASE(closed_export_answers_delay)
{
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	run_read(0, 100);
	assert_int_equal(
		count_of(error(CASYNC_METRIC_READ, CASYNC_ERROR_DELAY)), 1);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_READ), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_TOTAL), 0);
}

CASE(new_file_is_journaled_first)
{
	casync_queue_mark_new(&rig.obj->queue);
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_NEW_FILE_DELAYED), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 1);
}

CASE(failed_flush_is_counted)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major,
			 ERR_FSAL_IO);
	stop_threads();
	assert_int_equal(count_of(CASYNC_C_FLUSH_ERRORS), 1);
	assert_int_equal(count_of(error(CASYNC_METRIC_COMMIT, CASYNC_ERROR_IO)),
			 1);
	assert_int_equal(observed(CASYNC_H_COMMIT), 1);
	assert_int_equal(count_of(CASYNC_C_COMMIT_NO_FLUSH), 0);
}

CASE(commit_that_needs_nothing)
{
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(count_of(CASYNC_C_COMMIT_NO_FLUSH), 1);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_COMMIT), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 0);
}

CASE(read_to_the_end_says_so)
{
	run_read(OBJ * (RIG_OBJECTS - 1), OBJ);
	assert_int_equal(count_of(CASYNC_C_EOF_READS), 1);
}

CASE(read_before_the_end_does_not)
{
	run_read(0, 100);
	assert_int_equal(count_of(CASYNC_C_EOF_READS), 0);
}

/* All its parts: two objects. */
CASE(callback_before_the_call_returns_is_inline)
{
	fake.plan.when = FAKE_BEFORE_RETURN;
	run_read(OBJ - 10, 100);
	assert_int_equal(count_of(CASYNC_C_INLINE), 1);
}

CASE(callback_after_the_call_is_not_inline)
{
	struct io *io = new_io(OBJ - 10, 100);

	fake_special(1, (struct fake_plan){.when = FAKE_LATER,
					   .result = FAKE_TRUE_RESULT});
	start_read(io);
	fake_complete_in_order();
	settle(io);
	assert_int_equal(count_of(CASYNC_C_INLINE), 0);
	free_io(io);
}

/* No callback came. */
CASE(refused_call_is_not_inline)
{
	fake_special(0,
		     (struct fake_plan){.when = FAKE_RETURNED, .result = -EIO});
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_INLINE), 0);
	assert_int_equal(count_of(error(CASYNC_METRIC_WRITE, CASYNC_ERROR_IO)),
			 1);
}

CASE(temporary_fd_is_a_deferred_close)
{
	stub.global_fd_busy = true;
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_DEFERRED_CLOSES), 1);
}

CASE(fd_that_stays_open_is_none)
{
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_DEFERRED_CLOSES), 0);
}

CASE(lost_session_is_heard_of)
{
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
	fake_special(0, (struct fake_plan){.when = FAKE_ON_THREAD,
					   .result = -CASYNC_EBLOCKLISTED});
	run_write(500, true);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	assert_int_equal(
		count_of(error(CASYNC_METRIC_WRITE, CASYNC_ERROR_SESSION)), 1);
}

/* It may come from memory. */
CASE(lost_session_is_not_found_by_an_answer)
{
	casync_session_note_error(&stub_mount, ENOTCONN);
	run_write(500, true);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
}

/* A COMMIT without a flush asks nobody. */
CASE(answer_that_is_ours_tells_nothing)
{
	casync_session_note_error(&stub_mount, CASYNC_EBLOCKLISTED);
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
}
