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

static struct casync_totals totals;

static uint64_t count_of(unsigned int counter)
{
	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.counters[counter];
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
static void read_is_counted_in_every_stage(void **state)
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

static void read_past_the_end_has_a_total_only(void **state)
{
	run_read(OBJ * RIG_OBJECTS, 100);
	assert_int_equal(count_of(CASYNC_C_BLOCKING_READS), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_TOTAL), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_LIBCEPHFS), 0);
}

static void read_up_to_the_end_asks_for_the_size(void **state)
{
	run_read(OBJ * (RIG_OBJECTS - 1), OBJ);
	assert_int_equal(count_of(CASYNC_C_SIZE_CHECKS), 1);
	assert_int_equal(count_of(CASYNC_C_SHORT_READS), 0);
}

static void read_of_a_hole_is_repaired(void **state)
{
	fake_punch(0);
	run_read(0, 100);
	assert_int_equal(count_of(CASYNC_C_SHORT_READS), 1);
	assert_int_equal(count_of(CASYNC_C_SIZE_CHECKS), 0);
}

static void stable_write_without_flush(void **state)
{
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_DATA), 1);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 1);
	assert_int_equal(count_of(CASYNC_C_FLUSH_REQUESTS), 0);
	assert_int_equal(count_of(CASYNC_C_BYTES + CASYNC_METRIC_WRITE), 500);
}

static void stable_write_with_flush(void **state)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_FULL), 1);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSH_REQUESTS), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 1);
}

static void promoted_and_unstable_write(void **state)
{
	rig.exp.keys.tuning.promote_unstable = 1;
	run_write(500, false);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 1);
	assert_int_equal(count_of(CASYNC_C_STABLE + CASYNC_STABLE_DATA), 0);
}

static void unstable_write_is_not_counted_as_stable(void **state)
{
	rig.exp.keys.tuning.promote_unstable = 0;
	run_write(500, false);
	assert_int_equal(count_of(CASYNC_C_PROMOTED), 0);
	assert_int_equal(count_of(CASYNC_C_FLUSHES_AVOIDED), 0);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_WRITE), 1);
}

static void error_is_counted_and_its_bytes_are_not(void **state)
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
static void closed_export_answers_delay(void **state)
{
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	run_read(0, 100);
	assert_int_equal(
		count_of(error(CASYNC_METRIC_READ, CASYNC_ERROR_DELAY)), 1);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_READ), 1);
	assert_int_equal(observed(CASYNC_H_STAGES + CASYNC_STAGE_TOTAL), 0);
}

static void new_file_is_journaled_first(void **state)
{
	casync_flush_mark_new(&rig.obj->flush);
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_NEW_FILE_DELAYED), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 1);
}

static void failed_flush_is_counted(void **state)
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

static void commit_that_needs_nothing(void **state)
{
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(count_of(CASYNC_C_COMMIT_NO_FLUSH), 1);
	assert_int_equal(count_of(CASYNC_C_REQUESTS + CASYNC_METRIC_COMMIT), 1);
	assert_int_equal(observed(CASYNC_H_FLUSH), 0);
}

static void read_to_the_end_says_so(void **state)
{
	run_read(OBJ * (RIG_OBJECTS - 1), OBJ);
	assert_int_equal(count_of(CASYNC_C_EOF_READS), 1);
}

static void read_before_the_end_does_not(void **state)
{
	run_read(0, 100);
	assert_int_equal(count_of(CASYNC_C_EOF_READS), 0);
}

/* All its parts: two objects. */
static void callback_before_the_call_returns_is_inline(void **state)
{
	fake.plan.when = FAKE_BEFORE_RETURN;
	run_read(OBJ - 10, 100);
	assert_int_equal(count_of(CASYNC_C_INLINE), 1);
}

static void callback_after_the_call_is_not_inline(void **state)
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
static void refused_call_is_not_inline(void **state)
{
	fake_special(0,
		     (struct fake_plan){.when = FAKE_RETURNED, .result = -EIO});
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_INLINE), 0);
	assert_int_equal(count_of(error(CASYNC_METRIC_WRITE, CASYNC_ERROR_IO)),
			 1);
}

static void temporary_fd_is_a_deferred_close(void **state)
{
	stub.global_fd_busy = true;
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_DEFERRED_CLOSES), 1);
}

static void fd_that_stays_open_is_none(void **state)
{
	run_write(500, true);
	assert_int_equal(count_of(CASYNC_C_DEFERRED_CLOSES), 0);
}

static void lost_session_is_heard_of(void **state)
{
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_SERVES);
	fake_special(0, (struct fake_plan){.when = FAKE_ON_THREAD,
					   .result = -CASYNC_EBLOCKLISTED});
	run_write(500, true);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
	assert_int_equal(
		count_of(error(CASYNC_METRIC_WRITE, CASYNC_ERROR_SESSION)), 1);
}

/* It may come from memory. */
static void lost_session_is_not_found_by_an_answer(void **state)
{
	casync_session_note_error(&stub_mount.session, ENOTCONN);
	run_write(500, true);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
}

/* A COMMIT without a flush asks nobody. */
static void answer_that_is_ours_tells_nothing(void **state)
{
	casync_session_note_error(&stub_mount.session, CASYNC_EBLOCKLISTED);
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(read_is_counted_in_every_stage),
		CASE(read_past_the_end_has_a_total_only),
		CASE(read_up_to_the_end_asks_for_the_size),
		CASE(read_of_a_hole_is_repaired),
		CASE(stable_write_without_flush),
		CASE(stable_write_with_flush),
		CASE(promoted_and_unstable_write),
		CASE(unstable_write_is_not_counted_as_stable),
		CASE(error_is_counted_and_its_bytes_are_not),
		CASE(closed_export_answers_delay),
		CASE(new_file_is_journaled_first),
		CASE(failed_flush_is_counted),
		CASE(commit_that_needs_nothing),
		CASE(read_to_the_end_says_so),
		CASE(read_before_the_end_does_not),
		CASE(callback_before_the_call_returns_is_inline),
		CASE(callback_after_the_call_is_not_inline),
		CASE(refused_call_is_not_inline),
		CASE(temporary_fd_is_a_deferred_close),
		CASE(fd_that_stays_open_is_none),
		CASE(lost_session_is_heard_of),
		CASE(lost_session_is_not_found_by_an_answer),
		CASE(answer_that_is_ours_tells_nothing),
	};

	return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
