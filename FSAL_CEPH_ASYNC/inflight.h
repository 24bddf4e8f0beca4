/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file inflight.h
 * @brief What an export has in flight: counted, capped, listed, drained.
 *
 * The only limit there is: Ganesha does not throttle requests, and the
 * Objecter's budget does not bite on libcephfs' non-blocking path.
 *
 * Over a limit the callers wait in line: who comes later does not overtake,
 * and each entry that leaves wakes exactly those that its room is given to.
 *
 * The lock is a leaf: nothing is called with it held but a visitor, which
 * only copies.
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
	uint64_t since_ns;  /**< CLOCK_MONOTONIC when it was let in. */
	uint64_t waited_ns; /**< In line before; also when it was in vain. */
	bool alone;	    /**< The only one when it was let in. */
	bool reported;	    /**< The visitor's to set; the owner's once out. */
};

struct casync_inflight {
	pthread_mutex_t lock;
	pthread_cond_t emptied;	   /**< While closed.  CLOCK_MONOTONIC. */
	struct glist_head entries; /**< Not overdue yet; oldest first. */
	struct glist_head overdue; /**< Visited as such; oldest first. */
	struct glist_head line;	   /**< Callers held back by a limit. */
	uint64_t ops;
	uint64_t bytes;
	uint64_t peak_ops; /**< Most there ever were. */
	uint64_t max_ops;
	uint64_t max_bytes;
	unsigned int waiting; /**< Length of `line`. */
	bool closed;	      /**< Draining: nothing new is let in. */
};

/**
 * How many workers may wait for room at once, and for how long.  Ganesha has
 * 200 by default (RPC_Ioq_ThrdMax); past this many, or this long, the client
 * is told to come again (NFS4ERR_DELAY, NFS3ERR_JUKEBOX), so that the rest
 * keeps answering metadata.
 */
#define CASYNC_MAX_WAITING 64
#define CASYNC_MAX_WAIT_MS 5000

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes);
void casync_inflight_destroy(struct casync_inflight *set);

/**
 * Other limits, from now on.  What is in flight stays, also over a lower one;
 * who waits is let in as far as a higher one goes.
 */
void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes);

/**
 * Let an entry in, waiting for room.
 *
 * An entry larger than max_bytes is let in when the set is empty.
 *
 * @return 0; -EAGAIN when there was no room in time; -ESHUTDOWN when closed.
 */
int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes);

/** Let an entry out.  The set may be destroyed as soon as it is empty. */
void casync_inflight_leave(struct casync_inflight *set,
			   struct casync_inflight_entry *entry);

/**
 * Let nothing in any more and wait until the set is empty.
 *
 * @param[in] timeout_ms  Longest wait; 0 only looks.
 *
 * @return Entries that are left.
 */
uint64_t casync_inflight_drain(struct casync_inflight *set,
			       uint32_t timeout_ms);

/**
 * Looks at an entry, under the set's lock: it copies what it wants and calls
 * nothing.
 */
typedef void casync_inflight_visitor(struct casync_inflight_entry *entry,
				     void *arg);

/**
 * Visit each entry that was let in before @p before_ns and has not been
 * visited by this function before.
 */
void casync_inflight_visit_overdue(struct casync_inflight *set,
				   uint64_t before_ns,
				   casync_inflight_visitor *visit, void *arg);

/** Visit all entries, the oldest first. */
void casync_inflight_visit_all(struct casync_inflight *set,
			       casync_inflight_visitor *visit, void *arg);

/** The set at one moment. */
struct casync_inflight_look {
	uint64_t ops;
	uint64_t bytes;
	uint64_t peak_ops;
	uint64_t waiting;
	uint64_t oldest_ns; /**< Age of the oldest; 0 if there is none. */
};

void casync_inflight_look(struct casync_inflight *set,
			  struct casync_inflight_look *look);

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t casync_now_ns(void);

#endif /* CASYNC_INFLIGHT_H */
