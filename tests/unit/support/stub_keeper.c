/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "mount.h"

/* The last file for which the session was to be ended; in the mount's keeper. */
void casync_keeper_end_session(struct casync_mount *mount, uint64_t ino)
{
	__atomic_store_n(&mount->keeper.unanswered_read_ino, ino,
			 __ATOMIC_RELEASE);
}

/* It was asked; the test is the MDS that answers. */
void casync_keeper_ask_mds(struct casync_mount *mount)
{
	__atomic_store_n(&mount->keeper.asked, true, __ATOMIC_RELEASE);
}
