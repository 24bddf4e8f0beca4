/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file file_size.h
 * @brief What is known of a file's size, and how much of it the MDS has.
 *
 * There are three sizes.
 *
 * The hint is a size that the file is known to have had.  A read that is
 * complete and ends below the hint is not at EOF.  So the common case needs no
 * getattr.  A truncation by another client can leave the hint too large.  Then
 * a read that ends exactly at the new end answers "not EOF", and the next read
 * answers EOF.  A short read never relies on the hint.
 *
 * The end of what we have written tells whether a COMMIT has anything to cover.
 *
 * The flushed size is what the MDS has journaled: a write past it has made the
 * file larger.
 *
 * Any thread may call; libcephfs is not called.
 */
#ifndef CASYNC_FILE_SIZE_H
#define CASYNC_FILE_SIZE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_file_size {
	pthread_mutex_t lock; /**< A leaf. */
	uint64_t hint;	      /**< Atomic, relaxed. */
	/** The size that the MDS has journaled, as far as we know (atomic). */
	uint64_t flushed;
	uint64_t written_end; /**< End of what we have written. */
	bool truncated;	      /**< Since the current flush began. */
	/** When another client was last seen to have shortened the file;
	 * CLOCK_MONOTONIC; 0: never (atomic). */
	uint64_t shrunk_ns;
	/** When anybody was last told to have shortened it (atomic). */
	uint64_t cut_ns;
	uint32_t cuts;	 /**< How often that was (atomic). */
	bool hint_stale; /**< Cut since the hint was right (atomic). */
	/** Counts writes and truncations: a size is old if it was asked for
	 * before one of them and arrives after it. */
	uint64_t generation;
};

/** Nothing is known: then every write counts as one that grew the file. */
#define CASYNC_FLUSHED_UNKNOWN 0

void casync_file_size_init(struct casync_file_size *size);
void casync_file_size_destroy(struct casync_file_size *size);

/** The hint. */
uint64_t casync_file_size_hint(const struct casync_file_size *size);

/** Set the hint, from the attributes of a new object. */
void casync_file_size_set(struct casync_file_size *size, uint64_t size_bytes);

/** Call it before a size is asked for. */
uint64_t casync_file_size_generation(struct casync_file_size *size);

/**
 * A size came from Ceph: remember it, unless a write or truncation has made it
 * old.  If it is smaller than the known size, another client has truncated the
 * file.
 */
void casync_file_size_seen(struct casync_file_size *size, uint64_t size_bytes,
			   uint64_t generation);

/** The size was set: a later write past it grows the file. */
void casync_file_size_truncated(struct casync_file_size *size,
				uint64_t size_bytes);

/** A write up to @p end_bytes was done: the file is at least that long, and a
 * COMMIT has to cover the write. */
void casync_file_size_written(struct casync_file_size *size,
			      uint64_t end_bytes);

/**
 * libcephfs has been told that somebody shortened the file: another client, or
 * we.  The hint is not used until a size comes from Ceph.
 */
void casync_file_size_cut(struct casync_file_size *size);

/** How often the file was cut.  A READ during which this changes may have got
 * zeros for data (repair.c). */
uint32_t casync_file_size_cuts(const struct casync_file_size *size);

/**
 * Must the hint not be used?  The file was cut since it was right, or another
 * client has shortened the file in the last minute, and is likely to do so
 * again.
 */
bool casync_file_size_doubtful(const struct casync_file_size *size);

/** Was the file cut or shortened by anybody in the last minute? */
bool casync_file_size_cut_lately(const struct casync_file_size *size);

/** Is @p end_bytes past the size that the MDS has journaled? */
bool casync_file_size_grown(const struct casync_file_size *size,
			    uint64_t end_bytes);

/** Has the file grown since its last flush? */
bool casync_file_size_pending(struct casync_file_size *size);

/**
 * A metadata flush begins.
 *
 * @return The end of the data that it covers.
 */
uint64_t casync_file_size_flush_begins(struct casync_file_size *size);

/**
 * A metadata flush has succeeded.  It does not cover growth that came
 * meanwhile, nor growth after a truncation that came meanwhile.
 *
 * @param[in] end_bytes  What casync_file_size_flush_begins() returned.
 */
void casync_file_size_flushed(struct casync_file_size *size,
			      uint64_t end_bytes);

#endif /* CASYNC_FILE_SIZE_H */
