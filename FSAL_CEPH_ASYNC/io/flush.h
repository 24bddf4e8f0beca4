/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file flush.h
 * @brief Metadata flushes of one inode; callers share them.
 *
 * One flush (ceph_ll_sync_inode) per inode is under way.  A caller that comes
 * meanwhile waits for the next flush, which covers all waiting callers.  Only
 * the callers that were there before a flush began get its result: only their
 * writes are known to be covered.  The file's queue decides when a flush begins
 * (queue.h).  A flush takes the time of one write and of the MDS.
 *
 * The first writes of a file wait for its first flush.  If gateway and MDS
 * crashed before it, the MDS would not know the file.  The data would be lost.
 * The next file with the same inode number would show them.
 */
#ifndef CASYNC_FLUSH_H
#define CASYNC_FLUSH_H

#include <stdbool.h>

#include "queue.h"

struct casync_object;

/** Longest time that SETATTR and COMMIT wait for writes in flight: an OSD may
 * not answer.  Then the client is asked to retry. */
#define CASYNC_FLUSH_WAIT_MS 10000

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
 *         not sent.  A flush is under way, CASYNC_QUEUE_SENT_MAX were sent in a
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

/**
 * Let the MDS have the changed attributes of a file.  The caller waits for
 * the journal if they cannot be sent.
 *
 * @return 0, also if the file was removed meanwhile.  A negative errno: the
 *         MDS may not have them; -ENOTCONN: the session is lost.
 */
int casync_flush_tell_mds(struct casync_object *obj);

/** Do what a change of the file's queue has left to do (queue.h): submit
 * writes, fail writes with @p rc, run a flush. */
void casync_flush_go_on(struct casync_object *obj,
			const struct casync_queue_todo *todo, int rc);

/** Release the writes that flushes have held too long, for the watchdog. */
void casync_flush_tick(void);

/**
 * Call before a write is submitted.  If the MDS may not have journaled the
 * file, this requests a flush, and the queue holds the write until then.
 *
 * @return Whether the write has to wait.
 */
bool casync_flush_before_data(struct casync_object *obj);

#endif /* CASYNC_FLUSH_H */
