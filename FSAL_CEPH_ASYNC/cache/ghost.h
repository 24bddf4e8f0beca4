/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ghost.h
 * @brief Remembers what was evicted lately, 8 bytes each, without its data.
 *
 * A table of sets of four.  A new ghost takes the place of the oldest of its
 * set, so the memory is fixed.  A ghost is 32 bits of the key and the number
 * of ghosts that came before it, which is its age: who asks says which age is
 * too old.  Two keys of the same 32 bits in one set are taken for each other
 * (1 of 10^9 looks-up): then a buffer enters the main queue too early.
 *
 * No locks here: the caller has that of the shard (policy.h).
 */
#ifndef CASYNC_CACHE_GHOST_H
#define CASYNC_CACHE_GHOST_H

#include <stdbool.h>
#include <stdint.h>

struct casync_cache_ghosts {
	uint64_t *sets; /**< NULL: none are remembered. */
	uint32_t count; /**< Of ghosts, a power of two; 4 at least. */
	uint32_t clock; /**< Ghosts so far. */
};

/** Bytes of a table of this many. */
static inline uint64_t casync_cache_ghosts_bytes(uint32_t count)
{
	return (uint64_t)count * sizeof(uint64_t);
}

/** Remember a key. */
void casync_cache_ghosts_add(struct casync_cache_ghosts *ghosts, uint64_t key);

/**
 * Forget a key.
 *
 * @return Whether it was there, and at most @p age ghosts came after it.
 */
bool casync_cache_ghosts_take(struct casync_cache_ghosts *ghosts, uint64_t key,
			      uint32_t age);

#endif /* CASYNC_CACHE_GHOST_H */
