/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file left_client.h
 * @brief A lost libcephfs client that READs have been left with.
 *
 * It is out of use: another client serves the mount.  It is ended when the last
 * of its READs has come back.  Not before: a READ in flight uses an Inode that
 * the end of the client frees (Ceph 20.2.4, C_Read_Sync_NonBlocking::finish()).
 * If a READ never comes back, the client stays until the process ends.
 */
#ifndef CASYNC_LEFT_CLIENT_H
#define CASYNC_LEFT_CLIENT_H

#include <stdint.h>

struct casync_left_client;
struct casync_mount;

/** Most of them at once, for a mount.  Beyond that the next client waits for
 * the READs.  Each has some 15 threads, what libcephfs has cached, and the
 * buffers of its READs: at most Max_Inflight_Bytes.  A network that is up for 7
 * s a minute left 4 of them in 28 minutes: TCP sent again while it was down. */
#define CASYNC_LEFT_CLIENTS_MAX 16

/**
 * The mount's client is lost, and READs will be left with it.
 *
 * @return With one reference, the keeper's.  NULL: there are too many.
 */
struct casync_left_client *casync_left_client_new(struct casync_mount *mount);

/** A READ is left with it; any thread, no lock is taken. */
void casync_left_client_hold(struct casync_left_client *left);

/** A READ has come back, or the keeper is done.  The last one ends the client,
 * on a thread of its own. */
void casync_left_client_put(struct casync_left_client *left);

/** Take the mount's client out of the mount.  Nobody is in the guard. */
void casync_left_client_leave(struct casync_left_client *left);

/** The keeper has to end while somebody is in the guard: the mount's client
 * must never be ended, and the mount never be freed. */
void casync_left_client_give_up(struct casync_left_client *left);

#endif /* CASYNC_LEFT_CLIENT_H */
