/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file guard.h
 * @brief Keeps a mount's libcephfs client in place while calls use it.
 *
 * A thread that calls libcephfs, or uses an Inode or an Fh, has entered the
 * guard.  The client is replaced only when nobody is inside.  So within the
 * guard the client and its generation do not change, and no call needs a lock.
 *
 * To enter costs one atomic addition to a cache line of this CPU, and so does
 * to leave.  The two may be on different CPUs.  It never waits.
 */
#ifndef CASYNC_GUARD_H
#define CASYNC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/**
 * The phase of a mount: it tells who may enter, and what others are answered.
 *
 *	phase		requests  UNLOCK  releases  others are answered
 *	SERVES		yes	  yes	  yes
 *	LOST		yes	  yes	  yes	    (requests get its errors)
 *	RESTORES	no	  yes	  yes	    ask again
 *	LEAVES		no	  no	  yes	    ask again
 *	CLOSED		no	  no	  no	    ask again
 *	GIVEN_UP	no	  no	  no	    EIO
 *	LEFT		no	  no	  no	    ask again
 *
 * These are all changes.  The first two are made by any thread, those to LEFT
 * by the thread that ends all exports, the others by the keeper.
 *
 *	SERVES -> LEAVES    an error shows the loss (session.h)
 *	SERVES -> LOST	    the same, and Reconnect is false
 *	LOST -> SERVES	    the session has come back by itself
 *	LOST -> LEAVES	    a reload has turned Reconnect on
 *	LEAVES -> LOST	    a reload has turned it off, just then
 *	LEAVES -> CLOSED    no request is inside any more
 *	CLOSED -> LEAVES    it was to leave READs behind, and there are none yet
 *	CLOSED -> RESTORES  a new client is there
 *	RESTORES -> SERVES  it has taken the locks of the last
 *	RESTORES -> LEAVES  it is lost too
 *	LEAVES, CLOSED -> GIVEN_UP  Reconnect_Timeout is over, or another
 *				    gateway keeps the mount's name
 *	SERVES -> LEFT	    Ganesha ends, and leaves the session (leave.h)
 *	RESTORES -> LEFT    the same, after the end of the keeper
 *
 * They are in the order of who may enter.
 */
enum casync_guard_phase {
	CASYNC_GUARD_SERVES,
	CASYNC_GUARD_LOST,
	CASYNC_GUARD_RESTORES,
	CASYNC_GUARD_LEAVES,
	CASYNC_GUARD_CLOSED,
	CASYNC_GUARD_GIVEN_UP,
	CASYNC_GUARD_LEFT,
};

/** By CPU.  It is padded, not aligned: calloc allocates a mount. */
struct casync_guard_shard {
	uint64_t entered; /**< Atomic. */
	uint64_t left;	  /**< Atomic. */
	char pad[48];
};

#define CASYNC_GUARD_SHARDS 16

/** Embedded in the mount; zero at first: it serves. */
struct casync_guard {
	struct casync_guard_shard shards[CASYNC_GUARD_SHARDS];
	uint32_t phase;	     /**< enum casync_guard_phase; atomic. */
	uint32_t generation; /**< Of the client; atomic. */
};

/**
 * Enter to make calls for a request.
 *
 * @return false: not now, the client must ask again.  Otherwise
 *	   casync_guard_leave() must be called, by any thread.
 */
bool casync_guard_enter(struct casync_guard *guard);

/**
 * Enter for what is still allowed in this phase, and in those before it: to
 * release an Inode or to close an Fh up to CASYNC_GUARD_LEAVES.
 *
 * @return false: it is not allowed any more.  If it was a release, the client
 *	   is about to end with all that it has open: there is nothing to
 *	   release.
 */
bool casync_guard_enter_up_to(struct casync_guard *guard,
			      enum casync_guard_phase phase);

void casync_guard_leave(struct casync_guard *guard);

/**
 * Change the phase, if it is @p from.  A request that is inside stays inside.
 * Nothing else changes it.
 *
 * @return false: it is another one, and stays.
 */
bool casync_guard_change(struct casync_guard *guard,
			 enum casync_guard_phase from,
			 enum casync_guard_phase to);

static inline enum casync_guard_phase
casync_guard_phase(const struct casync_guard *guard)
{
	return (enum casync_guard_phase)__atomic_load_n(&guard->phase,
							__ATOMIC_RELAXED);
}

/** Is nobody inside?  That stays so if it is closed. */
bool casync_guard_is_empty(const struct casync_guard *guard);

/** A new client has taken the place: what older ones had open is gone. */
void casync_guard_renew(struct casync_guard *guard);

/** Counts the clients of the mount.  Inodes and Fhs of another generation must
 * not be used.  It does not change while a request is inside. */
static inline uint32_t casync_guard_generation(const struct casync_guard *guard)
{
	return __atomic_load_n(&guard->generation, __ATOMIC_ACQUIRE);
}

#endif /* CASYNC_GUARD_H */
