/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "cache_rig.h"

/* Segments of a look-up: 1 MiB in pages. */
#define SEGMENTS 257

struct casync_cache_tag rig_tag(uint64_t version)
{
	return (struct casync_cache_tag){
		.change = version,
		.size = 1 << 30,
		.mtime_ns = 7,
		.ctime_ns = 8,
		.generation = 1,
	};
}

static uint64_t rig_word(uint64_t stamp, uint64_t offset)
{
	return (stamp << 48) + offset / PAGE;
}

void rig_fill(struct casync_cache_buffer *buf, uint64_t stamp, uint64_t offset)
{
	uint64_t word, at;

	for (at = 0; at < buf->length; at += PAGE) {
		word = rig_word(stamp, offset + at);
		memcpy((char *)buf->data + at, &word, sizeof(word));
	}
}

bool rig_fetch_end(struct casync_cache_file *file, uint64_t version,
		   uint64_t offset, uint32_t length, uint32_t valid)
{
	struct casync_cache_tag tag = rig_tag(version);
	uint64_t epoch = casync_cache_epoch(file);
	struct casync_cache_buffer *buf = casync_evict_new_buffer(0, length);
	bool taken;

	if (buf == NULL)
		return false;
	rig_fill(buf, version, offset);
	taken = casync_cache_put(file, &tag, epoch, offset, valid, buf);
	casync_buffer_release(buf);
	return taken;
}

bool rig_fetch(struct casync_cache_file *file, uint64_t version, uint16_t owner,
	       uint64_t offset, uint32_t length)
{
	struct casync_cache_tag tag = rig_tag(version);
	uint64_t epoch = casync_cache_epoch(file);
	struct casync_cache_buffer *buf =
		casync_evict_new_buffer(owner, length);
	bool taken;

	if (buf == NULL)
		return false;
	rig_fill(buf, version, offset);
	taken = casync_cache_put(file, &tag, epoch, offset, length, buf);
	casync_buffer_release(buf);
	return taken;
}

/* The words of the pages that begin in a segment. */
static void rig_compare(const struct casync_cache_segment *segment,
			uint64_t stamp, uint64_t offset)
{
	uint64_t at = (PAGE - offset % PAGE) % PAGE;
	uint64_t word;

	for (; at + sizeof(word) <= segment->bytes; at += PAGE) {
		memcpy(&word, (const char *)segment->data + at, sizeof(word));
		assert_int_equal(word, rig_word(stamp, offset + at));
	}
}

unsigned int rig_look(struct casync_cache_file *file, uint64_t version,
		      uint64_t offset, uint64_t length)
{
	struct casync_cache_segment segments[SEGMENTS];
	struct casync_cache_tag tag = rig_tag(version);
	uint64_t at = offset;
	unsigned int count, i;
	bool end;

	count = casync_cache_get(file, &tag, offset, length, segments, SEGMENTS,
				 &end);
	for (i = 0; i < count; i++) {
		rig_compare(&segments[i], version, at);
		at += segments[i].bytes;
		casync_buffer_release(segments[i].buffer);
	}
	if (count > 0 && !end)
		assert_int_equal(at, offset + length);
	return count;
}

bool rig_read(struct casync_cache_file *file, uint64_t version, uint16_t owner,
	      uint64_t offset, uint32_t length)
{
	if (rig_look(file, version, offset, length) > 0)
		return true;
	(void)rig_fetch(file, version, owner, offset, length);
	return false;
}

struct casync_cache_stats rig_stats(void)
{
	struct casync_cache_stats stats;

	casync_cache_get_stats(&stats);
	return stats;
}

int rig_end(void **state)
{
	struct casync_cache_stats stats;

	casync_cache_set_budget(0);
	stats = rig_stats();
	assert_int_equal(stats.used_bytes, 0);
	assert_int_equal(stats.cached_bytes, 0);
	assert_int_equal(stats.free_bytes, 0);
	assert_int_equal(stats.counts.buffers, 0);
	return 0;
}
