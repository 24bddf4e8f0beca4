/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file dir_cache.h
 * @brief Listings that stopped half-way, kept for the call that goes on.
 *
 * Ganesha reads a directory in pieces (MDCACHE { Dir_Chunk }, 128 entries),
 * or as many as an answer holds), each with a READDIR of its own.  A handle
 * opened anew for each has the MDS send some thousand entries, of which the
 * next piece uses 50 or 128.  So a handle that has entries left is kept, for
 * who asks for what comes after its last entry; or for the last entry, which
 * the caller may have had no room for.
 *
 * What it has read ahead is used only while the directory's ctime and change
 * counter are what they were before it was read: an entry that has come or
 * gone since is never missed or shown.
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
 * Listings kept per export; the one that waits longest makes room.  Each
 * holds what libcephfs has read ahead (up to some thousand inodes) until it
 * is used, displaced, or the MDS asks for capabilities back.
 */
#define CASYNC_DIR_CACHE_KEPT 16

/** A directory's state, by which a later one is told from it. */
struct casync_listing_stamp {
	struct timespec ctime;
	uint64_t version;
	bool known;
};

/** One listing.  Belongs to whoever has it: the caller, or the store. */
struct casync_listing {
	struct ceph_dir_result *dirp; /**< NULL: none. */
	struct casync_fileid id;      /**< Of the directory. */
	uint64_t position;	      /**< Of the last entry handed out. */
	uint64_t before;	      /**< Of the one before. */
	char last[NAME_MAX + 1];      /**< The last one's name. */
	uid_t uid;		      /**< Whom it was opened for. */
	gid_t gid;
	struct casync_listing_stamp stamp;
};

/** The store; embedded in the export. */
struct casync_dir_cache {
	pthread_mutex_t lock; /**< A leaf: no call is made under it. */
	/** Oldest first. */
	struct casync_listing kept[CASYNC_DIR_CACHE_KEPT];
	unsigned int count;
};

void casync_dir_cache_init(struct casync_dir_cache *listings);

/** Empty already: casync_dir_cache_drop(). */
void casync_dir_cache_destroy(struct casync_dir_cache *listings);

/** What @p stx says of a directory's state. */
struct casync_listing_stamp casync_listing_stamp(const struct ceph_statx *stx);

/**
 * Take a listing out of the store.
 *
 * @param[in,out] wanted  id, position, uid, gid, stamp: what it has to be.
 *                        If there is one that goes on there, or whose last
 *                        entry comes next, it is stored here, the caller's
 *                        then; else dirp is NULL.
 *
 * @return Whether there was one.
 */
bool casync_dir_cache_take(struct casync_dir_cache *listings,
			   struct casync_listing *wanted);

/**
 * Put a listing into the store, whose it is then.
 *
 * @param[out] displaced  What had to go, or dirp NULL: for the caller to
 *                        release.
 */
void casync_dir_cache_keep(struct casync_dir_cache *listings,
			   const struct casync_listing *listing,
			   struct casync_listing *displaced);

/** Release all of them.  Calls libcephfs. */
void casync_dir_cache_drop(struct casync_dir_cache *listings,
			   struct ceph_mount_info *ceph);

#endif /* CASYNC_DIR_CACHE_H */
