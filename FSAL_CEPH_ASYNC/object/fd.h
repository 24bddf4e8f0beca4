/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file fd.h
 * @brief Opens and closes the libcephfs Fh behind Ganesha's fsal_fd.
 *
 * Rules for changes: `fh` and fsal_fd.openflags change in reopen and close.
 * Ganesha runs these under the fd's work_mutex, when no I/O is in flight on the
 * fd (io_work is 0), or before another thread knows the fd.  An op keeps
 * io_work raised until it has completed.  So an Fh is never closed while
 * libcephfs uses it.
 *
 * One case must not wait for that: an OPEN that wants more access to a file
 * that is already open.  It holds Ganesha's lock on the file's state, and it
 * would wait as long as an OSD does not answer.  So it opens a second Fh beside
 * the first.  The first stays until the fd is closed (casync_fd_change()).
 *
 * CLOSE does not wait either, for the same reason.  With I/O in flight it
 * leaves the Fh open.  It is closed when Ganesha frees the state, which the
 * requests keep alive.  If I/O goes on even then (under a delegation), the last
 * of it closes the Fh and frees the fd (casync_borrow_end_io()).
 */
#ifndef CASYNC_FD_H
#define CASYNC_FD_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "sal_data.h"

struct casync_delegation;
struct casync_export;
struct casync_lock_records;
struct casync_object;

struct casync_fd {
	struct fsal_fd fsal_fd;	    /**< Must be first: Ganesha casts. */
	struct Fh *fh;		    /**< NULL while closed.  Atomic. */
	struct Fh *narrow_fh;	    /**< I/O may still be in flight on it. */
	uint32_t generation;	    /**< Of the Fhs' client; atomic. */
	fsal_openflags_t fh_access; /**< Access of `fh`; the fd's may be
					 less. */
	struct casync_object *obj;  /**< Its object if it is a global fd. */
	/** On this Fh; used by delegations.c. */
	struct casync_delegation *delegation;
	/** Those of its file, if it has one; or NULL; lock_records.c's, atomic.
	 */
	struct casync_lock_records *locks_of;
	bool lock_lost; /**< Until its owner unlocks the file; atomic. */
};

static inline struct casync_fd *casync_fd_of(struct fsal_fd *fsal_fd)
{
	return container_of(fsal_fd, struct casync_fd, fsal_fd);
}

/** The fd of a state, right after it in struct casync_state (delegations.h). */
static inline struct casync_fd *casync_fd_of_state(struct state_t *state)
{
	return (struct casync_fd *)(state + 1);
}

/** The Fh.  I/O must have been started on the fd. */
static inline struct Fh *casync_fd_fh(const struct casync_fd *fd)
{
	return __atomic_load_n(&fd->fh, __ATOMIC_ACQUIRE);
}

/** Has the state lost a byte-range lock that its owner thinks it holds? */
static inline bool casync_fd_lost_lock(struct state_t *state)
{
	if (state == NULL)
		return false;
	/* NOLINTNEXTLINE(*.ArrayBound): fd.c asserts what follows the state */
	return __atomic_load_n(&casync_fd_of_state(state)->lock_lost,
			       __ATOMIC_ACQUIRE);
}

/** exp_ops.alloc_state: every state type gets an fd. */
struct state_t *casync_fd_alloc_state(struct fsal_export *exp_hdl,
				      enum state_type state_type,
				      struct state_t *related_state);

/** Put a fresh Fh into a closed fd (creation); flags as for open2. */
void casync_fd_opened(struct casync_object *obj, struct casync_fd *fd,
		      struct Fh *fh, fsal_openflags_t openflags);

/** obj_ops.reopen_func.  It opens as root: Ganesha has checked access. */
fsal_status_t casync_fd_reopen(struct fsal_obj_handle *obj_hdl,
			       fsal_openflags_t openflags, struct fsal_fd *fd);

/** casync_fd_reopen() for the first lock of an owner.  A reclaim waits for the
 * MDS without a limit. */
fsal_status_t casync_fd_open_for_lock(struct casync_object *obj,
				      fsal_openflags_t openflags,
				      struct fsal_fd *fsal_fd, bool reclaim);

/**
 * Change the access of a state's open fd while I/O is in flight on it.  Ganesha
 * holds the lock of the state: one OPEN, OPEN_DOWNGRADE or CLOSE at a time.
 *
 * @param[in] openflags  The whole access, as for open2.
 */
fsal_status_t casync_fd_change(struct casync_object *obj, struct casync_fd *fd,
			       fsal_openflags_t openflags);

/** Empty the file, as root.  @return 0 or a negative errno. */
int casync_fd_truncate(struct casync_object *obj);

/** The file's layout has changed: read it again. */
void casync_fd_read_layout(struct casync_object *obj);

/** obj_ops.close_func. */
fsal_status_t casync_fd_close(struct fsal_obj_handle *obj_hdl,
			      struct fsal_fd *fd);

/**
 * Does a request that is never answered still use this fd?  Then closing it
 * would wait for ever, and it must not be freed.
 */
bool casync_fd_abandoned(const struct casync_export *exp,
			 const struct casync_fd *fd);

/** obj_ops.close: close the global fds. */
fsal_status_t casync_close(struct fsal_obj_handle *obj_hdl);

/** obj_ops.close2: close a state's fd. */
fsal_status_t casync_close2(struct fsal_obj_handle *obj_hdl,
			    struct state_t *state);

/** obj_ops.status2: the access of a state's fd. */
fsal_openflags_t casync_status2(struct fsal_obj_handle *obj_hdl,
				struct state_t *state);

#endif /* CASYNC_FD_H */
