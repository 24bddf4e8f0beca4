/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file state_calls.h
 * @brief Questions for the MDS while Ganesha holds the lock of a file's state.
 *
 * Ganesha holds it while it waits for LOCK, UNLOCK and the OPEN of a file that
 * is there.  Its reaper wants that lock to end the states of clients, and the
 * same thread begins and ends the grace period.  So a thread of the mount makes
 * the call, and a worker waits for CASYNC_STATE_CALL_MS at most.  Then it
 * leaves the call, which is overdue:
 *
 *	LOCK	is answered "ask again", and given back if the MDS grants it
 *		later.
 *	UNLOCK	is answered "done".  Until it is, whoever meets the lock is to
 *		ask again.  UNLOCKs that follow are made after it, in order.
 *	open	is answered "ask again".  The Fh is closed when it is there.
 *
 * While a file has an overdue call, its LOCKs are to ask again at once.  An open
 * waits for 0.1 s, as it may need no MDS.  With 24 overdue calls a mount begins
 * no others; its workers that wait already may leave some more.
 *
 * Two LOCKs wait without a limit.  Linux gives a lock up whose reclaim is to be
 * asked again.  And to give back a lock in a range of which its owner has a part
 * would take that part, too.
 */
#ifndef CASYNC_STATE_CALLS_H
#define CASYNC_STATE_CALLS_H

#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_borrowed;
struct casync_object;
struct casync_state;

/** The longest wait for the MDS.  A slow one takes a second. */
#ifndef CASYNC_STATE_CALL_MS
#define CASYNC_STATE_CALL_MS 10000
#endif

/** Most UNLOCKs of a mount that follow overdue calls.  Further ones are made at
 * once. */
#define CASYNC_STATE_CALLS_LEFT 1024

/**
 * LOCK or UNLOCK, in a call that holds the client.
 *
 * @param[in]     fd       The Fh.  If it is no state's, the wait has no limit.
 * @param[in,out] fl       The lock; then a conflicting one, if any.
 * @param[in]     reclaim  The wait has no limit.
 *
 * @return 0; -EAGAIN: a conflict; -EINPROGRESS: a conflict with a lock that is
 *         on its way out; -ETIME: it is left, or others of the file are;
 *         another negative errno.
 */
int casync_state_calls_setlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner, bool reclaim);

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
