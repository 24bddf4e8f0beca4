/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file guarded.h
 * @brief The object operations, within the guard of their mount.
 *
 * Ganesha calls these.  Each enters the guard, makes the Inodes of its objects
 * ones of the current client, calls the operation of obj_ops.h and leaves.  If
 * the session is lost, the answer asks the client to retry.  READ and WRITE
 * leave when they are answered (op.h).
 */
#ifndef CASYNC_GUARDED_H
#define CASYNC_GUARDED_H

#include "fsal_api.h"

/** Fill in the operations that use a client of CephFS. */
void casync_guarded_init(struct fsal_obj_ops *ops);

#endif /* CASYNC_GUARDED_H */
