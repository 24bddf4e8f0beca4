/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * OPEN, in two halves: an object that is known (open_object), and a name that
 * may have to be created (open_name).
 *
 * Share reservations are taken before the file is opened and given back if
 * that fails, so that handle.obj_lock is never held across a libcephfs call.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fsal.h"
#include "fsal_convert.h"
#include "FSAL/fsal_commonlib.h"

#include "attributes.h"
#include "call.h"
#include "create.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "inode.h"
#include "mount.h"
#include "object.h"
#include "obj_ops.h"
#include "privileges.h"

/* Lookups of a name that is there and then is not, before we give up. */
#define NAME_RACES_MAX 8

/* The parameters of open2, for the functions below. */
struct open_request {
	struct state_t *state;
	fsal_openflags_t openflags;
	enum fsal_create_mode createmode;
	struct fsal_attrlist *attrs_in;
	char *verifier;
	struct fsal_attrlist *attrs_out;
};

static const fsal_status_t success = {ERR_FSAL_NO_ERROR, 0};

/*
 * (Re)open a state's fd, with the reservation taken.  One that is open is
 * changed in place: OPEN comes with Ganesha's lock on the file's state, and
 * must not wait for I/O in flight.
 */
static fsal_status_t open_state_fd(struct casync_object *obj,
				   struct casync_fd *fd,
				   fsal_openflags_t openflags)
{
	fsal_openflags_t old = fd->fsal_fd.openflags;
	fsal_status_t status;

	/* Open in that way already; creation looks at more than flags. */
	if (FSAL_O_NFS_FLAGS(openflags) == FSAL_O_NFS_FLAGS(old) &&
	    !(openflags & FSAL_O_TRUNC))
		return success;
	if (fd->fh != NULL)
		return casync_fd_change(obj, fd, openflags);

	casync_ganesha_start_fd_work(&fd->fsal_fd);
	status = casync_fd_reopen(&obj->handle, openflags, &fd->fsal_fd);
	if (!FSAL_IS_ERROR(status))
		insert_fd_lru(&fd->fsal_fd);
	fsal_complete_fd_work(&fd->fsal_fd);
	return status;
}

/* A truncation is a write.  It reserves the file while it lasts. */
static fsal_status_t open_truncate(struct casync_object *obj)
{
	fsal_status_t status = check_share_conflict_and_update_locked(
		&obj->handle, &obj->share, FSAL_O_CLOSED, FSAL_O_WRITE, false);

	if (FSAL_IS_ERROR(status))
		return status;
	status = casync_errors_status(casync_fd_truncate(obj));
	update_share_counters_locked(&obj->handle, &obj->share, FSAL_O_WRITE,
				     FSAL_O_CLOSED);
	return status;
}

static fsal_status_t open_fd_alone(struct casync_object *obj,
				   struct state_t *state,
				   fsal_openflags_t openflags)
{
	struct casync_fd *fd;
	fsal_openflags_t old;
	fsal_status_t status;

	/* Without a state (NFSv3 CREATE) I/O opens the file when it comes. */
	if (state == NULL)
		return (openflags & FSAL_O_TRUNC) ? open_truncate(obj)
						  : success;

	fd = casync_fd_of_state(state);
	old = fd->fsal_fd.openflags;
	status = check_share_conflict_and_update_locked(
		&obj->handle, &obj->share, old, openflags, false);
	if (FSAL_IS_ERROR(status))
		return status;
	status = open_state_fd(obj, fd, openflags);
	if (FSAL_IS_ERROR(status))
		update_share_counters_locked(&obj->handle, &obj->share,
					     openflags, old);
	return status;
}

static fsal_status_t open_fd(struct casync_object *obj, struct state_t *state,
			     fsal_openflags_t openflags)
{
	fsal_status_t status = open_fd_alone(obj, state, openflags);

	/* If this fails the file is empty at least, and a WRITE tries again. */
	if (!FSAL_IS_ERROR(status) && (openflags & FSAL_O_TRUNC))
		(void)casync_privileges_drop(obj);
	return status;
}

static bool open_is_exclusive(enum fsal_create_mode createmode)
{
	return createmode >= FSAL_EXCLUSIVE && createmode != FSAL_EXCLUSIVE_9P;
}

static fsal_status_t open_check_type(const struct fsal_obj_handle *obj_hdl)
{
	switch (obj_hdl->type) {
	case REGULAR_FILE:
		return success;
	case DIRECTORY:
		return fsalstat(ERR_FSAL_ISDIR, 0);
	case SYMBOLIC_LINK:
		return fsalstat(ERR_FSAL_SYMLINK, 0);
	default:
		return fsalstat(ERR_FSAL_BADTYPE, 0);
	}
}

static fsal_status_t open_object(struct casync_object *obj,
				 const struct open_request *req)
{
	struct fsal_obj_handle *handle = &obj->handle;
	struct casync_created found = {.obj = obj, .verifier = req->verifier};
	fsal_status_t status = open_check_type(handle);

	/* Asked before a truncation could destroy the file. */
	if (!FSAL_IS_ERROR(status) && open_is_exclusive(req->createmode))
		status = casync_create_check_owner(&found, req->attrs_in);
	if (!FSAL_IS_ERROR(status))
		status = open_fd(obj, req->state, req->openflags);
	if (FSAL_IS_ERROR(status) || req->attrs_out == NULL)
		return status;

	/* The attributes that the caller has may have changed by this. */
	if (req->createmode != FSAL_NO_CREATE ||
	    (req->openflags & FSAL_O_TRUNC))
		(void)casync_getattrs(handle, req->attrs_out);
	else if (req->attrs_out->request_mask & ATTR_RDATTR_ERR)
		req->attrs_out->valid_mask = ATTR_RDATTR_ERR;
	return status;
}

/* Open a file that is there, by name. */
static fsal_status_t open_existing(struct casync_object *dir, const char *name,
				   const struct open_request *req,
				   struct fsal_obj_handle **new_obj)
{
	struct open_request by_handle = *req;
	struct fsal_obj_handle *found;
	struct ceph_statx stx;
	fsal_status_t status;
	struct Inode *inode;
	int rc;

	rc = casync_inode_lookup(casync_inode_ceph(dir), dir->inode, name,
				 req->attrs_out, &inode, &stx);
	if (rc < 0)
		return casync_errors_status(rc);
	casync_object_from_lookup(inode, &stx, &found, req->attrs_out);

	/* The lookup has filled in the attributes. */
	if (!(req->openflags & FSAL_O_TRUNC))
		by_handle.attrs_out = NULL;
	status = open_object(casync_object_of(found), &by_handle);
	if (FSAL_IS_ERROR(status))
		found->obj_ops->release(found);
	else
		*new_obj = found;
	return status;
}

static int open_create_file(struct casync_object *dir, const char *name,
			    const struct open_request *req,
			    struct Inode **inode, struct Fh **fh,
			    struct ceph_statx *stx)
{
	struct fsal_export *exp = op_ctx->fsal_export;
	attrmask_t mask = req->attrs_out ? req->attrs_out->request_mask : 0;
	mode_t mode = casync_privileges_of_new(
		dir, fsal2unix_mode(req->attrs_in->mode) &
			     ~exp->exp_ops.fs_umask(exp));
	CASYNC_ERRORS_REQUESTER(perms);
	int posix_flags = 0;

	fsal2posix_openflags(req->openflags, &posix_flags);
	return ceph_ll_create(casync_inode_ceph(dir), dir->inode, name, mode,
			      posix_flags | O_CREAT | O_EXCL, inode, fh, stx,
			      casync_attributes_statx_wanted(mask), 0, perms);
}

/* Nobody else knows the object yet: no lock, no conflict. */
static void open_adopt_fh(struct casync_object *obj, struct Fh *fh,
			  const struct open_request *req)
{
	struct casync_fd *fd =
		req->state != NULL
			? casync_fd_of_state(req->state)
			: casync_object_global_fd(obj, req->openflags);

	casync_fd_opened(obj, fd, fh, req->openflags);
	insert_fd_lru(&fd->fsal_fd);
	/* Nobody has given it a file capability yet. */
	if ((req->attrs_in->mode & (S_ISUID | S_ISGID)) == 0)
		obj->unprivileged = obj->privileged;
	if (req->state != NULL)
		update_share_counters(&obj->share, FSAL_O_CLOSED,
				      fd->fsal_fd.openflags);
}

/* It is made: set what the client asked for; or undo it. */
static fsal_status_t open_finish(struct casync_created *made, struct Fh *fh,
				 const struct open_request *req)
{
	fsal_status_t status;

	open_adopt_fh(made->obj, fh, req);
	status = casync_create_set_layout(made, req->attrs_out);
	if (FSAL_IS_ERROR(status)) {
		casync_create_undo(made);
		return status;
	}
	return casync_create_finish(made, ATTR_MODE, req->attrs_in,
				    req->attrs_out);
}

static fsal_status_t open_create_name(struct casync_object *dir,
				      const char *name,
				      const struct open_request *req,
				      struct fsal_obj_handle **new_obj)
{
	struct fsal_obj_handle *created;
	struct casync_created made;
	struct ceph_statx stx;
	struct Inode *inode;
	fsal_status_t status;
	struct Fh *fh = NULL; /* as in casync_fd_reopen() */
	int rc;

	rc = open_create_file(dir, name, req, &inode, &fh, &stx);
	if (rc < 0)
		return casync_errors_status(rc);
	casync_object_from_lookup(inode, &stx, &created, req->attrs_out);
	made = (struct casync_created){
		.dir = dir,
		.name = name,
		.obj = casync_object_of(created),
		.state = req->state,
		.verifier = open_is_exclusive(req->createmode) ? req->verifier
							       : NULL};
	status = open_finish(&made, fh, req);
	if (!FSAL_IS_ERROR(status))
		*new_obj = created;
	return status;
}

static fsal_status_t open_name(struct casync_object *dir, const char *name,
			       const struct open_request *req,
			       struct fsal_obj_handle **new_obj, bool *created)
{
	fsal_status_t status;
	int tries;

	*created = false;
	if (req->createmode == FSAL_NO_CREATE)
		return open_existing(dir, name, req, new_obj);

	/* The name may come and go between create and lookup. */
	for (tries = 0; tries < NAME_RACES_MAX; tries++) {
		status = open_create_name(dir, name, req, new_obj);
		*created = !FSAL_IS_ERROR(status);
		if (status.major != ERR_FSAL_EXIST ||
		    req->createmode == FSAL_GUARDED)
			return status;

		status = open_existing(dir, name, req, new_obj);
		if (status.major != ERR_FSAL_NOENT)
			return status;
	}
	return fsalstat(ERR_FSAL_DELAY, EAGAIN);
}

fsal_status_t
casync_open2(struct fsal_obj_handle *obj_hdl, struct state_t *state,
	     fsal_openflags_t openflags, enum fsal_create_mode createmode,
	     const char *name, struct fsal_attrlist *attrs_in,
	     fsal_verifier_t verifier, struct fsal_obj_handle **new_obj,
	     struct fsal_attrlist *attrs_out,
	     bool *caller_perm_check CASYNC_GANESHA_PARENT_ATTRS(parent))
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct open_request req = {
		.state = state,
		.openflags = openflags,
		.createmode = createmode,
		.attrs_in = attrs_in,
		.verifier = verifier,
		.attrs_out = attrs_out,
	};
	struct casync_call call;
	fsal_status_t status;
	bool created;

	/* The verifier is kept in atime and mtime. */
	if (open_is_exclusive(createmode))
		set_common_verifier(attrs_in, verifier, false);

	if (name == NULL) {
		status =
			casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
		if (FSAL_IS_ERROR(status))
			return status;
		status = open_object(obj, &req);
		*caller_perm_check = !FSAL_IS_ERROR(status);
		return casync_call_end(&call, status);
	}
	status = casync_call_begin_entry(&call, obj_hdl, name,
					 CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	status = open_name(obj, name, &req, new_obj, &created);
	/* The client that creates a file may open it, whatever its mode. */
	*caller_perm_check = !created;
	return casync_call_end(&call, status);
}

fsal_status_t casync_reopen2(struct fsal_obj_handle *obj_hdl,
			     struct state_t *state, fsal_openflags_t openflags)
{
	struct casync_call call;
	fsal_status_t status;

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	status = casync_ganesha_check_reopen(
		obj_hdl, casync_fd_of_state(state)->fsal_fd.openflags,
		openflags);
	if (!FSAL_IS_ERROR(status))
		status = open_fd(casync_object_of(obj_hdl), state, openflags);
	return casync_call_end(&call, status);
}
