/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file borrow.h
 * @brief Borrows an open Fh (a state's, global or temporary) for a blocking
 * call, and opens the Fhs of a lost client again.
 *
 * An fd notes the generation of the client that its Fh is of.  After a change of
 * the client the file is opened again when the fd is used next.  The old Fh
 * ended with the old client.
 */
#ifndef CASYNC_BORROW_H
#define CASYNC_BORROW_H

#include "fd.h"

/**
 * Open an fd anew that a lost client had open.
 *
 * The caller is in a call that holds the client (call.h).  I/O has been started
 * on the fd, or it is a state's.
 *
 * @return 0 or a negative errno.
 */
int casync_borrow_renew_fd(struct casync_object *obj, struct casync_fd *fd);

/** Is the fd's Fh of a client that is gone? */
bool casync_borrow_fd_is_lost(const struct casync_object *obj,
			      const struct casync_fd *fd);

/** An open Fh, borrowed for one blocking call. */
struct casync_borrowed {
	struct casync_object *obj;
	struct fsal_fd *fsal_fd;
	struct casync_fd temp_fd;
	fsal_openflags_t openflags;
	bool share_held; /**< A temporary share reservation. */
};

/**
 * Get a usable Fh: the state's, the global one or a temporary one.
 *
 * @param[out] borrowed   On success the caller must give it back.
 * @param[in]  state      The state of the stateid, or NULL.
 * @param[in]  openflags  The access that is needed.
 * @param[in]  for_lock   For a byte-range lock: a lock state's own fd.
 * @param[in]  bypass     Bypass non-mandatory share denials.
 */
fsal_status_t casync_borrow(struct casync_borrowed *borrowed,
			    struct casync_object *obj, struct state_t *state,
			    fsal_openflags_t openflags, bool for_lock,
			    bool bypass);

/** The Fh, until it is given back. */
static inline struct Fh *casync_borrow_fh(const struct casync_borrowed *b)
{
	return casync_fd_fh(casync_fd_of(b->fsal_fd));
}

/** Give a borrowed Fh back.  It may call libcephfs to close a temporary fd. */
void casync_borrow_return(struct casync_borrowed *borrowed);

#endif /* CASYNC_BORROW_H */
