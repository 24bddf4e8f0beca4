/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "cache.h"
#include "check.h"
#include "evict.h"
#include "index.h"
#include "policy.h"
#include "hash.h"

/* One change of the budget at a time; the outermost lock of the cache. */
static pthread_mutex_t cache_budget_lock = PTHREAD_MUTEX_INITIALIZER;

static bool cache_same_tag(const struct casync_cache_tag *one,
			   const struct casync_cache_tag *other)
{
	return one->change == other->change && one->size == other->size &&
	       one->mtime_ns == other->mtime_ns &&
	       one->ctime_ns == other->ctime_ns &&
	       one->generation == other->generation;
}

/* Segments without references; 0: some page is not there. */
static unsigned int cache_collect(const struct casync_cache_index *index,
				  uint64_t offset, uint64_t end,
				  struct casync_cache_segment *segments,
				  unsigned int max)
{
	struct casync_cache_buffer *buf;
	unsigned int count = 0;
	uint64_t bytes;

	while (offset < end) {
		buf = casync_index_find(index,
					offset >> CASYNC_CACHE_PAGE_BITS);
		if (buf == NULL || count == max)
			return 0;
		bytes = buf->offset + buf->valid - offset;
		if (bytes > end - offset)
			bytes = end - offset;
		segments[count++] = (struct casync_cache_segment){
			.buffer = buf,
			.data = (char *)buf->data + (offset - buf->offset),
			.bytes = (uint32_t)bytes,
		};
		offset += bytes;
	}
	return count;
}

static unsigned int cache_get_locked(const struct casync_cache_index *index,
				     uint64_t offset, uint64_t length,
				     struct casync_cache_segment *segments,
				     unsigned int max, bool *end_of_file)
{
	uint64_t end = offset + length;
	unsigned int count, i;

	if (end < offset)
		return 0;
	/* The last page of the file is there only if its end is known. */
	*end_of_file = end >= index->end;
	if (*end_of_file)
		end = index->end;
	count = cache_collect(index, offset, end, segments, max);
	for (i = 0; i < count; i++) {
		casync_buffer_hold(segments[i].buffer);
		casync_buffer_note_read(segments[i].buffer, segments[i].bytes);
		/* A stream that reads it in pieces has used it once. */
		if (segments[i].data == segments[i].buffer->data)
			casync_policy_hit(segments[i].buffer);
	}
	if (count > 0)
		casync_index_count_hit(index->lock, end - offset);
	return count;
}

static struct casync_cache_index *
cache_outdate_locked(struct casync_cache_file *file)
{
	if (file->index != NULL)
		__atomic_store_n(&file->outdated, true, __ATOMIC_RELAXED);
	return casync_evict_detach(file);
}

bool casync_cache_was_outdated(struct casync_cache_file *file)
{
	return __atomic_load_n(&file->outdated, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&file->outdated, false, __ATOMIC_RELAXED);
}

unsigned int casync_cache_get(struct casync_cache_file *file,
			      const struct casync_cache_tag *tag,
			      uint64_t offset, uint64_t length,
			      struct casync_cache_segment *segments,
			      unsigned int max, bool *end_of_file)
{
	uint32_t lock = casync_index_lock_of(file);
	struct casync_cache_index *outdated = NULL;
	unsigned int count = 0;

	*end_of_file = false;
	if (__atomic_load_n(&file->index, __ATOMIC_RELAXED) == NULL) {
		casync_index_count_miss(lock);
		return 0;
	}
	casync_index_lock(lock);
	if (file->index != NULL && cache_same_tag(&file->index->tag, tag))
		count = cache_get_locked(file->index, offset, length, segments,
					 max, end_of_file);
	else
		outdated = cache_outdate_locked(file);
	casync_index_unlock(lock);
	casync_evict_free_detached(outdated, CASYNC_CACHE_LOSS_FOREIGN);
	if (count == 0) {
		*end_of_file = false;
		casync_index_count_miss(lock);
	}
	return count;
}

/* Whether the file ends where other buffers say it does. */
static bool cache_end_fits(const struct casync_cache_index *index,
			   const struct casync_cache_buffer *buf)
{
	uint64_t reach = buf->offset + buf->valid;

	if (buf->valid == buf->length)
		return reach <= index->end;
	return index->end == reach ||
	       (index->end == CASYNC_CACHE_NO_END && index->reach <= reach);
}

/* Enters a buffer in an index and a queue. */
static enum casync_cache_drop
cache_enter_locked(struct casync_cache_index *index,
		   struct casync_cache_buffer *buf,
		   struct casync_cache_buffer **dropped)
{
	uint64_t reach = buf->offset + buf->valid;

	if (!casync_index_insert(index, buf, dropped))
		return CASYNC_CACHE_DROP_MEMORY;
	if (!casync_policy_insert(buf)) {
		casync_index_remove(buf);
		buf->dropped = *dropped;
		*dropped = buf;
		return CASYNC_CACHE_DROP_OFF;
	}
	if (index->reach < reach)
		index->reach = reach;
	if (buf->valid < buf->length)
		index->end = reach;
	return CASYNC_CACHE_DROPS;
}

/* The end of a write first counts, and then goes. */
static bool cache_was_written(const struct casync_cache_file *file,
			      uint64_t epoch)
{
	return __atomic_load_n(&file->writers, __ATOMIC_SEQ_CST) > 0 ||
	       __atomic_load_n(&file->epoch, __ATOMIC_SEQ_CST) != epoch;
}

/*
 * The file's first pages can be found from here on.  A write that began before
 * that, and saw none, drops nothing; then this sees the write.
 *
 * Returns whether there was none.
 */
static bool cache_publish_locked(struct casync_cache_file *file,
				 struct casync_cache_index *index,
				 uint64_t epoch)
{
	__atomic_store_n(&file->index, index, __ATOMIC_SEQ_CST);
	if (!cache_was_written(file, epoch))
		return true;
	casync_index_free(casync_evict_detach(file));
	return false;
}

static enum casync_cache_drop
cache_may_put_locked(const struct casync_cache_index *index,
		     const struct casync_cache_tag *tag,
		     const struct casync_cache_buffer *buf)
{
	uint64_t pages =
		(buf->valid + CASYNC_CACHE_PAGE - 1) / CASYNC_CACHE_PAGE;

	if (!cache_same_tag(&index->tag, tag))
		return CASYNC_CACHE_DROP_TAG;
	if (!cache_end_fits(index, buf))
		return CASYNC_CACHE_DROP_REFUSED;
	if (casync_index_covers(index, buf->offset >> CASYNC_CACHE_PAGE_BITS,
				pages))
		return CASYNC_CACHE_DROP_KNOWN;
	return CASYNC_CACHE_DROPS;
}

/* Why the cache does not take it; CASYNC_CACHE_DROPS: it does. */
static enum casync_cache_drop
cache_put_locked(struct casync_cache_file *file,
		 const struct casync_cache_tag *tag, uint64_t epoch,
		 struct casync_cache_buffer *buf,
		 struct casync_cache_buffer **dropped)
{
	struct casync_cache_index *index = file->index;
	enum casync_cache_drop drop = CASYNC_CACHE_DROPS;

	if (cache_was_written(file, epoch))
		return CASYNC_CACHE_DROP_WRITE;
	if (index != NULL) {
		drop = cache_may_put_locked(index, tag, buf);
	} else {
		index = casync_index_new(file, tag);
		if (index == NULL)
			return CASYNC_CACHE_DROP_MEMORY;
		if (!cache_publish_locked(file, index, epoch))
			return CASYNC_CACHE_DROP_WRITE;
	}
	if (drop != CASYNC_CACHE_DROPS)
		return drop;
	drop = cache_enter_locked(index, buf, dropped);
	if (casync_index_is_empty(index))
		casync_index_free(casync_evict_detach(file));
	return drop;
}

/* 64 bits of which each depends on all of the file and the page. */
static uint64_t cache_key(const struct casync_cache_file *file, uint64_t offset)
{
	uint64_t key = casync_hash_u64((uintptr_t)file) +
		       (offset >> CASYNC_CACHE_PAGE_BITS);

	key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
	return key ^ key >> 31;
}

static enum casync_cache_drop cache_try_put(struct casync_cache_file *file,
					    const struct casync_cache_tag *tag,
					    uint64_t epoch,
					    struct casync_cache_buffer *buf)
{
	struct casync_cache_buffer *dropped = NULL;
	enum casync_cache_drop drop;

	casync_index_lock(buf->lock);
	drop = cache_put_locked(file, tag, epoch, buf, &dropped);
	casync_index_unlock(buf->lock);
	casync_evict_drop_buffers(dropped);
	return drop;
}

static enum casync_cache_drop cache_put(struct casync_cache_file *file,
					const struct casync_cache_tag *tag,
					uint64_t epoch, uint64_t offset,
					uint32_t valid,
					struct casync_cache_buffer *buf)
{
	enum casync_cache_drop drop;

	if (buf->put || offset % CASYNC_CACHE_PAGE != 0 || valid == 0 ||
	    valid > buf->length || offset > (uint64_t)INT64_MAX - buf->length)
		return CASYNC_CACHE_DROP_REFUSED;
	buf->put = true;
	buf->offset = offset;
	buf->valid = valid;
	buf->key = cache_key(file, offset);
	buf->lock = (uint16_t)casync_index_lock_of(file);
	drop = cache_try_put(file, tag, epoch, buf);
	/* Nothing may be evicted under the file's lock, so once more. */
	if (drop == CASYNC_CACHE_DROP_MEMORY &&
	    casync_evict_make_room(casync_index_most_bytes(buf)))
		drop = cache_try_put(file, tag, epoch, buf);
	return drop;
}

bool casync_cache_put(struct casync_cache_file *file,
		      const struct casync_cache_tag *tag, uint64_t epoch,
		      uint64_t offset, uint32_t valid,
		      struct casync_cache_buffer *buf)
{
	enum casync_cache_drop drop =
		cache_put(file, tag, epoch, offset, valid, buf);

	if (drop == CASYNC_CACHE_DROPS)
		casync_buffer_count(&casync_cache_counts.puts, 1);
	else
		casync_buffer_count(&casync_cache_counts.drops[drop], 1);
	return drop == CASYNC_CACHE_DROPS;
}

/* Refuses the data of READs that are under way. */
static void cache_next_epoch(struct casync_cache_file *file)
{
	/* Pairs with casync_cache_epoch(). */
	__atomic_fetch_add(&file->epoch, 1, __ATOMIC_SEQ_CST);
}

static void cache_drop_all(struct casync_cache_file *file,
			   enum casync_cache_loss loss)
{
	uint32_t lock = casync_index_lock_of(file);
	struct casync_cache_index *index;

	casync_index_lock(lock);
	index = casync_evict_detach(file);
	casync_index_unlock(lock);
	casync_evict_free_detached(index, loss);
}

void casync_cache_forget(struct casync_cache_file *file)
{
	cache_next_epoch(file);
	cache_drop_all(file, CASYNC_CACHE_LOSS_RELEASED);
}

/* A file of which nothing is cached costs no lock: most are only written. */
void casync_cache_begin_write(struct casync_cache_file *file)
{
	__atomic_fetch_add(&file->writers, 1, __ATOMIC_SEQ_CST);
	cache_next_epoch(file);
	/* Pairs with cache_publish_locked(). */
	if (__atomic_load_n(&file->index, __ATOMIC_SEQ_CST) != NULL)
		cache_drop_all(file, CASYNC_CACHE_LOSS_OWN);
}

/* Nothing was put since the beginning. */
void casync_cache_end_write(struct casync_cache_file *file)
{
	cache_next_epoch(file);
	CASYNC_CHECK_DOWN(&file->writers, __ATOMIC_SEQ_CST);
}

void casync_cache_set_budget(uint64_t bytes)
{
	pthread_mutex_lock(&cache_budget_lock);
	if (casync_buffer_budget() != bytes) {
		casync_buffer_set_budget(bytes);
		/* First: those of a large budget are more than a small one. */
		casync_policy_free_ghosts();
		casync_evict_to_budget();
		if (casync_evict_make_room(casync_policy_ghosts_wanted_bytes()))
			casync_policy_make_ghosts();
	}
	pthread_mutex_unlock(&cache_budget_lock);
}

void casync_cache_get_stats(struct casync_cache_stats *stats)
{
	const uint64_t *from = (const uint64_t *)&casync_cache_counts;
	uint64_t *to = (uint64_t *)&stats->counts;
	unsigned int i;

	stats->budget_bytes = casync_buffer_budget();
	stats->used_bytes = casync_buffer_used_bytes();
	stats->free_bytes = casync_buffer_warm_bytes();
	stats->cached_bytes = 0;
	for (i = 0; i < CASYNC_CACHE_OWNERS; i++)
		stats->cached_bytes += casync_policy_queued_bytes(i);
	casync_index_sum_hits(&stats->hits, &stats->misses, &stats->hit_bytes);
	for (i = 0; i < sizeof(stats->counts) / sizeof(*to); i++)
		to[i] = casync_buffer_read_count(&from[i]);
}
