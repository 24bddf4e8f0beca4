/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file revive.h
 * @brief Gives objects and fds of a lost CephFS client those of the new one.
 *
 * An object or an fd notes the generation of the client that its Inode or Fh is
 * of.  After a change of the client it is looked up, or opened, when somebody
 * uses it next.  The old Inode and Fh ended with the old client.
 */
#ifndef CASYNC_REVIVE_H
#define CASYNC_REVIVE_H

#include "fsal_api.h"
#include "mount.h"

struct casync_export;
struct casync_fd;
struct casync_object;

/**
 * Begin a request on an object: enter the guard of its mount, and make its
 * Inode one of the current client.  It may ask the MDS.
 *
 * @return 0: casync_revive_end() must be called.  -ESTALE: the file is gone.
 *	   Another negative errno: the client must ask again.
 */
int casync_revive_begin(struct casync_object *obj);

/** End a request, by any thread. */
void casync_revive_end(const struct casync_object *obj);

/** The status of a request, as casync_keeper_answer() makes it. */
fsal_status_t casync_revive_answer(const struct casync_object *obj,
				   fsal_status_t status);

/** The Inode of another object of the request.  In the guard.  @return 0 or a
 * negative errno. */
int casync_revive_inode(struct casync_object *obj);

/**
 * Open an fd anew that a lost client had open.  In the guard, after
 * casync_revive_inode(); I/O has been started on the fd, or it is a state's.
 *
 * @return 0 or a negative errno.
 */
int casync_revive_fd(struct casync_object *obj, struct casync_fd *fd);

/** Is the fd's Fh of a client that is gone? */
bool casync_revive_fd_is_lost(const struct casync_object *obj,
			      const struct casync_fd *fd);

#endif /* CASYNC_REVIVE_H */
