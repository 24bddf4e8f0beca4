/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file upcalls.h
 * @brief Carries libcephfs' upcalls (release, invalidate) to Ganesha's cache.
 *
 * A callback only queues an event: an unmount waits for the threads that call
 * (docs/threads.md, Upcalls).  A worker carries the events to every export that
 * shares the mount, with the export's own cache key.
 *
 * An export gets no upcall before Ganesha has set it up, and none after
 * casync_upcalls_leave().
 */
#ifndef CASYNC_UPCALLS_H
#define CASYNC_UPCALLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <cephfs/libcephfs.h>

#include "gsh_list.h"
#include "object_table.h"
#include "lane.h"

struct casync_export;

/** An event of libcephfs; used by upcalls.c. */
struct casync_upcall {
	uint64_t ino;
	uint64_t snapid;
	uint32_t kind;
	/* Of a removed file. */
	uint8_t tries;
	bool in_use, released;
};

/** Most queued events, 24 bytes each. */
#define CASYNC_UPCALLS_MAX 32768

/**
 * With more queued events, requests to release an inode are dropped: the MDS
 * repeats them.  Invalidations are never dropped: if one finds no room,
 * everything is invalidated.
 */
#define CASYNC_UPCALLS_RELEASES_MAX 24576

/** Removed files that are still in use, 24 bytes each.  More are left to
 * Ganesha's cache, which drops what is old. */
#define CASYNC_UPCALLS_REMOVED_MAX 1024

/** Counters of truncations, 8 bytes each.  Files share them. */
#define CASYNC_UPCALLS_TRUNCATIONS 65536

/** Embedded in the mount. */
struct casync_upcalls {
	pthread_mutex_t lock; /**< A leaf. */
	pthread_cond_t idle;  /**< An upcall or the job has ended. */
	struct glist_head exports;
	struct casync_upcall *events; /**< A ring. */
	uint32_t first;
	uint32_t event_count;
	bool overflown; /**< An invalidation found no room. */
	bool renewed;	/**< Another client: all are invalidated. */
	bool running;	/**< The job is queued or runs. */
	struct casync_work work;
	struct casync_upcall removed[CASYNC_UPCALLS_REMOVED_MAX];
	uint32_t removed_count;
	int64_t fscid;
	struct casync_object_table table; /**< The exports' objects. */
	/** Truncations of files, by inode and snapshot; atomic (file_size.h).
	 */
	uint64_t truncations[CASYNC_UPCALLS_TRUNCATIONS];
};

/** An export's place in it; embedded in the export. */
struct casync_upcalls_entry {
	struct glist_head link;
	bool listed;
	unsigned int busy; /**< Upcalls that run. */
};

void casync_upcalls_init(struct casync_upcalls *upcalls);

/** Waits for the job.  libcephfs must have stopped calling. */
void casync_upcalls_destroy(struct casync_upcalls *upcalls);

/** Register the callbacks.  Before ceph_mount.  @return 0 or an errno. */
int casync_upcalls_register(struct casync_upcalls *upcalls,
			    struct ceph_mount_info *ceph);

/** Invalidate all that Ganesha has cached of the exports. */
void casync_upcalls_invalidate_all(struct casync_upcalls *upcalls);

/** Call a function for each export, with NULL.  It runs without a lock; the
 * export stays in the list. */
void casync_upcalls_visit_exports(struct casync_upcalls *upcalls,
				  void (*visit)(struct casync_export *exp,
						void *arg));

/** A file has no name any more: soon drop it from Ganesha's cache, if nobody
 * uses it then, or when nobody does. */
void casync_upcalls_removed(struct casync_upcalls *upcalls, uint64_t ino,
			    uint64_t snapid);

/** Try that again with those that were in use.  The keeper calls it. */
void casync_upcalls_try_removed(struct casync_upcalls *upcalls);

/** Begin upcalls for an export. */
void casync_upcalls_join(struct casync_upcalls *upcalls,
			 struct casync_export *exp);

/** The export that has joined first of those that have not left.  @param[in]
 * otherwise  If there is none. */
uint16_t casync_upcalls_oldest_export(struct casync_upcalls *upcalls,
				      uint16_t otherwise);

/** End upcalls for an export, and wait for running ones.  May be repeated. */
void casync_upcalls_leave(struct casync_upcalls *upcalls,
			  struct casync_export *exp);

/** Where the truncations of a file are counted (file_size.h). */
uint64_t *casync_upcalls_truncations(struct casync_upcalls *upcalls,
				     uint64_t ino, uint64_t snapid);

/** Called before and after each upcall. */
void casync_upcalls_enter(void);
void casync_upcalls_exit(void);

/** Is this thread in an upcall?  It may drop the export's last reference. */
bool casync_upcalls_on_thread(void);

#endif /* CASYNC_UPCALLS_H */
