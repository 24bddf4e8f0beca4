/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file snapshots.h
 * @brief Of each snapshot that was used, a folder in it.
 *
 * Nobody tells that a snapshot was removed, and its files stay usable.  But the
 * `.snap` of each folder that is in a snapshot lists it, as long as it exists.
 * A file does not know its folder, so the mount keeps one.
 */
#ifndef CASYNC_SNAPSHOTS_H
#define CASYNC_SNAPSHOTS_H

#include <stdint.h>

/** A mount may use more.  Of two with the same place one is kept. */
#define CASYNC_SNAPSHOTS_MAX 256

/** Embedded in the mount; zero at first. */
struct casync_snapshots {
	struct {
		uint64_t snapid;
		uint64_t ino; /**< 0: nothing is here. */
	} folders[CASYNC_SNAPSHOTS_MAX];
};

/** A folder of a snapshot was found.  The first one is kept: it is nearest to
 * where the snapshot was made, and lasts longest.  Any thread. */
void casync_snapshots_note(struct casync_snapshots *snapshots, uint64_t snapid,
			   uint64_t ino);

/** @return The number of a folder in the snapshot; 0: none is known. */
uint64_t casync_snapshots_folder(struct casync_snapshots *snapshots,
				 uint64_t snapid);

#endif /* CASYNC_SNAPSHOTS_H */
