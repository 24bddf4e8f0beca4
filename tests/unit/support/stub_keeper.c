/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "mount.h"

bool casync_reconnect_is_on(struct casync_mount *mount)
{
	(void)mount;
	return false;
}

/* Of a mount without a keeper: each answer stands. */
fsal_status_t casync_reconnect_answer(struct casync_mount *mount,
				      fsal_status_t status, bool file_has_locks)
{
	(void)file_has_locks;
	if (FSAL_IS_ERROR(status))
		casync_session_note_error(&mount->session, status.minor);
	return status;
}

/* The last file for which the session was to be ended; in the mount's keeper. */
void casync_reconnect_end_session(struct casync_mount *mount, uint64_t ino)
{
	__atomic_store_n(&mount->keeper.hung_ino, ino, __ATOMIC_RELEASE);
}

/* It was asked; the test is the MDS that answers. */
void casync_reconnect_ask_mds(struct casync_mount *mount)
{
	__atomic_store_n(&mount->keeper.asked, true, __ATOMIC_RELEASE);
}
