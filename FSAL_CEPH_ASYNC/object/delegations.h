/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file delegations.h
 * @brief NFSv4 delegations, backed by delegations of libcephfs.
 *
 * A delegation of libcephfs belongs to an Fh and ends with it.  A read
 * delegation has its own Fh.  libcephfs grants a write delegation only to the
 * one Fh that is open: the Fh of the open state.  If the state is closed or
 * reopened while the delegation is held, the delegation keeps that Fh.
 *
 * libcephfs recalls with client_lock held, on the thread that found the
 * conflict.  It gives up the whole mount if a delegation is not back in time.
 * So a recall is part of its delegation, and queued on a list.  The lane that
 * works on this list has its threads from the start.  Nothing is allocated, no
 * thread is started, and no other upcall comes first.  There are several
 * threads, because Ganesha waits for the lock on a file's state before it calls
 * the client.
 *
 * The delegation is returned to libcephfs when the client has returned it, or
 * Ganesha has revoked it.  There are two more cases.
 *
 * First, its own holder opens the file again.  libcephfs takes that for a
 * conflict, and the open would wait for the end of the delegation.  It would
 * hold the lock on the file's state, and without that lock Ganesha can neither
 * recall nor revoke.  In the end libcephfs would give up the mount.  Ganesha
 * has already made sure that no other client's delegation conflicts.
 *
 * Second, its holder goes on after the recall.  The holder needs the
 * capabilities that the MDS wants back, and would wait until it is revoked.  So
 * the client that caused the recall may go first, and may see the file without
 * the last data of the holder.
 *
 * A client may ask for attributes while another one may write without asking.
 * Then that one gives its delegation back first.  Ganesha 9.14 would ask the
 * holder (CB_GETATTR), and would then answer everyone with four attributes, two
 * of them invented, until the delegation is returned.  Linux takes such a file
 * for missing.  So Ganesha is not told that the file is delegated for writing.
 */
#ifndef CASYNC_DELEGATIONS_H
#define CASYNC_DELEGATIONS_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "gsh_list.h"
#include "sal_data.h"
#include "fd.h"
#include "filehandle.h"
#include "lane.h"

struct casync_export;
struct casync_mount;
struct casync_object;

/** Embedded in every state; used by those of delegations. */
struct casync_delegation {
	struct Fh *fh;		   /**< NULL: nothing is held. */
	struct casync_fd *fd;	   /**< Owner of the Fh; NULL: we close it. */
	struct casync_export *exp; /**< NULL: never granted.  Outlives it. */
	struct casync_fileid id;   /**< Of the file; set by a grant. */
	struct casync_object *obj; /**< Its list; NULL: in no list. */
	struct glist_head link;
	struct glist_head held_link; /**< In its mount's list: with an Fh. */
	uint64_t clientid; /**< Its holder; 0: Ganesha does not say. */
	const struct gsh_client *host; /**< Of the holder; only compared. */
	bool for_write;
	bool recalled; /**< libcephfs has recalled it; atomic. */
	/* Under the recalls' lock. */
	struct glist_head recall_link;
	bool recall_queued;
};

/** A state_t with our fd right after it: Ganesha looks for it there. */
struct casync_state {
	struct state_t state;
	struct casync_fd fd;
	struct casync_delegation delegation;
	struct casync_mount *mount; /**< Of its export, which may end first. */
	bool unlocks_later;	    /**< state_calls.c's, under its lock. */
	/** Set under work_mutex if I/O was in flight when Ganesha freed the
	 * state: the last I/O calls it.  Atomic. */
	void (*freed)(struct casync_state *st);
};

/** The delegations of a file; embedded in the object. */
struct casync_delegations {
	struct glist_head list;
	uint32_t count; /**< Atomic. */
};

/** Recalls that can run at once. */
#define CASYNC_DELEGATIONS_RECALLERS CASYNC_LANE_RECALLERS

/** Begin recalls for an export's files. */
void casync_delegations_join(struct casync_export *exp);

/** End recalls for an export.  It waits for running ones, but not in an upcall.
 * May be repeated. */
void casync_delegations_leave(struct casync_export *exp);

void casync_delegations_init(struct casync_delegations *delegations);

/** The object is freed.  Its delegations, if any, stay with their states. */
void casync_delegations_destroy(struct casync_delegations *delegations);

/** obj_ops.lease_op2 */
fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg);

/** Call before this gateway opens the file: recalls conflicting delegations and
 * returns them to libcephfs without waiting. */
void casync_delegations_return_conflicting(
	struct casync_delegations *delegations, fsal_openflags_t openflags);

/** Call before a client reads, writes or sets attributes: returns the
 * delegations that libcephfs has recalled.  The call would wait for them.
 * Before a @p change of attributes it recalls and returns the requester's own
 * read delegations too. */
void casync_delegations_return_recalled(struct casync_delegations *delegations,
					bool change);

/** Call before attributes are told: recalls the write delegations of others.
 * @return Whether there is one: whoever asks has to wait. */
bool casync_delegations_recall_writers(struct casync_delegations *delegations);

/** Return a delegation to libcephfs, if one is held. */
void casync_delegations_return(struct casync_delegation *delegation);

/** Recall and return all of a mount: the MDS has ended the session. */
void casync_delegations_return_all(struct casync_mount *mount);

/**
 * Call before an fd closes its Fh.
 *
 * @return Whether a delegation has taken over the Fh: then it stays open.
 */
bool casync_delegations_take_fh(struct casync_mount *mount,
				struct casync_fd *fd);

#endif /* CASYNC_DELEGATIONS_H */
