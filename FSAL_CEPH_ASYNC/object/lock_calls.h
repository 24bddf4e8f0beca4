/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file lock_calls.h
 * @brief LOCK, UNLOCK and LOCKT, as the MDS is asked (state_calls.h).
 *
 * Two LOCKs wait without a limit.  Linux gives a lock up whose reclaim is to be
 * asked again.  And to give back a lock in a range of which its owner has a
 * part would take that part, too.
 */
#ifndef CASYNC_LOCK_CALLS_H
#define CASYNC_LOCK_CALLS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_borrowed;
struct casync_state;

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
int casync_lock_calls_set(const struct casync_borrowed *fd, struct flock *fl,
			  void *owner, bool reclaim);

/** LOCKT.  The wait has no limit.  @return As casync_lock_calls_set(). */
int casync_lock_calls_test(const struct casync_borrowed *fd, struct flock *fl,
			   void *owner);

/**
 * UNLOCK of the whole file, for a client that Ganesha has marked as expired:
 * nobody waits for it.  It keeps the Fh and the fd; the state is freed soon.
 */
void casync_lock_calls_unlock_later(struct casync_state *st, uint64_t ino,
				    void *owner);

#endif /* CASYNC_LOCK_CALLS_H */
