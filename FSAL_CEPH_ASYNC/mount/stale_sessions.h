/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stale_sessions.h
 * @brief The sessions that all our exports had before gateway and MDS died.
 *
 * An MDS that starts keeps the sessions of those who said that they would be
 * back, and serves nobody until each of them has been taken over or has timed
 * out.  An export that takes over its own and then mounts would wait for the
 * sessions of the exports after it, which wait for it: after a power failure
 * four exports took three minutes each to fail.  So whoever is first to learn
 * of such an MDS ends the sessions of all.
 */
#ifndef CASYNC_STALE_SESSIONS_H
#define CASYNC_STALE_SESSIONS_H

#include "config_parsing.h"
#include "mount.h"

/** Remember the identities of all exports in the configuration, from which
 * their sessions' names are made.  At start-up; later calls do nothing. */
void casync_stale_sessions_note(config_file_t config, bool use_old_uuid);

/**
 * End their sessions, once in the life of the process and only while it has
 * nothing mounted: they would be our own.
 *
 * Waits for the MDS, params->timeout_s for each.
 *
 * @param[in] params  Of the export that came first.
 */
void casync_stale_sessions_end_all(const struct casync_mount_params *params);

/** Something is mounted, or is about to be. */
void casync_stale_sessions_forget(void);

#endif /* CASYNC_STALE_SESSIONS_H */
