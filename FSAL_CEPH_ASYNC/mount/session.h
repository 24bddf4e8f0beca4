/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file session.h
 * @brief Notices by answers of libcephfs that a CephFS session is lost.
 *
 * libcephfs does not report an eviction or a blocklisting.  The next caller
 * gets an error.  Usually that is a GETATTR or an OPEN, before any READ or
 * WRITE.  So the answers to these are watched too.
 */
#ifndef CASYNC_SESSION_H
#define CASYNC_SESSION_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "errors.h"
#include "fsal_types.h"
#include "guard.h"

struct casync_mount;

/** The values of the metric.  0: the export was removed, its series stays. */
enum casync_session_state {
	CASYNC_SESSION_NONE,
	CASYNC_SESSION_SERVES,
	CASYNC_SESSION_LOST,
};

/** The figures of a mount's sessions; its exports point to it.  Atomic members
 * are loaded and stored relaxed. */
struct casync_session {
	char *client; /**< A name: user@filesystem:path. */
	/** How often a new client took the place of a lost one; atomic. */
	uint64_t reconnects;
	/** From the loss to the first request served, the last time; atomic. */
	uint64_t reconnect_ms;
	/** Byte-range locks that could not be taken again; atomic. */
	uint64_t locks_lost;
};

/** Does this errno mean that the session is lost? */
static inline bool casync_session_error(int error)
{
	return error == CASYNC_EBLOCKLISTED || error == ENOTCONN;
}

/** Is the session lost?  It is until another one serves. */
static inline enum casync_session_state
casync_session_state(const struct casync_guard *guard)
{
	return casync_guard_phase(guard) == CASYNC_GUARD_SERVES
		       ? CASYNC_SESSION_SERVES
		       : CASYNC_SESSION_LOST;
}

/** Does the keeper bring a lost session back? */
bool casync_session_comes_back(struct casync_mount *mount);

/**
 * Note an answer of libcephfs: does it show that the session is lost?  Then no
 * request enters any more, and the keeper is woken.  Takes the lock of the
 * keeper's thread.
 *
 * @param[in] error  A positive errno; 0: success, which tells nothing: it may
 *                   come from memory.
 */
void casync_session_note_error(struct casync_mount *mount, int error);

/** Note an answer, as the keeper.  The keeper is not woken: it has its pause
 * before a session that is lost again is replaced.  @return Did the answer show
 * the loss first? */
bool casync_session_note_loss(struct casync_mount *mount, int error);

/**
 * Make the answer to a request.
 *
 * If the session is lost and comes back, the client is asked to retry: nothing
 * that the lost client has said holds.  An error that may come from a loss
 * which nobody has noticed yet is treated in the same way, until the keeper has
 * looked.
 *
 * @param[in] status          As made of libcephfs' result: the minor is its
 *                            errno.
 * @param[in] file_has_locks  Clients hold byte-range locks on the file: an
 *                            I/O error may come from a loss.
 */
fsal_status_t casync_session_answer(struct casync_mount *mount,
				    fsal_status_t status, bool file_has_locks);

#endif /* CASYNC_SESSION_H */
