/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file leases.h
 * @brief NFSv4 delegations, backed by delegations of libcephfs.
 *
 * A delegation of libcephfs belongs to an Fh and ends with it.  A read
 * delegation has its own Fh.  libcephfs grants a write delegation only to the
 * one Fh that is open: the Fh of the open state.  If the state is closed or
 * reopened while the delegation is held, the delegation keeps that Fh.
 *
 * A recall comes under client_lock.  So it is queued (recalls.h).  The
 * delegation is given back when the client has returned it, or Ganesha has
 * revoked it.  There are two more cases.
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
 */
#ifndef CASYNC_LEASES_H
#define CASYNC_LEASES_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "gsh_list.h"
#include "recalls.h"

struct casync_export;
struct casync_fd;
struct casync_mount;
struct casync_object;

/** Embedded in every state; used by delegations. */
struct casync_lease {
	struct Fh *fh;	      /**< NULL: nothing is held. */
	struct casync_fd *fd; /**< Owner of the Fh; NULL: we close it. */
	struct casync_recall recall;
	struct casync_object *obj; /**< Its list; NULL: in no list. */
	struct glist_head link;
	struct glist_head held_link; /**< In the list of all, with an Fh. */
	bool for_write;
	bool recalled; /**< libcephfs has recalled it; atomic. */
};

/** The delegations of a file; embedded in the object. */
struct casync_leases {
	struct glist_head list;
	uint32_t count; /**< Atomic. */
};

void casync_leases_init(struct casync_leases *leases);

/** The object is freed.  Its delegations, if any, stay with their states. */
void casync_leases_destroy(struct casync_leases *leases);

/** Call before this gateway opens the file: recalls conflicting delegations and
 * gives them back without waiting. */
void casync_lease_yield(struct casync_object *obj, fsal_openflags_t openflags);

/** Call before a client reads, writes or sets attributes: gives back the
 * delegations that libcephfs has recalled.  The call would wait for them. */
void casync_lease_let_go(struct casync_object *obj);

/** obj_ops.lease_op2 */
fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg);

/**
 * Call before an fd closes its Fh.
 *
 * @return Whether a lease has taken over the Fh: then it stays open.
 */
bool casync_lease_keeps_fh(struct casync_fd *fd);

/** Recall and give back all delegations of a mount: the MDS has ended the
 * session. */
void casync_leases_forget(struct casync_mount *mount);

/** Give a delegation back to libcephfs, if one is held. */
void casync_lease_give_back(struct casync_lease *lease);

#endif /* CASYNC_LEASES_H */
