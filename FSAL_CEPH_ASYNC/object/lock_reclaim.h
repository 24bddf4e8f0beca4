/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file lock_reclaim.h
 * @brief Takes byte-range locks again after the loss of a client.
 */
#ifndef CASYNC_LOCK_RECLAIM_H
#define CASYNC_LOCK_RECLAIM_H

#include <stdint.h>

#include "lock_records.h"

struct casync_mount;

/** Note what a lost client knows of the files that have locks, on the keeper's
 * thread. */
void casync_lock_reclaim_save_versions(struct casync_mount *mount);

/**
 * Take all locks of a mount again, through a new client (lock_records.h).
 *
 * @param[in]  lost   Called for each fd whose lock somebody else has got, or
 *                    whose file was changed meanwhile.
 * @param[out] taken  Number of locks.
 * @param[out] gone   The same of those that are lost.
 *
 * @return 0 or a negative errno: the session is lost again.
 */
int casync_lock_reclaim_all(struct casync_mount *mount, casync_lock_loser *lost,
			    uint64_t *taken, uint64_t *gone);

#endif /* CASYNC_LOCK_RECLAIM_H */
