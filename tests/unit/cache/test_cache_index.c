/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "cache_rig.h"
#include "index.h"

/* Pages of the model's file. */
#define PAGES 4096U
#define ROUNDS 4000U

static struct casync_cache_file file;
static struct casync_cache_index *idx;

static int up(void **state)
{
	struct casync_cache_tag tag = rig_tag(1);

	casync_buffer_set_budget(256 * MIB);
	idx = casync_index_new(&file, &tag);
	assert_non_null(idx);
	return 0;
}

static void give_up(struct casync_cache_buffer *dropped)
{
	struct casync_cache_buffer *next;

	for (; dropped != NULL; dropped = next) {
		next = dropped->dropped;
		assert_null(dropped->index);
		assert_int_equal(dropped->slots, 0);
		casync_buffer_release(dropped);
	}
}

static int down(void **state)
{
	struct casync_cache_buffer *buf;

	while ((buf = casync_index_any_buffer(idx)) != NULL) {
		casync_index_remove(buf);
		assert_int_equal(buf->slots, 0);
		casync_buffer_release(buf);
	}
	assert_true(casync_index_is_empty(idx));
	casync_index_free(idx);
	return rig_end(state);
}

#define CASE(test) TEST_WITH(test, up, down)

/* The index has the only reference. */
static struct casync_cache_buffer *enter(uint64_t page, uint32_t pages)
{
	struct casync_cache_buffer *buf =
		casync_buffer_take(0, pages * CASYNC_CACHE_PAGE);
	struct casync_cache_buffer *dropped = NULL;

	assert_non_null(buf);
	buf->offset = page * PAGE;
	buf->valid = buf->length;
	assert_true(casync_index_insert(idx, buf, &dropped));
	casync_buffer_release(buf);
	give_up(dropped);
	return buf;
}

CASE(page_is_found_in_its_buffer)
{
	struct casync_cache_buffer *one = enter(10, 1), *other = enter(15, 20);

	assert_ptr_equal(casync_index_find(idx, 10), one);
	assert_null(casync_index_find(idx, 9));
	assert_null(casync_index_find(idx, 11));
	assert_ptr_equal(casync_index_find(idx, 15), other);
	assert_ptr_equal(casync_index_find(idx, 34), other);
	assert_null(casync_index_find(idx, 35));
	/* The same place in another leaf. */
	assert_null(casync_index_find(idx, 10 + (1ULL << 40)));
}

CASE(covers_means_each_page)
{
	enter(10, 1);
	enter(11, 20);
	assert_true(casync_index_covers(idx, 10, 21));
	assert_false(casync_index_covers(idx, 9, 2));
	assert_false(casync_index_covers(idx, 30, 2));
}

/* The whole address range of a file. */
CASE(far_pages_are_apart)
{
	unsigned int i;

	for (i = 0; i < 51; i++)
		enter(UINT64_C(1) << i, 1);
	for (i = 0; i < 51; i++)
		assert_int_equal(
			casync_index_find(idx, UINT64_C(1) << i)->offset,
			PAGE << i);
}

CASE(newer_buffer_takes_pages_over)
{
	uint64_t buffers = rig_stats().counts.buffers;
	struct casync_cache_buffer *large, *small;

	enter(5, 2);
	enter(7, 1);
	assert_int_equal(rig_stats().counts.buffers, buffers + 2);
	large = enter(4, 8);
	/* They had no page left, and were freed. */
	assert_int_equal(rig_stats().counts.buffers, buffers + 1);
	small = enter(5, 2);
	assert_ptr_equal(casync_index_find(idx, 4), large);
	assert_ptr_equal(casync_index_find(idx, 5), small);
	assert_ptr_equal(casync_index_find(idx, 6), small);
	assert_ptr_equal(casync_index_find(idx, 7), large);
	assert_int_equal(large->slots, 6);
}

/* A table of thousands of leaves, made by growing, keeps all; and what it
 * took is given back. */
CASE(many_leaves)
{
	uint64_t used = casync_buffer_used_bytes();
	uint64_t i;

	for (i = 0; i < 20000; i++)
		enter(i * 37, 1);
	for (i = 0; i < 20000 * 37; i++)
		assert_int_equal(casync_index_find(idx, i) != NULL,
				 i % 37 == 0);
	/* Header, leaf and table come to the data. */
	assert_in_range((casync_buffer_used_bytes() - used) / 20000, PAGE + 264,
			PAGE + 320);
	print_message("%llu bytes for a page of a random read\n",
		      (unsigned long long)(casync_buffer_used_bytes() - used) /
			      20000);
}

/* Against an array that says which buffer has which page. */
static struct casync_cache_buffer *model[PAGES];

static void compare_with_model(void)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		assert_ptr_equal(casync_index_find(idx, i), model[i]);
}

static void model_remove(struct casync_cache_buffer *buf)
{
	unsigned int i;

	casync_index_remove(buf);
	for (i = 0; i < PAGES; i++) {
		if (model[i] == buf)
			model[i] = NULL;
	}
	casync_buffer_release(buf);
}

CASE(random_buffers_are_as_in_the_model)
{
	struct casync_cache_buffer *buf;
	uint32_t page, pages, i, round;

	memset(model, 0, sizeof(model));
	srandom(1);
	for (round = 0; round < ROUNDS; round++) {
		page = (uint32_t)random() % (PAGES - 256);
		pages = 1 + (uint32_t)random() % (random() % 4 ? 4 : 256);
		buf = model[page];
		if (random() % 3 == 0 && buf != NULL) {
			model_remove(buf);
		} else {
			buf = enter(page, pages);
			for (i = page; i < page + pages; i++)
				model[i] = buf;
		}
		if (round % 50 == 0)
			compare_with_model();
	}
	compare_with_model();
}

/* Without memory nothing has changed: not even an empty leaf is left. */
CASE(refused_insertion_leaves_nothing)
{
	struct casync_cache_buffer *dropped = NULL;
	struct casync_cache_buffer *buf = casync_buffer_take(0, (uint32_t)MIB);
	uint64_t used;

	enter(3, 1);
	used = casync_buffer_used_bytes();
	buf->valid = buf->length;
	buf->offset = 0;
	/* For a few of 16 leaves. */
	casync_buffer_set_budget(used + 800);
	assert_false(casync_index_insert(idx, buf, &dropped));
	assert_null(dropped);
	assert_null(buf->index);
	assert_int_equal(casync_buffer_used_bytes(), used);
	casync_buffer_set_budget(used + casync_index_most_bytes(buf));
	assert_true(casync_index_insert(idx, buf, &dropped));
	give_up(dropped);
	casync_buffer_release(buf);
}
