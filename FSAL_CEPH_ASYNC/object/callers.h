/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file callers.h
 * @brief Limits how many threads one mount, or one file, may keep.
 *
 * An MDS that does not answer keeps whoever asks it.  Files have limits of
 * their own (waiter_limit.h), but there are many files.  Without a limit of the
 * mount, its requests take all workers, and exports of other file systems wait
 * as well.
 *
 * All mounts together may keep three quarters of the workers.  Each has an
 * equal part of them, and an eighth of the workers at least.  The others wait
 * for room, for 0.1 s without progress at most; then their clients are asked to
 * retry.  So the rest of the workers goes on: for other file systems, for NFSv4
 * leases, and for READs and WRITEs.  These enter while their file is looked up
 * or opened.  A READ enters also while it asks for the file's version
 * (read_cache.h) or reads by a blocking call (read_here.h): these have half of
 * the room.
 *
 * Completion threads are not counted.
 */
#ifndef CASYNC_CALLERS_H
#define CASYNC_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

struct casync_mount;
struct casync_object;

/**
 * Enter before a call that may wait for the MDS.  A thread that is inside may
 * enter again.
 *
 * @return true: the same thread must call casync_callers_leave(); false: the
 *	   client must ask again.
 */
bool casync_callers_enter(struct casync_mount *mount);

/**
 * The same for a call that is not needed: without waiting for room.
 *
 * @param[in] part  1: all of the mount's room may be in use; 2: half of it, so
 *		    that the rest stays for calls that are needed.
 */
bool casync_callers_try(struct casync_mount *mount, uint32_t part);

/**
 * Enter in any case: for UNLOCK, which Ganesha repeats without a pause if it
 * fails, and for the keeper, for whom a refusal would be a lost lock.
 */
void casync_callers_enter_anyway(struct casync_mount *mount);

void casync_callers_leave(struct casync_mount *mount);

/** How many workers a mount may keep, of so many, if there are so many mounts;
 * at least 1. */
uint32_t casync_callers_room(uint32_t workers, uint32_t mounts);

/**
 * Enter before a call that asks for the attributes of one file: a quarter of
 * the workers may be inside, and as many completion threads as there are at
 * rest.
 *
 * @return true: the same thread must call casync_getattr_leave(); false: others
 *	   have waited too long.
 */
bool casync_getattr_enter(struct casync_object *obj);

void casync_getattr_leave(struct casync_object *obj);

#endif /* CASYNC_CALLERS_H */
