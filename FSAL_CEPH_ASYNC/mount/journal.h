/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file journal.h
 * @brief Asks the MDS to write its journal soon after a name was changed.
 *
 * There are two reasons.  Until the MDS has written it, the name is lost if MDS
 * and gateway die (docs/durability.md, Names).  And an MDS
 * that writes at its tick (5 s) finishes hundreds of requests in one go, and
 * answers no new one meanwhile: seen with 20.2.4 as CREATEs that waited for
 * 40 ms and more beside stable writes that never ask the MDS.
 *
 * A job of the mount's metadata lane asks, with one question under way at a
 * time; no request waits for it.  A question goes to the ranks that know of one
 * directory, so with several active MDS it has to be put for each directory.
 */
#ifndef CASYNC_JOURNAL_H
#define CASYNC_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"

struct casync_mount;

/** From the first change to the questions, if none is under way: the changes of
 * this time share them. */
#define CASYNC_JOURNAL_MS 20

/** A new file's first WRITE or SETATTR waits for the journal too.  So the
 * question for a new file comes at once, unless more names than these were
 * changed meanwhile: many questions cost the MDS CPU. */
#define CASYNC_JOURNAL_FEW 2

/** Directories that can wait to be asked about, for the ranks they belong to.
 * While so many wait, a further one is left out: the names in it may wait for
 * the MDS' own tick, unless its rank has one of the others too. */
#define CASYNC_JOURNAL_DIRECTORIES 8

/** Embedded in the mount; zero at first. */
struct casync_journal {
	struct casync_work work;
	/** The job waits for its time, is queued, or runs; atomic. */
	bool under_way;
	/** A directory was noted since the job looked last; atomic. */
	bool pending;
	/** Names changed since the job looked last; atomic. */
	uint32_t names;
	/** One of them is a new file; atomic. */
	bool new_file;
	/** Inode numbers of directories that were changed and not asked about;
	 * 0: none; atomic. */
	uint64_t changed[CASYNC_JOURNAL_DIRECTORIES];
	unsigned int first; /**< Where a pass begins; the job's own. */
};

/**
 * A name in a directory was changed.  It never waits.
 *
 * @param[in] ino       Of the directory.
 * @param[in] new_file  A file was made, whose data may soon come.
 */
void casync_journal_changed(struct casync_mount *mount, uint64_t ino,
			    bool new_file);

#endif /* CASYNC_JOURNAL_H */
