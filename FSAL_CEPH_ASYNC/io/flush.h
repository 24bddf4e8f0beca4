/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file flush.h
 * @brief Metadata flushes of one inode, coalesced.
 *
 * One flush (ceph_ll_sync_inode) is in the air per inode; callers that come
 * meanwhile wait for the next one, which covers all of them.  The result of a
 * flush reaches exactly the callers that were there before it started: only
 * their writes are known to be in it.
 *
 * libcephfs' fsync waits until no write of the inode is in flight.  So the
 * gate holds those that come from then on (gate.h), and the flush begins when
 * those before have been answered: no thread waits for an OSD, and the flush
 * takes one write's time and what the MDS takes.  The writers of a file whose
 * flush does not end are let go after CASYNC_FLUSH_HOLD_MS.
 *
 * And a new file's writes wait for its first flush: if gateway and MDS died
 * without it, the MDS would have forgotten the file; the data would be lost,
 * and shown as another file's by the next one to get the inode number.
 */
#ifndef CASYNC_FLUSH_H
#define CASYNC_FLUSH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "workers.h"

struct casync_object;

/** Somebody who waits for a flush. */
struct casync_flush_waiter {
	struct glist_head link;
	bool covered; /**< By the flush under way. */
	/**
	 * Called once, on a worker, no lock held; @p rc is 0 or a negative
	 * errno.  The waiter may be gone when it returns.
	 */
	void (*done)(struct casync_flush_waiter *waiter, int rc);
};

struct casync_flush {
	struct casync_work work;
	pthread_mutex_t lock;	   /**< The gate's is taken under it. */
	struct glist_head waiters; /**< For the next flush. */
	bool running;		   /**< One is under way, or about to be. */
	bool first;		   /**< Writes wait for the one under way. */
	unsigned int holds;	   /**< Times it has held writes. */
	struct glist_head hold;	   /**< Among those that hold writes. */
	uint64_t held_since_ns;	   /**< 0: not among them. */
	/** The MDS may not have the file itself on disk yet (atomic). */
	bool unjournaled;
};

/** Longest that a flush keeps writes of its file waiting. */
#define CASYNC_FLUSH_HOLD_MS 1000

/** How often it does so anew when the writes before it have taken longer; after
 * that it begins with others in flight. */
#define CASYNC_FLUSH_HOLDS 5

/** Longest that SETATTR and COMMIT wait for writes in flight: an OSD may not
 * answer.  The client is told to come again then. */
#define CASYNC_FLUSH_WAIT_MS 10000

void casync_flush_init(struct casync_flush *flush);
void casync_flush_destroy(struct casync_flush *flush);

/**
 * Have the inode flushed.
 *
 * The waiter's request keeps the object alive until done().
 */
void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter);

/** The same for a caller that may block; the flush may be made by it.
 * @return 0 or a negative errno; -EAGAIN after CASYNC_FLUSH_WAIT_MS. */
int casync_flush_wait(struct casync_object *obj);

/** The writes that a flush has waited for are answered.  One of them keeps the
 * object. */
void casync_flush_drained(struct casync_object *obj);

/** Let go the writes of flushes that take too long.  The watchdog's. */
void casync_flush_tick(void);

/**
 * The file may be younger than the MDS' journal on disk: an MDS answers a
 * create at once and writes its journal every few seconds.
 */
void casync_flush_born(struct casync_object *obj);

/**
 * A write is about to be submitted: if the file may be unknown to the MDS'
 * journal, have it flushed, and the gate hold the write until then.
 *
 * @return Whether it has to wait.
 */
bool casync_flush_before_data(struct casync_object *obj);

#endif /* CASYNC_FLUSH_H */
