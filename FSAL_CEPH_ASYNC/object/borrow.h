/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file borrow.h
 * @brief Borrows an open Fh (a state's, global or temporary) for a blocking
 * call.
 */
#ifndef CASYNC_BORROW_H
#define CASYNC_BORROW_H

#include "fd.h"

struct casync_state;

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

/**
 * End I/O on an fd, as fsal_complete_io().  If Ganesha has freed the fd's state
 * and this was the last I/O, the fd is closed and freed.
 */
fsal_status_t casync_borrow_complete_io(struct casync_object *obj,
					struct fsal_fd *fsal_fd);

/** End I/O on a state's fd, whose io_work the caller has raised.  It needs no
 * object. */
void casync_borrow_end_io(struct casync_state *st);

/** Does the end of I/O on this fd call libcephfs? */
bool casync_borrow_ends_in_libcephfs(const struct fsal_fd *fsal_fd);

/** Give a borrowed Fh back.  It may call libcephfs to close a temporary fd. */
void casync_borrow_return(struct casync_borrowed *borrowed);

#endif /* CASYNC_BORROW_H */
