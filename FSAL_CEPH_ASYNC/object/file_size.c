/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "check.h"
#include "clock.h"
#include "file_size.h"

/* How long after a truncation more of them are expected. */
#define TRUNCATION_MEMORY_MS 60000

/* Of the counter: those of ours that are under way. */
#define UNDER_WAY 0xffffULL

void casync_file_size_init(struct casync_file_size *size, uint64_t *truncations)
{
	*size = (struct casync_file_size){
		.flushed = CASYNC_FLUSHED_UNKNOWN,
		.truncations = truncations,
		.hint_count = __atomic_load_n(truncations, __ATOMIC_ACQUIRE),
	};
	pthread_mutex_init(&size->lock, NULL);
}

void casync_file_size_destroy(struct casync_file_size *size)
{
	pthread_mutex_destroy(&size->lock);
}

uint64_t casync_file_size_hint(const struct casync_file_size *size)
{
	return __atomic_load_n(&size->hint, __ATOMIC_RELAXED);
}

void casync_file_size_set(struct casync_file_size *size, uint64_t size_bytes)
{
	__atomic_store_n(&size->hint, size_bytes, __ATOMIC_RELAXED);
}

/* The known end of the file, and the end of what we have written. */
static uint64_t file_size_known_end_locked(const struct casync_file_size *size)
{
	uint64_t hint = casync_file_size_hint(size);

	return hint > size->written_end ? hint : size->written_end;
}

static void file_size_lower_locked(struct casync_file_size *size,
				   uint64_t size_bytes)
{
	CASYNC_CHECK_HELD(&size->lock);
	if (size->flushed > size_bytes)
		__atomic_store_n(&size->flushed, size_bytes, __ATOMIC_RELEASE);
	if (size->written_end > size_bytes)
		size->written_end = size_bytes;
}

/* The hint is right for this value of the counter.  After the hint:
 * file_size.h. */
static void file_size_trust_locked(struct casync_file_size *size,
				   uint64_t truncations)
{
	__atomic_store_n(&size->hint_count, truncations, __ATOMIC_RELEASE);
}

static void file_size_is_now_locked(struct casync_file_size *size,
				    uint64_t size_bytes, uint64_t truncations)
{
	CASYNC_CHECK_HELD(&size->lock);
	casync_file_size_set(size, size_bytes);
	file_size_lower_locked(size, size_bytes);
	if (size->hint_count == truncations)
		return;
	__atomic_store_n(&size->truncated_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
	file_size_trust_locked(size, truncations);
}

/* Both only grow: the sum is the same only if both are. */
static uint64_t file_size_generation_locked(const struct casync_file_size *size,
					    uint64_t truncations)
{
	return size->generation + truncations;
}

uint64_t casync_file_size_changes(struct casync_file_size *size)
{
	uint64_t generation;

	pthread_mutex_lock(&size->lock);
	generation = file_size_generation_locked(
		size, casync_file_size_truncations(size));
	pthread_mutex_unlock(&size->lock);
	return generation;
}

void casync_file_size_update(struct casync_file_size *size, uint64_t size_bytes,
			     uint64_t generation)
{
	uint64_t truncations;

	pthread_mutex_lock(&size->lock);
	truncations = casync_file_size_truncations(size);
	if ((truncations & UNDER_WAY) == 0 &&
	    generation == file_size_generation_locked(size, truncations)) {
		if (size_bytes < size->flushed)
			size->truncated = true;
		if (size_bytes < file_size_known_end_locked(size))
			__atomic_store_n(&size->shrunk_ns, casync_clock_ns(),
					 __ATOMIC_RELAXED);
		file_size_is_now_locked(size, size_bytes, truncations);
	}
	pthread_mutex_unlock(&size->lock);
}

uint64_t casync_file_size_truncates(struct casync_file_size *size)
{
	return __atomic_add_fetch(size->truncations, CASYNC_TRUNCATION_BEGINS,
				  __ATOMIC_ACQ_REL);
}

/* Was it the only one since it began? */
static bool file_size_end_truncation(struct casync_file_size *size,
				     uint64_t begun)
{
	uint64_t after = __atomic_add_fetch(
		size->truncations, CASYNC_TRUNCATION_ENDS, __ATOMIC_ACQ_REL);

	return after == begun + CASYNC_TRUNCATION_ENDS &&
	       (after & UNDER_WAY) == 0;
}

void casync_file_size_truncated(struct casync_file_size *size, uint64_t begun,
				uint64_t size_bytes)
{
	pthread_mutex_lock(&size->lock);
	size->truncated = true;
	size->generation++;
	file_size_lower_locked(size, size_bytes);
	if (file_size_end_truncation(size, begun)) {
		casync_file_size_set(size, size_bytes);
		file_size_trust_locked(size, begun + CASYNC_TRUNCATION_ENDS);
	} else if (size_bytes < casync_file_size_hint(size)) {
		/* The next size must not look like another client's truncate.
		 */
		casync_file_size_set(size, size_bytes);
	}
	pthread_mutex_unlock(&size->lock);
}

/* Nobody trusts the hint until a size comes: the counter has changed. */
void casync_file_size_not_truncated(struct casync_file_size *size)
{
	__atomic_add_fetch(size->truncations, CASYNC_TRUNCATION_ENDS,
			   __ATOMIC_ACQ_REL);
}

void casync_file_size_written(struct casync_file_size *size, uint64_t end_bytes,
			      uint64_t truncations)
{
	pthread_mutex_lock(&size->lock);
	size->generation++;
	if (size->written_end < end_bytes)
		size->written_end = end_bytes;
	if (casync_file_size_hint(size) < end_bytes &&
	    !casync_file_size_truncated_since(size, truncations))
		casync_file_size_set(size, end_bytes);
	pthread_mutex_unlock(&size->lock);
}

uint64_t casync_file_size_truncations(const struct casync_file_size *size)
{
	return __atomic_load_n(size->truncations, __ATOMIC_ACQUIRE);
}

bool casync_file_size_truncated_since(const struct casync_file_size *size,
				      uint64_t count)
{
	return casync_file_size_truncations(size) != count ||
	       (count & UNDER_WAY) != 0;
}

bool casync_file_size_told_since(const struct casync_file_size *size,
				 uint64_t count)
{
	return casync_file_size_truncations(size) / CASYNC_TRUNCATION_TOLD !=
	       count / CASYNC_TRUNCATION_TOLD;
}

bool casync_file_size_is_truncated(const struct casync_file_size *size)
{
	uint64_t truncations = casync_file_size_truncations(size);

	return (truncations & UNDER_WAY) != 0 ||
	       truncations !=
		       __atomic_load_n(&size->hint_count, __ATOMIC_ACQUIRE);
}

static bool file_size_is_recent(const uint64_t *at_ns)
{
	uint64_t then_ns = __atomic_load_n(at_ns, __ATOMIC_RELAXED);

	return then_ns != 0 && casync_clock_age_ns(then_ns) <
				       TRUNCATION_MEMORY_MS * CASYNC_NS_PER_MS;
}

bool casync_file_size_is_unknown(const struct casync_file_size *size)
{
	return casync_file_size_is_truncated(size) ||
	       file_size_is_recent(&size->shrunk_ns);
}

bool casync_file_size_truncated_recently(const struct casync_file_size *size)
{
	return casync_file_size_is_truncated(size) ||
	       file_size_is_recent(&size->truncated_ns) ||
	       file_size_is_recent(&size->shrunk_ns);
}

bool casync_file_size_grown(const struct casync_file_size *size,
			    uint64_t end_bytes)
{
	return end_bytes > __atomic_load_n(&size->flushed, __ATOMIC_ACQUIRE);
}

bool casync_file_size_pending(struct casync_file_size *size)
{
	uint64_t end;

	/* It covers also data written before this object was in the cache. */
	pthread_mutex_lock(&size->lock);
	end = file_size_known_end_locked(size);
	pthread_mutex_unlock(&size->lock);
	return casync_file_size_grown(size, end);
}

uint64_t casync_file_size_flush_begins(struct casync_file_size *size)
{
	uint64_t end;

	pthread_mutex_lock(&size->lock);
	size->truncated = false;
	end = file_size_known_end_locked(size);
	pthread_mutex_unlock(&size->lock);
	return end;
}

void casync_file_size_flushed(struct casync_file_size *size, uint64_t end_bytes)
{
	pthread_mutex_lock(&size->lock);
	if (!size->truncated && end_bytes > size->flushed)
		__atomic_store_n(&size->flushed, end_bytes, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&size->lock);
}
