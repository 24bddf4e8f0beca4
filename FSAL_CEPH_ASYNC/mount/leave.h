/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file leave.h
 * @brief Ganesha ends, and a successor of its name is to start: the CephFS
 * session stays for it.
 *
 * A gateway of several is moved by SIGTERM and a start elsewhere.  If its
 * session ended with it, the MDS would give its clients' locks to whoever asks,
 * until the other gateways are in their grace period.  That is after all
 * exports are gone.  So nothing is released any more.  The MDS journals all
 * changes of clients, and the connection is cut without a word.  The MDS keeps
 * capabilities and locks until the successor ends the session, within its own
 * grace period, or for Session_Timeout.
 *
 * A gateway that is no member of a cluster any more has no successor: its
 * sessions end.  So does that of an export that is removed while Ganesha runs.
 */
#ifndef CASYNC_LEAVE_H
#define CASYNC_LEAVE_H

#include <stdbool.h>
#include <stdint.h>

struct casync_mount;

/** Is Ganesha about to end, with a successor to come?  It asks RADOS, and waits
 * for @p timeout_s at most.  Without an answer there is one, and no question
 * waits any more.  For the thread that ends all exports. */
bool casync_leave_is_due(uint32_t timeout_s);

/**
 * Leave the mount's session, as far as there is one.  From then on nobody
 * enters its guard.  Requests of its other exports are waited for, too.
 *
 * For one thread alone, once: that which ends all exports.
 *
 * @return false: a thread of the mount does not return.  Then the mount must
 *	   never be changed or freed.
 */
bool casync_leave_session(struct casync_mount *mount, uint32_t timeout_s);

#endif /* CASYNC_LEAVE_H */
