/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which WRITEs continue each other, and which of them wait for calls. */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "op.h"
#include "write_stream.h"

#define LENGTH 10	/* bytes of a write */
#define MAX_BYTES 1000	/* of a call */
#define WINDOW 4000	/* four calls */
#define MAKE_A_STREAM 5 /* writes, each after the one before */
#define OBJECT UINT64_C(1000000)
#define US UINT64_C(1000)

static struct casync_write_streams streams;
static struct casync_op ops[64];
static unsigned int made;

static int up(void **state)
{
	memset(&streams, 0, sizeof(streams));
	memset(ops, 0, sizeof(ops));
	made = 0;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

/* A new write, that no stream has seen yet. */
static struct casync_op *op_at(uint64_t offset)
{
	struct casync_op *op = &ops[made++];

	assert_true(made <= sizeof(ops) / sizeof(ops[0]));
	op->kind = CASYNC_OP_WRITE;
	op->offset = offset;
	op->length_bytes = LENGTH;
	op->parts.at = op->parts.own;
	op->gather.max_bytes = MAX_BYTES;
	op->gather.piece = offset / OBJECT;
	return op;
}

static struct casync_op *write_at(uint64_t offset)
{
	struct casync_op *op = op_at(offset);

	casync_write_stream_follow(&streams, op);
	return op;
}

/* Returns the end of the last one. */
static uint64_t write_stream(uint64_t offset, unsigned int count)
{
	for (; count != 0; count--, offset += LENGTH)
		(void)write_at(offset);
	return offset;
}

static bool is_counted(struct casync_op *op)
{
	casync_write_stream_begin_call(&streams, op);
	return op->gather.stream != 0;
}

static bool is_busy(const struct casync_op *op)
{
	return casync_write_stream_is_busy(&streams, op);
}

/* As many calls as a new stream may have in flight.  Returns the end. */
static uint64_t fill_with_calls(uint64_t offset, struct casync_op **last)
{
	unsigned int i;

	for (i = 0; i < CASYNC_PACE_CALLS; i++, offset += LENGTH) {
		*last = write_at(offset);
		assert_false(is_busy(*last));
		assert_true(is_counted(*last));
	}
	return offset;
}

static void answer(struct casync_op *op, uint64_t took_ns)
{
	op->parts.own[0].result = LENGTH;
	op->submitted_ns = 1000;
	op->answered_ns = 1000 + took_ns;
	assert_true(casync_write_stream_end_call(&streams, op));
}

CASE(writes_one_after_the_other_become_a_stream)
{
	uint64_t end = write_stream(0, MAKE_A_STREAM - 2);

	assert_false(is_counted(write_at(end)));
	assert_true(is_counted(write_at(end + LENGTH)));
}

CASE(stream_waits_while_its_calls_are_in_flight)
{
	struct casync_op *last, *later;
	uint64_t end = fill_with_calls(write_stream(0, MAKE_A_STREAM), &last);

	later = write_at(end);
	assert_true(is_busy(later));
	answer(last, 8 * CASYNC_PACE_CALL_US * US); /* 8 calls, as before */
	assert_false(is_busy(later));
	/* It is counted once, whoever asks again. */
	assert_false(casync_write_stream_end_call(&streams, last));
}

CASE(pace_follows_what_a_call_took)
{
	struct casync_op *last, *later;
	uint64_t end = fill_with_calls(write_stream(0, MAKE_A_STREAM), &last);
	unsigned int i;

	/* 10 calls, of which 7 are in flight. */
	answer(last, 10 * CASYNC_PACE_CALL_US * US);
	for (i = 0; i < 3; i++, end += LENGTH) {
		later = write_at(end);
		assert_false(is_busy(later));
		assert_true(is_counted(later));
	}
	assert_true(is_busy(write_at(end)));
}

CASE(failed_call_says_nothing_of_the_pace)
{
	struct casync_op *last;
	uint64_t end = fill_with_calls(write_stream(0, MAKE_A_STREAM), &last);

	last->parts.own[0].result = -28;
	last->submitted_ns = 1000;
	last->answered_ns = 2000;
	assert_true(casync_write_stream_end_call(&streams, last));
	/* Still 8: one more, and not fewer. */
	assert_true(is_counted(write_at(end)));
	assert_true(is_busy(write_at(end + LENGTH)));
}

CASE(full_call_of_queued_writes_waits_no_longer)
{
	struct casync_op *last, *first;
	uint64_t end = fill_with_calls(write_stream(0, MAKE_A_STREAM), &last);

	first = write_at(end);
	first->length_bytes = MAX_BYTES - 1;
	casync_write_stream_queued(&streams, first);
	assert_true(is_busy(first));
	last = op_at(end);
	last->gather.stream = first->gather.stream;
	last->length_bytes = 1;
	casync_write_stream_queued(&streams, last);
	assert_false(is_busy(first));
	casync_write_stream_unqueued(&streams, last);
	assert_true(is_busy(first));
}

CASE(writes_far_apart_are_no_stream)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		assert_false(is_counted(write_at(i * (WINDOW + 2 * LENGTH))));
}

CASE(writes_to_one_place_are_no_stream)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		assert_false(is_counted(write_at(0)));
}

/* They come on several connections, so pairs change places. */
CASE(writes_that_fill_gaps_are_a_stream)
{
	uint64_t end;
	unsigned int i;

	for (i = 0, end = 0; i < 10; i++, end += 2 * LENGTH) {
		(void)write_at(end + LENGTH);
		(void)write_at(end);
	}
	assert_true(is_counted(write_at(end)));
}

CASE(gaps_beyond_the_window_end_a_stream)
{
	uint64_t end = write_stream(0, MAKE_A_STREAM);
	unsigned int i;

	/* Each is within the window, all together are not. */
	for (i = 0; i < 3; i++, end += WINDOW / 2 + LENGTH)
		(void)write_at(end + WINDOW / 2);
	assert_false(is_counted(write_at(end)));
}

/* The last writes of an object do not wait for those of the next. */
CASE(stream_that_moves_on_leaves_its_writes_behind)
{
	uint64_t begin =
		OBJECT - (MAKE_A_STREAM + CASYNC_PACE_CALLS + 1) * LENGTH;
	struct casync_op *last, *left, *next;
	uint64_t end;

	end = fill_with_calls(write_stream(begin, MAKE_A_STREAM), &last);
	left = write_at(end);
	casync_write_stream_queued(&streams, left);
	assert_true(is_busy(left));
	next = write_at(OBJECT);
	assert_false(is_busy(left));
	assert_false(is_busy(next));
	/* What is answered or taken now is not the new stream's. */
	casync_write_stream_unqueued(&streams, left);
	answer(last, 1 * US);
	fill_with_calls(OBJECT + LENGTH, &last);
	assert_true(is_busy(next));
}

/* An early write of the next object is in no stream, and does not wait. */
CASE(write_of_another_object_before_is_in_no_stream)
{
	struct casync_op *before;

	(void)write_stream(OBJECT, MAKE_A_STREAM);
	before = write_at(OBJECT - LENGTH);
	assert_int_equal(before->gather.stream, 0);
	assert_false(is_counted(before));
}

CASE(two_streams_are_followed_and_a_third_comes_when_one_ends)
{
	uint64_t a = write_stream(0, MAKE_A_STREAM);
	uint64_t b = write_stream(100000, MAKE_A_STREAM);
	unsigned int hits = MAKE_A_STREAM - 1;
	struct casync_op *third;
	unsigned int i;

	/* The older one is not written any more: each miss takes a hit. */
	for (i = 0; i < hits; i++) {
		third = write_at(200000 + i * 2 * WINDOW);
		assert_int_equal(third->gather.stream, 0);
		b = write_stream(b, 1);
	}
	third = write_at(300000);
	assert_int_not_equal(third->gather.stream, 0);
	assert_true(is_counted(write_at(b)));
	assert_false(is_counted(write_at(a)));
}

/* 0 means "no stream". */
CASE(id_is_never_zero)
{
	streams.last_id = UINT32_MAX;
	assert_int_not_equal(write_at(0)->gather.stream, 0);
}

CASE(write_that_goes_alone_is_in_no_stream)
{
	struct casync_op *alone;
	uint64_t end = write_stream(0, MAKE_A_STREAM);

	alone = op_at(end);
	alone->gather.max_bytes = 0;
	casync_write_stream_follow(&streams, alone);
	assert_int_equal(alone->gather.stream, 0);
	assert_false(is_busy(alone));
	assert_false(is_counted(alone));
}
