/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file common_grace.h
 * @brief Keeps a new gateway's session and a dead gateway's grace period from
 * overlapping, and has the grace period end when it can.
 *
 * Gateways of rados_cluster have a grace period in common.  The clients of a
 * dead gateway reclaim their locks in it.  Until the dead gateway's CephFS
 * session ends the MDS refuses these locks to everybody else, and in the grace
 * period each gateway does.  One request fits between: a LOCK at another
 * gateway that Ganesha has let pass before the grace period began, and that
 * reaches the MDS after the session has ended.
 *
 * So there is time between the two.  Ganesha reads its exports only after all
 * gateways enforce the grace period (nfs_wait_for_grace_enforcement() in 9.14).
 * We end a former session no earlier than CASYNC_GRACE_LEAD_MS after that.  A
 * LOCK that was granted after a longer time may be such a one (locks.c).
 *
 * A grace period ends once each client has reclaimed.  Ganesha looks for that
 * every 10 s, or Lease_Lifetime / 2 if this is less (nfs_reaper_thread.c), and
 * when it is woken.  The keepers wake it each second.
 */
#ifndef CASYNC_COMMON_GRACE_H
#define CASYNC_COMMON_GRACE_H

#include <stdbool.h>

/** Least time from the beginning of the grace period to the session's end. */
#define CASYNC_GRACE_LEAD_MS 300

/**
 * How long a gateway that lost its session waits before it asks whether its
 * name is free (connect.h).
 *
 * Another host may have become this gateway.  It has ended the session, and
 * opens its own a moment later.  In between the name is free.
 */
#define CASYNC_NEW_SESSION_PAUSE_MS 2500

/** Time between two looks whether the grace period may end. */
#define CASYNC_GRACE_LOOK_MS 1000

/** Has this gateway a grace period in common with others? */
bool casync_common_grace(void);

/** Let CASYNC_GRACE_LEAD_MS pass; no time without a common grace period. */
void casync_common_grace_await_known(void);

/** Let CASYNC_GRACE_LEAD_MS pass, once: this process reads its exports. */
void casync_common_grace_await_known_once(void);

/** A grace period of this gateway may have begun: a node is taken over, or an
 * export is read.  (If there is none, the looks do no harm.) */
void casync_common_grace_begins(void);

/**
 * Have Ganesha look whether the grace period may end, unless it has looked for
 * us less than CASYNC_GRACE_LOOK_MS ago.
 *
 * @return Whether the grace period may last: for Grace_Period from its
 *         beginning, as Ganesha does not tell more (nfs_in_grace() is not
 *         exported), and not while Ganesha ends.
 */
bool casync_common_grace_look(void);

#endif /* CASYNC_COMMON_GRACE_H */
