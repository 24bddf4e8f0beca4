/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reconnect.h
 * @brief Puts a new libcephfs client in place of one that lost its session.
 */
#ifndef CASYNC_RECONNECT_H
#define CASYNC_RECONNECT_H

struct casync_mount;

/**
 * Replace the client, on the keeper's thread.
 *
 * Requests are asked to retry meanwhile.  The steps, each before the next:
 *
 * 1. No request enters the guard any more.
 * 2. Whoever is inside leaves: Ceph has ended the session, so the calls fail.
 * 3. The old client ends.
 * 4. The new one connects.  It ends the old session, if there still is one, as
 *    a restarted gateway does.
 * 5. Locks of clients are taken again.
 * 6. Requests enter.
 *
 * Nothing of the old client can reach an OSD after step 4.  An eviction puts
 * the old client on the blocklist of an OSD map.  The old client has seen that
 * map, or the MDS has and hands its epoch on with each capability.  So the new
 * client's first request carries that epoch or a later one.  An OSD that does
 * not have the map yet fetches it before it looks at the request, and refuses
 * from then on what the old client sent earlier.
 *
 * It returns when the mount serves, when it gave up (Reconnect_Timeout), or
 * when the keeper has to end.
 */
void casync_reconnect(struct casync_mount *mount);

#endif /* CASYNC_RECONNECT_H */
