/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file session.h
 * @brief Is a mount's CephFS session still there, as far as answers tell?
 *
 * libcephfs tells nobody that it was evicted or blocklisted; whoever asks
 * next is told.  Mostly that is a GETATTR or an OPEN, before any READ or
 * WRITE comes to pass, so these are listened to as well.
 */
#ifndef CASYNC_SESSION_H
#define CASYNC_SESSION_H

#include <errno.h>
#include <stdbool.h>

#include "errors.h"

/** As shown.  What is not there is 0: an export's series outlives it. */
enum casync_session_state {
	CASYNC_SESSION_NONE,
	CASYNC_SESSION_SERVES,
	CASYNC_SESSION_LOST,
};

/** A mount's; its exports point to it. */
struct casync_session {
	char *client; /**< Whose it is: user@filesystem:path. */
	bool lost;    /**< Atomic. */
};

/** Does the errno of an answer mean that the session is gone? */
static inline bool casync_session_error(int error)
{
	return error == CASYNC_EBLOCKLISTED || error == ENOTCONN;
}

/**
 * libcephfs has answered so.
 *
 * @param[in] error  A positive errno; 0 for success of a call that went, or
 *                   would have gone, through the session.
 */
static inline void casync_session_heard(struct casync_session *session,
					int error)
{
	bool lost = casync_session_error(error);

	/* Another error says nothing of the session. */
	if (error != 0 && !lost)
		return;
	/* A line that all share is written to only when it changes. */
	if (__atomic_load_n(&session->lost, __ATOMIC_RELAXED) != lost)
		__atomic_store_n(&session->lost, lost, __ATOMIC_RELAXED);
}

static inline enum casync_session_state
casync_session_state(const struct casync_session *session)
{
	return __atomic_load_n(&session->lost, __ATOMIC_RELAXED)
		       ? CASYNC_SESSION_LOST
		       : CASYNC_SESSION_SERVES;
}

#endif /* CASYNC_SESSION_H */
