/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file state_calls.h
 * @brief Questions for the MDS while Ganesha holds the lock of a file's state.
 *
 * Ganesha holds it while it waits for LOCK, UNLOCK and the OPEN of a file that
 * is there.  Its reaper wants that lock to end the states of clients, and the
 * same thread begins and ends the grace period.  So a thread of the mount makes
 * the call, and a worker waits for CASYNC_STATE_CALL_MS at most.  Then it
 * leaves the call, which is overdue:
 *
 *	LOCK	is answered "ask again", and given back if the MDS grants it
 *		later.
 *	UNLOCK	is answered "done".  Until it is, whoever meets the lock is to
 *		ask again.  UNLOCKs that follow are made after it, in order.
 *	open	is answered "ask again".  The Fh is closed when it is there.
 *
 * While a file has an overdue call, its LOCKs are to ask again at once.  An
 * open waits for 0.1 s, as it may need no MDS.  With 24 overdue calls a mount
 * begins no others; its workers that wait already may leave some more.
 *
 * Two LOCKs wait without a limit (lock_calls.h).
 */
#ifndef CASYNC_STATE_CALLS_H
#define CASYNC_STATE_CALLS_H

#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"

#include "lane.h"

struct casync_mount;
struct casync_object;
struct casync_state;

/** The longest wait for the MDS.  A slow one takes a second. */
#ifndef CASYNC_STATE_CALL_MS
#define CASYNC_STATE_CALL_MS 10000
#endif

/** Overdue calls of a mount beside which a new one is made: below the threads
 * of a lane. */
#define CASYNC_STATE_CALLS_OVERDUE 24

/** Most UNLOCKs of a mount that follow overdue calls.  Further ones are made at
 * once. */
#define CASYNC_STATE_CALLS_LEFT 1024

/** A call.  It needs no object: Ganesha may free that when the worker has left.
 * Freed by the worker, or by its thread if it was left. */
struct casync_state_call {
	struct casync_work work;
	int (*ask)(struct casync_state_call *call);
	/** Gives back what nobody wants any more. */
	void (*give_back)(struct casync_state_call *call);
	/** May the worker leave it?  NULL: it may. */
	bool (*may_be_left)(const struct casync_state_call *call,
			    struct casync_object *obj);
	struct casync_mount *mount;
	struct casync_state *st; /**< Of the Fh, or NULL; kept if it is left. */
	struct Fh *fh;
	uint64_t ino;
	/* LOCK and UNLOCK */
	struct flock wanted;
	struct flock fl; /**< The answer: the lock, or a conflicting one. */
	void *owner;
	/* open */
	struct Inode *inode;
	int posix_flags;
	int rc;
	/* Under state_calls.c's lock; the first two are atomic, too. */
	uint32_t answered;
	bool overdue; /**< A worker has left it. */
	bool waits;   /**< For one before it, and is not submitted yet. */
	uint64_t left_ns;
	struct glist_head link;
};

/** Which of those that are left casync_state_calls_left() counts. */
struct casync_state_calls_like {
	const struct casync_mount *mount;
	uint64_t ino;	   /**< 0: of any file */
	const void *owner; /**< NULL: of any */
	uint64_t after_ns; /**< Left not before that. */
	bool overdue;	   /**< Only these. */
	bool made;	   /**< Only those that do not wait for others. */
};

unsigned int casync_state_calls_left(struct casync_state_calls_like like);

/** Has the file overdue calls, or its mount too many? */
bool casync_state_calls_are_overdue(const struct casync_object *obj);

/**
 * Have a thread of the mount make the call, in a call that holds the client.
 *
 * @param[in] wait_ms  0: without a limit.
 *
 * @return Its result; -ETIME: it is left, and that thread's.
 */
int casync_state_calls_ask(struct casync_object *obj,
			   struct casync_state_call *call, uint32_t wait_ms);

/** Have it made after the overdue calls of its file, and leave it.  @return
 * false: there is no LOCK or UNLOCK among them, or there are too many. */
bool casync_state_calls_follow(struct casync_state_call *call);

/** Leave an UNLOCK for a client that is gone, unless its state has one.
 * @return false: it has. */
bool casync_state_calls_add_later(struct casync_state_call *call);

/** One that was left has ended.  It may free the state's fd, and call libcephfs
 * for that. */
void casync_state_calls_end(struct casync_state_call *call);

/**
 * Open a file as root, in a call that holds the client.
 *
 * @return 0; -ETIME: it is left, or others of the file are; another negative
 *         errno.
 */
int casync_state_calls_open(struct casync_object *obj, int posix_flags,
			    struct Fh **fh);

#endif /* CASYNC_STATE_CALLS_H */
