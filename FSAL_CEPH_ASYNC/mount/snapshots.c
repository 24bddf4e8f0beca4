/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "snapshots.h"

/* A leaf. */
static pthread_mutex_t snapshots_lock = PTHREAD_MUTEX_INITIALIZER;

void casync_snapshots_note(struct casync_snapshots *snapshots, uint64_t snapid,
			   uint64_t ino)
{
	uint64_t place = snapid % CASYNC_SNAPSHOTS_MAX;

	pthread_mutex_lock(&snapshots_lock);
	if (snapshots->folders[place].snapid != snapid) {
		snapshots->folders[place].snapid = snapid;
		snapshots->folders[place].ino = ino;
	}
	pthread_mutex_unlock(&snapshots_lock);
}

uint64_t casync_snapshots_folder(struct casync_snapshots *snapshots,
				 uint64_t snapid)
{
	uint64_t place = snapid % CASYNC_SNAPSHOTS_MAX;
	uint64_t ino = 0;

	pthread_mutex_lock(&snapshots_lock);
	if (snapshots->folders[place].snapid == snapid)
		ino = snapshots->folders[place].ino;
	pthread_mutex_unlock(&snapshots_lock);
	return ino;
}
