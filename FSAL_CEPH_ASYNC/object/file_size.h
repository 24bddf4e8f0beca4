/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file file_size.h
 * @brief What is known of a file's size, and how much of it the MDS has.
 *
 * Three sizes.  The hint is a size the file is known to have had.  A read that
 * got all it asked for and ends below it is not at EOF, so the common case
 * needs no getattr.  Another client's truncate can leave the hint too large:
 * then a read that ends exactly at the new end says "not EOF", and the next
 * read says it.  A short read never trusts the hint.
 *
 * The end of what we have written tells whether a COMMIT has anything to
 * cover.  The flushed size is what the MDS has journaled: a write past it has
 * grown the file.
 *
 * Any thread; libcephfs is not called.
 */
#ifndef CASYNC_FILE_SIZE_H
#define CASYNC_FILE_SIZE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_object;

struct casync_file_size {
	pthread_mutex_t lock; /**< A leaf. */
	uint64_t hint;	      /**< Atomic, relaxed. */
	/** Journaled by the MDS, as far as we know (atomic). */
	uint64_t flushed;
	uint64_t written_end; /**< End of what we have written. */
	bool truncated;	      /**< Since the flush under way began. */
	/** When somebody else was last seen to have made the file shorter;
	 * CLOCK_MONOTONIC, 0 never (atomic). */
	uint64_t shrunk_ns;
	/** Counts writes and truncates: a size that was asked for before one
	 * of them and arrives after it is old. */
	uint64_t generation;
};

/** "Nothing known": every write then counts as having grown the file. */
#define CASYNC_FLUSHED_UNKNOWN 0

void casync_file_size_init(struct casync_file_size *size);
void casync_file_size_destroy(struct casync_file_size *size);

/** The hint. */
uint64_t casync_file_size_hint(const struct casync_object *obj);

/** Set the hint: the attributes of a new object. */
void casync_file_size_set(struct casync_object *obj, uint64_t size_bytes);

/** To be taken before a size is asked for. */
uint64_t casync_file_size_generation(struct casync_object *obj);

/**
 * A size came from Ceph: remember it, unless a write or truncate has made it
 * old.  Smaller than what is known, it shows somebody else's truncate.
 */
void casync_file_size_seen(struct casync_object *obj, uint64_t size_bytes,
			   uint64_t generation);

/** The size was set: what is written past it again has grown the file. */
void casync_file_size_truncated(struct casync_object *obj, uint64_t size_bytes);

/** A write up to there was done: the file is that long, and a COMMIT has to
 * cover it. */
void casync_file_size_written(struct casync_object *obj, uint64_t end_bytes);

/**
 * Has somebody else made the file shorter in the last minute?  Then it is
 * likely to happen again, and the hint is not to be relied on.
 */
bool casync_file_size_shrunk(struct casync_object *obj);

/** Has the file grown past what the MDS has journaled? */
bool casync_file_size_grown(struct casync_object *obj, uint64_t end_bytes);

/** Has anything grown the file since its last flush? */
bool casync_file_size_pending(struct casync_object *obj);

/**
 * A metadata flush begins.
 *
 * @return The end of what it covers.
 */
uint64_t casync_file_size_flush_begins(struct casync_object *obj);

/**
 * It has ended well.  What has grown meanwhile is not covered, nor what was
 * cut off and has grown again.
 *
 * @param[in] end_bytes  What casync_file_size_flush_begins() returned.
 */
void casync_file_size_flushed(struct casync_object *obj, uint64_t end_bytes);

#endif /* CASYNC_FILE_SIZE_H */
