/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file state_calls.h
 * @brief Questions for the MDS while Ganesha holds the lock of a file's state.
 *
 * Ganesha holds it while it waits for LOCK, UNLOCK and the OPEN of a file that
 * is there.  Its reaper wants that lock to end the states of clients, and the
 * same thread begins and ends the grace period.  So no worker waits for the MDS
 * for longer than CASYNC_STATE_CALL_MS.  A thread of the mount makes the call,
 * and goes on with it when the worker has left.
 *
 * A worker may leave these:
 *
 *	LOCK	is answered "ask again".  If the MDS grants it later, it is
 *		given back, unless its owner had a lock in the range before:
 *		that one would go, too.
 *	UNLOCK	is answered "done".  Until it is, whoever meets the lock is to
 *		ask again, and so is a LOCK by the same owner.
 *	open	is answered "ask again".  The Fh is closed as soon as it is
 *		there.
 *
 * While a file has such a call, no worker waits for another one of that file.
 */
#ifndef CASYNC_STATE_CALLS_H
#define CASYNC_STATE_CALLS_H

#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <stdint.h>

struct casync_borrowed;
struct casync_object;
struct casync_state;

/** The longest wait for the MDS.  A slow one takes a second. */
#ifndef CASYNC_STATE_CALL_MS
#define CASYNC_STATE_CALL_MS 10000
#endif

/** Most calls that a mount leaves behind.  Further UNLOCKs are waited for. */
#define CASYNC_STATE_CALLS_LEFT 1024

/**
 * LOCK or UNLOCK, in a call that holds the client.
 *
 * @param[in]     fd     The Fh.  If it is no state's, the wait has no limit.
 * @param[in,out] fl     The lock; then a conflicting one, if any.
 *
 * @return 0; -EAGAIN: a conflict; -EINPROGRESS: a conflict with a lock that is
 *         on its way out; -ETIME: it is left, or others of the file are;
 *         another negative errno.
 */
int casync_state_calls_setlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner);

/** LOCKT.  The wait has no limit.  @return As casync_state_calls_setlk(). */
int casync_state_calls_getlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner);

/**
 * Open a file as root, in a call that holds the client.
 *
 * @return 0; -ETIME: it is left, or others of the file are; another negative
 *         errno.
 */
int casync_state_calls_open(struct casync_object *obj, int posix_flags,
			    struct Fh **fh);

/**
 * UNLOCK of the whole file, for a client that Ganesha has marked as expired:
 * nobody waits for it.  It keeps the Fh and the fd; the state is freed soon.
 */
void casync_state_calls_unlock_later(struct casync_state *st, uint64_t ino,
				     void *owner);

#endif /* CASYNC_STATE_CALLS_H */
