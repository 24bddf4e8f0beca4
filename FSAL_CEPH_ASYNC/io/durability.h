/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file durability.h
 * @brief When a WRITE may be acknowledged, as one pure function.
 *
 * What each mode promises, and why it holds: docs/durability.md.
 */
#ifndef CASYNC_DURABILITY_H
#define CASYNC_DURABILITY_H

#include <stdbool.h>

/** Stable_Write of an export. */
enum casync_stable_write {
	/** Data committed on the OSDs; size and mtime are recoverable. */
	CASYNC_STABLE_DATA,
	/** And the metadata journaled by the MDS if the file has grown. */
	CASYNC_STABLE_FDATASYNC,
	/** And the metadata journaled by the MDS, always (FSAL_CEPH). */
	CASYNC_STABLE_FULL,
};

/** All that the decision depends on. */
struct casync_durability_in {
	enum casync_stable_write mode;
	bool stable_wanted;    /**< FILE_SYNC or DATA_SYNC was asked for. */
	bool promote_unstable; /**< Promote_Unstable. */
	bool object_cache;     /**< Client_OC: a write's ack is not a commit. */
	bool grown; /**< The file ends past what the MDS has journaled. */
};

/** What to do with the write. */
struct casync_durability {
	/** ceph_ll_io_info.fsync; syncdataonly goes with it, always. */
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
