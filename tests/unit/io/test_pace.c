/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How many calls of a stream are in flight, by what its calls take. */
#include "config.h"

#include "unit.h"

#include "write_stream.h"

/* What one call of a stream takes, in ns. */
#define CALL (CASYNC_PACE_CALL_US * UINT64_C(1000))

static struct casync_pace pace;

static int up(void **state)
{
	casync_write_stream_pace_init(&pace);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static uint32_t calls_after(uint64_t took_ns)
{
	casync_write_stream_pace_learn(&pace, took_ns);
	return pace.calls;
}

CASE(new_stream_has_eight)
{
	assert_int_equal(pace.calls, 8);
}

CASE(one_call_in_each_of_its_time)
{
	static const struct {
		uint64_t took_ns;
		uint32_t calls;
	} cases[] = {
		{1, 2},
		{2 * CALL - 1, 2},
		{3 * CALL - 1, 2},
		{3 * CALL, 3},
		{10 * CALL, 10},
		{64 * CALL, 64},
		{120 * CALL, 120},
		{128 * CALL, 128},
		{130 * CALL, 128},
		{1000 * CALL, 128},
		{UINT64_MAX, 128},
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		casync_write_stream_pace_init(&pace);
		assert_int_equal(calls_after(cases[i].took_ns), cases[i].calls);
	}
}

/* They queue behind each other; more of them would queue longer. */
CASE(slower_calls_of_a_piece_change_nothing)
{
	unsigned int i;

	assert_int_equal(calls_after(10 * CALL), 10);
	for (i = 1; i < 1000; i++)
		assert_int_equal(calls_after(10 * CALL * i), 10);
	assert_int_equal(calls_after(8 * CALL), 8);
	assert_int_equal(calls_after(10 * CALL), 8);
}

CASE(next_piece_is_measured_anew)
{
	assert_int_equal(calls_after(10 * CALL), 10);
	casync_write_stream_pace_reset(&pace);
	/* Until its first answer. */
	assert_int_equal(pace.calls, 10);
	assert_int_equal(calls_after(50 * CALL), 50);
	assert_int_equal(calls_after(40 * CALL), 40);
	casync_write_stream_pace_reset(&pace);
	assert_int_equal(calls_after(5 * CALL), 5);
}

CASE(unknown_times_are_ignored)
{
	assert_int_equal(calls_after(0), 8);
	assert_int_equal(calls_after(30 * CALL), 30);
	assert_int_equal(calls_after(0), 30);
}
