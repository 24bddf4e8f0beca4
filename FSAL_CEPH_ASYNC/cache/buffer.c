/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"
#include "check.h"

/* Mapped at once; 16,384 pieces for 64 GiB, and a process may have 65,530. */
#define CHUNK_BYTES (4U << 20)

/* Free memory that is kept: the larger of these. */
#define WARM_PART 32
#define WARM_LEAST (1U << 20)

struct casync_cache_counts casync_cache_counts;

/* Relaxed atomics, as the counters. */
static uint64_t budget_limit;
static uint64_t budget_used;
static uint64_t budget_shares[CASYNC_CACHE_OWNERS];

struct casync_cache_chunk {
	struct casync_cache_chunk *next; /* of its class */
	struct casync_cache_chunk *before;
	void *memory;
	uint32_t count;
	uint32_t not_cold; /* in use or warm */
	struct casync_cache_buffer buffers[];
};

struct buffer_class {
	pthread_mutex_t lock;
	struct casync_cache_list warm;
	struct casync_cache_list cold;
	struct casync_cache_chunk *chunks;
};

static struct buffer_class buffer_classes[CASYNC_CACHE_CLASSES] = {
	[0 ... CASYNC_CACHE_CLASSES - 1] =
		{
			.lock = PTHREAD_MUTEX_INITIALIZER,
		},
};

static uint64_t buffer_warm_bytes;

bool casync_buffer_charge(uint64_t bytes)
{
	uint64_t used = casync_buffer_read_count(&budget_used);

	/* The thread that changes the limit meanwhile enforces it. */
	do {
		if (used + bytes > casync_buffer_read_count(&budget_limit))
			return false;
	} while (!__atomic_compare_exchange_n(&budget_used, &used, used + bytes,
					      true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

void casync_buffer_uncharge(uint64_t bytes)
{
	__atomic_fetch_sub(&budget_used, bytes, __ATOMIC_RELAXED);
}

uint64_t casync_buffer_used_bytes(void)
{
	return casync_buffer_read_count(&budget_used);
}

uint64_t casync_buffer_budget(void)
{
	return casync_buffer_read_count(&budget_limit);
}

void casync_buffer_set_budget(uint64_t bytes)
{
	__atomic_store_n(&budget_limit, bytes, __ATOMIC_RELAXED);
}

void casync_buffer_share_add(unsigned int share, int64_t bytes)
{
	__atomic_fetch_add(&budget_shares[share], (uint64_t)bytes,
			   __ATOMIC_RELAXED);
}

uint64_t casync_buffer_share_bytes(unsigned int share)
{
	return casync_buffer_read_count(&budget_shares[share]);
}

/* The kernel gives memory, and takes it back, in pages of its own, and they may
 * be larger than ours: 16 or 64 KiB.  Two buffers must not share one. */
static uint32_t buffer_whole_pages(uint32_t bytes)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* 1 to 8 pages; then 10, 12, 14, 16; 20, 24, 28, 32; ... 256. */
uint32_t casync_buffer_class_bytes(unsigned int size_class)
{
	unsigned int power = size_class < 8 ? 0 : (size_class - 4) / 4;
	unsigned int fourth = size_class < 8 ? size_class + 1
					     : size_class % 4 + 5;

	return buffer_whole_pages((fourth << power) * CASYNC_CACHE_PAGE);
}

unsigned int casync_buffer_class_of(uint32_t bytes)
{
	unsigned int last = (bytes - 1) / CASYNC_CACHE_PAGE;
	unsigned int power;

	if (last < 8)
		return last;
	/* 8 to 15: 1; 16 to 31: 2; ... */
	power = 29 - (unsigned int)__builtin_clz(last);
	return power * 4 + (last >> power);
}

static size_t buffer_chunk_header(unsigned int size_class)
{
	return sizeof(struct casync_cache_chunk) +
	       CHUNK_BYTES / casync_buffer_class_bytes(size_class) *
		       sizeof(struct casync_cache_buffer);
}

static void *buffer_map(void)
{
	void *memory = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Either may be missing in the kernel: then it does no harm. */
	(void)madvise(memory, CHUNK_BYTES, MADV_NOHUGEPAGE);
	(void)madvise(memory, CHUNK_BYTES, MADV_DONTDUMP);
	return memory;
}

/* A piece more: all of its buffers are cold.  Its header is charged. */
static bool buffer_grow_locked(struct buffer_class *class,
			       unsigned int size_class)
{
	uint32_t bytes = casync_buffer_class_bytes(size_class);
	size_t header = buffer_chunk_header(size_class);
	struct casync_cache_chunk *chunk;
	uint32_t i;

	if (!casync_buffer_charge(header))
		return false;
	chunk = calloc(1, header);
	if (chunk != NULL)
		chunk->memory = buffer_map();
	if (chunk == NULL || chunk->memory == NULL) {
		free(chunk);
		casync_buffer_uncharge(header);
		return false;
	}
	chunk->count = CHUNK_BYTES / bytes;
	for (i = 0; i < chunk->count; i++) {
		chunk->buffers[i].data =
			(char *)chunk->memory + (size_t)i * bytes;
		chunk->buffers[i].room = bytes;
		chunk->buffers[i].size_class = (uint8_t)size_class;
		chunk->buffers[i].chunk = chunk;
		casync_buffer_list_add(&class->cold, &chunk->buffers[i]);
	}
	chunk->next = class->chunks;
	if (chunk->next != NULL)
		chunk->next->before = chunk;
	class->chunks = chunk;
	return true;
}

static void buffer_unmap_locked(struct buffer_class *class,
				struct casync_cache_chunk *chunk)
{
	size_t header = buffer_chunk_header(chunk->buffers[0].size_class);
	uint32_t i;

	for (i = 0; i < chunk->count; i++)
		casync_buffer_list_remove(&class->cold, &chunk->buffers[i]);
	if (chunk->next != NULL)
		chunk->next->before = chunk->before;
	if (chunk->before != NULL)
		chunk->before->next = chunk->next;
	else
		class->chunks = chunk->next;
	(void)munmap(chunk->memory, CHUNK_BYTES);
	free(chunk);
	casync_buffer_uncharge(header);
}

static void buffer_unload_locked(struct buffer_class *class,
				 struct casync_cache_buffer *buf)
{
	(void)madvise(buf->data, buf->room, MADV_DONTNEED);
	casync_buffer_list_add(&class->cold, buf);
	casync_buffer_uncharge(buf->room);
	CASYNC_CHECK(buf->chunk->not_cold > 0);
	if (--buf->chunk->not_cold == 0)
		buffer_unmap_locked(class, buf->chunk);
}

static struct casync_cache_buffer *
buffer_take_warm_locked(struct buffer_class *class)
{
	/* The newest: most of it may be in the CPU's cache. */
	struct casync_cache_buffer *buf = class->warm.newest;

	if (buf == NULL)
		return NULL;
	casync_buffer_list_remove(&class->warm, buf);
	__atomic_fetch_sub(&buffer_warm_bytes, buf->room, __ATOMIC_RELAXED);
	return buf;
}

static struct casync_cache_buffer *
buffer_take_cold_locked(struct buffer_class *class, unsigned int size_class)
{
	struct casync_cache_buffer *buf;
	uint32_t bytes = casync_buffer_class_bytes(size_class);

	if (!casync_buffer_charge(bytes))
		return NULL;
	if (class->cold.oldest == NULL &&
	    !buffer_grow_locked(class, size_class)) {
		casync_buffer_uncharge(bytes);
		return NULL;
	}
	/* The oldest: the buffers of a piece are used one after the other. */
	buf = class->cold.oldest;
	casync_buffer_list_remove(&class->cold, buf);
	buf->chunk->not_cold++;
	casync_buffer_count(&casync_cache_counts.mapped, 1);
	return buf;
}

struct casync_cache_buffer *casync_buffer_take(unsigned int share,
					       uint32_t length)
{
	unsigned int size_class = casync_buffer_class_of(length);
	struct buffer_class *class = &buffer_classes[size_class];
	struct casync_cache_buffer *buf = NULL;

	pthread_mutex_lock(&class->lock);
	buf = buffer_take_warm_locked(class);
	if (buf == NULL)
		buf = buffer_take_cold_locked(class, size_class);
	pthread_mutex_unlock(&class->lock);
	if (buf == NULL)
		return NULL;
	buf->length = length;
	buf->valid = 0;
	buf->slots = 0;
	buf->ahead = 0;
	buf->index = NULL;
	buf->hits = 0;
	buf->put = false;
	buf->queue = CASYNC_CACHE_NO_QUEUE;
	buf->share = (uint8_t)share;
	__atomic_store_n(&buf->refs, 1, __ATOMIC_RELAXED);
	casync_buffer_share_add(share, buf->room);
	casync_buffer_count(&casync_cache_counts.buffers, 1);
	return buf;
}

/* A lower budget is stored first, and the trim comes after that.  Both this
 * and the trim hold the lock of the class.  So either this sees the new budget,
 * or the trim sees the buffer. */
static bool buffer_stays_warm(const struct casync_cache_buffer *buf)
{
	uint64_t budget = casync_buffer_budget();
	uint64_t most = budget / WARM_PART;

	if (most < WARM_LEAST)
		most = WARM_LEAST;
	return casync_buffer_used_bytes() <= budget &&
	       casync_buffer_warm_bytes() + buf->room <= most;
}

static void buffer_free(struct casync_cache_buffer *buf)
{
	struct buffer_class *class = &buffer_classes[buf->size_class];

	casync_buffer_share_add(buf->share, -(int64_t)buf->room);
	casync_buffer_count(&casync_cache_counts.buffers, (uint64_t)-1);
	if (buf->ahead != 0)
		casync_buffer_count(&casync_cache_counts.ahead_wasted_bytes,
				    buf->ahead);
	pthread_mutex_lock(&class->lock);
	if (buffer_stays_warm(buf)) {
		casync_buffer_list_add(&class->warm, buf);
		__atomic_fetch_add(&buffer_warm_bytes, buf->room,
				   __ATOMIC_RELAXED);
	} else {
		buffer_unload_locked(class, buf);
	}
	pthread_mutex_unlock(&class->lock);
}

void casync_buffer_release(struct casync_cache_buffer *buf)
{
	/* All that others did with the data is before its next use. */
	if (buf != NULL && CASYNC_CHECK_DOWN(&buf->refs, __ATOMIC_ACQ_REL) == 0)
		buffer_free(buf);
}

void casync_buffer_set_read_ahead(struct casync_cache_buffer *buf,
				  uint32_t bytes)
{
	buf->ahead = bytes;
	casync_buffer_count(&casync_cache_counts.ahead_bytes, bytes);
}

void casync_buffer_note_read(struct casync_cache_buffer *buf, uint32_t bytes)
{
	uint32_t used = bytes < buf->ahead ? bytes : buf->ahead;

	if (used == 0)
		return;
	buf->ahead -= used;
	casync_buffer_count(&casync_cache_counts.ahead_used_bytes, used);
}

static bool buffer_trim_class(struct buffer_class *class)
{
	struct casync_cache_buffer *buf;
	bool found;

	pthread_mutex_lock(&class->lock);
	buf = buffer_take_warm_locked(class);
	found = buf != NULL;
	if (found)
		buffer_unload_locked(class, buf);
	pthread_mutex_unlock(&class->lock);
	return found;
}

bool casync_buffer_trim(void)
{
	unsigned int i;

	if (casync_buffer_warm_bytes() == 0)
		return false;
	/* The largest first: one call gives back the most. */
	for (i = CASYNC_CACHE_CLASSES; i-- > 0;) {
		if (buffer_trim_class(&buffer_classes[i]))
			return true;
	}
	return false;
}

void casync_buffer_trim_all(void)
{
	unsigned int i;

	for (i = 0; i < CASYNC_CACHE_CLASSES; i++) {
		while (buffer_trim_class(&buffer_classes[i]))
			;
	}
}

uint64_t casync_buffer_warm_bytes(void)
{
	return casync_buffer_read_count(&buffer_warm_bytes);
}
