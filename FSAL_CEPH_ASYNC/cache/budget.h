/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file budget.h
 * @brief Every byte that the read cache has, and how many it may have.
 *
 * What counts: data of buffers that are in use (in the cache, in a READ under
 * way, or in a reply) or free but still in memory, the headers of all buffers,
 * the indexes of files, and the ghosts.  A fixed table of locks and queues
 * (about 70 KiB) does not count.
 *
 * A byte is charged before it is allocated, and the charge fails at the limit.
 * So there is never more than the budget, but for the time in which a lower
 * one is being reached: replies keep their buffers until they are sent.
 *
 * No function here takes a lock.  Hits change nothing here.
 */
#ifndef CASYNC_CACHE_BUDGET_H
#define CASYNC_CACHE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/** Owners that have a share each.  Owners whose numbers are the same modulo
 * this have one share together. */
#define CASYNC_CACHE_OWNERS 64

/** Why data was not taken into the cache. */
enum casync_cache_drop {
	CASYNC_CACHE_DROP_OFF,	   /**< The budget is 0. */
	CASYNC_CACHE_DROP_WRITE,   /**< A write or forget came between. */
	CASYNC_CACHE_DROP_TAG,	   /**< The file has pages of another tag. */
	CASYNC_CACHE_DROP_KNOWN,   /**< All pages are there already. */
	CASYNC_CACHE_DROP_REFUSED, /**< Not whole pages, or put before, or
				    * the end of the file is elsewhere. */
	CASYNC_CACHE_DROP_MEMORY,  /**< No room for the index. */
	CASYNC_CACHE_DROPS,
};

/** Why a file lost all of its pages at once. */
enum casync_cache_loss {
	CASYNC_CACHE_LOSS_OWN,	    /**< A write of ours. */
	CASYNC_CACHE_LOSS_FOREIGN,  /**< A look-up by another tag. */
	CASYNC_CACHE_LOSS_RELEASED, /**< The file itself is forgotten. */
	CASYNC_CACHE_LOSSES,
};

/** Why READs of a file do without the cache for a while (read_cache.h). */
enum casync_cache_bypass {
	CASYNC_CACHE_BYPASS_FOREIGN, /**< Somebody else changed it. */
	CASYNC_CACHE_BYPASS_COSTLY,  /**< Its witnesses take too long. */
	CASYNC_CACHE_BYPASSES,
};

/** Counters of what is no hit; relaxed atomics. */
struct casync_cache_counts {
	uint64_t puts;
	uint64_t evictions;	/**< Buffers, to make room. */
	uint64_t evicted_bytes; /**< Of their data's room. */
	uint64_t ghost_hits;	/**< Puts of what was evicted lately. */
	uint64_t no_buffer;	/**< Buffers refused: no room or no memory. */
	uint64_t buffers;	/**< In use. */
	uint64_t mapped;	/**< Buffers that began on untouched memory. */
	uint64_t no_witness;  /**< READs without room to ask (read_cache.h). */
	uint64_t ahead_bytes; /**< Fetched before anybody asked. */
	uint64_t ahead_used_bytes;   /**< Of these, asked for later. */
	uint64_t ahead_wasted_bytes; /**< Of these, given up before that. */
	uint64_t drops[CASYNC_CACHE_DROPS];
	uint64_t losses[CASYNC_CACHE_LOSSES];	  /**< Files that had pages. */
	uint64_t bypasses[CASYNC_CACHE_BYPASSES]; /**< How often one began. */
};

extern struct casync_cache_counts casync_cache_counts;

static inline void casync_cache_count(uint64_t *counter, uint64_t amount)
{
	__atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static inline uint64_t casync_cache_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/** Take @p bytes of the budget.  @return Whether it had them. */
bool casync_cache_charge(uint64_t bytes);

/** Give them back, after the memory was freed. */
void casync_cache_uncharge(uint64_t bytes);

/** All that is charged. */
uint64_t casync_cache_used(void);

uint64_t casync_cache_budget(void);

/** Only casync_cache_set_budget() calls this. */
void casync_cache_budget_store(uint64_t bytes);

/** The share of an owner: an index into tables of CASYNC_CACHE_OWNERS. */
static inline unsigned int casync_cache_share(uint16_t owner)
{
	return owner % CASYNC_CACHE_OWNERS;
}

/** A buffer of a share came into use (bytes > 0), or is free again (< 0). */
void casync_cache_share_add(unsigned int share, int64_t bytes);

/** Bytes of its buffers in use, cached or not. */
uint64_t casync_cache_share_bytes(unsigned int share);

#endif /* CASYNC_CACHE_BUDGET_H */
