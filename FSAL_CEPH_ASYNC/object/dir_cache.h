/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file dir_cache.h
 * @brief Keeps open directory handles of listings that are not complete.
 *
 * Ganesha reads a directory in pieces (MDCACHE { Dir_Chunk }: 128 entries, or
 * as many as an answer holds).  Each piece is a READDIR of its own.  A handle
 * that is opened anew for each piece makes the MDS send some thousand entries,
 * and the piece uses 50 or 128 of them.  So a handle with entries left is kept.
 * A later READDIR can use it if it continues after the handle's last entry.  It
 * can also start with the last entry: the answer may have had no room for it.
 *
 * A kept handle has read ahead.  It is used only if the directory's ctime and
 * change counter are the same as before it was read.  So an entry that was
 * added or removed since then is never missed or shown.
 */
#ifndef CASYNC_DIR_CACHE_H
#define CASYNC_DIR_CACHE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cephfs/libcephfs.h>

#include "filehandle.h"

/**
 * Listings kept for an export.  If all are used, the oldest is dropped.  Each
 * holds the entries that libcephfs has read ahead (up to some thousand inodes)
 * until it is used or dropped, or the MDS asks for capabilities back.
 */
#define CASYNC_DIR_CACHE_KEPT 16

/** A directory's version: it differs after a change of the directory. */
struct casync_listing_stamp {
	struct timespec ctime;
	uint64_t version;
	bool known;
};

/** One listing.  The caller or the store owns it. */
struct casync_listing {
	struct ceph_dir_result *dirp; /**< NULL: none. */
	uint32_t generation;	      /**< Of dirp's client (guard.h). */
	struct casync_fileid id;      /**< Of the directory. */
	uint64_t position;	      /**< Of the last entry handed out. */
	uint64_t before;	      /**< Position of the entry before it. */
	char last[NAME_MAX + 1];      /**< Name of the last entry. */
	uid_t uid;		      /**< The user who opened it. */
	gid_t gid;
	uint64_t groups; /**< Made of the user's other groups. */
	struct casync_listing_stamp stamp;
};

/** The store; embedded in the export. */
struct casync_dir_cache {
	pthread_mutex_t lock; /**< A leaf. */
	/** Oldest first. */
	struct casync_listing kept[CASYNC_DIR_CACHE_KEPT];
	unsigned int count;
};

void casync_dir_cache_init(struct casync_dir_cache *listings);

/** The listings that are left have ended with their client: without one,
 * casync_dir_cache_drop() cannot be called. */
void casync_dir_cache_destroy(struct casync_dir_cache *listings);

/** The version of a directory, from its attributes. */
struct casync_listing_stamp
casync_dir_cache_stamp(const struct ceph_statx *stx);

/**
 * Take a listing out of the store.
 *
 * @param[in,out] wanted  In: id, position, uid, gid, groups and stamp to look
 *                        for.  Out: a listing that continues at this position,
 *                        or whose last entry comes next.  The caller owns it.
 *                        If there is none, dirp is NULL.
 *
 * @return Whether there was one.
 */
bool casync_dir_cache_take(struct casync_dir_cache *listings,
			   struct casync_listing *wanted);

/**
 * Put a listing into the store.  The store then owns it.
 *
 * @param[out] displaced  The listing that was dropped for it, or dirp NULL.
 *                        The caller must release it.  One of a former client
 *                        has ended with that client, and is NULL too.
 */
void casync_dir_cache_keep(struct casync_dir_cache *listings,
			   const struct casync_listing *listing,
			   struct casync_listing *displaced);

/** Release all listings.  Those of another client than @p generation ended with
 * it.  Calls libcephfs. */
void casync_dir_cache_drop(struct casync_dir_cache *listings,
			   struct ceph_mount_info *ceph, uint32_t generation);

#endif /* CASYNC_DIR_CACHE_H */
