/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file getset.h
 * @brief Sets attributes on the way of other operations.
 */
#ifndef CASYNC_GETSET_H
#define CASYNC_GETSET_H

#include "fsal_api.h"

struct casync_object;

/**
 * Set the verifier of an exclusive create, in atime and mtime of a new file.
 *
 * The answer does not wait for the MDS' journal: the client needs the verifier
 * only if it gets no answer.  The MDS gets it with the next flush of the file,
 * or 5 to 6 s later from libcephfs (client_caps_release_delay).
 */
fsal_status_t casync_getset_set_verifier(struct fsal_obj_handle *obj_hdl,
					 const struct fsal_attrlist *verifier);

/**
 * Clear setuid and setgid, as a write by a user other than root does.
 * libcephfs does not do it, because files are opened with root credentials.
 *
 * @return 0 or a negative errno.
 */
int casync_getset_drop_privileges(struct casync_object *obj);

/**
 * The requester truncates the file, or punches a hole: that is a write, so it
 * does the same if he is not root.  Linux' client leaves that to the server.
 *
 * @return 0 or a negative errno.
 */
int casync_getset_written(struct casync_object *obj);

#endif /* CASYNC_GETSET_H */
