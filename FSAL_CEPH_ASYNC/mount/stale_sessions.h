/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stale_sessions.h
 * @brief Ends the sessions that our exports left in an MDS before it restarted.
 *
 * An MDS that starts keeps the sessions of clients that announced a return.  It
 * serves no client until each of these sessions has been reclaimed or has timed
 * out.  Suppose an export reclaimed only its own session and then mounted: it
 * would wait for the sessions of the exports after it, and they wait for it.
 * After a power failure four exports took three minutes each to fail that way.
 * So an export that finds such an MDS ends the sessions of all exports of that
 * file system that have not been mounted yet.  Each mount of the process is
 * built for a session of its own, which is then no stale one any more.
 */
#ifndef CASYNC_STALE_SESSIONS_H
#define CASYNC_STALE_SESSIONS_H

#include "config_keys.h"
#include "config_parsing.h"
#include "mount.h"

/** Remember the identities of all exports in the configuration: the names of
 * their sessions follow from them.  For the start; later calls do nothing. */
void casync_stale_sessions_note(config_file_t config,
				const struct casync_module_keys *keys);

/**
 * An MDS has told that it was restarted: end the sessions that it may have.
 *
 * It waits for the MDS, params->timeout_s for each session.  Sessions whose
 * file system may be another one get less time.  After one that timed out, the
 * others of its file system are left for later.
 *
 * @param[in] filesystem  Of this MDS; NULL: the default one.
 * @param[in] params      Of the export that is being mounted.
 */
void casync_stale_sessions_end(const char *filesystem,
			       const struct casync_mount_params *params);

/**
 * A mount that exports share is about to be built.  With rados_cluster a former
 * run has left its sessions (leave.h).  If its exports had clients of their own
 * (Share_Client = false), these sessions have names that nobody has any more:
 * end them.  It waits for the MDS, as above.
 */
void casync_stale_sessions_end_former(const struct casync_identity *mount,
				      const struct casync_mount_params *params);

/** A mount with this session is about to be built: from now on it is ours. */
void casync_stale_sessions_forget(const char *uuid);

/** The plugin ends: free those that no MDS was asked for. */
void casync_stale_sessions_free(void);

#endif /* CASYNC_STALE_SESSIONS_H */
