/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file inflight.h
 * @brief The requests in flight of an export: counted, limited, listed,
 * drained.
 *
 * This is the only limit: Ganesha does not throttle requests, and the
 * Objecter's budget does not apply to libcephfs' non-blocking path.
 *
 * An entry over the export's limit waits in a queue.  No thread waits with it.
 * A later entry does not overtake it.  When an entry leaves the set, its room
 * goes to the entries at the head of the queue, and their callback is called.
 *
 * All exports together have a limit too, for entries in flight and in queues.
 * Each export may always have CASYNC_ASSURED_OPS and CASYNC_ASSURED_BYTES, so
 * exports whose Ceph does not answer cannot block the others.
 *
 * The lock is a leaf: nothing is called with it held but a visitor.
 */
#ifndef CASYNC_INFLIGHT_H
#define CASYNC_INFLIGHT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"

/** One member of the set; embedded in the op. */
struct casync_inflight_entry {
	struct glist_head link;
	uint64_t bytes;	    /**< Counted against Max_Inflight_Bytes. */
	uint64_t since_ns;  /**< When it was let in; CLOCK_MONOTONIC. */
	uint64_t queued_ns; /**< When it was queued; 0: never. */
	uint64_t waited_ns; /**< Time in the queue, also if it was refused. */
	/** To be set before entering.  Called when a queued entry is let in
	 * or refused, on any thread, with no lock held.  It must not block. */
	void (*called)(struct casync_inflight_entry *entry);
	struct casync_inflight_entry *next_called; /**< inflight.c's. */
	int refused;   /**< -EAGAIN or -ECANCELED; 0: it was let in. */
	bool alone;    /**< It was the only entry when it was let in. */
	bool reported; /**< The visitor sets it, the owner reads it later. */
};

struct casync_inflight {
	pthread_mutex_t lock;
	pthread_cond_t emptied;	   /**< While closed.  CLOCK_MONOTONIC. */
	struct glist_head entries; /**< Not overdue; oldest first. */
	struct glist_head overdue; /**< Visited as overdue; oldest first. */
	struct glist_head queue;   /**< The queue: held back by a limit. */
	uint64_t ops;
	uint64_t bytes;
	uint64_t queue_bytes;
	uint64_t refused;  /**< Refused entries that have not left yet. */
	uint64_t peak_ops; /**< Most ops at once so far. */
	uint64_t max_ops;
	uint64_t max_bytes;
	unsigned int waiting; /**< Length of `queue`. */
	bool closed;	      /**< Draining: no entry is let in. */
};

/**
 * How many entries may wait in the queue, and for how long.  Beyond that the
 * client is asked to retry (NFS4ERR_DELAY, NFS3ERR_JUKEBOX).
 */
#define CASYNC_MAX_WAITING 1024
#define CASYNC_MAX_WAIT_MS 5000

/** An export may always have so much in flight, whatever the others have. */
#define CASYNC_ASSURED_OPS 256
#define CASYNC_ASSURED_BYTES (UINT64_C(64) << 20)

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes);
void casync_inflight_destroy(struct casync_inflight *set);

/**
 * Set other limits.  Entries in flight stay, also over a lower limit.  A
 * higher limit lets queued entries in.
 */
void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes);

/** Set the limits of all sets together.  At first there are none. */
void casync_inflight_limit_all(uint64_t max_ops, uint64_t max_bytes);

/**
 * Let an entry in, or queue it.
 *
 * An entry larger than max_bytes is let in if the set is empty.
 *
 * @return 0: it is in; -EINPROGRESS: it is queued, the caller no longer owns
 *	   it, and `called` will be called; -EAGAIN: the queue is full, or all
 *	   sets together have too much; -ECANCELED: the set is closed.
 *	   (ESHUTDOWN would be taken for Ceph's EBLOCKLISTED: session.h.)
 */
int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes);

/**
 * Count more bytes for an entry that is in, if that delays nobody.
 *
 * @return false: others wait, or the limits would be more than half used.
 */
bool casync_inflight_grow(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes);

/** Refuse entries that were queued too long.  The watchdog calls it. */
void casync_inflight_expire(struct casync_inflight *set);

/**
 * An entry leaves: one that was let in, or one that was queued and refused.
 * The set may be destroyed as soon as it is empty.
 */
void casync_inflight_leave(struct casync_inflight *set,
			   struct casync_inflight_entry *entry);

/**
 * Close the set, and wait until it is empty and all refused entries have left.
 *
 * @param[in] timeout_ms  Longest wait; 0 does not wait.
 *
 * @return Entries that are left.
 */
uint64_t casync_inflight_drain(struct casync_inflight *set,
			       uint32_t timeout_ms);

/**
 * A visitor of an entry.  It runs under the set's lock: it takes no lock, calls
 * nothing that may wait, and logs nothing.
 */
typedef void casync_inflight_visitor(struct casync_inflight_entry *entry,
				     void *arg);

/**
 * Visit each entry that was let in before @p before_ns, once: later calls of
 * this function skip it.
 */
void casync_inflight_visit_overdue(struct casync_inflight *set,
				   uint64_t before_ns,
				   casync_inflight_visitor *visit, void *arg);

/** Visit each entry that was let in before @p before_ns. */
void casync_inflight_visit_older(struct casync_inflight *set,
				 uint64_t before_ns,
				 casync_inflight_visitor *visit, void *arg);

/** Return when no visitor is at work. */
void casync_inflight_sync(struct casync_inflight *set);

/** Visit all entries, the oldest first. */
void casync_inflight_visit_all(struct casync_inflight *set,
			       casync_inflight_visitor *visit, void *arg);

/** The set at one moment. */
struct casync_inflight_sample {
	uint64_t ops;
	uint64_t bytes;
	uint64_t peak_ops;
	uint64_t waiting;
	uint64_t oldest_ns; /**< Age of the oldest; 0 if there is none. */
};

void casync_inflight_sample(struct casync_inflight *set,
			    struct casync_inflight_sample *look);

#endif /* CASYNC_INFLIGHT_H */
