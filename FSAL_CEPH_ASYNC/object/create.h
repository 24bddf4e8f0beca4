/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file create.h
 * @brief Completes what OPEN, MKDIR, MKNOD and SYMLINK have made: sets the
 * remaining attributes, or undoes it.
 */
#ifndef CASYNC_CREATE_H
#define CASYNC_CREATE_H

#include "fsal_api.h"

struct casync_object;

/** Something new.  The operation that made it has not succeeded yet. */
struct casync_created {
	struct casync_object *dir; /**< NULL: not known. */
	const char *name;
	struct casync_object *obj; /**< New; nobody else knows it. */
	struct state_t *state;	   /**< OPEN's, with its fd open; or NULL. */
	/** Of an exclusive create, among the attributes too; or NULL. */
	const char *verifier;
	/** Its layout was set after it was made.  A flush of the directory does
	 * not wait for that, so the first data must (flush.h). */
	bool laid_out;
};

/**
 * Set the attributes that the creating call could not set, and see to it that
 * the MDS journals the name (casync_namespace_changed()).
 *
 * If that fails, the new object is undone (casync_create_undo()).  If only the
 * attributes cannot be read again, the operation succeeds, because the object
 * exists; @p attrs_out then says that it has no attributes.
 *
 * @param[in]     already_set  Attributes that the creating call has set.
 * @param[in,out] attrs_in     As the client asked for; unchanged on return.
 * @param[in,out] attrs_out    May be NULL.
 */
fsal_status_t casync_create_finish(const struct casync_created *made,
				   attrmask_t already_set,
				   struct fsal_attrlist *attrs_in,
				   struct fsal_attrlist *attrs_out);

/**
 * Give a new file its layout, before its first byte: it is fixed from then on.
 *
 * @param[in,out] attrs_out  They are read again if it changes them.  May be
 *                           NULL.
 */
fsal_status_t casync_create_set_layout(struct casync_created *made,
				       struct fsal_attrlist *attrs_out);

/**
 * An exclusive create meets a file: is it its own?
 *
 * It is if it has the verifier: the create was sent again.  It is if the create
 * with this verifier was cut off and left it (unfinished.h); it is finished
 * then.  Within the call of the operation.
 *
 * @param[in] found     Its obj, and the verifier; more is not known.
 * @param[in] attrs_in  The verifier is among them.
 *
 * @return ERR_FSAL_EXIST: it is somebody else's.
 */
fsal_status_t casync_create_check_owner(struct casync_created *found,
					struct fsal_attrlist *attrs_in);

/**
 * Remove the new object again, release it, and close the state's fd.
 *
 * As root: the requester was allowed to create here, which does not say that
 * it may remove.  If the name cannot be removed, one line is logged, and a file
 * of an exclusive create waits until that is sent again (unfinished.h).
 */
void casync_create_undo(const struct casync_created *made);

#endif /* CASYNC_CREATE_H */
