/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file policy.h
 * @brief Chooses what is evicted: S3-FIFO, and a fair share for each owner.
 *
 * S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction",
 * SOSP 2023).  A buffer enters the *small* queue.  If it was hit when it comes
 * to the end of that, it moves to the *main* queue; if not, it is evicted and
 * leaves a ghost.  A buffer whose ghost is there enters the main queue at
 * once.  At the end of the main queue a buffer that was hit goes round again,
 * up to three times for three hits.  The small queue has a tenth of the bytes.
 * So what is read once passes through a tenth of the cache and leaves the rest
 * alone.  And a hit only changes one byte of the buffer, without a lock.
 *
 * Ours differs in these:
 *
 *	sizes	The queues are measured in bytes.
 *	shards	There are 16 sets of queues, a buffer's by its key, each with a
 *		lock.  Small or main is decided by the bytes of all shards; the
 *		shards then take turns.
 *	owners	Each share of an owner (buffer.h) has queues of its own.  The
 *		owner that has the most bytes loses a buffer.  It has at least
 *		budget / owners, so none falls below that by another's doing;
 *		and what one does not use, another may.  All of an owner's
 *		buffers count, those in its replies too.
 *	one hit	is enough to move to the main queue (in the paper: two).  The
 *		cache is behind a client's own, which hides most repetitions.
 *	pinned	A buffer in a reply frees no memory: it goes round.
 *	bound	After 512 buffers that were hit or pinned, hits do not count
 *		any more: a READ waits for this.
 *	ghosts	A ghost is too old when as many ghosts have come after it as
 *		the shard has buffers.
 *
 * The queues have a reference on each of their buffers.  The lock of a shard
 * may be taken under the lock of a file (index.h), not the other way round.
 * Nothing is taken under it.
 */
#ifndef CASYNC_CACHE_POLICY_H
#define CASYNC_CACHE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

#define CASYNC_CACHE_SHARDS 16U

/** Most hits that are counted for a buffer. */
#define CASYNC_CACHE_HITS 3

/** A hit.  Of two at once one may be lost; no harm. */
static inline void casync_policy_hit(struct casync_cache_buffer *buf)
{
	uint8_t hits = __atomic_load_n(&buf->hits, __ATOMIC_RELAXED);

	/* Not written once it has enough: the line stays shared. */
	if (hits < CASYNC_CACHE_HITS)
		__atomic_store_n(&buf->hits, hits + 1, __ATOMIC_RELAXED);
}

/**
 * Queue a buffer that is in an index.
 *
 * @return Whether it is queued, and has a reference of the queue's: not if the
 *         budget is 0.  casync_cache_set_budget() stores that first and empties
 *         the queues afterwards, so it sees what was queued before.
 */
bool casync_policy_insert(struct casync_cache_buffer *buf);

/** Take a buffer out.  @return Whether it was queued: then its reference is
 * the caller's. */
bool casync_policy_remove(struct casync_cache_buffer *buf);

/**
 * Choose a buffer, and take it out of its queue.
 *
 * @param[in] all  Take also what was hit, and what replies hold.
 *
 * @return With the queue's reference; NULL: there is none.
 */
struct casync_cache_buffer *casync_policy_take_victim(bool all);

/** Bytes of ghosts that the budget wants. */
uint64_t casync_policy_ghosts_wanted_bytes(void);

/** Forget all ghosts, and free their memory. */
void casync_policy_free_ghosts(void);

/** Have as many as the budget wants, if there is room for them.  There are none
 * yet, and one thread does this. */
void casync_policy_make_ghosts(void);

/** Bytes in both queues of all shards, of one share. */
uint64_t casync_policy_queued_bytes(unsigned int share);

/**
 * Buffers that were evicted lately, 8 bytes each, without their data.
 *
 * A table of sets of four.  A new ghost takes the place of the oldest of its
 * set, so the memory is fixed.  A ghost is 32 bits of the key and the number
 * of ghosts that came before it, which is its age: the caller says which age is
 * too old.  Two keys of the same 32 bits in one set are taken for each other
 * (1 of 10^9 looks-up): then a buffer enters the main queue too early.
 *
 * No locks here: the caller has that of the shard.
 */
struct casync_cache_ghosts {
	uint64_t *sets; /**< NULL: none are remembered. */
	uint32_t count; /**< Of ghosts, a power of two; 4 at least. */
	uint32_t clock; /**< Ghosts so far. */
};

/** Bytes of a table of this many. */
static inline uint64_t casync_policy_ghosts_bytes(uint32_t count)
{
	return (uint64_t)count * sizeof(uint64_t);
}

/** Remember a key. */
void casync_policy_ghosts_add(struct casync_cache_ghosts *ghosts, uint64_t key);

/**
 * Forget a key.
 *
 * @return Whether it was there, and at most @p age ghosts came after it.
 */
bool casync_policy_ghosts_take(struct casync_cache_ghosts *ghosts, uint64_t key,
			       uint32_t age);

#endif /* CASYNC_CACHE_POLICY_H */
