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
 * So the first export that finds such an MDS ends the sessions of all exports.
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
 * End their sessions.  It works once in the life of the process, and only
 * before the first mount: later the sessions would be our own.
 *
 * It waits for the MDS, params->timeout_s for each session.
 *
 * @param[in] params  Of the export that mounts first.
 */
void casync_stale_sessions_end_all(const struct casync_mount_params *params);

/** Forget the identities: a mount exists, or is about to. */
void casync_stale_sessions_forget(void);

#endif /* CASYNC_STALE_SESSIONS_H */
