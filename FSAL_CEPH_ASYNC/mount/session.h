/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file session.h
 * @brief Remembers whether answers show that a mount's CephFS session is lost.
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

/** The values of the metric.  0: the export was removed, its series stays. */
enum casync_session_state {
	CASYNC_SESSION_NONE,
	CASYNC_SESSION_SERVES,
	CASYNC_SESSION_LOST,
};

/** The session of a mount; its exports point to it.  Atomic members are
 * loaded and stored relaxed. */
struct casync_session {
	char *client; /**< A name: user@filesystem:path. */
	bool lost;    /**< Atomic. */
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

/**
 * Note an answer of libcephfs: does it show that the session is lost?
 *
 * @param[in] error  A positive errno; 0: success, which tells nothing: it may
 *                   come from memory.
 */
static inline void casync_session_note_error(struct casync_session *session,
					     int error)
{
	/* All CPUs share this cache line, so write only a change. */
	if (casync_session_error(error) &&
	    !__atomic_load_n(&session->lost, __ATOMIC_RELAXED))
		__atomic_store_n(&session->lost, true, __ATOMIC_RELAXED);
}

/** The session serves, or a new one is in its place. */
static inline void casync_session_restored(struct casync_session *session)
{
	__atomic_store_n(&session->lost, false, __ATOMIC_RELAXED);
}

static inline enum casync_session_state
casync_session_state(const struct casync_session *session)
{
	return __atomic_load_n(&session->lost, __ATOMIC_RELAXED)
		       ? CASYNC_SESSION_LOST
		       : CASYNC_SESSION_SERVES;
}

#endif /* CASYNC_SESSION_H */
