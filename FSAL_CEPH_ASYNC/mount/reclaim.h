/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reclaim.h
 * @brief How long a try to reclaim a session lasts, and what comes of those
 * that were too late.
 */
#ifndef CASYNC_RECLAIM_H
#define CASYNC_RECLAIM_H

struct casync_client;
struct casync_mount_params;

/**
 * Have the MDS end the session with this uuid.  It takes timeout_s of the
 * parameters at most; up to 2^5 times as long if earlier tries still run.
 *
 * @return As casync_deadline_call_reclaim().
 */
int casync_reclaim_in_time(struct casync_client *client,
			   const struct casync_mount_params *params,
			   const char *uuid);

/** Wait until earlier tries have returned, 5 s at most: they would end a
 * session that is made now. */
void casync_reclaim_wait_for_late(const struct casync_client *client);

#endif /* CASYNC_RECLAIM_H */
