/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "evict.h"
#include "index.h"
#include "policy.h"

/* Buffers of a detached index that are freed at once. */
#define REAP 16

/* A request for memory gives up after as many evictions: 1 MiB may need 256 of
 * 4 KiB, each followed by a trim, and other threads take some of the room. */
#define ATTEMPTS 2048

/* A buffer may have this part of the budget. */
#define LARGEST_PART 4

static pthread_mutex_t evict_lock = PTHREAD_MUTEX_INITIALIZER;
static struct casync_cache_index *evict_detached;

struct casync_cache_index *casync_evict_detach(struct casync_cache_file *file)
{
	struct casync_cache_index *index = file->index;

	if (index != NULL) {
		index->file = NULL;
		__atomic_store_n(&file->index, NULL, __ATOMIC_RELAXED);
	}
	return index;
}

/* The reference of the queue, if it is queued, and that of the index. */
static void evict_release_buffer(struct casync_cache_buffer *buf)
{
	if (casync_policy_remove(buf))
		casync_buffer_release(buf);
	casync_buffer_release(buf);
}

void casync_evict_drop_buffers(struct casync_cache_buffer *dropped)
{
	struct casync_cache_buffer *next;

	for (; dropped != NULL; dropped = next) {
		next = dropped->dropped;
		evict_release_buffer(dropped);
	}
}

/* Frees up to REAP buffers.  @return Whether the index was empty, and is freed.
 * The caller alone knows it, but for those who evict one of its buffers. */
static bool evict_some_buffers(struct casync_cache_index *index)
{
	struct casync_cache_buffer *buf;
	unsigned int i;

	for (i = 0; i < REAP; i++) {
		casync_index_lock(index->lock);
		buf = casync_index_any_buffer(index);
		if (buf != NULL)
			casync_index_remove(buf);
		casync_index_unlock(index->lock);
		if (buf == NULL) {
			casync_index_free(index);
			return true;
		}
		evict_release_buffer(buf);
	}
	return false;
}

static void evict_push_detached(struct casync_cache_index *index)
{
	pthread_mutex_lock(&evict_lock);
	index->next = evict_detached;
	/* Released so for the look without the lock. */
	__atomic_store_n(&evict_detached, index, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&evict_lock);
}

static struct casync_cache_index *evict_pop_detached(void)
{
	struct casync_cache_index *index;

	if (__atomic_load_n(&evict_detached, __ATOMIC_RELAXED) == NULL)
		return NULL;
	pthread_mutex_lock(&evict_lock);
	index = evict_detached;
	if (index != NULL)
		__atomic_store_n(&evict_detached, index->next,
				 __ATOMIC_RELAXED);
	pthread_mutex_unlock(&evict_lock);
	return index;
}

void casync_evict_free_detached(struct casync_cache_index *index,
				enum casync_cache_loss loss)
{
	if (index == NULL)
		return;
	casync_buffer_count(&casync_cache_counts.losses[loss], 1);
	if (!evict_some_buffers(index))
		evict_push_detached(index);
}

static bool evict_from_detached(void)
{
	struct casync_cache_index *index = evict_pop_detached();

	if (index == NULL)
		return false;
	if (!evict_some_buffers(index))
		evict_push_detached(index);
	return true;
}

/* A buffer that the policy took out of its queue, with that reference. */
static void evict_victim(struct casync_cache_buffer *buf)
{
	struct casync_cache_index *index, *emptied = NULL;

	casync_index_lock(buf->lock);
	index = buf->index;
	if (index != NULL) {
		casync_index_remove(buf);
		/* A detached one is freed by whoever empties it. */
		if (casync_index_is_empty(index) && index->file != NULL)
			emptied = casync_evict_detach(index->file);
	}
	casync_index_unlock(buf->lock);
	if (emptied != NULL)
		casync_index_free(emptied);
	casync_buffer_count(&casync_cache_counts.evictions, 1);
	casync_buffer_count(&casync_cache_counts.evicted_bytes, buf->room);
	if (index != NULL)
		casync_buffer_release(buf);
	casync_buffer_release(buf);
}

static bool evict_by_policy(bool all)
{
	struct casync_cache_buffer *buf = casync_policy_take_victim(all);

	if (buf != NULL)
		evict_victim(buf);
	return buf != NULL;
}

/* Frees something, if there is something. */
static bool evict_something(void)
{
	return casync_buffer_trim() || evict_from_detached() ||
	       evict_by_policy(false);
}

bool casync_evict_make_room(uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		if (casync_buffer_used_bytes() + bytes <=
		    casync_buffer_budget())
			return true;
		if (!evict_something())
			return false;
	}
	return false;
}

void casync_evict_to_budget(void)
{
	bool off = casync_buffer_budget() == 0;

	casync_buffer_trim_all();
	while (off && (evict_from_detached() || evict_by_policy(true)))
		;
	while (casync_buffer_used_bytes() > casync_buffer_budget() &&
	       evict_something())
		;
}

static struct casync_cache_buffer *evict_allocate(unsigned int share,
						  uint32_t length)
{
	struct casync_cache_buffer *buf;
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		buf = casync_buffer_take(share, length);
		if (buf != NULL)
			return buf;
		if (!evict_something())
			return NULL;
	}
	return NULL;
}

struct casync_cache_buffer *casync_evict_new_buffer(uint16_t owner,
						    uint32_t length)
{
	uint64_t budget = casync_buffer_budget();
	struct casync_cache_buffer *buf = NULL;

	if (budget == 0)
		return NULL;
	if (length > 0 && length % CASYNC_CACHE_PAGE == 0 &&
	    length <= CASYNC_CACHE_BUFFER_MAX &&
	    length <= budget / LARGEST_PART)
		buf = evict_allocate(casync_buffer_share_of(owner), length);
	if (buf == NULL)
		casync_buffer_count(&casync_cache_counts.no_buffer, 1);
	return buf;
}
