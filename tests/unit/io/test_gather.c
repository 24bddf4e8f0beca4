/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Adjacent WRITEs in one call: which go together, when they wait and when
 * not, and that each gets its own answer once, whatever becomes of the call.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "gather.h"
#include "queue.h"
#include "op.h"
#include "request.h"
#include "submit.h"

#define STEP 256U
#define MOST 1024U
/* Writes until a stream is known, and its first calls in the air. */
#define BEGIN 4U
#define AHEAD (BEGIN + CASYNC_PACE_CALLS)
#define ROOM 60U

static struct io *ios[ROOM];
static unsigned int count;
static uint64_t at; /* where the stream is */

static int up(void **state)
{
	int rc = request_up(state);

	rig.exp.keys.tuning.gather_bytes = MOST;
	fake.plan.when = FAKE_LATER;
	count = 0;
	at = 0;
	return rc;
}

static int down(void **state)
{
	while (count != 0)
		free_io(ios[--count]);
	return request_down(state);
}

#define GATHER_CASE(test) TEST_WITH(test, up, down)

static struct io *write_at(uint64_t offset, size_t length, bool stable)
{
	struct io *io = new_io(offset, length);

	ios[count++] = io;
	start_write(io, stable);
	return io;
}

static struct io *write_next(size_t length)
{
	at += length;
	return write_at(at - length, length, true);
}

/* As many calls as there may be before a write waits. */
static void fill_the_air(void)
{
	unsigned int i;

	for (i = 0; i < AHEAD; i++)
		write_next(STEP);
	assert_int_equal(fake_call_count(), AHEAD);
}

static void wait_for_calls(unsigned int calls)
{
	(void)RIG_COMES(fake_call_count() >= calls);
	assert_int_equal(fake_call_count(), calls);
}

/* Answer the oldest call of the stream that keeps others waiting. */
static void answer_one(void)
{
	fake_complete(BEGIN);
}

static void check_call(unsigned int call, uint64_t offset, size_t length)
{
	assert_int_equal(fake.calls[call].asked.off, offset);
	assert_int_equal(fake.calls[call].length_bytes, length);
	assert_true(fake.calls[call].asked.write);
}

/* And no other call has come meanwhile. */
static bool answer_all(void)
{
	unsigned int calls = fake_call_count();
	unsigned int i;

	fake_complete_in_order();
	for (i = 0; i < count && sem_trywait(&ios[i]->came) == 0; i++)
		sem_post(&ios[i]->came);
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return i == count && fake_call_count() == calls;
}

/* Have everything answered, once each. */
static void settle_all(void)
{
	unsigned int i;

	RIG_UNTIL(answer_all());
	settle(ios[0]);
	for (i = 0; i < count; i++)
		assert_int_equal(ios[i]->calls, 1);
}

static void check_all_written(void)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		check_ok(ios[i], asked_bytes(&ios[i]->arg));
		check_bytes_written(ios[i], asked_bytes(&ios[i]->arg));
	}
}

static uint64_t counted(enum casync_metric counter)
{
	static struct casync_view totals;

	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.numbers[counter];
}

/* --- waiting */

GATHER_CASE(nothing_waits_that_has_few_calls_before_it)
{
	unsigned int i;

	fill_the_air();
	for (i = 0; i < AHEAD; i++)
		check_call(i, i * STEP, STEP);
	assert_int_equal(counted(CASYNC_C_FILE_QUEUE_WAITS), 0);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_GATHERED_WRITES), 0);
}

GATHER_CASE(what_comes_meanwhile_goes_in_one_call)
{
	fill_the_air();
	/* Of different lengths: one in another's place would be seen. */
	write_next(200);
	write_next(256);
	write_next(100);
	assert_int_equal(fake_call_count(), AHEAD);
	assert_int_equal(counted(CASYNC_C_FILE_QUEUE_WAITS), 3);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, 556);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_GATHERED_WRITES), 3);
	assert_int_equal(counted(CASYNC_C_GATHERED_CALLS), 1);
	assert_int_equal(counted(CASYNC_C_REQUESTS + CASYNC_METRIC_WRITE),
			 count);
	assert_int_equal(counted(CASYNC_C_STABLE + CASYNC_STABLE_DATA), count);
}

GATHER_CASE(one_that_nothing_followed_goes_by_itself)
{
	fill_the_air();
	write_next(STEP);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, STEP);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_GATHERED_WRITES), 0);
}

GATHER_CASE(a_full_call_waits_for_nothing)
{
	unsigned int i;

	fill_the_air();
	for (i = 0; i < MOST / STEP; i++)
		write_next(STEP);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, MOST);
	settle_all();
	check_all_written();
}

GATHER_CASE(off_by_key)
{
	unsigned int i;

	rig.exp.keys.tuning.gather_bytes = 0;
	for (i = 0; i < 50; i++)
		write_next(STEP);
	assert_int_equal(fake_call_count(), 50);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_GATHERED_WRITES), 0);
	assert_int_equal(counted(CASYNC_C_FILE_QUEUE_WAITS), 0);
}

GATHER_CASE(switched_off_while_some_wait)
{
	fill_the_air();
	write_next(STEP);
	write_next(STEP);
	rig.exp.keys.tuning.gather_bytes = 0;
	write_next(STEP);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	check_call(AHEAD, (AHEAD + 2) * STEP, STEP);
	answer_one();
	wait_for_calls(AHEAD + 2);
	check_call(AHEAD + 1, AHEAD * STEP, 2 * STEP);
	settle_all();
	check_all_written();
}

GATHER_CASE(scattered_writes_do_not_wait)
{
	unsigned int i;

	for (i = 0; i < 50; i++)
		write_at(i * 7919 % 15 * 1024, STEP, true);
	assert_int_equal(fake_call_count(), 50);
	settle_all();
}

GATHER_CASE(one_place_over_and_over_does_not_wait)
{
	unsigned int i;

	for (i = 0; i < 50; i++)
		write_at(4096, STEP, true);
	assert_int_equal(fake_call_count(), 50);
	settle_all();
	check_all_written();
}

GATHER_CASE(large_writes_do_not_wait)
{
	unsigned int i;

	for (i = 0; i < 25; i++)
		write_next(MOST / 2 + 1);
	assert_int_equal(fake_call_count(), 25);
	settle_all();
	check_all_written();
}

GATHER_CASE(two_streams_are_told_apart)
{
	unsigned int i;

	for (i = 0; i < AHEAD; i++) {
		write_at(i * STEP, STEP, true);
		write_at(2 * OBJ + i * STEP, STEP, true);
	}
	assert_int_equal(fake_call_count(), 2 * AHEAD);
	for (i = AHEAD; i < AHEAD + 3; i++) {
		write_at(i * STEP, STEP, true);
		write_at(2 * OBJ + i * STEP, STEP, true);
	}
	assert_int_equal(fake_call_count(), 2 * AHEAD);
	/* The first one's, and then the second one's. */
	fake_complete(2 * BEGIN);
	wait_for_calls(2 * AHEAD + 1);
	check_call(2 * AHEAD, AHEAD * STEP, 3 * STEP);
	fake_complete(2 * BEGIN + 1);
	wait_for_calls(2 * AHEAD + 2);
	check_call(2 * AHEAD + 1, 2 * OBJ + AHEAD * STEP, 3 * STEP);
	settle_all();
	check_all_written();
}

/* --- what goes together */

GATHER_CASE(order_of_arrival_does_not_matter)
{
	const uint64_t base = AHEAD * STEP;

	rig.exp.keys.tuning.gather_bytes = 2 * MOST;
	fill_the_air();
	write_at(base + STEP, STEP, true);
	write_at(base + 3 * STEP, STEP, true);
	write_at(base, STEP, true);
	write_at(base + 2 * STEP, STEP, true);
	assert_int_equal(fake_call_count(), AHEAD);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, base, 4 * STEP);
	settle_all();
	check_all_written();
}

/* As from several connections, which are read in turns. */
GATHER_CASE(writes_that_come_jumbled_are_a_stream)
{
	static const unsigned int order[] = {2, 0, 3, 1};
	unsigned int i;

	rig.obj->object_span = BUFFER_BYTES;
	rig.exp.keys.tuning.gather_bytes = 4 * MOST;
	for (i = 0; i < 10 * 4; i++)
		write_at((i / 4 * 4 + order[i % 4]) * STEP, STEP, true);
	assert_in_range(fake_call_count(), AHEAD, 25);
	settle_all();
	check_all_written();
	assert_in_range(counted(CASYNC_C_GATHERED_WRITES), 15, 40);
}

/* Forward, but never what lies between. */
GATHER_CASE(writes_with_gaps_do_not_wait)
{
	unsigned int i;

	for (i = 0; i < 50; i++)
		write_at(i * 2 * STEP, STEP, true);
	assert_int_equal(fake_call_count(), 50);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_FILE_QUEUE_WAITS), 0);
}

GATHER_CASE(a_call_stays_in_one_object)
{
	unsigned int i;

	rig.exp.keys.tuning.gather_bytes = 4 * MOST;
	fill_the_air();
	while (at < OBJ)
		write_next(STEP);
	assert_int_equal(fake_call_count(), AHEAD);
	/* Into the next object: what is left of this one waits no more. */
	write_next(STEP);
	assert_int_equal(fake_call_count(), AHEAD + 2);
	check_call(AHEAD, AHEAD * STEP, OBJ - AHEAD * STEP);
	check_call(AHEAD + 1, OBJ, STEP);
	for (i = 0; i < 20; i++)
		write_next(STEP);
	settle_all();
	check_all_written();
	for (i = 0; i < fake.call_count; i++)
		assert_int_equal(fake.calls[i].asked.off / OBJ,
				 (fake.calls[i].asked.off +
				  fake.calls[i].length_bytes - 1) /
					 OBJ);
}

GATHER_CASE(one_across_a_border_goes_by_itself)
{
	rig.exp.keys.tuning.gather_bytes = 4 * MOST;
	at = OBJ - AHEAD * STEP - 300;
	fill_the_air();
	write_next(200);
	write_next(200);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	check_call(AHEAD, OBJ - 100, 200);
	settle_all();
	check_all_written();
}

GATHER_CASE(without_a_layout_nothing_is_gathered)
{
	unsigned int i;

	rig.obj->object_span = 0;
	for (i = 0; i < 30; i++)
		write_next(STEP);
	assert_int_equal(fake_call_count(), 30);
	settle_all();
	check_all_written();
}

GATHER_CASE(stable_and_unstable_do_not_mix)
{
	const uint64_t base = AHEAD * STEP;

	rig.exp.keys.tuning.promote_unstable = 0;
	fill_the_air();
	write_at(base, STEP, true);
	write_at(base + STEP, STEP, false);
	write_at(base + 2 * STEP, STEP, false);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, base, STEP);
	fake_complete(BEGIN + 1);
	wait_for_calls(AHEAD + 2);
	check_call(AHEAD + 1, base + STEP, 2 * STEP);
	settle_all();
	check_all_written();
	assert_true(ios[AHEAD]->arg.fsal_stable);
	assert_false(ios[AHEAD + 1]->arg.fsal_stable);
	assert_false(ios[AHEAD + 2]->arg.fsal_stable);
}

GATHER_CASE(another_open_file_is_not_mixed_in)
{
	fake.hook = NULL; /* the temporary one is opened and closed here */
	fill_the_air();
	write_next(STEP);
	stub.global_fd_busy = true;
	write_next(STEP);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, STEP);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_GATHERED_WRITES), 0);
}

/* --- order */

GATHER_CASE(what_overlaps_comes_after_what_waits)
{
	fill_the_air();
	write_next(STEP);
	write_next(STEP);
	/* Too large to wait itself; its bytes are the last ones.  Those of the
	 * call may have to be written once more: it waits for the answer. */
	write_at(AHEAD * STEP + 10, MOST / 2 + 1, true);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, 2 * STEP);
	fake_complete(AHEAD);
	wait_for_calls(AHEAD + 2);
	check_call(AHEAD + 1, AHEAD * STEP + 10, MOST / 2 + 1);
	settle_all();
	check_bytes_written(ios[AHEAD + 2], MOST / 2 + 1);
}

GATHER_CASE(none_is_gathered_before_what_it_overlaps)
{
	const uint64_t base = AHEAD * STEP;

	fill_the_air();
	write_at(base, STEP, true);
	write_at(base + STEP + 10, 20, true);
	write_at(base + STEP, STEP, true);
	assert_int_equal(fake_call_count(), AHEAD);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, base, STEP);
	fake_complete(BEGIN + 1);
	wait_for_calls(AHEAD + 2);
	check_call(AHEAD + 1, base + STEP + 10, 20);
	fake_complete(BEGIN + 2);
	wait_for_calls(AHEAD + 3);
	check_call(AHEAD + 2, base + STEP, STEP);
	settle_all();
}

GATHER_CASE(reads_of_other_bytes_do_not_wait)
{
	struct io *read;

	fill_the_air();
	write_next(STEP);
	read = new_io(0, 100);
	ios[count++] = read;
	start_read(read);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	assert_false(fake.calls[AHEAD].asked.write);
	settle_all();
}

/* It overlaps a WRITE that is not answered, and finds what was there before. */
GATHER_CASE(a_read_does_not_wait_for_the_write_that_waits)
{
	struct io *read;

	fill_the_air();
	write_next(STEP);
	read = new_io(AHEAD * STEP, 100);
	ios[count++] = read;
	start_read(read);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	assert_false(fake.calls[AHEAD].asked.write);
	fake_complete(AHEAD);
	assert_true(rig_wait(&read->came));
	check_ok(read, 100);
	check_bytes_read(read, 100);
	sem_post(&read->came);
	/* Nor does the WRITE go before its turn. */
	assert_int_equal(fake_call_count(), AHEAD + 1);
	answer_one();
	wait_for_calls(AHEAD + 2);
	check_call(AHEAD + 1, AHEAD * STEP, STEP);
	settle_all();
}

/* --- results */

/* Three writes in one call, whose plan this is. */
static void gather_three(int64_t result)
{
	fake_special(AHEAD,
		     (struct fake_plan){.when = FAKE_LATER, .result = result});
	fill_the_air();
	write_next(200);
	write_next(256);
	write_next(100);
	answer_one();
	wait_for_calls(AHEAD + 1);
	check_call(AHEAD, AHEAD * STEP, 556);
}

GATHER_CASE(an_error_is_everybodys)
{
	unsigned int i;

	gather_three(-EIO);
	settle_all();
	for (i = 0; i < AHEAD; i++)
		check_ok(ios[i], STEP);
	for (; i < count; i++)
		check_error(ios[i], ERR_FSAL_IO);
	assert_int_equal(fake.call_count, AHEAD + 1);
}

static void check_room_is_asked_for_by_each(int error, fsal_errors_t major)
{
	unsigned int i;

	gather_three(-error);
	/* One of them has no room by itself either. */
	fake_special(AHEAD + 3,
		     (struct fake_plan){.when = FAKE_LATER, .result = -error});
	fake_complete(AHEAD);
	wait_for_calls(AHEAD + 4);
	settle_all();
	for (i = AHEAD; i < count; i++) {
		if ((int64_t)ios[i]->arg.offset ==
		    fake.calls[AHEAD + 3].asked.off)
			check_error(ios[i], major);
		else
			check_ok(ios[i], asked_bytes(&ios[i]->arg));
	}
}

GATHER_CASE(no_space_is_asked_for_by_each)
{
	check_room_is_asked_for_by_each(ENOSPC, ERR_FSAL_NOSPC);
}

GATHER_CASE(quota_is_asked_for_by_each)
{
	check_room_is_asked_for_by_each(EDQUOT, ERR_FSAL_DQUOT);
}

GATHER_CASE(size_is_asked_for_by_each)
{
	check_room_is_asked_for_by_each(EFBIG, ERR_FSAL_FBIG);
}

/* libcephfs gives none; whoever has no share must not be forgotten. */
GATHER_CASE(after_a_short_result_each_is_written_by_itself)
{
	unsigned int i;

	gather_three(300);
	fake_complete(AHEAD);
	wait_for_calls(AHEAD + 4);
	settle_all();
	for (i = AHEAD; i < count; i++)
		check_ok(ios[i], asked_bytes(&ios[i]->arg));
	check_all_written();
}

/* What came later and overlaps finds all of a refused call written. */
GATHER_CASE(refused_call_is_not_overtaken)
{
	gather_three(-EDQUOT);
	write_at(AHEAD * STEP + 250, MOST / 2 + 1, true);
	assert_int_equal(fake_call_count(), AHEAD + 1);
	fake_complete(AHEAD);
	wait_for_calls(AHEAD + 5);
	check_call(AHEAD + 4, AHEAD * STEP + 250, MOST / 2 + 1);
	settle_all();
	check_bytes_written(ios[AHEAD + 3], MOST / 2 + 1);
}

GATHER_CASE(nothing_written_is_an_error_of_each)
{
	unsigned int i;

	gather_three(0);
	settle_all();
	for (i = AHEAD; i < count; i++)
		check_error(ios[i], ERR_FSAL_IO);
}

GATHER_CASE(each_is_flushed_where_the_mode_asks_for_it)
{
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	gather_three(FAKE_TRUE_RESULT);
	settle_all();
	check_all_written();
	assert_int_equal(counted(CASYNC_C_FLUSH_REQUESTS), count);
	assert_in_range(fake_blocking_count(FAKE_SYNC_INODE), 1, count);
}

GATHER_CASE(a_failed_flush_is_everybodys_who_waited)
{
	unsigned int i;

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	gather_three(FAKE_TRUE_RESULT);
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	settle_all();
	for (i = AHEAD; i < count; i++)
		check_error(ios[i], ERR_FSAL_IO);
}

GATHER_CASE(answers_by_return_value_are_shared_out)
{
	fake_special(AHEAD,
		     (struct fake_plan){FAKE_RETURNED, FAKE_TRUE_RESULT, 0, 0});
	fill_the_air();
	write_next(200);
	write_next(256);
	answer_one();
	wait_for_calls(AHEAD + 1);
	settle_all();
	check_all_written();
}

#ifndef CASYNC_DEBUG
GATHER_CASE(a_second_completion_answers_nobody)
{
	gather_three(FAKE_TRUE_RESULT);
	settle_all();
	check_all_written();
	fake_complete_again(AHEAD, -EIO);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
}

/* While each of them is on its way again by itself. */
GATHER_CASE(a_second_completion_is_none_of_the_next_call)
{
	gather_three(-ENOSPC);
	fake_complete(AHEAD);
	wait_for_calls(AHEAD + 4);
	fake_complete_again(AHEAD, 556);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
	assert_int_equal(__atomic_load_n(&ios[AHEAD]->calls, __ATOMIC_ACQUIRE),
			 0);
	settle_all();
	check_all_written();
}
#endif

/* --- seen from outside */

static unsigned int held, submitted;

static void look(struct casync_inflight_entry *entry, void *unused)
{
	struct casync_dump dump;

	casync_op_dump_take(container_of(entry, struct casync_op, entry),
			    &dump);
	held += dump.state == CASYNC_OP_HELD;
	submitted += dump.state == CASYNC_OP_SUBMITTED && dump.parts_left == 1;
}

static void check_seen(unsigned int are_held, unsigned int are_submitted)
{
	held = 0;
	submitted = 0;
	casync_inflight_visit_all(&rig.exp.inflight, look, NULL);
	assert_int_equal(held, are_held);
	assert_int_equal(submitted, are_submitted);
}

GATHER_CASE(the_log_shows_where_they_are)
{
	fill_the_air();
	check_seen(0, AHEAD);
	write_next(STEP);
	write_next(STEP);
	check_seen(2, AHEAD);
	/* A full call, by this thread: it is out again when that returns. */
	write_next(STEP);
	write_next(STEP);
	check_seen(0, AHEAD + 4);
	settle_all();
}

/* --- many */

#define THREADS 4U
#define EACH 50U

static struct io *crowd[THREADS * EACH];
static unsigned int given; /* atomic */

static void *write_many(void *unused)
{
	unsigned int i;

	op_ctx = &rig.request;
	while ((i = __atomic_fetch_add(&given, 1, __ATOMIC_RELAXED)) <
	       THREADS * EACH)
		start_write(crowd[i], true);
	return unused;
}

GATHER_CASE(each_of_many_is_answered_once)
{
	pthread_t threads[THREADS];
	unsigned int i;

	fake.plan.when = FAKE_ON_THREAD;
	given = 0;
	for (i = 0; i < THREADS * EACH; i++)
		crowd[i] = new_io(i * STEP, STEP);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, write_many, NULL), 0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	for (i = 0; i < THREADS * EACH; i++)
		assert_true(rig_wait(&crowd[i]->came));
	sem_post(&crowd[0]->came);
	settle(crowd[0]);
	for (i = 0; i < THREADS * EACH; i++) {
		assert_int_equal(crowd[i]->calls, 1);
		check_ok(crowd[i], STEP);
		check_bytes_written(crowd[i], STEP);
		free_io(crowd[i]);
	}
}
