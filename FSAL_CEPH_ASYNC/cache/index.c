/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "index.h"
#include "hash.h"

#define LEAF_BITS 4
#define LEAF_PAGES (1U << LEAF_BITS)

/* The table is made four times as large when it has as many leaves as
 * buckets; 8 buckets are moved with each new leaf.  So all are moved when an
 * eighth of them has been added, long before it is full again. */
#define GROW_BITS 2
#define MOVE 8

/* Bytes that malloc adds to an allocation. */
#define MALLOC_BYTES 16

struct casync_cache_leaf {
	struct casync_cache_leaf *next;
	uint64_t number; /* of the first page / LEAF_PAGES */
	uint32_t count;	 /* of slots in use */
	struct casync_cache_buffer *slots[LEAF_PAGES];
};

/* One line of the CPU's cache each: what a hit counts costs no other. */
struct file_lock {
	_Alignas(64) pthread_mutex_t mutex;
	uint64_t hits;
	uint64_t misses;
	uint64_t bytes;
};

static struct file_lock file_locks[CASYNC_CACHE_LOCKS] = {
	[0 ... CASYNC_CACHE_LOCKS - 1] =
		{
			.mutex = PTHREAD_MUTEX_INITIALIZER,
		},
};

uint32_t casync_index_lock_of(const struct casync_cache_file *file)
{
	return (uint32_t)(casync_hash_u64((uintptr_t)file) >> 56);
}

_Static_assert(CASYNC_CACHE_LOCKS == 1 << (64 - 56), "casync_index_lock_of()");

void casync_index_lock(uint32_t lock)
{
	pthread_mutex_lock(&file_locks[lock].mutex);
}

void casync_index_unlock(uint32_t lock)
{
	pthread_mutex_unlock(&file_locks[lock].mutex);
}

/* Only the holder of the lock writes: no locked instruction is needed. */
static void index_lock_add(uint64_t *counter, uint64_t amount)
{
	__atomic_store_n(counter,
			 __atomic_load_n(counter, __ATOMIC_RELAXED) + amount,
			 __ATOMIC_RELAXED);
}

void casync_index_count_hit(uint32_t lock, uint64_t bytes)
{
	index_lock_add(&file_locks[lock].hits, 1);
	index_lock_add(&file_locks[lock].bytes, bytes);
}

void casync_index_count_miss(uint32_t lock)
{
	__atomic_fetch_add(&file_locks[lock].misses, 1, __ATOMIC_RELAXED);
}

void casync_index_sum_hits(uint64_t *hits, uint64_t *misses, uint64_t *bytes)
{
	const struct file_lock *lock;

	*hits = 0;
	*misses = 0;
	*bytes = 0;
	for (lock = file_locks; lock < file_locks + CASYNC_CACHE_LOCKS;
	     lock++) {
		*hits += __atomic_load_n(&lock->hits, __ATOMIC_RELAXED);
		*misses += __atomic_load_n(&lock->misses, __ATOMIC_RELAXED);
		*bytes += __atomic_load_n(&lock->bytes, __ATOMIC_RELAXED);
	}
}

/* Charged memory, zeroed. */
static void *index_alloc(size_t bytes)
{
	void *memory;

	if (!casync_buffer_charge(bytes + MALLOC_BYTES))
		return NULL;
	memory = calloc(1, bytes);
	if (memory == NULL)
		casync_buffer_uncharge(bytes + MALLOC_BYTES);
	return memory;
}

static void index_release(void *memory, size_t bytes)
{
	free(memory);
	casync_buffer_uncharge(bytes + MALLOC_BYTES);
}

static size_t index_size(const struct casync_cache_table *table)
{
	return (size_t)1 << table->bits;
}

static size_t index_table_bytes(const struct casync_cache_table *table)
{
	return index_size(table) * sizeof(*table->buckets);
}

static void index_free_table(struct casync_cache_index *index,
			     struct casync_cache_table *table)
{
	if (table->buckets != NULL && table->buckets != index->first)
		index_release(table->buckets, index_table_bytes(table));
	table->buckets = NULL;
}

struct casync_cache_index *casync_index_new(struct casync_cache_file *file,
					    const struct casync_cache_tag *tag)
{
	struct casync_cache_index *index = index_alloc(sizeof(*index));

	if (index == NULL)
		return NULL;
	index->file = file;
	index->tag = *tag;
	index->end = CASYNC_CACHE_NO_END;
	index->lock = casync_index_lock_of(file);
	index->table.buckets = index->first;
	index->table.bits = CASYNC_CACHE_FIRST_BITS;
	return index;
}

void casync_index_free(struct casync_cache_index *index)
{
	index_free_table(index, &index->table);
	index_free_table(index, &index->old);
	index_release(index, sizeof(*index));
}

static struct casync_cache_leaf **
index_bucket(const struct casync_cache_table *table, uint64_t number)
{
	return &table->buckets[casync_hash_u64(number) >> (64 - table->bits)];
}

/* Where the pointer to a leaf is, in one table; NULL: not there. */
static struct casync_cache_leaf **
index_leaf_in(const struct casync_cache_table *table, uint64_t number)
{
	struct casync_cache_leaf **at;

	if (table->buckets == NULL)
		return NULL;
	for (at = index_bucket(table, number); *at != NULL; at = &(*at)->next) {
		if ((*at)->number == number)
			return at;
	}
	return NULL;
}

static struct casync_cache_leaf **
index_leaf(const struct casync_cache_index *index, uint64_t number)
{
	struct casync_cache_leaf **at = index_leaf_in(&index->table, number);

	return at != NULL ? at : index_leaf_in(&index->old, number);
}

struct casync_cache_buffer *
casync_index_find(const struct casync_cache_index *index, uint64_t page)
{
	struct casync_cache_leaf **leaf = index_leaf(index, page >> LEAF_BITS);

	return leaf == NULL ? NULL : (*leaf)->slots[page % LEAF_PAGES];
}

static uint64_t index_first_page(const struct casync_cache_buffer *buf)
{
	return buf->offset >> CASYNC_CACHE_PAGE_BITS;
}

/* The page after the last with valid bytes. */
static uint64_t index_end_page(const struct casync_cache_buffer *buf)
{
	return (buf->offset + buf->valid + CASYNC_CACHE_PAGE - 1) >>
	       CASYNC_CACHE_PAGE_BITS;
}

bool casync_index_covers(const struct casync_cache_index *index, uint64_t page,
			 uint64_t count)
{
	uint64_t end = page + count;
	const struct casync_cache_buffer *buf;

	while (page < end) {
		buf = casync_index_find(index, page);
		if (buf == NULL)
			return false;
		page = index_end_page(buf);
	}
	return true;
}

static void index_move_some(struct casync_cache_index *index)
{
	struct casync_cache_leaf *leaf, **to;
	unsigned int i;

	for (i = 0; i < MOVE && index->old.buckets != NULL; i++) {
		while ((leaf = index->old.buckets[index->moved]) != NULL) {
			index->old.buckets[index->moved] = leaf->next;
			to = index_bucket(&index->table, leaf->number);
			leaf->next = *to;
			*to = leaf;
		}
		if (++index->moved == index_size(&index->old))
			index_free_table(index, &index->old);
	}
}

/* Without memory the chains become longer, that is all. */
static void index_grow(struct casync_cache_index *index)
{
	struct casync_cache_table larger = {
		.bits = index->table.bits + GROW_BITS,
	};

	if (index->old.buckets != NULL ||
	    index->leaves < index_size(&index->table))
		return;
	larger.buckets = index_alloc(index_table_bytes(&larger));
	if (larger.buckets == NULL)
		return;
	index->old = index->table;
	index->table = larger;
	index->moved = 0;
}

static bool index_add_leaf(struct casync_cache_index *index, uint64_t number)
{
	struct casync_cache_leaf *leaf, **to;

	if (index_leaf(index, number) != NULL)
		return true;
	leaf = index_alloc(sizeof(*leaf));
	if (leaf == NULL)
		return false;
	index_grow(index);
	index_move_some(index);
	leaf->number = number;
	to = index_bucket(&index->table, number);
	leaf->next = *to;
	*to = leaf;
	index->leaves++;
	return true;
}

static void index_drop_leaf(struct casync_cache_index *index,
			    struct casync_cache_leaf **at)
{
	struct casync_cache_leaf *leaf = *at;

	*at = leaf->next;
	CASYNC_CHECK(index->leaves != 0);
	index->leaves--;
	index_release(leaf, sizeof(*leaf));
}

/* Leaves for all pages, or none that is empty. */
static bool index_add_leaves(struct casync_cache_index *index, uint64_t first,
			     uint64_t last)
{
	struct casync_cache_leaf **at;
	uint64_t number;

	for (number = first; number <= last; number++) {
		if (!index_add_leaf(index, number))
			break;
	}
	if (number > last)
		return true;
	while (number-- > first) {
		at = index_leaf(index, number);
		if ((*at)->count == 0)
			index_drop_leaf(index, at);
	}
	return false;
}

/* A page that another buffer has becomes ours. */
static void index_take_over(struct casync_cache_buffer *was,
			    struct casync_cache_buffer **dropped)
{
	CASYNC_CHECK(was->slots > 0);
	if (--was->slots > 0)
		return;
	was->index = NULL;
	was->dropped = *dropped;
	*dropped = was;
}

bool casync_index_insert(struct casync_cache_index *index,
			 struct casync_cache_buffer *buf,
			 struct casync_cache_buffer **dropped)
{
	uint64_t page = index_first_page(buf);
	uint64_t end = index_end_page(buf);
	struct casync_cache_leaf *leaf = NULL;
	struct casync_cache_buffer **slot;

	if (!index_add_leaves(index, page >> LEAF_BITS, (end - 1) >> LEAF_BITS))
		return false;
	for (; page < end; page++) {
		if (leaf == NULL || page % LEAF_PAGES == 0)
			leaf = *index_leaf(index, page >> LEAF_BITS);
		slot = &leaf->slots[page % LEAF_PAGES];
		if (*slot != NULL)
			index_take_over(*slot, dropped);
		else
			leaf->count++;
		*slot = buf;
		buf->slots++;
	}
	buf->index = index;
	casync_buffer_hold(buf);
	return true;
}

/* Those of its pages that one leaf has. */
static void index_clear_leaf(struct casync_cache_index *index,
			     struct casync_cache_leaf **at,
			     struct casync_cache_buffer *buf)
{
	struct casync_cache_leaf *leaf = *at;
	unsigned int i;

	for (i = 0; i < LEAF_PAGES; i++) {
		if (leaf->slots[i] != buf)
			continue;
		leaf->slots[i] = NULL;
		CASYNC_CHECK(leaf->count != 0);
		leaf->count--;
		CASYNC_CHECK(buf->slots != 0);
		buf->slots--;
	}
	if (leaf->count == 0)
		index_drop_leaf(index, at);
}

void casync_index_remove(struct casync_cache_buffer *buf)
{
	struct casync_cache_index *index = buf->index;
	uint64_t last = (index_end_page(buf) - 1) >> LEAF_BITS;
	struct casync_cache_leaf **at;
	uint64_t number;

	for (number = index_first_page(buf) >> LEAF_BITS; number <= last;
	     number++) {
		at = index_leaf(index, number);
		if (at != NULL)
			index_clear_leaf(index, at, buf);
	}
	buf->index = NULL;
}

/* The leaf of a bucket, counted over both tables. */
static struct casync_cache_leaf *
index_bucket_at(const struct casync_cache_index *index, uint64_t bucket)
{
	size_t size = index_size(&index->table);

	if (bucket < size)
		return index->table.buckets[bucket];
	return index->old.buckets[bucket - size];
}

struct casync_cache_buffer *
casync_index_any_buffer(struct casync_cache_index *index)
{
	const struct casync_cache_leaf *leaf;
	unsigned int i;

	if (index->leaves == 0)
		return NULL;
	/* Nothing is entered any more: a bucket stays empty. */
	while ((leaf = index_bucket_at(index, index->emptied)) == NULL)
		index->emptied++;
	for (i = 0; leaf->slots[i] == NULL; i++)
		;
	return leaf->slots[i];
}

uint64_t casync_index_most_bytes(const struct casync_cache_buffer *buf)
{
	uint64_t leaves = buf->length / CASYNC_CACHE_PAGE / LEAF_PAGES + 2;

	return leaves * (sizeof(struct casync_cache_leaf) + MALLOC_BYTES) +
	       sizeof(struct casync_cache_index) + MALLOC_BYTES;
}
