/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file fd.h
 * @brief A libcephfs Fh behind Ganesha's fsal_fd.
 *
 * Who may touch what: `fh` and fsal_fd.openflags change in reopen and close,
 * which Ganesha runs when no I/O is in flight on the fd (io_work is 0) and
 * under its work_mutex, or before anybody else knows the fd.  An op keeps
 * io_work raised until it has completed, so an Fh is never closed under
 * libcephfs.
 *
 * But an OPEN that wants more of a file that is open already does not wait for
 * that: it would for as long as an OSD does not answer, with Ganesha's lock on
 * the file's state in its hand.  A second Fh is opened beside the first, which
 * stays until the fd is closed (casync_fd_change()).
 */
#ifndef CASYNC_FD_H
#define CASYNC_FD_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "sal_data.h"
#include "leases.h"

struct casync_export;
struct casync_object;

struct casync_fd {
	struct fsal_fd fsal_fd;	    /**< Must be first: Ganesha casts. */
	struct Fh *fh;		    /**< NULL while closed.  Atomic. */
	struct Fh *former_fh;	    /**< I/O may be in flight on it yet. */
	fsal_openflags_t fh_flags;  /**< What `fh` is open for; the fd may be
					 for less. */
	struct casync_object *obj;  /**< Whose global fd it is, or NULL. */
	struct casync_lease *lease; /**< On this Fh; leases.c's. */
};

/** A state_t with our fd right behind it, where Ganesha looks for it. */
struct casync_state {
	struct state_t state;
	struct casync_fd fd;
	struct casync_lease lease; /**< Of a delegation. */
};

static inline struct casync_fd *casync_fd_of(struct fsal_fd *fsal_fd)
{
	return container_of(fsal_fd, struct casync_fd, fsal_fd);
}

static inline struct casync_fd *casync_state_fd(struct state_t *state)
{
	return &container_of(state, struct casync_state, state)->fd;
}

/** The Fh; I/O has been started on the fd. */
static inline struct Fh *casync_fd_fh(const struct casync_fd *fd)
{
	return __atomic_load_n(&fd->fh, __ATOMIC_ACQUIRE);
}

/** exp_ops.alloc_state: every state type gets an fd. */
struct state_t *casync_state_alloc(struct fsal_export *exp_hdl,
				   enum state_type state_type,
				   struct state_t *related_state);

/** Put a fresh Fh into a closed fd (creation); flags as for open2. */
void casync_fd_opened(struct casync_object *obj, struct casync_fd *fd,
		      struct Fh *fh, fsal_openflags_t openflags);

/** obj_ops.reopen_func.  Opens as root: Ganesha has checked access. */
fsal_status_t casync_fd_reopen(struct fsal_obj_handle *obj_hdl,
			       fsal_openflags_t openflags, struct fsal_fd *fd);

/**
 * Change what an open fd of a state is for, with I/O in flight on it.  Under
 * Ganesha's lock of the state: one OPEN, OPEN_DOWNGRADE or CLOSE at a time.
 *
 * @param[in] openflags  In all, as for open2.
 */
fsal_status_t casync_fd_change(struct casync_object *obj, struct casync_fd *fd,
			       fsal_openflags_t openflags);

/** Empty the file, as root.  @return 0 or a negative errno. */
int casync_fd_truncate(struct casync_object *obj);

/** How the file lies in RADOS has changed: look again. */
void casync_fd_learn_layout(struct casync_object *obj);

/** obj_ops.close_func. */
fsal_status_t casync_fd_close(struct fsal_obj_handle *obj_hdl,
			      struct fsal_fd *fd);

/**
 * Is a request that is never answered still at work on this fd?  Then closing
 * it would wait for ever, and freeing it would be premature.
 */
bool casync_fd_abandoned(const struct casync_export *exp,
			 const struct casync_fd *fd);

/** obj_ops.close: the global fds. */
fsal_status_t casync_close(struct fsal_obj_handle *obj_hdl);

/** obj_ops.close2: a state's fd. */
fsal_status_t casync_close2(struct fsal_obj_handle *obj_hdl,
			    struct state_t *state);

/** obj_ops.status2. */
fsal_openflags_t casync_status2(struct fsal_obj_handle *obj_hdl,
				struct state_t *state);

#endif /* CASYNC_FD_H */
