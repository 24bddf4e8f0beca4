/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "cache_rig.h"

#define BUDGET (16 * MIB)

static struct casync_cache_file file;
static struct casync_cache_stats before;

/* What is done while memory is allocated: for a file's first pages that is in
 * put, after it has looked for writes. */
static void (*in_calloc)(void);

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	void (*act)(void) = in_calloc;

	in_calloc = NULL;
	if (act != NULL)
		act();
	return __real_calloc(count, size);
}

static int up(void **state)
{
	memset(&file, 0, sizeof(file));
	casync_cache_set_budget(BUDGET);
	before = rig_stats();
	return 0;
}

static int down(void **state)
{
	casync_cache_forget(&file);
	return rig_end(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static uint64_t drops(enum casync_cache_drop cause)
{
	return rig_stats().counts.drops[cause] - before.counts.drops[cause];
}

static uint64_t losses(enum casync_cache_loss cause)
{
	return rig_stats().counts.losses[cause] - before.counts.losses[cause];
}

CASE(sizes_are_as_documented)
{
	assert_in_range(sizeof(struct casync_cache_file), 8, 24);
	assert_in_range(sizeof(struct casync_cache_buffer), 64, 112);
	print_message("file %zu, buffer %zu, segment %zu bytes\n",
		      sizeof(struct casync_cache_file),
		      sizeof(struct casync_cache_buffer),
		      sizeof(struct casync_cache_segment));
}

CASE(what_was_put_is_found)
{
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 0);
	assert_true(rig_fetch(&file, 1, 0, 64 * KIB, (uint32_t)(64 * KIB)));
	assert_int_equal(rig_look(&file, 1, 64 * KIB, 64 * KIB), 1);
	assert_int_equal(rig_look(&file, 1, 68 * KIB, PAGE), 1);
	assert_int_equal(rig_look(&file, 1, 60 * KIB, 8 * KIB), 0);
	assert_int_equal(rig_look(&file, 1, 124 * KIB, 8 * KIB), 0);
	assert_int_equal(rig_stats().hits - before.hits, 2);
	assert_int_equal(rig_stats().misses - before.misses, 3);
	assert_int_equal(rig_stats().hit_bytes - before.hit_bytes, 68 * KIB);
}

CASE(any_alignment_is_found)
{
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)(8 * KIB)));
	assert_true(rig_fetch(&file, 1, 0, 8 * KIB, (uint32_t)(8 * KIB)));
	assert_int_equal(rig_look(&file, 1, 1, 1), 1);
	assert_int_equal(rig_look(&file, 1, 8191, 1), 1);
	assert_int_equal(rig_look(&file, 1, 8191, 2), 2);
	assert_int_equal(rig_look(&file, 1, 100, 16000), 2);
	assert_int_equal(rig_look(&file, 1, 100, 16 * KIB), 0);
	assert_int_equal(rig_look(&file, 1, UINT64_MAX - 5, 10), 0);
}

CASE(segments_have_a_limit)
{
	struct casync_cache_segment segments[3];
	struct casync_cache_tag tag = rig_tag(1);
	uint64_t at;
	bool end;

	for (at = 0; at < 4 * PAGE; at += PAGE)
		assert_true(rig_fetch(&file, 1, 0, at, (uint32_t)PAGE));
	assert_int_equal(
		casync_cache_get(&file, &tag, 0, 4 * PAGE, segments, 3, &end),
		0);
	assert_int_equal(rig_look(&file, 1, 0, 4 * PAGE), 4);
	/* A miss has left no reference: rig_end() sees it. */
}

CASE(mib_in_one_buffer_is_one_segment)
{
	assert_true(rig_fetch(&file, 1, 0, MIB, (uint32_t)MIB));
	assert_int_equal(rig_look(&file, 1, MIB, MIB), 1);
	/* One of its pages again, by itself: refused, it is known. */
	assert_false(rig_fetch(&file, 1, 0, MIB + PAGE, (uint32_t)PAGE));
	assert_int_equal(drops(CASYNC_CACHE_DROP_KNOWN), 1);
	assert_int_equal(rig_look(&file, 1, MIB, MIB), 1);
}

CASE(larger_read_takes_the_place_of_pages)
{
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	assert_true(rig_fetch(&file, 1, 0, 3 * PAGE, (uint32_t)PAGE));
	assert_int_equal(rig_stats().counts.buffers, 2);
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)(64 * KIB)));
	assert_int_equal(rig_stats().counts.buffers, 1);
	assert_int_equal(rig_look(&file, 1, 0, 64 * KIB), 1);
}

/* So many bytes are found, in one segment; returns whether the file's end
 * is. */
static bool look_for_end(uint64_t offset, uint64_t length, uint64_t bytes)
{
	struct casync_cache_tag tag = rig_tag(1);
	struct casync_cache_segment segment;
	bool end = true;

	assert_int_equal(casync_cache_get(&file, &tag, offset, length, &segment,
					  1, &end),
			 bytes > 0);
	if (bytes > 0) {
		assert_int_equal(segment.bytes, bytes);
		casync_buffer_release(segment.buffer);
	}
	return end;
}

CASE(end_of_the_file_is_known_by_a_short_read)
{
	/* 10,000 bytes from 64 KiB on. */
	assert_true(
		rig_fetch_end(&file, 1, 64 * KIB, (uint32_t)(64 * KIB), 10000));
	assert_true(look_for_end(64 * KIB, 64 * KIB, 10000));
	assert_true(look_for_end(64 * KIB, 10000, 10000));
	assert_false(look_for_end(64 * KIB, 9999, 9999));
	assert_true(look_for_end(64 * KIB + 9999, 100, 1));
	assert_false(look_for_end(64 * KIB + 10000, 100, 0));
	assert_false(look_for_end(128 * KIB, 100, 0));
}

CASE(end_at_the_border_of_a_page)
{
	assert_true(rig_fetch_end(&file, 1, 0, (uint32_t)(64 * KIB),
				  (uint32_t)(8 * KIB)));
	assert_true(look_for_end(0, MIB, 8 * KIB));
	/* A full read does not tell. */
	casync_cache_forget(&file);
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)(8 * KIB)));
	assert_false(look_for_end(0, 8 * KIB, 8 * KIB));
	assert_false(look_for_end(0, 9 * KIB, 0));
}

/* One version has one end: a READ that says another is not believed. */
CASE(two_ends_do_not_fit)
{
	assert_true(rig_fetch_end(&file, 1, 0, (uint32_t)(16 * KIB), 5000));
	assert_false(rig_fetch_end(&file, 1, 0, (uint32_t)(16 * KIB), 6000));
	assert_false(rig_fetch_end(&file, 1, 0, (uint32_t)(16 * KIB), 4000));
	assert_false(rig_fetch(&file, 1, 0, 64 * KIB, (uint32_t)PAGE));
	assert_false(rig_fetch(&file, 1, 0, PAGE, (uint32_t)PAGE));
	assert_int_equal(drops(CASYNC_CACHE_DROP_REFUSED), 4);
	casync_cache_forget(&file);
	assert_true(rig_fetch(&file, 1, 0, 64 * KIB, (uint32_t)PAGE));
	assert_false(rig_fetch_end(&file, 1, 0, (uint32_t)(16 * KIB), 6000));
	assert_int_equal(rig_look(&file, 1, 64 * KIB, PAGE), 1);
}

CASE(other_tag_drops_the_pages)
{
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	/* What is put for another version does not replace them. */
	assert_false(rig_fetch(&file, 2, 0, PAGE, (uint32_t)PAGE));
	assert_int_equal(drops(CASYNC_CACHE_DROP_TAG), 1);
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 1);
	/* Who looks for it drops them, and may put then. */
	assert_int_equal(rig_look(&file, 2, 0, PAGE), 0);
	assert_int_equal(rig_stats().counts.buffers, 0);
	assert_true(rig_fetch(&file, 2, 0, PAGE, (uint32_t)PAGE));
	assert_int_equal(rig_look(&file, 2, PAGE, PAGE), 1);
	assert_int_equal(rig_look(&file, 1, PAGE, PAGE), 0);
}

CASE(each_part_of_the_tag_counts)
{
	struct casync_cache_segment segment;
	struct casync_cache_tag tag;
	unsigned int part;
	bool end;

	for (part = 0; part < 5; part++) {
		assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
		tag = rig_tag(1);
		((uint64_t *)&tag)[part]++;
		assert_int_equal(casync_cache_get(&file, &tag, 0, PAGE,
						  &segment, 1, &end),
				 0);
		assert_null(file.index);
	}
}

/* A READ under way while something happens to the file. */
struct fill {
	uint64_t epoch;
	struct casync_cache_buffer *buf;
};

static struct fill begin_fill(void)
{
	struct fill fill = {
		.epoch = casync_cache_epoch(&file),
		.buf = casync_evict_new_buffer(0, (uint32_t)PAGE),
	};

	assert_non_null(fill.buf);
	rig_fill(fill.buf, 1, 0);
	return fill;
}

static bool end_fill(struct fill fill)
{
	struct casync_cache_tag tag = rig_tag(1);
	bool taken = casync_cache_put(&file, &tag, fill.epoch, 0,
				      (uint32_t)PAGE, fill.buf);

	casync_buffer_release(fill.buf);
	return taken;
}

CASE(write_drops_and_refuses)
{
	struct fill early, during, late;

	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	early = begin_fill();
	casync_cache_begin_write(&file);
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 0);
	during = begin_fill();
	assert_false(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	/* Two at once. */
	casync_cache_begin_write(&file);
	casync_cache_end_write(&file);
	assert_false(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	casync_cache_end_write(&file);
	late = begin_fill();
	assert_false(end_fill(early));
	/* It began before the write was answered: it may have either. */
	assert_false(end_fill(during));
	assert_true(end_fill(late));
	assert_int_equal(drops(CASYNC_CACHE_DROP_WRITE), 4);
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 1);
}

static void begin_a_write(void)
{
	casync_cache_begin_write(&file);
}

static void make_a_write(void)
{
	casync_cache_begin_write(&file);
	casync_cache_end_write(&file);
}

/* It finds no pages to drop, so put has to see it. */
CASE(write_between_the_look_and_the_first_page)
{
	struct fill fill = begin_fill();

	in_calloc = begin_a_write;
	assert_false(end_fill(fill));
	assert_null(in_calloc);
	assert_null(file.index);
	casync_cache_end_write(&file);
	fill = begin_fill();
	in_calloc = make_a_write;
	assert_false(end_fill(fill));
	assert_null(in_calloc);
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 0);
	assert_int_equal(drops(CASYNC_CACHE_DROP_WRITE), 2);
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	assert_int_equal(losses(CASYNC_CACHE_LOSS_OWN), 0);
}

/* Of files that had pages; a file without any lost nothing. */
CASE(lost_pages_are_counted_by_cause)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
		assert_true(rig_fetch(&file, 1, 0, PAGE, (uint32_t)PAGE));
		casync_cache_begin_write(&file);
		casync_cache_begin_write(&file);
		casync_cache_end_write(&file);
		casync_cache_end_write(&file);
	}
	assert_int_equal(losses(CASYNC_CACHE_LOSS_OWN), 3);
	assert_int_equal(losses(CASYNC_CACHE_LOSS_FOREIGN), 0);
	for (i = 0; i < 2; i++) {
		assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
		assert_int_equal(rig_look(&file, 2, 0, PAGE), 0);
		assert_int_equal(rig_look(&file, 2, 0, PAGE), 0);
	}
	assert_int_equal(losses(CASYNC_CACHE_LOSS_FOREIGN), 2);
	assert_int_equal(losses(CASYNC_CACHE_LOSS_RELEASED), 0);
	assert_true(rig_fetch(&file, 1, 0, 0, (uint32_t)PAGE));
	casync_cache_forget(&file);
	casync_cache_forget(&file);
	assert_int_equal(losses(CASYNC_CACHE_LOSS_RELEASED), 1);
	assert_int_equal(losses(CASYNC_CACHE_LOSS_OWN), 3);
	assert_int_equal(losses(CASYNC_CACHE_LOSS_FOREIGN), 2);
	assert_int_equal(rig_stats().counts.evictions, before.counts.evictions);
}

CASE(forget_refuses_what_is_under_way)
{
	struct fill early = begin_fill();

	casync_cache_forget(&file);
	assert_false(end_fill(early));
	assert_true(end_fill(begin_fill()));
}

CASE(buffer_is_offered_once_and_in_pages)
{
	struct casync_cache_tag tag = rig_tag(1);
	struct casync_cache_buffer *buf =
		casync_evict_new_buffer(0, (uint32_t)(8 * KIB));
	const uint32_t all = (uint32_t)(8 * KIB);

	rig_fill(buf, 1, 0);
	assert_false(casync_cache_put(&file, &tag, 0, 100, all, buf));
	assert_false(casync_cache_put(&file, &tag, 0, 0, 0, buf));
	assert_false(casync_cache_put(&file, &tag, 0, 0, all + 1, buf));
	assert_false(
		casync_cache_put(&file, &tag, 0, INT64_MAX - 4095, all, buf));
	assert_true(casync_cache_put(&file, &tag, 0, 0, all, buf));
	assert_false(casync_cache_put(&file, &tag, 0, 16 * KIB, all, buf));
	assert_int_equal(drops(CASYNC_CACHE_DROP_REFUSED), 5);
	casync_buffer_release(buf);
	assert_int_equal(rig_look(&file, 1, 0, 8 * KIB), 1);
}

/* Refused when the cache was switched off during the READ. */
CASE(cache_that_is_off_takes_nothing)
{
	struct fill fill = begin_fill();

	casync_cache_set_budget(0);
	assert_false(end_fill(fill));
	assert_null(file.index);
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 0);
	/* And without anything to find a write costs no more. */
	casync_cache_begin_write(&file);
	casync_cache_end_write(&file);
}
