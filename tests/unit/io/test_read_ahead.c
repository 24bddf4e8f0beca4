/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which READs make a stream, and how much it fetches at once. */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "buffer.h"
#include "read_ahead.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static struct casync_read_ahead ahead;

static int up(void **state)
{
	memset(&ahead, 0, sizeof(ahead));
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

/* A READ that misses. */
static struct casync_range miss(uint64_t offset, size_t bytes)
{
	int stream = casync_read_ahead_note(&ahead, offset, bytes);

	return casync_read_ahead_plan(&ahead, stream, offset, bytes);
}

static void hit(uint64_t offset, size_t bytes)
{
	(void)casync_read_ahead_note(&ahead, offset, bytes);
}

static void check(struct casync_range range, uint64_t offset, uint64_t bytes)
{
	assert_int_equal(range.offset, offset);
	assert_int_equal(range.bytes, bytes);
}

/* Plays a client that reads all of a file.  Returns the READs of OSDs. */
static unsigned int read_all(uint64_t file_bytes, size_t bytes, bool backward)
{
	struct casync_range have = {0, 0};
	unsigned int misses = 0;
	uint64_t done, at;

	for (done = 0; done < file_bytes; done += bytes) {
		at = backward ? file_bytes - done - bytes : done;
		if (at >= have.offset &&
		    at + bytes <= have.offset + have.bytes) {
			hit(at, bytes);
			continue;
		}
		have = miss(at, bytes);
		assert_true(have.bytes <= CASYNC_CACHE_BUFFER_MAX);
		assert_true(have.bytes == bytes ||
			    have.bytes <= CASYNC_AHEAD_FACTOR * (done + bytes));
		misses++;
	}
	return misses;
}

CASE(stream_grows_to_the_largest_buffer)
{
	assert_uint_in_range(read_all(64 * MIB, 4 * KIB, false), 64, 70);
}

CASE(backward_stream_is_one)
{
	assert_uint_in_range(read_all(64 * MIB, 4 * KIB, true), 64, 70);
}

CASE(larger_reads_are_a_stream)
{
	assert_uint_in_range(read_all(64 * MIB, 64 * KIB, false), 64, 70);
}

CASE(random_reads_are_none)
{
	uint64_t offset = 1;
	int i;

	for (i = 0; i < 1000; i++) {
		offset = (offset * UINT64_C(6364136223846793005) + 1) %
			 (1024 * MIB) / (4 * KIB) * (4 * KIB);
		if (offset % (64 * KIB) == 0)
			continue;
		if (casync_read_ahead_note(&ahead, offset, 4 * KIB) >= 0)
			i += 100;
	}
	/* One in 4,000 is near another one by chance. */
	assert_int_in_range(i, 1000, 1300);
}

CASE(first_read_fetches_itself)
{
	check(miss(8 * MIB, 4 * KIB), 8 * MIB, 4 * KIB);
}

CASE(second_read_fetches_to_the_end_of_a_piece)
{
	check(miss(64 * KIB, 4 * KIB), 64 * KIB, 4 * KIB);
	check(miss(68 * KIB, 4 * KIB), 68 * KIB, 28 * KIB);
}

/* As a kernel client sends them: several, and not in order. */
CASE(piece_is_fetched_by_one_read)
{
	hit(0, 64 * KIB);
	hit(64 * KIB, 64 * KIB);
	check(miss(1 * MIB, 64 * KIB), 1 * MIB, 64 * KIB);
	memset(&ahead, 0, sizeof(ahead));
	hit(0, 64 * KIB);
	hit(64 * KIB, 64 * KIB);
	hit(128 * KIB, 64 * KIB);
	check(miss(256 * KIB, 64 * KIB), 256 * KIB, 768 * KIB);
	check(miss(192 * KIB, 64 * KIB), 192 * KIB, 64 * KIB);
}

CASE(large_reads_read_nothing_ahead)
{
	assert_int_equal(read_all(64 * MIB, CASYNC_AHEAD_LARGE, false),
			 64 * MIB / CASYNC_AHEAD_LARGE);
}

CASE(read_over_the_edge_of_a_piece_is_itself)
{
	hit(0, 4 * KIB);
	hit(4 * KIB, 4 * KIB);
	check(miss(32 * KIB - 100, 4 * KIB), 32 * KIB - 100, 4 * KIB);
}

CASE(streams_do_not_mix)
{
	uint64_t i, n;

	for (n = 0; n < 3; n++) {
		for (i = 0; i < CASYNC_STREAMS; i++)
			hit(i * 64 * MIB + n * 4 * KIB, 4 * KIB);
	}
	for (i = 0; i < CASYNC_STREAMS; i++)
		check(miss(i * 64 * MIB + 12 * KIB, 4 * KIB),
		      i * 64 * MIB + 12 * KIB, 52 * KIB);
}

CASE(end_of_the_address_space_is_a_read)
{
	uint64_t last = INT64_MAX - 4 * KIB + 1;

	hit(last - 4 * KIB, 4 * KIB);
	check(miss(last, 4 * KIB), last, 4 * KIB);
}

/* Plays a scan of a column.  Returns the READs of OSDs. */
static unsigned int scan(uint64_t file_bytes, size_t bytes, uint64_t stride,
			 bool backward)
{
	struct casync_range have = {0, 0};
	unsigned int misses = 0;
	uint64_t done, at;

	for (done = 0; done + stride <= file_bytes; done += stride) {
		at = backward ? file_bytes - done - stride : done;
		if (at >= have.offset &&
		    at + bytes <= have.offset + have.bytes) {
			hit(at, bytes);
			continue;
		}
		have = miss(at, bytes);
		assert_true(have.bytes <= CASYNC_CACHE_BUFFER_MAX);
		assert_true(have.bytes <= CASYNC_AHEAD_FACTOR * (done + bytes));
		misses++;
	}
	return misses;
}

CASE(scan_of_a_column_is_a_stream)
{
	assert_uint_in_range(scan(64 * MIB, 4 * KIB, 64 * KIB, false), 64, 70);
	memset(&ahead, 0, sizeof(ahead));
	assert_uint_in_range(scan(64 * MIB, 512, 100 * KIB, false), 64, 70);
}

CASE(backward_scan_is_a_stream)
{
	assert_uint_in_range(scan(64 * MIB, 4 * KIB, 64 * KIB, true), 64, 70);
}

/* A piece would serve too few of them. */
CASE(scan_with_a_large_stride_is_none)
{
	uint64_t stride = CASYNC_AHEAD_STRIDE + 4 * KIB;

	assert_int_equal(scan(64 * MIB, 4 * KIB, stride, false),
			 64 * MIB / stride);
}

/* Two READs tell the distance, the third one fetches more. */
CASE(third_read_of_a_scan_fetches_more)
{
	check(miss(0, 4 * KIB), 0, 4 * KIB);
	check(miss(64 * KIB, 4 * KIB), 64 * KIB, 4 * KIB);
	check(miss(128 * KIB, 4 * KIB), 128 * KIB, 128 * KIB);
}
