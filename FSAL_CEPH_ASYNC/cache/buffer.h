/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file buffer.h
 * @brief Memory of the read cache: counted references on pages of data, and the
 * budget of every byte that the cache has.
 *
 * A buffer is one READ's data: libcephfs fills it, the reply sends it, and the
 * cache keeps it.  Nothing is copied.  The holder of a reference may read
 * the data; only the thread that allocated the buffer may write them, before
 * casync_cache_put().
 *
 * **Where the memory comes from.**  malloc is not used for data.  Aligned to
 * pages, it takes two pages for one; above 128 KiB it maps and unmaps, and
 * each use faults all pages in anew.  So memory is mapped in pieces of 4 MiB.
 * A piece is cut into buffers of one size class.  There are 28 classes, four
 * for each power of two, so at most a fifth of a buffer is unused.  Where the
 * kernel's pages are larger than 4 KiB, a buffer has whole ones: what is less
 * than one of them takes one of them.
 *
 * **A free buffer** stays in memory (it is *warm*), for the next READ of its
 * class.  Warm buffers have a bound: a 32nd of the budget, or 1 MiB.  The
 * others are *cold*: their pages are back at the kernel (MADV_DONTNEED), and
 * only the address range and the header are left.  A piece with nothing but
 * cold buffers is unmapped.  When sizes change, warm memory of other classes
 * goes first, before anything is evicted.  So memory does not fragment:
 * addresses may, which cost 4 bytes of page table a page at the most.
 *
 * Pieces have no huge pages: the kernel would bring cold parts of them back
 * into memory, over the budget.  Core dumps leave them out: they are users'
 * data, and large.
 *
 * The lock of a size class is a leaf.  It is taken when a buffer is allocated
 * or freed, never by a hit.
 *
 * **The budget.**  It counts the data of buffers that are in use (in the cache,
 * in a READ under way, or in a reply) or warm, the headers of all buffers, the
 * indexes of files, and the ghosts.  A fixed table of locks and queues (about
 * 70 KiB) does not count.  A byte is charged before it is allocated, and the
 * charge fails at the limit.  So there is never more than the budget, but for
 * the time in which a lower one is being reached: replies keep their buffers
 * until they are sent.  The budget has no lock, and a hit changes nothing of
 * it.
 */
#ifndef CASYNC_CACHE_BUFFER_H
#define CASYNC_CACHE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASYNC_CACHE_PAGE 4096U
#define CASYNC_CACHE_PAGE_BITS 12U

/** The largest buffer. */
#define CASYNC_CACHE_BUFFER_MAX (1U << 20)

#define CASYNC_CACHE_CLASSES 28U

/** Owners that have a share each.  Owners whose numbers are the same modulo
 * this have one share together. */
#define CASYNC_CACHE_OWNERS 64

struct casync_cache_chunk;
struct casync_cache_index;

/** Which queue of the policy a buffer is in. */
enum casync_cache_queue {
	CASYNC_CACHE_SMALL,
	CASYNC_CACHE_MAIN,
	CASYNC_CACHE_QUEUES,
	CASYNC_CACHE_NO_QUEUE = CASYNC_CACHE_QUEUES,
};

struct casync_cache_buffer {
	/** Aligned to pages; does not change while there is a reference. */
	void *data;
	uint32_t refs;	 /**< Atomic. */
	uint32_t room;	 /**< Bytes of memory at data. */
	uint32_t length; /**< Bytes asked for, whole pages. */
	uint32_t valid;	 /**< Bytes of the file; set once, by put. */
	uint64_t offset; /**< In the file; set once, by put. */
	uint64_t key;	 /**< Of file and offset; set once, by put. */

	/* Under the lock of the file (index.h). */
	struct casync_cache_index *index; /**< NULL: in no index. */
	struct casync_cache_buffer
		*dropped; /**< List of what lost its pages. */
	uint32_t ahead;	  /**< Bytes that no READ has asked for yet. */
	uint16_t slots;	  /**< Pages of the index that are here. */

	uint16_t lock; /**< Which lock; set once, by put. */
	uint8_t share; /**< Of the owner: casync_buffer_share_of(). */
	uint8_t size_class;
	uint8_t hits;  /**< 0 to 3, atomic: hits since it was queued. */
	uint8_t queue; /**< enum; under the shard's lock (policy.h). */
	bool put;      /**< Handed to put, once. */

	/* Of a queue, under the shard's lock; or of the free buffers, under
	 * the class's. */
	struct casync_cache_buffer *newer;
	struct casync_cache_buffer *older;

	struct casync_cache_chunk *chunk;
};

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
	CASYNC_CACHE_BYPASS_COSTLY,  /**< Its revalidations take too long. */
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
	/** READs without room to ask (read_cache.h). */
	uint64_t no_revalidation;
	uint64_t ahead_bytes;	     /**< Fetched before anybody asked. */
	uint64_t ahead_used_bytes;   /**< Of these, asked for later. */
	uint64_t ahead_wasted_bytes; /**< Of these, given up before that. */
	uint64_t drops[CASYNC_CACHE_DROPS];
	uint64_t losses[CASYNC_CACHE_LOSSES];	  /**< Files that had pages. */
	uint64_t bypasses[CASYNC_CACHE_BYPASSES]; /**< How often one began. */
};

extern struct casync_cache_counts casync_cache_counts;

static inline void casync_buffer_count(uint64_t *counter, uint64_t amount)
{
	__atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static inline uint64_t casync_buffer_read_count(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/** Buffers in the order in which they came. */
struct casync_cache_list {
	struct casync_cache_buffer *newest;
	struct casync_cache_buffer *oldest;
};

static inline void casync_buffer_list_add(struct casync_cache_list *list,
					  struct casync_cache_buffer *buf)
{
	buf->newer = NULL;
	buf->older = list->newest;
	if (list->newest != NULL)
		list->newest->newer = buf;
	else
		list->oldest = buf;
	list->newest = buf;
}

static inline void casync_buffer_list_remove(struct casync_cache_list *list,
					     struct casync_cache_buffer *buf)
{
	if (buf->newer != NULL)
		buf->newer->older = buf->older;
	else
		list->newest = buf->older;
	if (buf->older != NULL)
		buf->older->newer = buf->newer;
	else
		list->oldest = buf->newer;
}

/** One reference more; the caller has one, or the file's lock and an index
 * that has one. */
static inline void casync_buffer_hold(struct casync_cache_buffer *buf)
{
	__atomic_fetch_add(&buf->refs, 1, __ATOMIC_RELAXED);
}

/** Give a reference back, on any thread.  The last one frees the buffer.  May
 * take the lock of a size class; NULL does nothing. */
void casync_buffer_release(struct casync_cache_buffer *buf);

/** So many bytes of a new buffer were not asked for.  Before it is put. */
void casync_buffer_set_read_ahead(struct casync_cache_buffer *buf,
				  uint32_t bytes);

/** A READ has asked for some bytes; the lock of the file is held. */
void casync_buffer_note_read(struct casync_cache_buffer *buf, uint32_t bytes);

/** The class of buffers for this many bytes, 1 to CASYNC_CACHE_BUFFER_MAX. */
unsigned int casync_buffer_class_of(uint32_t bytes);

/** Bytes of a buffer of this class. */
uint32_t casync_buffer_class_bytes(unsigned int size_class);

/**
 * Take a free buffer, or map one, within the budget.  Evicts nothing.
 *
 * @return With one reference; NULL if the budget has no room, or memory fails.
 */
struct casync_cache_buffer *casync_buffer_take(unsigned int share,
					       uint32_t length);

/** Give a free buffer's pages to the kernel.  @return false: there is none. */
bool casync_buffer_trim(void);

/** All of them, after the budget was lowered. */
void casync_buffer_trim_all(void);

/** Bytes of free buffers that are in memory. */
uint64_t casync_buffer_warm_bytes(void);

/** Take @p bytes of the budget.  @return Whether it had them. */
bool casync_buffer_charge(uint64_t bytes);

/** Give them back, after the memory was freed. */
void casync_buffer_uncharge(uint64_t bytes);

/** All that is charged. */
uint64_t casync_buffer_used_bytes(void);

uint64_t casync_buffer_budget(void);

/** Only casync_cache_set_budget() calls this. */
void casync_buffer_set_budget(uint64_t bytes);

/** The share of an owner: an index into tables of CASYNC_CACHE_OWNERS. */
static inline unsigned int casync_buffer_share_of(uint16_t owner)
{
	return owner % CASYNC_CACHE_OWNERS;
}

/** A buffer of a share came into use (bytes > 0), or is free again (< 0). */
void casync_buffer_share_add(unsigned int share, int64_t bytes);

/** Bytes of its buffers in use, cached or not. */
uint64_t casync_buffer_share_bytes(unsigned int share);

#endif /* CASYNC_CACHE_BUFFER_H */
