/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "buffer.h"

#define MANY 3000
#define KIB 1024U

static int up(void **state)
{
	casync_buffer_set_budget(64U << 20);
	return 0;
}

static int down(void **state)
{
	casync_buffer_set_budget(0);
	casync_buffer_trim_all();
	assert_int_equal(casync_buffer_used_bytes(), 0);
	assert_int_equal(casync_buffer_read_count(&casync_cache_counts.buffers),
			 0);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

/* It may be larger than the cache's. */
static uint32_t kernel_page(void)
{
	return (uint32_t)sysconf(_SC_PAGESIZE);
}

TEST(class_fits_and_wastes_a_fifth_at_most)
{
	uint32_t pages, bytes, room;
	unsigned int class, last = 0;

	for (pages = 1; pages <= 256; pages++) {
		bytes = pages * CASYNC_CACHE_PAGE;
		class = casync_buffer_class_of(bytes);
		assert_in_range(class, last, CASYNC_CACHE_CLASSES - 1);
		room = casync_buffer_class_bytes(class);
		if (room > kernel_page())
			assert_in_range(bytes,
					room - room / 5 - kernel_page() +
						CASYNC_CACHE_PAGE,
					room);
		assert_in_range(room, bytes, CASYNC_CACHE_BUFFER_MAX);
		assert_in_range(casync_buffer_class_of(room), class,
				CASYNC_CACHE_CLASSES - 1);
		last = class;
	}
	assert_int_equal(last, CASYNC_CACHE_CLASSES - 1);
}

/* More than one piece of memory; the sanitizers see whether it is there. */
CASE(buffers_are_apart_and_aligned)
{
	static struct casync_cache_buffer *bufs[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		bufs[i] = casync_buffer_take(1, 4 * KIB);
		assert_non_null(bufs[i]);
		assert_int_equal((uintptr_t)bufs[i]->data % kernel_page(), 0);
		memset(bufs[i]->data, (int)(i % 251), 4 * KIB);
	}
	assert_int_equal(casync_buffer_share_bytes(1), MANY * kernel_page());
	for (i = 0; i < MANY; i++) {
		assert_int_equal(*(unsigned char *)bufs[i]->data, i % 251);
		assert_int_equal(((unsigned char *)bufs[i]->data)[4095],
				 i % 251);
		casync_buffer_release(bufs[i]);
	}
	assert_int_equal(casync_buffer_share_bytes(1), 0);
}

/* Memory that goes back to the kernel takes nothing of its neighbours along. */
CASE(freed_buffers_leave_the_others_alone)
{
	static struct casync_cache_buffer *bufs[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		bufs[i] = casync_buffer_take(1, 4 * KIB);
		memset(bufs[i]->data, 0x5a, 4 * KIB);
	}
	for (i = 0; i < MANY; i += 2)
		casync_buffer_release(bufs[i]);
	for (i = 1; i < MANY; i += 2) {
		assert_int_equal(*(unsigned char *)bufs[i]->data, 0x5a);
		assert_int_equal(((unsigned char *)bufs[i]->data)[4095], 0x5a);
		casync_buffer_release(bufs[i]);
	}
}

/* Used: their room and the headers; a free one stays within its bound. */
CASE(free_memory_is_bounded)
{
	static struct casync_cache_buffer *bufs[16];
	unsigned int i;

	for (i = 0; i < 16; i++)
		bufs[i] = casync_buffer_take(0, 1024 * KIB);
	assert_in_range(casync_buffer_used_bytes(), 16 << 20,
			(16 << 20) + 4096);
	for (i = 0; i < 16; i++)
		casync_buffer_release(bufs[i]);
	/* A 32nd of 64 MiB. */
	assert_int_equal(casync_buffer_warm_bytes(), 2 << 20);
	assert_in_range(casync_buffer_used_bytes(), 2 << 20, (2 << 20) + 4096);
	assert_true(casync_buffer_trim());
	assert_int_equal(casync_buffer_warm_bytes(), 1 << 20);
	assert_true(casync_buffer_trim());
	assert_false(casync_buffer_trim());
	assert_int_equal(casync_buffer_used_bytes(), 0);
}

CASE(free_buffer_is_used_again)
{
	struct casync_cache_buffer *buf = casync_buffer_take(0, 64 * KIB);
	uint64_t mapped = casync_buffer_read_count(&casync_cache_counts.mapped);
	void *data = buf->data;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		casync_buffer_release(buf);
		buf = casync_buffer_take(0, 60 * KIB);
		assert_ptr_equal(buf->data, data);
		assert_int_equal(buf->length, 60 * KIB);
		assert_int_equal(buf->hits, 0);
	}
	assert_int_equal(casync_buffer_read_count(&casync_cache_counts.mapped),
			 mapped);
	casync_buffer_release(buf);
}

CASE(last_reference_frees)
{
	struct casync_cache_buffer *buf = casync_buffer_take(0, 4 * KIB);

	casync_buffer_hold(buf);
	casync_buffer_release(buf);
	assert_int_equal(casync_buffer_read_count(&casync_cache_counts.buffers),
			 1);
	casync_buffer_release(buf);
	assert_int_equal(casync_buffer_read_count(&casync_cache_counts.buffers),
			 0);
	casync_buffer_release(NULL);
}

/* A process under a lower budget gives free memory back as it comes. */
CASE(nothing_stays_over_the_budget)
{
	struct casync_cache_buffer *bufs[2];

	bufs[0] = casync_buffer_take(0, 512 * KIB);
	bufs[1] = casync_buffer_take(0, 512 * KIB);
	casync_buffer_set_budget(600 * KIB);
	casync_buffer_release(bufs[0]);
	assert_int_equal(casync_buffer_warm_bytes(), 0);
	assert_null(casync_buffer_take(0, 512 * KIB));
	casync_buffer_release(bufs[1]);
	assert_int_equal(casync_buffer_warm_bytes(), 512 * KIB);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Prints what a free list is for; asserts nothing of it. */
CASE(time_of_a_buffer_is_printed)
{
	const unsigned int rounds = 50;
	struct casync_cache_buffer *buf;
	uint64_t began = now_ns(), kept;
	unsigned int i;
	void *map;

	for (i = 0; i < rounds; i++) {
		buf = casync_buffer_take(0, 1024 * KIB);
		memset(buf->data, 1, 1024 * KIB);
		casync_buffer_release(buf);
	}
	kept = now_ns() - began;
	began = now_ns();
	for (i = 0; i < rounds; i++) {
		map = mmap(NULL, 1024 * KIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(map, MAP_FAILED);
		memset(map, 1, 1024 * KIB);
		assert_int_equal(munmap(map, 1024 * KIB), 0);
	}
	print_message(
		"1 MiB taken, written and freed: %llu ns; mapped anew: %llu ns\n",
		(unsigned long long)kept / rounds,
		(unsigned long long)(now_ns() - began) / rounds);
}
