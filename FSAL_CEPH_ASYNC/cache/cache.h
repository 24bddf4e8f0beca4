/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file cache.h
 * @brief The read cache of the process: data that READs have fetched.
 *
 * A READ that may be cached goes so:
 *
 *	1. casync_cache_get().  A hit: reply from the segments, and release
 *	   each when the reply was sent.  A miss: go on.
 *	2. casync_cache_epoch(), then casync_evict_new_buffer() for whole
 *	   pages.  NULL: a READ as without a cache.
 *	3. The READ into buffer->data.
 *	4. casync_cache_put() if it succeeded.  Refused or not, go on.
 *	5. Reply from the buffer, and casync_buffer_release().
 *
 * **Which version.**  All pages of a file are of one version, named by a tag:
 * the attributes that the caller compares.  A look-up by another tag drops all
 * pages.  The tag cannot show some changes, so these must be said here:
 *
 *	a write of ours		casync_cache_begin_write() before the WRITE is
 *				submitted, casync_cache_end_write() when it
 *				was answered
 *	any other change of ours	the same
 *	release of the object	casync_cache_forget()
 *
 * Each of these counts the file's epoch up.  A put brings the epoch from
 * before its READ, and is refused if it is not the same any more.
 *
 * **Why that is enough.**  Let a put be accepted.  It holds the file's lock and
 * sees the epoch that was loaded before its READ was submitted.  So no write
 * began or ended in between.  A write that ended earlier stored the epoch that
 * was loaded (or one before it): a release, and the load is an acquire.  So it
 * was answered before the READ was submitted, and the READ has its data.  A
 * write that begins later either sees pages, takes the lock after the put, and
 * drops what was put.  Or it sees none, and takes no lock; then it has counted
 * up before it looked.  A put of the first page makes it visible, and looks at
 * the counters again after that.  Both orders are sequentially consistent, so
 * one of the two sees the other, and the put takes its page back.
 * An epoch that was loaded too early is only too old: that put is refused.
 * While a write is under way there are no pages: none are put, so none are
 * found.
 *
 * **A look-up races with a write** like a READ that overlaps a WRITE: it has
 * the bytes from before it.  After casync_cache_begin_write() has returned, no
 * look-up finds them.
 *
 * No function here calls libcephfs or Ganesha, waits for Ceph, or aborts
 * without memory.  But all may free memory and take locks.  So call none from a
 * callback of libcephfs: only from Ganesha's threads and ours.  docs/threads.md
 * has the locks.
 */
#ifndef CASYNC_CACHE_H
#define CASYNC_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

/** A version of a file.  Opaque here: equal or not. */
struct casync_cache_tag {
	uint64_t change;
	uint64_t size;
	uint64_t mtime_ns;
	uint64_t ctime_ns;
	uint64_t generation; /**< Of the client. */
};

/**
 * A file, as the cache knows it; embedded in the object.  All zero is a file
 * that was never cached, and needs no other preparation.  Before it is freed:
 * casync_cache_forget().  It must not move.
 */
struct casync_cache_file {
	/** NULL: nothing is cached.  Under the file's lock, but for two: a
	 * look-up that sees NULL is a miss, which is never wrong; and
	 * casync_cache_begin_write(), see above. */
	struct casync_cache_index *index;
	uint64_t epoch;	  /**< Atomic. */
	uint32_t writers; /**< Atomic. */
	/** A look-up found pages of another tag, and dropped them.  Atomic. */
	bool outdated;
};

/**
 * Allocate a buffer in the budget; evicts for it.
 *
 * @param[in] owner   Whose share it counts for: the export's number.
 * @param[in] length  Whole pages, up to CASYNC_CACHE_BUFFER_MAX.
 *
 * @return With one reference, the data as the last user left them; NULL: the
 *         cache is off or full of what replies hold, the buffer would be more
 *         than a quarter of the budget, or there is no memory.
 */
struct casync_cache_buffer *casync_evict_new_buffer(uint16_t owner,
						    uint32_t length);

/** A part of a hit. */
struct casync_cache_segment {
	struct casync_cache_buffer *buffer; /**< The caller's reference. */
	const void *data;
	uint32_t bytes;
};

/**
 * Look up the bytes [offset, offset + length), of any alignment.
 *
 * @param[in]  tag          The file's version, as the caller knows it now.  If
 *                          the pages are of another, they are dropped.
 * @param[out] segments     In the order of the file.  A read that lies in one
 *                          buffer has one segment.  After a miss they mean
 *                          nothing.
 * @param[in]  max          Room for segments; a hit that needs more is a miss.
 * @param[out] end_of_file  The last segment ends at the file's end.  False may
 *                          also mean that the end is not known here.
 *
 * @return Segments, a reference on the buffer of each.  All bytes up to the
 *         file's end are there, or 0: a miss.  At and after the end of the
 *         file it is 0 too.
 */
unsigned int casync_cache_get(struct casync_cache_file *file,
			      const struct casync_cache_tag *tag,
			      uint64_t offset, uint64_t length,
			      struct casync_cache_segment *segments,
			      unsigned int max, bool *end_of_file);

/** The epoch for a put.  Load it before the READ is submitted. */
static inline uint64_t casync_cache_epoch(const struct casync_cache_file *file)
{
	return __atomic_load_n(&file->epoch, __ATOMIC_ACQUIRE);
}

/**
 * Offer what a READ has fetched.  The caller keeps its reference, and must not
 * write the data any more.  A buffer is offered once.
 *
 * @param[in] tag     The file's version, known when the READ was submitted.  A
 *                    file without pages takes it over; with pages of another
 *                    tag, the data are dropped.
 * @param[in] epoch   From casync_cache_epoch().
 * @param[in] offset  Of the READ: whole pages.
 * @param[in] valid   Bytes read.  Less than the buffer's length: the file ends
 *                    after them.  (So never offer a READ that is short for
 *                    another reason.)
 *
 * @return Whether the cache took it.
 */
bool casync_cache_put(struct casync_cache_file *file,
		      const struct casync_cache_tag *tag, uint64_t epoch,
		      uint64_t offset, uint32_t valid,
		      struct casync_cache_buffer *buf);

/**
 * Has a look-up dropped pages of another tag since the last call?  Then
 * somebody changed the file of whom begin_write and forget know nothing.
 */
bool casync_cache_was_outdated(struct casync_cache_file *file);

/** Drop all pages of a file, in constant time; refuse the data of READs that
 * are under way.  It is counted as a release. */
void casync_cache_forget(struct casync_cache_file *file);

/** A write begins: forget, and cache nothing until it ends.  Writes of a file
 * may overlap. */
void casync_cache_begin_write(struct casync_cache_file *file);

/** It was answered, or failed. */
void casync_cache_end_write(struct casync_cache_file *file);

/**
 * Set how many bytes the cache may have; 0: off, drop everything.  At once,
 * but for buffers of replies and of READs under way.  Several threads may call
 * it; the last one counts.
 */
void casync_cache_set_budget(uint64_t bytes);

/** Contents and counts of the cache, since the process began. */
struct casync_cache_stats {
	uint64_t budget_bytes;
	uint64_t used_bytes;   /**< All that counts (buffer.h). */
	uint64_t cached_bytes; /**< Of buffers that can be found or evicted. */
	uint64_t free_bytes;   /**< Of free buffers that stay in memory. */
	uint64_t hits;
	uint64_t misses;
	uint64_t hit_bytes;
	struct casync_cache_counts counts;
};

/** Each number is right by itself, and may be older than the next. */
void casync_cache_get_stats(struct casync_cache_stats *stats);

#endif /* CASYNC_CACHE_H */
