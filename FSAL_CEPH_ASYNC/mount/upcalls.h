/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file upcalls.h
 * @brief From libcephfs to Ganesha's cache: let go of this, forget that.
 *
 * libcephfs calls on finisher threads of its own, and an unmount waits for
 * them.  So a callback only queues, in memory that is there already; a worker
 * carries the events to every export that shares the mount, each by its own
 * cache key.
 *
 * An export hears nothing before Ganesha has set it up, and nothing after
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
#include "workers.h"

struct casync_export;

/** What libcephfs said; upcalls.c's. */
struct casync_upcall {
	uint64_t ino;
	uint64_t snapid;
	uint32_t kind;
};

/** Events that may wait, 24 bytes each. */
#define CASYNC_UPCALLS_MAX 32768

/**
 * Beyond so many, requests to release an inode are dropped: the MDS repeats
 * itself.  Invalidations never are: one that finds no room has everything
 * invalidated.
 */
#define CASYNC_UPCALLS_RELEASES_MAX 24576

/** Embedded in the mount. */
struct casync_upcalls {
	pthread_mutex_t lock; /**< A leaf. */
	pthread_cond_t idle;  /**< An upcall or the worker's job has ended. */
	struct glist_head exports;
	struct casync_upcall *events; /**< A ring. */
	uint32_t first;
	uint32_t event_count;
	bool overflown; /**< Invalidations found no room. */
	bool running;	/**< The job is queued or at work. */
	struct casync_work work;
	int64_t fscid;
	uint64_t released; /**< Requests to let go of an inode, in all. */
	uint64_t invalidated;
	struct casync_object_table table; /**< Its exports' objects. */
};

/** An export's place in it; embedded in the export. */
struct casync_upcalls_entry {
	struct glist_head link;
	bool listed;
	unsigned int busy; /**< Upcalls on their way. */
};

void casync_upcalls_init(struct casync_upcalls *upcalls);

/** Waits for the job; libcephfs calls no more. */
void casync_upcalls_destroy(struct casync_upcalls *upcalls);

/** Register the callbacks.  Before ceph_mount.  @return 0 or an errno. */
int casync_upcalls_register(struct casync_upcalls *upcalls,
			    struct ceph_mount_info *ceph);

/** Have upcalls for an export. */
void casync_upcalls_join(struct casync_upcalls *upcalls,
			 struct casync_export *exp);

/** No more of them; waits for those on their way.  May be repeated. */
void casync_upcalls_leave(struct casync_upcalls *upcalls,
			  struct casync_export *exp);

/** Around each upcall. */
void casync_upcalls_enter(void);
void casync_upcalls_exit(void);

/** Is this thread in an upcall?  It may drop the export's last reference. */
bool casync_upcalls_on_thread(void);

#endif /* CASYNC_UPCALLS_H */
