/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file obj_ops.h
 * @brief The object operations, and their steps that others need too, grouped
 * by the file that implements them.
 *
 * fsal_api.h of Ganesha has their contracts and their types.  All run on a
 * Ganesha worker with op_ctx set, and may block.  Only read2 and write2 are
 * asynchronous.  Each but io_advise begins and ends a call (call.h).
 */
#ifndef CASYNC_OBJ_OPS_H
#define CASYNC_OBJ_OPS_H

#include "fsal_api.h"

struct casync_object;

/** casync_<op>() has the type that Ganesha gives to the operation. */
#define CASYNC_OPERATION(op) \
	__typeof__(*((struct fsal_obj_ops *)0)->op) casync_##op

/* create.c */
CASYNC_OPERATION(check_verifier);
CASYNC_OPERATION(mkdir);
CASYNC_OPERATION(mknode);
CASYNC_OPERATION(symlink);

/* getset.c */
CASYNC_OPERATION(getattrs);
CASYNC_OPERATION(setattr2);

/**
 * Set the verifier of an exclusive create, in atime and mtime of a new file.
 *
 * The answer does not wait for the MDS' journal: the client needs the verifier
 * only if it gets no answer.  The MDS gets it with the next flush of the file,
 * or 5 to 6 s later from libcephfs (client_caps_release_delay).
 */
fsal_status_t casync_getset_set_verifier(struct fsal_obj_handle *obj_hdl,
					 const struct fsal_attrlist *verifier);

/* locks.c */
CASYNC_OPERATION(lock_op2);

/* namespace.c */
CASYNC_OPERATION(link);
CASYNC_OPERATION(lookup);
CASYNC_OPERATION(readlink);
CASYNC_OPERATION(rename);
CASYNC_OPERATION(unlink);

/**
 * A name in a directory was changed: see to it that the MDS journals it.  With
 * Stable_Metadata = journal this waits for it; all that wait for one directory
 * share a flush.
 *
 * @param[in] made  The new object of that name, or NULL.
 *
 * @return 0 or a negative errno: the change may be lost.
 */
int casync_namespace_changed(struct casync_object *dir,
			     struct casync_object *made);

/* open.c */
CASYNC_OPERATION(open2);
CASYNC_OPERATION(reopen2);

/* readdir.c */
CASYNC_OPERATION(readdir);

/* rw.c */
CASYNC_OPERATION(commit2);
CASYNC_OPERATION(read2);
CASYNC_OPERATION(write2);

/* space.c */
CASYNC_OPERATION(fallocate);
CASYNC_OPERATION(io_advise);
CASYNC_OPERATION(seek2);

/* xattr.c */
CASYNC_OPERATION(getxattrs);
CASYNC_OPERATION(listxattrs);
CASYNC_OPERATION(removexattrs);
CASYNC_OPERATION(setxattrs);

#endif /* CASYNC_OBJ_OPS_H */
