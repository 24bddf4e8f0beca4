/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file durability.h
 * @brief Decides when a WRITE may be acknowledged: pure functions.
 *
 * docs/durability.md says what each mode promises and why the promise holds.
 */
#ifndef CASYNC_DURABILITY_H
#define CASYNC_DURABILITY_H

#include <stdbool.h>

/** Stable_Write of an export. */
enum casync_stable_write {
	/** Data committed on the OSDs; size and mtime are recoverable. */
	CASYNC_STABLE_DATA,
	/** As DATA; the MDS has journaled the metadata if the file grew. */
	CASYNC_STABLE_FDATASYNC,
	/** As DATA; the MDS has always journaled the metadata (FSAL_CEPH). */
	CASYNC_STABLE_FULL,
};

/** Stable_Metadata of an export: when a changed name, or a SETATTR of owner,
 * mode or times, is acknowledged. */
enum casync_stable_metadata {
	CASYNC_METADATA_MDS,	 /**< The MDS has it. */
	CASYNC_METADATA_JOURNAL, /**< The MDS has journaled it. */
};

/** The input of the decision. */
struct casync_durability_in {
	enum casync_stable_write mode;
	bool stable_wanted;    /**< FILE_SYNC or DATA_SYNC was asked for. */
	bool promote_unstable; /**< Promote_Unstable. */
	bool object_cache;     /**< Client_OC: a write's ack is not a commit. */
	bool grown; /**< The file ends past what the MDS has journaled. */
};

/** The decision: what to do with the write. */
struct casync_durability {
	/** ceph_ll_io_info.fsync; syncdataonly is always set with it. */
	bool fsync;
	/** Flush the metadata on a worker before the reply. */
	bool flush;
	/** Answer FILE_SYNC. */
	bool stable_answer;
};

/** Decide for a WRITE. */
struct casync_durability
casync_durability_of_write(const struct casync_durability_in *in);

/**
 * Decide for a COMMIT.
 *
 * @return Whether the inode has to be flushed before the reply.
 */
bool casync_durability_commit_flushes(enum casync_stable_write mode,
				      bool object_cache, bool grown);

#endif /* CASYNC_DURABILITY_H */
