/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file leases.h
 * @brief What stands behind an NFSv4 delegation: libcephfs' own.
 *
 * A delegation of libcephfs belongs to an Fh and goes with it.  A read
 * delegation has an Fh of its own.  A write delegation is granted only to the
 * one Fh that is open, which is the open state's; when that is closed or
 * reopened while the delegation is held, the delegation keeps it.
 *
 * A recall comes under client_lock: it is queued (recalls.h).  The delegation
 * is given back when the client has returned it, or Ganesha has
 * revoked it.
 *
 * Or when its own holder opens the file once more: to libcephfs that is a
 * conflict, for whose end the open would wait, while Ganesha holds the file's
 * state lock, without which it can neither recall nor revoke.  In the end
 * libcephfs would give up the mount.  Ganesha has made sure that nobody else's
 * delegation is in the way.
 *
 * Or when its holder works on after the recall: what it needs for that
 * is what the MDS wants back, and it would wait until it is revoked.  So who
 * caused the recall may come first, and see the file without what its holder
 * sends last.
 */
#ifndef CASYNC_LEASES_H
#define CASYNC_LEASES_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "gsh_list.h"
#include "recalls.h"

struct casync_export;
struct casync_fd;
struct casync_object;

/** Embedded in every state; used by delegations. */
struct casync_lease {
	struct Fh *fh;	      /**< NULL: nothing is held. */
	struct casync_fd *fd; /**< Whose Fh it is; NULL: ours to close. */
	struct casync_recall recall;
	struct casync_object *obj; /**< In whose list it is; NULL: in none. */
	struct glist_head link;
	bool for_write;
	bool recalled; /**< By libcephfs; atomic. */
};

/** The delegations of a file; embedded in the object. */
struct casync_leases {
	struct glist_head list;
	uint32_t count; /**< Atomic. */
};

void casync_leases_init(struct casync_leases *leases);

/** The object goes; delegations, if there are any, stay with their states. */
void casync_leases_destroy(struct casync_leases *leases);

/** Through this gateway the file is about to be opened: recall delegations
 * that are in the way, and give them back without waiting. */
void casync_lease_yield(struct casync_object *obj, fsal_openflags_t openflags);

/** One of its clients wants to read, write or set attributes: give back what
 * libcephfs has recalled.  It would wait for that. */
void casync_lease_let_go(struct casync_object *obj);

/** obj_ops.lease_op2 */
fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg);

/**
 * An fd is about to close its Fh.
 *
 * @return Whether a lease has taken the Fh over: then it stays open.
 */
bool casync_lease_keeps_fh(struct casync_fd *fd);

/** Give a delegation back to libcephfs, if one is held. */
void casync_lease_give_back(struct casync_lease *lease);

#endif /* CASYNC_LEASES_H */
