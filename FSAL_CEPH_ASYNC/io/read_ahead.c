/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "buffer.h"
#include "read_ahead.h"

/* READs of a stream may overtake so many others of their size. */
#define OVERTAKEN_READS 4

#define RUN_MAX (UINT32_C(16) << 20)

static bool read_ahead_is_near(uint64_t last, uint32_t last_bytes,
			       uint64_t offset, size_t bytes)
{
	uint64_t slack = OVERTAKEN_READS * (uint64_t)bytes;

	return last_bytes != 0 && offset <= last + last_bytes + slack &&
	       offset + bytes + slack >= last;
}

static void read_ahead_set(struct casync_read_ahead *ahead, int stream,
			   uint64_t offset, size_t bytes, uint32_t run)
{
	__atomic_store_n(&ahead->streams[stream].offset, offset,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&ahead->streams[stream].bytes, (uint32_t)bytes,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&ahead->streams[stream].run, run, __ATOMIC_RELAXED);
}

static uint64_t read_ahead_offset(const struct casync_read_ahead *ahead,
				  int stream)
{
	return __atomic_load_n(&ahead->streams[stream].offset,
			       __ATOMIC_RELAXED);
}

/* As far from its last READ as that one was from the one before? */
static bool read_ahead_is_strided(const struct casync_read_ahead *ahead,
				  int stream, uint64_t offset)
{
	int64_t stride = __atomic_load_n(&ahead->streams[stream].stride,
					 __ATOMIC_RELAXED);

	return stride != 0 &&
	       offset == read_ahead_offset(ahead, stream) + (uint64_t)stride;
}

static int read_ahead_find(const struct casync_read_ahead *ahead,
			   uint64_t offset, size_t bytes)
{
	int i;

	for (i = 0; i < CASYNC_STREAMS; i++) {
		if (read_ahead_is_near(read_ahead_offset(ahead, i),
				       __atomic_load_n(&ahead->streams[i].bytes,
						       __ATOMIC_RELAXED),
				       offset, bytes) ||
		    read_ahead_is_strided(ahead, i, offset))
			return i;
	}
	return -1;
}

/* It may be the second READ of a scan, whose first one is in the slot before.
 */
static void read_ahead_begin(struct casync_read_ahead *ahead, uint64_t offset,
			     size_t bytes)
{
	uint32_t slot = __atomic_fetch_add(&ahead->next, 1, __ATOMIC_RELAXED);
	int stream = (int)(slot % CASYNC_STREAMS);
	int before = (int)((slot - 1) % CASYNC_STREAMS);
	int64_t stride = (int64_t)(offset - read_ahead_offset(ahead, before));

	if (stride > CASYNC_AHEAD_STRIDE || stride < -CASYNC_AHEAD_STRIDE)
		stride = 0;
	__atomic_store_n(&ahead->streams[stream].piece, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ahead->streams[stream].stride, stride,
			 __ATOMIC_RELAXED);
	read_ahead_set(ahead, stream, offset, bytes, (uint32_t)bytes);
}

int casync_read_ahead_note(struct casync_read_ahead *ahead, uint64_t offset,
			   size_t bytes)
{
	int stream = read_ahead_find(ahead, offset, bytes);
	uint64_t last, run, more = bytes;

	if (stream < 0) {
		read_ahead_begin(ahead, offset, bytes);
		return -1;
	}
	last = read_ahead_offset(ahead, stream);
	if (read_ahead_is_strided(ahead, stream, offset))
		more = offset > last ? offset - last : last - offset;
	__atomic_store_n(&ahead->streams[stream].backward, offset < last,
			 __ATOMIC_RELAXED);
	run = __atomic_load_n(&ahead->streams[stream].run, __ATOMIC_RELAXED) +
	      more;
	read_ahead_set(ahead, stream, offset, bytes,
		       run < RUN_MAX ? (uint32_t)run : RUN_MAX);
	return stream;
}

/* A power of two. */
static uint64_t read_ahead_window(uint32_t run)
{
	uint64_t most = CASYNC_AHEAD_FACTOR * (uint64_t)run;
	uint64_t window = CASYNC_CACHE_PAGE;

	while (window < CASYNC_CACHE_BUFFER_MAX && 2 * window <= most)
		window *= 2;
	return window;
}

/* Is another READ fetching it?  Then it is not needed twice.  A READ that was
 * overtaken looks like one of a backward stream. */
static bool read_ahead_is_fetched(struct casync_read_ahead *ahead, int stream,
				  bool backward, struct casync_range piece)
{
	uint64_t *last = &ahead->streams[stream].piece;
	uint64_t end = piece.offset + piece.bytes;

	if (!backward)
		return __atomic_exchange_n(last, end, __ATOMIC_RELAXED) == end;
	/* No end is odd. */
	return __atomic_load_n(last, __ATOMIC_RELAXED) == end ||
	       __atomic_exchange_n(last, piece.offset + 1, __ATOMIC_RELAXED) ==
		       piece.offset + 1;
}

struct casync_range casync_read_ahead_plan(struct casync_read_ahead *ahead,
					   int stream, uint64_t offset,
					   size_t bytes)
{
	struct casync_range range = {offset, bytes};
	uint64_t window, begin;
	bool backward;

	if (stream < 0 || bytes >= CASYNC_AHEAD_LARGE)
		return range;
	backward = __atomic_load_n(&ahead->streams[stream].backward,
				   __ATOMIC_RELAXED);
	window = read_ahead_window(
		__atomic_load_n(&ahead->streams[stream].run, __ATOMIC_RELAXED));
	begin = offset & ~(window - 1);
	if (window <= bytes || offset + bytes > begin + window ||
	    read_ahead_is_fetched(ahead, stream, backward,
				  (struct casync_range){begin, window}))
		return range;
	if (backward)
		return (struct casync_range){begin, offset + bytes - begin};
	return (struct casync_range){offset, begin + window - offset};
}
