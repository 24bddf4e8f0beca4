/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file buffer.h
 * @brief Memory of the read cache: counted references on pages of data.
 *
 * A buffer is one READ's data: libcephfs fills it, the reply sends it, and the
 * cache keeps it.  Nothing is copied.  Who has a reference may read the data;
 * only who allocated it may write them, before casync_cache_put().
 *
 * **Where the memory comes from.**  malloc is not used for data.  Aligned to
 * pages, it takes two pages for one; above 128 KiB it maps and unmaps, and
 * each use faults all pages in anew.  So memory is mapped in pieces of 4 MiB.
 * A piece is cut into buffers of one size class.  There are 28 classes, four
 * for each power of two, so at most a fifth of a buffer is unused.
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
	uint8_t share; /**< Of the owner (budget.h). */
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

/** Buffers in the order in which they came. */
struct casync_cache_list {
	struct casync_cache_buffer *newest;
	struct casync_cache_buffer *oldest;
};

static inline void casync_cache_list_add(struct casync_cache_list *list,
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

static inline void casync_cache_list_remove(struct casync_cache_list *list,
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
static inline void casync_cache_buffer_hold(struct casync_cache_buffer *buf)
{
	__atomic_fetch_add(&buf->refs, 1, __ATOMIC_RELAXED);
}

/** Give a reference back, on any thread.  The last one frees the buffer.  May
 * take the lock of a size class; NULL does nothing. */
void casync_cache_buffer_release(struct casync_cache_buffer *buf);

/** So many bytes of a new buffer were not asked for.  Before it is put. */
void casync_cache_buffer_read_ahead(struct casync_cache_buffer *buf,
				    uint32_t bytes);

/** A READ has asked for some bytes; the lock of the file is held. */
void casync_cache_buffer_asked(struct casync_cache_buffer *buf, uint32_t bytes);

/** The class of buffers for this many bytes, 1 to CASYNC_CACHE_BUFFER_MAX. */
unsigned int casync_cache_class_of(uint32_t bytes);

/** Bytes of a buffer of this class. */
uint32_t casync_cache_class_bytes(unsigned int size_class);

/**
 * Take a free buffer, or map one, within the budget.  Evicts nothing.
 *
 * @return With one reference; NULL if the budget has no room, or memory fails.
 */
struct casync_cache_buffer *casync_cache_buffer_take(unsigned int share,
						     uint32_t length);

/** Give a free buffer's pages to the kernel.  @return false: there is none. */
bool casync_cache_buffer_trim(void);

/** All of them, after the budget was lowered. */
void casync_cache_buffer_trim_all(void);

/** Bytes of free buffers that are in memory. */
uint64_t casync_cache_buffer_warm(void);

#endif /* CASYNC_CACHE_BUFFER_H */
