/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file index.h
 * @brief Of one version of one file: which page is in which buffer.
 *
 * A hash table of leaves, each with the buffers of 16 pages (64 KiB).  So a
 * file of one page costs some 350 bytes, a page of a random read some 200
 * with its share of the table, a read of 1 MiB 2.6 KiB; and the look-up of a
 * page reads two or three lines of the CPU's cache.  All entries are of one
 * version of the file: whatever buffer has a page, and the pages after it, has
 * the right data.  So a read of 1 MiB in one buffer is one look-up.
 *
 * The table grows by moving some buckets with each new leaf: nobody waits for
 * a million to be moved.
 *
 * An index is of its file until it is *detached* (forget, a write, another
 * tag).  That is one pointer.  A detached index is emptied by whoever needs
 * memory (evict.h).  An index that evictions have emptied is freed, and the
 * file is as if it had never been cached.
 *
 * **Why not one table of all files**, with the version of the file in its key?
 * It was built, and it was larger, by 103 code lines.  No table of a file has
 * to grow; but the one table has to follow the budget, and pages that nobody
 * can find have to be looked for in it.  If they are left to the policy
 * (policy.h), those in the main queue stay: a file had 223 of 256 MiB when it
 * was changed, and a stream that was read once had 31 MiB from then on.  A tree
 * of leaves instead of the hash has 29 code lines less.  But a hit takes 4 %
 * more instructions, and a page of a random read in 1 TiB 5 % more memory.
 *
 * **Locks.**  256 locks; a file's is chosen by its address.  So a file has no
 * lock of its own (40 bytes), and a buffer knows its lock by its number when
 * its file is gone.  The lock protects the file, its index, detached or not,
 * and in the buffers which index they are in.  All functions of an index are
 * called under it, but for those that make and free an index that nobody else
 * knows.  Under it a lock of a shard may be taken (policy.h), and nothing else.
 *
 * The index has a reference on each of its buffers.
 */
#ifndef CASYNC_CACHE_INDEX_H
#define CASYNC_CACHE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "cache.h"

/** The end of the file is not known. */
#define CASYNC_CACHE_NO_END UINT64_MAX

struct casync_cache_leaf;

/** A table of leaves, chained by their hash. */
struct casync_cache_table {
	struct casync_cache_leaf **buckets; /**< NULL: no table. */
	uint32_t bits;			    /**< 2^bits of them. */
};

#define CASYNC_CACHE_FIRST_BITS 2

#define CASYNC_CACHE_LOCKS 256U

struct casync_cache_index {
	struct casync_cache_file *file; /**< NULL: detached. */
	struct casync_cache_tag tag;
	uint64_t end;	/**< Of the file, or CASYNC_CACHE_NO_END. */
	uint64_t reach; /**< No byte from here on was put. */
	struct casync_cache_index *next; /**< Of the detached ones. */
	struct casync_cache_table table; /**< New leaves are here. */
	struct casync_cache_table old;	 /**< Is being moved to table. */
	uint64_t moved;			 /**< Buckets of old, so far. */
	uint64_t leaves;
	uint64_t emptied; /**< Buckets known to be empty, once detached. */
	uint32_t lock;	  /**< casync_index_lock_of() */
	struct casync_cache_leaf *first[1U << CASYNC_CACHE_FIRST_BITS];
};

/** An empty index, charged; NULL: no room, or no memory. */
struct casync_cache_index *casync_index_new(struct casync_cache_file *file,
					    const struct casync_cache_tag *tag);

/** Free an empty index. */
void casync_index_free(struct casync_cache_index *index);

static inline bool casync_index_is_empty(const struct casync_cache_index *index)
{
	return index->leaves == 0;
}

/** The buffer that has a page; NULL: none. */
struct casync_cache_buffer *
casync_index_find(const struct casync_cache_index *index, uint64_t page);

/** Whether each of these pages is in some buffer. */
bool casync_index_covers(const struct casync_cache_index *index, uint64_t page,
			 uint64_t count);

/**
 * Enter a buffer with all pages of its valid bytes, and take a reference.
 *
 * @param[out] dropped  Buffers whose last page it took over, linked by
 *                      dropped; the index' references on them are the
 *                      caller's.
 *
 * @return false: no room or no memory; nothing has changed.
 */
bool casync_index_insert(struct casync_cache_index *index,
			 struct casync_cache_buffer *buf,
			 struct casync_cache_buffer **dropped);

/** Remove a buffer.  The index' reference on it is the caller's. */
void casync_index_remove(struct casync_cache_buffer *buf);

/** Some buffer of a detached index; NULL: it is empty. */
struct casync_cache_buffer *
casync_index_any_buffer(struct casync_cache_index *index);

/** The most that one insertion may charge. */
uint64_t casync_index_most_bytes(const struct casync_cache_buffer *buf);

/** The number of a file's lock. */
uint32_t casync_index_lock_of(const struct casync_cache_file *file);

void casync_index_lock(uint32_t lock);
void casync_index_unlock(uint32_t lock);

/** Count a hit; the lock is held. */
void casync_index_count_hit(uint32_t lock, uint64_t bytes);

/** Count a miss; the lock may be held. */
void casync_index_count_miss(uint32_t lock);

/** The sums over all locks. */
void casync_index_sum_hits(uint64_t *hits, uint64_t *misses, uint64_t *bytes);

#endif /* CASYNC_CACHE_INDEX_H */
