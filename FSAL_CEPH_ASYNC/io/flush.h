/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file flush.h
 * @brief Metadata flushes of one inode; callers share them.
 *
 * One flush (ceph_ll_sync_inode) per inode is under way.  A caller that comes
 * meanwhile waits for the next flush, which covers all waiting callers.  Only
 * the callers that were there before a flush began get its result: only their
 * writes are known to be covered.
 *
 * libcephfs' fsync waits until no write of the inode is in flight.  So the gate
 * holds new writes (gate.h), and the flush begins when the earlier writes have
 * been answered.  No thread waits for an OSD meanwhile.  A flush takes the time
 * of one write and of the MDS.  If a flush does not end, the held writes go on
 * after CASYNC_FLUSH_HOLD_MS.
 *
 * The first writes of a file wait for its first flush.  If gateway and MDS
 * crashed before it, the MDS would not know the file.  The data would be lost.
 * The next file with the same inode number would show them.
 */
#ifndef CASYNC_FLUSH_H
#define CASYNC_FLUSH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "lane.h"

struct casync_object;

/** A caller that waits for a flush. */
struct casync_flush_waiter {
	struct glist_head link;
	bool covered; /**< The flush under way covers it. */
	/**
	 * Called once, on a worker, with no lock held; @p rc is 0 or a negative
	 * errno.  The waiter may be freed when it returns.
	 */
	void (*done)(struct casync_flush_waiter *waiter, int rc);
};

struct casync_flush {
	struct casync_work work;
	pthread_mutex_t lock;	   /**< The gate's is taken under it. */
	struct glist_head waiters; /**< They wait for the next flush. */
	bool running;		   /**< A flush runs, or is about to. */
	bool first;		   /**< It is the first: writes wait for it. */
	unsigned int holds;	   /**< How often it has held writes. */
	struct glist_head hold;	   /**< In the list of flushes that hold. */
	uint64_t held_since_ns;	   /**< 0: not in that list. */
	/** Sent to the MDS without a wait since the last flush that has covered
	 * them; of the thread that made `running` true. */
	uint32_t sent;
	/** The MDS may not have journaled the file's create yet (atomic). */
	bool unjournaled;
};

/** Changes of a file that are sent without a wait before one waits for the
 * journal.  libcephfs keeps each until the MDS has acknowledged it. */
#define CASYNC_FLUSH_SENT_MAX 64

/** Longest time that a flush holds writes of its file. */
#define CASYNC_FLUSH_HOLD_MS 1000

/** How often a flush holds writes in all, if the earlier writes take longer
 * than that.  After that it begins with others in flight. */
#define CASYNC_FLUSH_HOLDS 5

/** Longest time that SETATTR and COMMIT wait for writes in flight: an OSD may
 * not answer.  Then the client is asked to retry. */
#define CASYNC_FLUSH_WAIT_MS 10000

/** May the MDS not have the file on disk yet?  Then no data may be written. */
static inline bool casync_flush_is_unjournaled(const struct casync_flush *flush)
{
	return __atomic_load_n(&flush->unjournaled, __ATOMIC_ACQUIRE);
}

/** The MDS has journaled the file's create. */
static inline void casync_flush_mark_journaled(struct casync_flush *flush)
{
	__atomic_store_n(&flush->unjournaled, false, __ATOMIC_RELEASE);
}

void casync_flush_init(struct casync_flush *flush);
void casync_flush_destroy(struct casync_flush *flush);

/**
 * Request a flush of the inode.
 *
 * The waiter's request keeps the object alive until done().
 */
void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter);

/** Flush a file, by a caller that may block.  It may run the flush itself.
 * @return 0 or a negative errno; -EAGAIN after CASYNC_FLUSH_WAIT_MS. */
int casync_flush_wait(struct casync_object *obj);

/**
 * Send the changed attributes of a file to the MDS, and give back capabilities
 * that nobody uses.  The caller may block, but not for the journal.
 *
 * @return 0: they are in the queue of libcephfs' messenger.  A negative errno:
 *         not sent.  A flush is under way, CASYNC_FLUSH_SENT_MAX were sent in a
 *         row, libcephfs cannot, or it is no file, or it is delegated.
 */
int casync_flush_try_send(struct casync_object *obj);

/**
 * Does the session live, in which the file was changed?  It may ask the MDS.
 *
 * @return 0, also if the file was removed meanwhile.  A negative errno: the
 *         change may be lost.
 */
int casync_flush_check_session(struct casync_object *obj);

/** As casync_flush_try_send(), and what is not sent is waited for. */
int casync_flush_send(struct casync_object *obj);

/** The writes that a flush waited for are answered.  The caller's write keeps
 * the object alive. */
void casync_flush_drained(struct casync_object *obj);

/** Release the writes that flushes have held too long, for the watchdog. */
void casync_flush_tick(void);

/**
 * A file was created, or looked up anew.  The MDS may not have journaled its
 * create: it answers at once and writes its journal every few seconds.
 */
static inline void casync_flush_mark_new(struct casync_flush *flush)
{
	__atomic_store_n(&flush->unjournaled, true, __ATOMIC_RELEASE);
}

/**
 * Call before a write is submitted.  If the MDS may not have journaled the
 * file, this requests a flush, and the gate holds the write until then.
 *
 * @return Whether the write has to wait.
 */
bool casync_flush_before_data(struct casync_object *obj);

#endif /* CASYNC_FLUSH_H */
