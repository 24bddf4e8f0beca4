/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "durability.h"

/* Does a stable answer in this mode need the MDS to journal something? */
static bool durability_metadata_needed(enum casync_stable_write mode,
				       bool grown)
{
	switch (mode) {
	case CASYNC_STABLE_DATA:
		return false;
	case CASYNC_STABLE_FDATASYNC:
		return grown;
	case CASYNC_STABLE_FULL:
		break;
	}
	return true;
}

struct casync_durability
casync_durability_of_write(const struct casync_durability_in *in)
{
	struct casync_durability out = {false, false, false};
	bool flush = durability_metadata_needed(in->mode, in->grown);

	/*
	 * An UNSTABLE write is promoted only where that is free: its data
	 * are committed when libcephfs answers (no object cache) and the
	 * mode wants no flush for it.
	 */
	out.stable_answer = in->stable_wanted || (in->promote_unstable &&
						  !in->object_cache && !flush);

	if (!out.stable_answer)
		return out;

	/*
	 * Without the object cache the completion of the write is the OSDs'
	 * commit.  libcephfs' fsync step would only wait for every other
	 * write on the inode, and make convoys of them (937 against 2323
	 * IOPS with 128 in flight on a slow backend).
	 */
	out.fsync = in->object_cache;
	out.flush = flush;
	return out;
}

bool casync_durability_commit_flushes(enum casync_stable_write mode,
				      bool object_cache, bool grown)
{
	return object_cache || durability_metadata_needed(mode, grown);
}
