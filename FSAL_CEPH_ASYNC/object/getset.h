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

#endif /* CASYNC_GETSET_H */
