/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file read_cache.h
 * @brief READs that the read cache (cache.h) answers, and those that fill it.
 *
 * **The revalidation.**  Each READ that may be cached first asks libcephfs for
 * size, times and change attribute.  While the capabilities are ours, libcephfs
 * answers from memory.  Its answer is the tag of the file's version.  With
 * the same tag as the pages, the READ is answered from them.
 *
 * **Why that is enough.**  The change attribute alone is not: when a writer
 * takes over from us, it may count up from an old value and reach ours again.
 * So these rules apply, too:
 *
 *	C1  Only a version that has settled is cached: its ctime is
 *	    CASYNC_CACHE_SETTLE_MS old, by our clock.  A write after the
 *	    revalidation then has a later ctime, unless clocks differ by more.
 *	    A step of our clock to the front is not believed for
 *	    CASYNC_CACHE_DOUBT_MS: it would let younger versions look settled.
 *	    libcephfs' ctime is the later one of ctime and mtime, so a time in
 *	    the future is never cached.
 *	C2  The ctime is in the tag.  Nobody can set it back.
 *	C3  With the session lost, nothing is cached or answered from the
 *	    cache.  The tag has the number of the mount's client.
 *	C4  All that we change ourselves is announced, from before it is
 *	    submitted until it was answered or has failed: WRITE, SETATTR,
 *	    O_TRUNC, DEALLOCATE.  The objects that a file has in several
 *	    exports of a mount share what is known here (object_table.h).
 *	    LINK, RENAME, REMOVE and extended attributes are announced, too:
 *	    they change the version, and that looks like a change by
 *	    somebody else.
 *
 * **Bypass.**  While others write or read the file as well, the revalidation
 * goes to the MDS, and takes capabilities from them.  One for each READ would
 * ruin both sides.  So READs of a file do without until its version has settled
 * (C1), for a while after a change by somebody else, and where revalidations
 * take longer than READs of the OSDs.
 * A READ without the cache is coherent by itself.
 *
 * **The reply.**  Ganesha's contract for a READ (9.14), as far as it matters:
 * it gives one iovec, a buffer of malloc in it, and the function that frees it.
 * We may put another buffer and function there; the reply is sent from it, and
 * then Ganesha calls the function once, on any thread, with data that must not
 * be NULL.  Sizes that XDR has to pad are padded elsewhere.  There are three
 * exceptions, in which the bytes are copied instead:
 *
 *	RPCSEC_GSS	krb5p encrypts the reply in place (gss_wrap_iov), which
 *			would destroy the cached pages
 *	RDMA		the reply has to be in the transport's memory
 *	callers' own	9P, and Ganesha itself, read into memory of theirs
 *
 * And a hit of several buffers is copied: the array of iovecs would have to
 * outlive the release, because Ganesha's list of replies may look at it.
 */
#ifndef CASYNC_READ_CACHE_H
#define CASYNC_READ_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "cache.h"
#include "read_ahead.h"

struct casync_call;
struct casync_object;
struct casync_op;

/**
 * How old a version must be to be cached.  It has to be more than two hosts'
 * clocks differ, and the tick by which kernels stamp files (10 ms).  With NTP
 * 2 s are ample.
 */
#define CASYNC_CACHE_SETTLE_MS 2000

/** A step of the wall clock, and for how long one to the front is not believed.
 * A wrong clock is put right by then, or it is as if the gateway had started
 * with it. */
#define CASYNC_CACHE_STEP_MS 500
#define CASYNC_CACHE_DOUBT_MS 120000

/**
 * The time that C1 goes by.
 *
 * @param[in] wall_ns    CLOCK_REALTIME.
 * @param[in] steady_ns  CLOCK_MONOTONIC, taken together with it.
 *
 * @return The wall clock; after a step to the front, the time without the step.
 */
uint64_t casync_read_cache_now_ns(uint64_t wall_ns, uint64_t steady_ns);

/** How long a file that others change does without the cache. */
#define CASYNC_CACHE_BYPASS_MS 5000

/** How long a file does without the cache if its revalidations take longer than
 * its READs of the OSDs. */
#define CASYNC_CACHE_COSTLY_BYPASS_MS 1000

/** READs of one file that may wait for a revalidation.  They are few, because a
 * READ can do without. */
#define CASYNC_CACHE_REVALIDATIONS 32

/** A cached file; all objects of it in a mount share this. */
struct casync_cached_file {
	struct casync_cache_file file;
	struct casync_read_ahead ahead;
	uint64_t place; /**< In its last listing (listing_order.h); atomic. */
	uint64_t bypass_until_ns; /**< Atomic; CLOCK_MONOTONIC. */
	/* How long they took lately; atomic.  Both wait for libcephfs' lock and
	 * for a CPU, so a busy machine does not change which one is longer. */
	uint64_t revalidation_ns;
	uint64_t read_ns;
	/** The last revalidation that was learned from. */
	uint64_t learned_ns;
};

/** A READ that fills a buffer of the cache. */
struct casync_fill {
	struct casync_cache_buffer *buffer;
	struct casync_cache_tag tag;
	uint64_t epoch;
	/** Of the request; the rest is for the page, or read ahead. */
	struct casync_range wanted;
	bool shares;	  /**< The reply may be sent from the buffer. */
	struct iovec iov; /**< The memory to read into. */
};

/**
 * Look a READ up, after all checks, on the worker of Ganesha's that brought it,
 * before it is laid out.  May wait for the MDS.
 *
 * @param[in,out] slot  Holds nothing before.  After a revalidation it holds the
 *			mount's slot, for casync_submit_read().
 *
 * @return true: it was a hit, end the op.  false: go on; op->fill and the op's
 *         offset and length may have been set for a fill.
 */
bool casync_read_cache_find(struct casync_op *op, struct casync_call *slot);

/** The outcome of a READ is known: offer the data of a fill to the
 * cache, and answer from them. */
void casync_read_cache_end_read(struct casync_op *op);

/** The last object of a file goes; NULL does nothing. */
void casync_read_cache_free(struct casync_cached_file *cached);

#endif /* CASYNC_READ_CACHE_H */
