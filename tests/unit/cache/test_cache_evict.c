/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache_rig.h"
#include "policy.h"

#define BUDGET (8 * MIB)

static struct casync_cache_file files[8];

/* Allocations that still succeed; -1: all. */
static int allocations = -1;

static bool allocation_fails(void)
{
	if (allocations < 0)
		return false;
	if (allocations == 0)
		return true;
	allocations--;
	return false;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

/* mmap() with _FILE_OFFSET_BITS=64. */
void *__real_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset)
{
	if (allocation_fails())
		return MAP_FAILED;
	return __real_mmap64(addr, length, prot, flags, fd, offset);
}

static int up(void **state)
{
	memset(files, 0, sizeof(files));
	casync_cache_set_budget(BUDGET);
	return 0;
}

static int down(void **state)
{
	allocations = -1;
	return rig_end(state);
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(sizes_that_are_no_buffer)
{
	assert_null(casync_evict_new_buffer(0, 0));
	assert_null(casync_evict_new_buffer(0, 1000));
	assert_null(casync_evict_new_buffer(0, 4097));
	assert_null(casync_evict_new_buffer(0, CASYNC_CACHE_BUFFER_MAX +
						       CASYNC_CACHE_PAGE));
	/* More than a quarter of the budget would empty the cache. */
	casync_cache_set_budget(MIB);
	assert_null(casync_evict_new_buffer(0, (uint32_t)(256 * KIB + PAGE)));
	casync_cache_set_budget(0);
	assert_null(casync_evict_new_buffer(0, (uint32_t)PAGE));
}

/* All sizes in turn: what is free of one size makes room for another. */
CASE(budget_holds_for_all_sizes)
{
	uint64_t at = 0;
	uint32_t length;
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		for (length = (uint32_t)PAGE; length <= MIB; length *= 4) {
			for (i = 0; i < 2 * BUDGET / length; i++) {
				assert_true(
					rig_fetch(&files[0], 1, 0, at, length));
				assert_in_range(casync_buffer_used_bytes(), 1,
						BUDGET);
				at += length;
			}
			/* And the room is used. */
			assert_in_range(rig_stats().cached_bytes,
					BUDGET * 6 / 10, BUDGET);
		}
	}
}

/* Bytes of the process in memory. */
static uint64_t resident(void)
{
	unsigned long long all = 0, here = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%llu %llu", &all, &here), 2);
	(void)fclose(statm);
	return here * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The kernel counts as we do, also when sizes change; and all is given back. */
CASE(memory_of_the_process_is_what_is_charged)
{
	const uint64_t budget = 64 * MIB, slack = 2 * MIB;
	struct casync_cache_buffer *buf;
	uint64_t before, at = 0;
	uint32_t length;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Their shadow counts too. */
	skip();
#endif
	before = resident();
	casync_cache_set_budget(budget);
	for (length = (uint32_t)MIB; length >= PAGE; length /= 4) {
		for (; at < 2 * budget; at += length) {
			buf = casync_evict_new_buffer(0, length);
			assert_non_null(buf);
			memset(buf->data, 1, length);
			assert_true(casync_cache_put(
				&files[0], &(struct casync_cache_tag){0},
				casync_cache_epoch(&files[0]), at, length,
				buf));
			casync_buffer_release(buf);
		}
		assert_in_range(resident(), before + budget / 2,
				before + budget + slack);
		casync_cache_forget(&files[0]);
		at = 0;
	}
	print_message("%llu KiB more are resident, %llu are charged\n",
		      (unsigned long long)(resident() - before) / 1024,
		      (unsigned long long)casync_buffer_used_bytes() / 1024);
	casync_cache_set_budget(0);
	assert_in_range(resident(), 0, before + slack);
}

CASE(lower_budget_is_met_at_once)
{
	uint64_t at;

	for (at = 0; at < BUDGET; at += 64 * KIB)
		(void)rig_fetch(&files[0], 1, 0, at, (uint32_t)(64 * KIB));
	casync_cache_set_budget(2 * MIB);
	assert_in_range(casync_buffer_used_bytes(), MIB, 2 * MIB);
	assert_in_range(rig_stats().cached_bytes, MIB, 2 * MIB);
	casync_cache_set_budget(0);
	assert_int_equal(casync_buffer_used_bytes(), 0);
	assert_null(files[0].index);
	/* And it may begin again. */
	casync_cache_set_budget(BUDGET);
	assert_true(rig_fetch(&files[0], 1, 0, 0, (uint32_t)PAGE));
	assert_int_equal(rig_look(&files[0], 1, 0, PAGE), 1);
}

/* What a reply holds is not found any more; its memory counts until then. */
CASE(reply_keeps_its_buffer_when_the_cache_is_off)
{
	struct casync_cache_tag tag = rig_tag(1);
	struct casync_cache_segment segment;
	bool end;

	assert_true(rig_fetch(&files[0], 1, 0, 0, (uint32_t)(64 * KIB)));
	assert_int_equal(
		casync_cache_get(&files[0], &tag, 0, PAGE, &segment, 1, &end),
		1);
	casync_cache_set_budget(0);
	assert_int_equal(rig_look(&files[0], 1, 0, PAGE), 0);
	assert_int_equal(rig_stats().counts.buffers, 1);
	assert_in_range(casync_buffer_used_bytes(), 64 * KIB, 128 * KIB);
	assert_int_equal(*(const uint64_t *)segment.data, UINT64_C(1) << 48);
	casync_buffer_release(segment.buffer);
	assert_int_equal(casync_buffer_used_bytes(), 0);
}

CASE(buffer_outlives_its_file)
{
	struct casync_cache_file *file = calloc(1, sizeof(*file));
	struct casync_cache_tag tag = rig_tag(5);
	struct casync_cache_segment segment;
	bool end;

	assert_non_null(file);
	assert_true(rig_fetch(file, 5, 0, 0, (uint32_t)PAGE));
	assert_int_equal(
		casync_cache_get(file, &tag, 0, PAGE, &segment, 1, &end), 1);
	casync_cache_forget(file);
	free(file);
	assert_int_equal(*(const uint64_t *)segment.data, UINT64_C(5) << 48);
	casync_buffer_release(segment.buffer);
}

/* A file of 512 buffers is not freed by who forgets it, but before anything
 * else is evicted; and its struct may be gone by then. */
CASE(forgotten_pages_go_first)
{
	struct casync_cache_file *large = calloc(1, sizeof(*large));
	uint64_t at, evictions;

	assert_non_null(large);
	for (at = 0; at < 2 * MIB; at += PAGE)
		assert_true(rig_fetch(large, 1, 0, at, (uint32_t)PAGE));
	for (at = 0; at < 5 * MIB; at += 16 * KIB)
		assert_true(
			rig_fetch(&files[0], 1, 0, at, (uint32_t)(16 * KIB)));
	evictions = rig_stats().counts.evictions;
	casync_cache_forget(large);
	free(large);
	assert_in_range(rig_stats().counts.buffers, 320 + 450, 320 + 511);
	for (at = 0; at < 5 * MIB / 2; at += 16 * KIB)
		assert_true(
			rig_fetch(&files[1], 1, 0, at, (uint32_t)(16 * KIB)));
	assert_int_equal(rig_stats().counts.evictions, evictions);
	for (at = 0; at < 5 * MIB; at += 16 * KIB)
		assert_int_equal(rig_look(&files[0], 1, at, 16 * KIB), 1);
}

/* Bytes of a file that are found, of so many from the first on. */
static uint64_t found(struct casync_cache_file *file, uint64_t bytes)
{
	uint64_t at, hits = 0;

	for (at = 0; at < bytes; at += 16 * KIB)
		hits += rig_look(file, 1, at, 16 * KIB);
	return hits * 16 * KIB;
}

static void scan(struct casync_cache_file *file, uint64_t bytes)
{
	uint64_t at;

	for (at = 0; at < bytes; at += 16 * KIB)
		assert_true(rig_fetch(file, 1, 0, at, (uint32_t)(16 * KIB)));
}

/* A stream of what is read once passes through a tenth of the cache, and never
 * comes to the main queue.  So the policy alone would leave them there. */
CASE(forgotten_pages_of_the_main_queue_go_first)
{
	scan(&files[0], 6 * MIB);
	assert_int_equal(found(&files[0], 6 * MIB), 6 * MIB);
	scan(&files[1], 2 * BUDGET);
	/* All that is left of it was hit, and is in the main queue. */
	assert_in_range(found(&files[0], 6 * MIB), 5 * MIB, 6 * MIB);
	casync_cache_forget(&files[0]);
	casync_cache_forget(&files[1]);
	scan(&files[2], 6 * MIB);
	assert_int_equal(found(&files[2], 6 * MIB), 6 * MIB);
}

CASE(file_whose_pages_were_evicted_has_no_index)
{
	uint64_t at;

	assert_true(rig_fetch(&files[0], 1, 0, 0, (uint32_t)PAGE));
	assert_non_null(files[0].index);
	for (at = 0; at < 2 * BUDGET; at += 64 * KIB)
		assert_true(
			rig_fetch(&files[1], 1, 0, at, (uint32_t)(64 * KIB)));
	assert_null(files[0].index);
}

/* Whichever allocation fails: the READ goes on, nothing is lost or counted. */
CASE(failed_allocation_only_drops)
{
	unsigned int taken = 0;
	int i;

	for (i = 0; i < 8; i++) {
		casync_cache_set_budget(0);
		casync_cache_set_budget(BUDGET);
		allocations = i;
		taken += rig_fetch(&files[0], 1, 0, 0, (uint32_t)PAGE);
		allocations = -1;
		casync_cache_forget(&files[0]);
		assert_int_equal(rig_stats().counts.buffers, 0);
	}
	/* A piece of memory, its header, an index and a leaf. */
	assert_int_equal(taken, 4);
	assert_in_range(rig_stats().counts.drops[CASYNC_CACHE_DROP_MEMORY], 2,
			2);
}

CASE(without_memory_for_ghosts_it_works)
{
	casync_cache_set_budget(0);
	allocations = 3;
	casync_cache_set_budget(BUDGET);
	allocations = -1;
	/* Of 16 tables there are 3. */
	assert_int_equal(casync_buffer_used_bytes(),
			 casync_policy_ghosts_wanted_bytes() / 16 * 3);
	assert_true(rig_fetch(&files[0], 1, 0, 0, (uint32_t)PAGE));
	assert_int_equal(rig_look(&files[0], 1, 0, PAGE), 1);
}
