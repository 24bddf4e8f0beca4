/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file room.h
 * @brief Places for threads that wait for Ceph, and a queue for a place.
 *
 * A room does not know its size: who enters says how many may be inside.  A
 * thread that finds it full waits until another one leaves.  If none has left
 * with an answer for a while, it is turned away: the NFS client is asked to
 * retry then.  So a room that makes progress turns nobody away, and one that
 * does not keeps no thread for long.
 *
 * budget.h says how many may enter.
 */
#ifndef CASYNC_ROOM_H
#define CASYNC_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/** A room that was empty for so long was idle. */
#define CASYNC_ROOM_IDLE_MS 100

/** Embedded in the object, export or mount; zero at first.  All members are
 * atomic. */
struct casync_room {
	uint32_t inside;
	uint32_t sleepers; /**< Waiting for a place. */
	uint32_t left;	   /**< Changes when a sleeper shall look; a futex. */
	/** Since the room was idle.  Of a file: its answers.  Of a mount: 1 if
	 * its MDS has answered the keeper. */
	uint32_t answers;
	/** When a thread last left with an answer, or the first one entered;
	 * CLOCK_MONOTONIC. */
	uint64_t progress_ns;
};

/**
 * Enter if there is a place now; never wait.
 *
 * @param[in] most  How many may be inside then.
 *
 * @return true: casync_room_leave() must be called.
 */
bool casync_room_try(struct casync_room *room, uint32_t most);

/** Enter, or wait for a place.  False: the room was full, and there was no
 * progress for @p patience_ms. */
bool casync_room_enter(struct casync_room *room, uint32_t most,
		       uint32_t patience_ms);

/** @param[in] answered_ns  The time, or 0: Ceph has not answered, so this is no
 *			    progress. */
void casync_room_leave(struct casync_room *room, uint64_t answered_ns);

/** For who decides anew how many may enter: read it before the decision. */
static inline uint32_t casync_room_left(const struct casync_room *room)
{
	return __atomic_load_n(&room->left, __ATOMIC_SEQ_CST);
}

/**
 * Wait until a thread has left, or until all were woken, since LEFT was read.
 *
 * @param[in] most  So many were inside when the try failed, or it would not
 *		    have failed with fewer.
 *
 * @return false: there was no progress for @p patience_ms, so do not try again.
 */
bool casync_room_sleep(struct casync_room *room, uint32_t left, uint32_t most,
		       uint32_t patience_ms);

/** More may be inside from now on: have all who wait try again. */
void casync_room_wake_all(struct casync_room *room);

#endif /* CASYNC_ROOM_H */
