/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "callers.h"
#include "entry_name.h"
#include "errors.h"
#include "export.h"
#include "guarded.h"
#include "leases.h"
#include "lock_records.h"
#include "obj_ops.h"
#include "object.h"
#include "revive.h"

/* Call an operation on an object within the guard.  Its status is the value. */
#define GUARDED(obj_hdl, call)                                               \
	({                                                                   \
		fsal_status_t began = guarded_begin(obj_hdl);                \
		FSAL_IS_ERROR(began) ? began : guarded_end((obj_hdl), call); \
	})

/* The same for an operation on an entry of a directory. */
#define GUARDED_ENTRY(dir_hdl, name, call)                                    \
	({                                                                    \
		int wrong = casync_entry_name_check(name);                    \
		wrong != 0 ? casync_status(wrong) : GUARDED((dir_hdl), call); \
	})

/* READ and WRITE: what keeps a worker has its own limits (fd.c, read_cache.c,
 * read_here.c). */
static fsal_status_t guarded_begin_io(struct fsal_obj_handle *obj_hdl)
{
	struct casync_object *obj = casync_object_of(obj_hdl);

	return casync_revive_answer(obj,
				    casync_status(casync_revive_begin(obj)));
}

static fsal_status_t guarded_begin_inside(struct fsal_obj_handle *obj_hdl)
{
	fsal_status_t status = guarded_begin_io(obj_hdl);

	if (FSAL_IS_ERROR(status))
		casync_callers_leave(
			casync_object_mount(casync_object_of(obj_hdl)));
	return status;
}

static fsal_status_t guarded_begin(struct fsal_obj_handle *obj_hdl)
{
	if (!casync_callers_enter(
		    casync_object_mount(casync_object_of(obj_hdl))))
		return casync_status(-ETIME);
	return guarded_begin_inside(obj_hdl);
}

static fsal_status_t guarded_end(struct fsal_obj_handle *obj_hdl,
				 fsal_status_t status)
{
	const struct casync_object *obj = casync_object_of(obj_hdl);

	status = casync_revive_answer(obj, status);
	casync_revive_end(obj);
	casync_callers_leave(casync_object_mount(obj));
	return status;
}

/* Another object of an operation that has begun. */
static fsal_status_t guarded_other(struct fsal_obj_handle *obj_hdl)
{
	return casync_status(casync_revive_inode(casync_object_of(obj_hdl)));
}

static fsal_status_t guarded_lookup(struct fsal_obj_handle *dir_hdl,
				    const char *name,
				    struct fsal_obj_handle **handle,
				    struct fsal_attrlist *attrs_out)
{
	return GUARDED_ENTRY(dir_hdl, name,
			     casync_lookup(dir_hdl, name, handle, attrs_out));
}

static fsal_status_t
guarded_mkdir(struct fsal_obj_handle *dir_hdl, const char *name,
	      struct fsal_attrlist *attrs_in, struct fsal_obj_handle **new_obj,
	      struct fsal_attrlist *attrs_out, struct fsal_attrlist *parent_pre,
	      struct fsal_attrlist *parent_post)
{
	return GUARDED_ENTRY(dir_hdl, name,
			     casync_mkdir(dir_hdl, name, attrs_in, new_obj,
					  attrs_out, parent_pre, parent_post));
}

static fsal_status_t guarded_mknode(
	struct fsal_obj_handle *dir_hdl, const char *name,
	object_file_type_t nodetype, struct fsal_attrlist *attrs_in,
	struct fsal_obj_handle **new_obj, struct fsal_attrlist *attrs_out,
	struct fsal_attrlist *parent_pre, struct fsal_attrlist *parent_post)
{
	return GUARDED_ENTRY(dir_hdl, name,
			     casync_mknode(dir_hdl, name, nodetype, attrs_in,
					   new_obj, attrs_out, parent_pre,
					   parent_post));
}

static fsal_status_t guarded_symlink(struct fsal_obj_handle *dir_hdl,
				     const char *name, const char *link_path,
				     struct fsal_attrlist *attrs_in,
				     struct fsal_obj_handle **new_obj,
				     struct fsal_attrlist *attrs_out,
				     struct fsal_attrlist *parent_pre,
				     struct fsal_attrlist *parent_post)
{
	return GUARDED_ENTRY(dir_hdl, name,
			     casync_symlink(dir_hdl, name, link_path, attrs_in,
					    new_obj, attrs_out, parent_pre,
					    parent_post));
}

static fsal_status_t guarded_readlink(struct fsal_obj_handle *obj_hdl,
				      utf8string *link_content, bool refresh)
{
	return GUARDED(obj_hdl,
		       casync_readlink(obj_hdl, link_content, refresh));
}

static fsal_status_t guarded_link(struct fsal_obj_handle *obj_hdl,
				  struct fsal_obj_handle *destdir_hdl,
				  const char *name,
				  struct fsal_attrlist *destdir_pre,
				  struct fsal_attrlist *destdir_post)
{
	fsal_status_t status = casync_status(casync_entry_name_check(name));

	if (!FSAL_IS_ERROR(status))
		status = guarded_begin(obj_hdl);
	if (FSAL_IS_ERROR(status))
		return status;
	status = guarded_other(destdir_hdl);
	if (!FSAL_IS_ERROR(status))
		status = casync_link(obj_hdl, destdir_hdl, name, destdir_pre,
				     destdir_post);
	return guarded_end(obj_hdl, status);
}

static fsal_status_t guarded_rename(
	struct fsal_obj_handle *obj_hdl, struct fsal_obj_handle *olddir_hdl,
	const char *old_name, struct fsal_obj_handle *newdir_hdl,
	const char *new_name, struct fsal_attrlist *olddir_pre,
	struct fsal_attrlist *olddir_post, struct fsal_attrlist *newdir_pre,
	struct fsal_attrlist *newdir_post)
{
	fsal_status_t status = casync_status(casync_entry_name_check(old_name));

	if (!FSAL_IS_ERROR(status))
		status = casync_status(casync_entry_name_check(new_name));
	if (!FSAL_IS_ERROR(status))
		status = guarded_begin(olddir_hdl);
	if (FSAL_IS_ERROR(status))
		return status;
	status = guarded_other(newdir_hdl);
	if (!FSAL_IS_ERROR(status))
		status = guarded_other(obj_hdl);
	if (!FSAL_IS_ERROR(status))
		status = casync_rename(obj_hdl, olddir_hdl, old_name,
				       newdir_hdl, new_name, olddir_pre,
				       olddir_post, newdir_pre, newdir_post);
	return guarded_end(olddir_hdl, status);
}

static fsal_status_t guarded_unlink(struct fsal_obj_handle *dir_hdl,
				    struct fsal_obj_handle *obj_hdl,
				    const char *name,
				    struct fsal_attrlist *parent_pre,
				    struct fsal_attrlist *parent_post)
{
	return GUARDED_ENTRY(
		dir_hdl, name,
		casync_unlink(dir_hdl, obj_hdl, name, parent_pre, parent_post));
}

static fsal_status_t guarded_readdir(struct fsal_obj_handle *dir_hdl,
				     fsal_cookie_t *whence, void *dir_state,
				     fsal_readdir_cb cb, attrmask_t attrmask,
				     bool *eof)
{
	return GUARDED(dir_hdl, casync_readdir(dir_hdl, whence, dir_state, cb,
					       attrmask, eof));
}

static fsal_status_t guarded_getattrs(struct fsal_obj_handle *obj_hdl,
				      struct fsal_attrlist *attrs_out)
{
	fsal_status_t status =
		GUARDED(obj_hdl, casync_getattrs(obj_hdl, attrs_out));

	if (FSAL_IS_ERROR(status) &&
	    FSAL_TEST_MASK(attrs_out->request_mask, ATTR_RDATTR_ERR))
		attrs_out->valid_mask = ATTR_RDATTR_ERR;
	return status;
}

static fsal_status_t guarded_setattr2(struct fsal_obj_handle *obj_hdl,
				      bool bypass, struct state_t *state,
				      struct fsal_attrlist *attrib_set)
{
	return GUARDED(obj_hdl,
		       casync_setattr2(obj_hdl, bypass, state, attrib_set));
}

static fsal_status_t
guarded_open2(struct fsal_obj_handle *obj_hdl, struct state_t *state,
	      fsal_openflags_t openflags, enum fsal_create_mode createmode,
	      const char *name, struct fsal_attrlist *attrs_in,
	      fsal_verifier_t verifier, struct fsal_obj_handle **new_obj,
	      struct fsal_attrlist *attrs_out, bool *caller_perm_check,
	      struct fsal_attrlist *parent_pre,
	      struct fsal_attrlist *parent_post)
{
	int wrong = name != NULL ? casync_entry_name_check(name) : 0;

	if (wrong != 0)
		return casync_status(wrong);
	return GUARDED(obj_hdl,
		       casync_open2(obj_hdl, state, openflags, createmode, name,
				    attrs_in, verifier, new_obj, attrs_out,
				    caller_perm_check, parent_pre,
				    parent_post));
}

static fsal_status_t guarded_reopen2(struct fsal_obj_handle *obj_hdl,
				     struct state_t *state,
				     fsal_openflags_t openflags)
{
	return GUARDED(obj_hdl, casync_reopen2(obj_hdl, state, openflags));
}

static void guarded_read2(struct fsal_obj_handle *obj_hdl, bool bypass,
			  fsal_async_cb done_cb, struct fsal_io_arg *read_arg,
			  void *caller_arg)
{
	fsal_status_t status = guarded_begin_io(obj_hdl);

	if (!FSAL_IS_ERROR(status)) {
		casync_read2(obj_hdl, bypass, done_cb, read_arg, caller_arg);
		return;
	}
	read_arg->io_amount = 0;
	done_cb(obj_hdl, status, read_arg, caller_arg);
}

static void guarded_write2(struct fsal_obj_handle *obj_hdl, bool bypass,
			   fsal_async_cb done_cb, struct fsal_io_arg *write_arg,
			   void *caller_arg)
{
	fsal_status_t status = guarded_begin_io(obj_hdl);

	if (!FSAL_IS_ERROR(status)) {
		casync_write2(obj_hdl, bypass, done_cb, write_arg, caller_arg);
		return;
	}
	write_arg->io_amount = 0;
	done_cb(obj_hdl, status, write_arg, caller_arg);
}

static fsal_status_t guarded_commit2(struct fsal_obj_handle *obj_hdl,
				     off_t offset, size_t len)
{
	return GUARDED(obj_hdl, casync_commit2(obj_hdl, offset, len));
}

static fsal_status_t guarded_fallocate(struct fsal_obj_handle *obj_hdl,
				       struct state_t *state, uint64_t offset,
				       uint64_t length, bool allocate)
{
	return GUARDED(obj_hdl, casync_fallocate(obj_hdl, state, offset, length,
						 allocate));
}

static fsal_status_t guarded_seek2(struct fsal_obj_handle *obj_hdl,
				   struct state_t *state, struct io_info *info)
{
	return GUARDED(obj_hdl, casync_seek2(obj_hdl, state, info));
}

/*
 * An UNLOCK must not fail for the loss of the session.  Ganesha has forgotten
 * the lock, and would repeat the call without a pause.  The lost client's lock
 * is gone, and the next client does not take it: its record is dropped.
 */
static bool guarded_unlock_is_done(const struct casync_object *obj,
				   fsal_status_t status)
{
	if (casync_session_state(casync_object_session(obj)) ==
	    CASYNC_SESSION_LOST)
		return true;
	/* EBUSY: Ganesha is short of descriptors. */
	return status.major == ERR_FSAL_DELAY && status.minor != EBUSY;
}

/* Ganesha takes a delay for a conflict; "grace" makes the client ask again. */
static fsal_status_t guarded_lock_status(struct fsal_obj_handle *obj_hdl,
					 struct state_t *state, void *owner,
					 fsal_lock_op_t lock_op,
					 const fsal_lock_param_t *lock,
					 fsal_status_t status)
{
	struct casync_object *obj = casync_object_of(obj_hdl);

	if (!FSAL_IS_ERROR(status))
		return status;
	if (lock_op == FSAL_OP_UNLOCK) {
		if (!guarded_unlock_is_done(obj, status))
			return status;
		casync_lock_records_unlocked(obj, state, owner, lock);
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	}
	if (status.major == ERR_FSAL_DELAY && status.minor != EAGAIN)
		return fsalstat(ERR_FSAL_IN_GRACE, status.minor);
	return status;
}

static fsal_status_t guarded_lock_op2(struct fsal_obj_handle *obj_hdl,
				      struct state_t *state, void *owner,
				      fsal_lock_op_t lock_op,
				      fsal_lock_param_t *request_lock,
				      fsal_lock_param_t *conflicting_lock)
{
	struct casync_mount *mount =
		casync_object_mount(casync_object_of(obj_hdl));
	bool anyway = lock_op == FSAL_OP_UNLOCK;
	fsal_status_t status;

	if (anyway)
		casync_callers_enter_anyway(mount);
	status = GUARDED(obj_hdl,
			 casync_lock_op2(obj_hdl, state, owner, lock_op,
					 request_lock, conflicting_lock));
	if (anyway)
		casync_callers_leave(mount);
	return guarded_lock_status(obj_hdl, state, owner, lock_op, request_lock,
				   status);
}

/* To give a delegation back needs no client. */
static fsal_status_t guarded_lease_op2(struct fsal_obj_handle *obj_hdl,
				       struct state_t *state, void *owner,
				       fsal_deleg_t deleg)
{
	if (deleg == FSAL_DELEG_NONE)
		return casync_lease_op2(obj_hdl, state, owner, deleg);
	return GUARDED(obj_hdl, casync_lease_op2(obj_hdl, state, owner, deleg));
}

static fsal_status_t guarded_getxattrs(struct fsal_obj_handle *obj_hdl,
				       xattrkey4 *xa_name,
				       xattrvalue4 *xa_value)
{
	return GUARDED(obj_hdl, casync_getxattrs(obj_hdl, xa_name, xa_value));
}

static fsal_status_t guarded_setxattrs(struct fsal_obj_handle *obj_hdl,
				       setxattr_option4 option,
				       xattrkey4 *xa_name,
				       xattrvalue4 *xa_value)
{
	return GUARDED(obj_hdl,
		       casync_setxattrs(obj_hdl, option, xa_name, xa_value));
}

static fsal_status_t guarded_removexattrs(struct fsal_obj_handle *obj_hdl,
					  xattrkey4 *xa_name)
{
	return GUARDED(obj_hdl, casync_removexattrs(obj_hdl, xa_name));
}

static fsal_status_t guarded_listxattrs(struct fsal_obj_handle *obj_hdl,
					count4 la_maxcount,
					nfs_cookie4 *la_cookie, bool_t *lr_eof,
					xattrlist4 *lr_names)
{
	return GUARDED(obj_hdl, casync_listxattrs(obj_hdl, la_maxcount,
						  la_cookie, lr_eof, lr_names));
}

void casync_guarded_init(struct fsal_obj_ops *ops)
{
	ops->lookup = guarded_lookup;
	ops->mkdir = guarded_mkdir;
	ops->mknode = guarded_mknode;
	ops->symlink = guarded_symlink;
	ops->readlink = guarded_readlink;
	ops->link = guarded_link;
	ops->rename = guarded_rename;
	ops->unlink = guarded_unlink;
	ops->readdir = guarded_readdir;
	ops->getattrs = guarded_getattrs;
	ops->setattr2 = guarded_setattr2;

	ops->open2 = guarded_open2;
	ops->reopen2 = guarded_reopen2;

	ops->read2 = guarded_read2;
	ops->write2 = guarded_write2;
	ops->commit2 = guarded_commit2;
	ops->fallocate = guarded_fallocate;
	ops->seek2 = guarded_seek2;
	ops->lock_op2 = guarded_lock_op2;
	ops->lease_op2 = guarded_lease_op2;

	ops->getxattrs = guarded_getxattrs;
	ops->setxattrs = guarded_setxattrs;
	ops->removexattrs = guarded_removexattrs;
	ops->listxattrs = guarded_listxattrs;
}
