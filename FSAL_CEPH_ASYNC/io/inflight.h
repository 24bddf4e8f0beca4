/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file inflight.h
 * @brief What an export has in flight: counted, capped, listed, drained.
 *
 * The only limit there is: Ganesha does not throttle requests, and the
 * Objecter's budget does not bite on libcephfs' non-blocking path.
 *
 * Over an export's limit entries wait in line, and nobody with them: who comes
 * later does not overtake, and an entry that leaves has those called that its
 * room is given to.  What is in flight and in line of all exports together
 * has a limit, too; one that has little of it is let in in any case, so that
 * exports whose Ceph does not answer leave room for the others.
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
	uint64_t came_ns;   /**< When it was put in line; 0: never. */
	uint64_t waited_ns; /**< In line before; also when it was in vain. */
	/** Set before: an entry that was in line is let in, or refused.  In
	 * any thread, no lock held; it must not block. */
	void (*called)(struct casync_inflight_entry *entry);
	struct casync_inflight_entry *next_called; /**< inflight.c's. */
	int refused;   /**< -EAGAIN, -ESHUTDOWN; 0: it is in. */
	bool alone;    /**< The only one when it was let in. */
	bool reported; /**< The visitor's to set; the owner's once out. */
};

struct casync_inflight {
	pthread_mutex_t lock;
	pthread_cond_t emptied;	   /**< While closed.  CLOCK_MONOTONIC. */
	struct glist_head entries; /**< Not overdue yet; oldest first. */
	struct glist_head overdue; /**< Visited as such; oldest first. */
	struct glist_head line;	   /**< Held back by a limit. */
	uint64_t ops;
	uint64_t bytes;
	uint64_t line_bytes;
	uint64_t refused;  /**< Called so, and not left yet. */
	uint64_t peak_ops; /**< Most there ever were. */
	uint64_t max_ops;
	uint64_t max_bytes;
	unsigned int waiting; /**< Length of `line`. */
	bool closed;	      /**< Draining: nothing new is let in. */
};

/**
 * How many entries may wait for room at once, and for how long.  Past this
 * many, or this long, the client is told to come again (NFS4ERR_DELAY,
 * NFS3ERR_JUKEBOX).
 */
#define CASYNC_MAX_WAITING 1024
#define CASYNC_MAX_WAIT_MS 5000

/** What an export may have in any case of what all have together. */
#define CASYNC_ASSURED_OPS 256
#define CASYNC_ASSURED_BYTES (UINT64_C(64) << 20)

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes);
void casync_inflight_destroy(struct casync_inflight *set);

/**
 * Other limits, from now on.  What is in flight stays, also over a lower one;
 * who waits is let in as far as a higher one goes.
 */
void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes);

/** The limits of all sets together; they begin with none. */
void casync_inflight_limit_all(uint64_t max_ops, uint64_t max_bytes);

/**
 * Let an entry in, or put it in line.
 *
 * An entry larger than max_bytes is let in when the set is empty.
 *
 * @return 0; -EINPROGRESS when it is in line, to be called: it is not the
 *	   caller's any more; -EAGAIN when there is no room in line, or all
 *	   sets together have too much; -ESHUTDOWN when closed.
 */
int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes);

/** Refuse what has been in line for too long.  The watchdog's. */
void casync_inflight_expire(struct casync_inflight *set);

/**
 * Let an entry out, or go, if it was in line and refused.  The set may be
 * destroyed as soon as it is empty.
 */
void casync_inflight_leave(struct casync_inflight *set,
			   struct casync_inflight_entry *entry);

/**
 * Let nothing in any more and wait until the set is empty, and nobody who was
 * in line is left.
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

#endif /* CASYNC_INFLIGHT_H */
