/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file file_size.h
 * @brief Knows a file's size, and how much of it the MDS has.
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
 *
 * **Truncations.**  A file has a pointer to a counter of the mount (upcalls.h).
 * Our own truncations are counted when they begin and when they end, so that
 * the counter also tells whether one is under way.  libcephfs tells of another
 * client's (and of ours once more) on a thread of its own, a moment after it
 * has learned of it.  That thread takes no lock of ours: it adds to the
 * counter.
 *
 *	1  A size is the hint for one value of the counter, `hint_count`.  This
 *	   value was loaded before Ceph was asked for the size: the size is
 *	   dropped if the counter has changed when it arrives, or if one of our
 *	   truncations is under way then.
 *	2  A READ loads the counter.  Then it looks whether the hint is
 *	   too old, which it is if the counter is not `hint_count`.  Then it
 *	   loads the hint.
 *	3  When the answer of libcephfs is there, it loads the counter again.
 *	4  A WRITE loads the counter before it is submitted.  Its end becomes
 *	   the hint only if the counter is the same when it was answered.
 *
 * A truncation that was counted before step 2 began: the counter is not
 * `hint_count`, until a size is there that was asked for later.  That size is
 * stored before `hint_count` (release), and loaded after it (acquire).  So a
 * READ never uses a size from before such a truncation.  A truncation that is
 * counted between the steps 2 and 3 makes the counter differ, and the answer is
 * looked at again (repair.h).  The loads of step 2 cannot be swapped, because
 * each of the first two is an acquire.
 *
 * Two gaps are left.  libcephfs tells of another client's truncation a moment
 * after it has learned of it: a READ that is answered in this moment is not
 * done again.  And the size from which an object begins is taken without the
 * rule of step 1: if the file is shortened in this moment, the hint is too
 * large until the next size comes.
 *
 * Files with the same counter (there are CASYNC_UPCALLS_TRUNCATIONS for each
 * mount) share their truncations.  A truncation of another file costs a file
 * what one of its own would: its READs in flight are done again, the next one
 * asks for the size, and zeros that end a blocking READ are read twice for a
 * minute.  Nothing that a client sees depends on it.
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
	/** Counts truncations; atomic.  It outlives the file. */
	uint64_t *truncations;
	/** *truncations, when the hint was right (atomic). */
	uint64_t hint_count;
	/** When a size was learned after a truncation was counted (atomic). */
	uint64_t truncated_ns;
	/** Counts writes and truncations: a size is old if it was asked for
	 * before one of them and arrives after it. */
	uint64_t generation;
};

/** Nothing is known: then every write counts as one that grew the file. */
#define CASYNC_FLUSHED_UNKNOWN 0

/**
 * The steps of the counter.  Each one makes it larger.  The lowest 16 bits
 * are the truncations of ours that are under way, the highest 24 those that
 * libcephfs has told of.
 */
enum {
	CASYNC_TRUNCATION_BEGINS = 1,
	CASYNC_TRUNCATION_ENDS = 0xffff,
};
#define CASYNC_TRUNCATION_TOLD (1ULL << 40)

/** @param[in] truncations  Where the file's truncations are counted. */
void casync_file_size_init(struct casync_file_size *size,
			   uint64_t *truncations);
void casync_file_size_destroy(struct casync_file_size *size);

/** The hint. */
uint64_t casync_file_size_hint(const struct casync_file_size *size);

/** Set the hint, from the attributes of a new object. */
void casync_file_size_set(struct casync_file_size *size, uint64_t size_bytes);

/** Call it before a size is asked for. */
uint64_t casync_file_size_changes(struct casync_file_size *size);

/**
 * A size came from Ceph: remember it, unless a write or truncation has made it
 * old.  If it is smaller than the known size, another client has truncated the
 * file.
 */
void casync_file_size_update(struct casync_file_size *size, uint64_t size_bytes,
			     uint64_t generation);

/** We are about to set the size.  @return For what tells its end. */
uint64_t casync_file_size_truncates(struct casync_file_size *size);

/**
 * The size was set: a later write past it grows the file.
 *
 * It is the hint, unless another truncation was counted meanwhile: then nobody
 * knows which of them came last.
 */
void casync_file_size_truncated(struct casync_file_size *size, uint64_t begun,
				uint64_t size_bytes);

/** The size was not set, as far as we know. */
void casync_file_size_not_truncated(struct casync_file_size *size);

/**
 * A write up to @p end_bytes was done: a COMMIT has to cover it.  The file is
 * at least that long, unless a truncation was counted meanwhile.
 *
 * @param[in] truncations  The counter, before the write was submitted.
 */
void casync_file_size_written(struct casync_file_size *size, uint64_t end_bytes,
			      uint64_t truncations);

/** The counter of truncations. */
uint64_t casync_file_size_truncations(const struct casync_file_size *size);

/** Is the file being truncated, or was it since the counter was @p count?  A
 * READ that began then may have got zeros for data (repair.h). */
bool casync_file_size_truncated_since(const struct casync_file_size *size,
				      uint64_t count);

/** Has libcephfs told of a truncation since the counter was @p count? */
bool casync_file_size_told_since(const struct casync_file_size *size,
				 uint64_t count);

/** Was a truncation counted since the hint was right, or is one under way?
 * Then the hint is used again when a size has come from Ceph, and not before.
 */
bool casync_file_size_is_truncated(const struct casync_file_size *size);

/**
 * Must the hint not be used?  A truncation was counted since it was right, or
 * another client has shortened the file in the last minute, and is likely to do
 * so again.  Load the hint after this.
 */
bool casync_file_size_is_unknown(const struct casync_file_size *size);

/** Did anybody shorten the file in the last minute? */
bool casync_file_size_truncated_recently(const struct casync_file_size *size);

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
 * @param[in] end_bytes  The result of casync_file_size_flush_begins().
 */
void casync_file_size_flushed(struct casync_file_size *size,
			      uint64_t end_bytes);

#endif /* CASYNC_FILE_SIZE_H */
