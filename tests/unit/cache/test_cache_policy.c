/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "cache_rig.h"
#include "policy.h"

#define BUDGET (32 * MIB)
/* The working set: 16 MiB of 16 KiB each. */
#define SET 1024U
#define PIECE ((uint32_t)(16 * KIB))

static struct casync_cache_file worked, scanned;

static int up(void **state)
{
	memset(&worked, 0, sizeof(worked));
	memset(&scanned, 0, sizeof(scanned));
	casync_cache_set_budget(BUDGET);
	return 0;
}

static unsigned int read_set(uint16_t owner, unsigned int pieces)
{
	unsigned int i, hits = 0;

	for (i = 0; i < pieces; i++)
		hits += rig_read(&worked, 1, owner, (uint64_t)i * PIECE, PIECE);
	return hits;
}

/* Reads once, from an offset on, and looks at the budget meanwhile. */
static void scan(uint16_t owner, uint64_t from, uint64_t bytes)
{
	uint64_t at;

	for (at = from; at < from + bytes; at += PIECE) {
		(void)rig_read(&scanned, 1, owner, at, PIECE);
		assert_in_range(casync_buffer_used_bytes(), 1, BUDGET);
	}
}

static int down(void **state)
{
	casync_cache_forget(&worked);
	casync_cache_forget(&scanned);
	return rig_end(state);
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(working_set_survives_a_scan)
{
	unsigned int hits;

	assert_int_equal(read_set(0, SET), 0);
	assert_int_equal(read_set(0, SET), SET);
	scan(0, 0, 10 * BUDGET);
	hits = read_set(0, SET);
	print_message(
		"%u of %u pieces read twice survive a scan of 10 budgets\n",
		hits, SET);
	assert_in_range(hits, SET * 99 / 100, SET);
}

/* It was read once: the scan is as good as it. */
CASE(what_was_read_once_gives_way)
{
	assert_int_equal(read_set(0, SET), 0);
	scan(0, 0, 4 * BUDGET);
	assert_int_equal(rig_look(&worked, 1, 0, PIECE), 0);
	/* The latest of the scan are there. */
	assert_int_equal(rig_look(&scanned, 1, 4 * BUDGET - PIECE, PIECE), 1);
}

/* Comes again soon after its eviction: to the main queue, which a scan leaves
 * alone. */
CASE(ghost_brings_it_to_the_main_queue)
{
	uint64_t again[64], at = BUDGET / 2 - 4 * MIB, before;
	unsigned int i, hits = 0;

	/* The cache full of what was hit, so that the small queue is short. */
	read_set(0, SET);
	read_set(0, SET);
	scan(0, 0, BUDGET);
	/* 64 pieces of the scan that are gone, not long ago. */
	before = rig_stats().counts.ghost_hits;
	for (i = 0; i < 64; at -= PIECE) {
		assert_in_range(at, PIECE, BUDGET);
		if (!rig_read(&scanned, 1, 0, at, PIECE))
			again[i++] = at;
	}
	assert_in_range(rig_stats().counts.ghost_hits - before, 48, 64);
	scan(0, 2 * BUDGET, BUDGET);
	for (i = 0; i < 64; i++)
		hits += rig_look(&scanned, 1, again[i], PIECE);
	print_message("%u of 64 pieces that came again survive\n", hits);
	assert_in_range(hits, 48, 64);
}

CASE(scan_of_one_owner_leaves_the_share_of_another)
{
	/* 12 of 32 MiB; read once only. */
	const unsigned int pieces = SET * 3 / 4;

	assert_int_equal(read_set(1, pieces), 0);
	scan(2, 0, 10 * BUDGET);
	assert_int_equal(read_set(1, pieces), pieces);
	/* What the other does not use, the scan has. */
	assert_in_range(casync_buffer_share_bytes(2), BUDGET / 2, BUDGET);
}

/* Nobody keeps more than a share against one who needs it. */
CASE(owner_over_its_share_gives_way)
{
	uint64_t first, second;

	read_set(1, 2 * SET);
	read_set(1, 2 * SET);
	read_set(1, 2 * SET);
	assert_in_range(casync_buffer_share_bytes(1), BUDGET * 9 / 10, BUDGET);
	scan(2, 0, 4 * BUDGET);
	first = casync_buffer_share_bytes(1);
	second = casync_buffer_share_bytes(2);
	print_message("%llu and %llu KiB\n", (unsigned long long)first / 1024,
		      (unsigned long long)second / 1024);
	assert_in_range(first, BUDGET * 45 / 100, BUDGET / 2 + PIECE);
	assert_in_range(second, BUDGET * 45 / 100, BUDGET / 2 + PIECE);
}

static struct casync_cache_buffer *held[4 * SET];

/* Replies hold all but a little: that little is evicted, not what frees no
 * memory; and what is held can be found. */
CASE(pinned_buffer_is_not_evicted)
{
	struct casync_cache_segment segment;
	struct casync_cache_tag tag = rig_tag(1);
	unsigned int i;
	bool end;

	read_set(0, SET);
	for (i = 0; i < SET; i++) {
		assert_int_equal(casync_cache_get(&worked, &tag,
						  (uint64_t)i * PIECE, PIECE,
						  &segment, 1, &end),
				 1);
		held[i] = segment.buffer;
		/* As if it had not been hit: only the reply keeps it. */
		held[i]->hits = 0;
	}
	scan(0, 0, 2 * BUDGET);
	assert_int_equal(read_set(0, SET), SET);
	for (i = 0; i < SET; i++)
		casync_buffer_release(held[i]);
}

/* All is held: no buffer, no eviction, no endless search. */
CASE(without_a_victim_there_is_no_buffer)
{
	struct casync_cache_stats before, after;
	unsigned int count = 0;

	while ((held[count] = casync_evict_new_buffer(0, PIECE)) != NULL)
		count++;
	assert_in_range(count * (uint64_t)PIECE, BUDGET * 9 / 10, BUDGET);
	before = rig_stats();
	assert_null(casync_evict_new_buffer(1, PIECE));
	after = rig_stats();
	assert_int_equal(after.counts.evictions, before.counts.evictions);
	assert_int_equal(after.counts.no_buffer, before.counts.no_buffer + 1);
	while (count > 0)
		casync_buffer_release(held[--count]);
}

/* A reply keeps the only buffer: it goes round until the search ends. */
CASE(hits_are_used_up_one_a_round)
{
	struct casync_cache_segment segment;
	struct casync_cache_tag tag = rig_tag(1);
	unsigned int i;
	bool end;

	read_set(0, 1);
	assert_int_equal(
		casync_cache_get(&worked, &tag, 0, PIECE, &segment, 1, &end),
		1);
	/* From the small queue to the main one, */
	assert_int_equal(segment.buffer->hits, 1);
	assert_null(casync_policy_take_victim(false));
	assert_int_equal(segment.buffer->hits, 0);
	/* and three times through that. */
	for (i = 0; i < 3; i++)
		assert_int_equal(rig_look(&worked, 1, 0, PIECE), 1);
	assert_int_equal(segment.buffer->hits, 3);
	assert_null(casync_policy_take_victim(false));
	assert_int_equal(segment.buffer->hits, 0);
	casync_buffer_release(segment.buffer);
}

/* Hits are bounded: what was hit a thousand times long ago goes at last. */
CASE(hits_are_forgotten_in_time)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		read_set(0, 4);
	for (i = 0; i < 6; i++) {
		/* Each is read twice: they want the main queue too. */
		scan(0, i * BUDGET, BUDGET / 2);
		scan(0, i * BUDGET, BUDGET / 2);
	}
	assert_int_equal(rig_look(&worked, 1, 0, PIECE), 0);
}
