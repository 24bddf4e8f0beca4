/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file obj_ops.h
 * @brief The object operations, grouped by the file that implements them.
 *
 * fsal_api.h of Ganesha has their contracts.  All run on a Ganesha worker with
 * op_ctx set, and may block.  Only read2 and write2 are asynchronous.  Each
 * begins and ends a call (call.h).
 *
 * No operation fills in parent_pre and parent_post.  Filled in, they would mean
 * "atomic with the change" (change_info4), and libcephfs cannot promise that.
 * If they are empty, Ganesha asks for the attributes itself and tells the
 * client that they are not atomic.
 */
#ifndef CASYNC_OBJ_OPS_H
#define CASYNC_OBJ_OPS_H

#include "fsal_api.h"

/* namespace.c */
fsal_status_t casync_lookup(struct fsal_obj_handle *dir_hdl, const char *name,
			    struct fsal_obj_handle **handle,
			    struct fsal_attrlist *attrs_out);
fsal_status_t casync_mkdir(struct fsal_obj_handle *dir_hdl, const char *name,
			   struct fsal_attrlist *attrs_in,
			   struct fsal_obj_handle **new_obj,
			   struct fsal_attrlist *attrs_out,
			   struct fsal_attrlist *parent_pre,
			   struct fsal_attrlist *parent_post);
fsal_status_t casync_mknode(struct fsal_obj_handle *dir_hdl, const char *name,
			    object_file_type_t nodetype,
			    struct fsal_attrlist *attrs_in,
			    struct fsal_obj_handle **new_obj,
			    struct fsal_attrlist *attrs_out,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post);
fsal_status_t casync_symlink(struct fsal_obj_handle *dir_hdl, const char *name,
			     const char *link_path,
			     struct fsal_attrlist *attrs_in,
			     struct fsal_obj_handle **new_obj,
			     struct fsal_attrlist *attrs_out,
			     struct fsal_attrlist *parent_pre,
			     struct fsal_attrlist *parent_post);
fsal_status_t casync_readlink(struct fsal_obj_handle *obj_hdl,
			      utf8string *link_content, bool refresh);
fsal_status_t casync_link(struct fsal_obj_handle *obj_hdl,
			  struct fsal_obj_handle *destdir_hdl, const char *name,
			  struct fsal_attrlist *destdir_pre,
			  struct fsal_attrlist *destdir_post);
fsal_status_t casync_rename(
	struct fsal_obj_handle *obj_hdl, struct fsal_obj_handle *olddir_hdl,
	const char *old_name, struct fsal_obj_handle *newdir_hdl,
	const char *new_name, struct fsal_attrlist *olddir_pre,
	struct fsal_attrlist *olddir_post, struct fsal_attrlist *newdir_pre,
	struct fsal_attrlist *newdir_post);
fsal_status_t casync_unlink(struct fsal_obj_handle *dir_hdl,
			    struct fsal_obj_handle *obj_hdl, const char *name,
			    struct fsal_attrlist *parent_pre,
			    struct fsal_attrlist *parent_post);

/* readdir.c */
fsal_status_t casync_readdir(struct fsal_obj_handle *dir_hdl,
			     fsal_cookie_t *whence, void *dir_state,
			     fsal_readdir_cb cb, attrmask_t attrmask,
			     bool *eof);

/* getset.c */
fsal_status_t casync_getattrs(struct fsal_obj_handle *obj_hdl,
			      struct fsal_attrlist *attrs_out);
fsal_status_t casync_setattr2(struct fsal_obj_handle *obj_hdl, bool bypass,
			      struct state_t *state,
			      struct fsal_attrlist *attrib_set);

/* open.c */
fsal_status_t
casync_open2(struct fsal_obj_handle *obj_hdl, struct state_t *state,
	     fsal_openflags_t openflags, enum fsal_create_mode createmode,
	     const char *name, struct fsal_attrlist *attrs_in,
	     fsal_verifier_t verifier, struct fsal_obj_handle **new_obj,
	     struct fsal_attrlist *attrs_out, bool *caller_perm_check,
	     struct fsal_attrlist *parent_pre,
	     struct fsal_attrlist *parent_post);
fsal_status_t casync_reopen2(struct fsal_obj_handle *obj_hdl,
			     struct state_t *state, fsal_openflags_t openflags);

/* rw.c */
void casync_read2(struct fsal_obj_handle *obj_hdl, bool bypass,
		  fsal_async_cb done_cb, struct fsal_io_arg *read_arg,
		  void *caller_arg);
void casync_write2(struct fsal_obj_handle *obj_hdl, bool bypass,
		   fsal_async_cb done_cb, struct fsal_io_arg *write_arg,
		   void *caller_arg);
fsal_status_t casync_commit2(struct fsal_obj_handle *obj_hdl, off_t offset,
			     size_t len);

/* space.c */
fsal_status_t casync_fallocate(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, uint64_t offset,
			       uint64_t length, bool allocate);

fsal_status_t casync_seek2(struct fsal_obj_handle *obj_hdl,
			   struct state_t *state, struct io_info *info);
fsal_status_t casync_io_advise(struct fsal_obj_handle *obj_hdl,
			       struct io_hints *hints);

/* locks.c */
fsal_status_t casync_lock_op2(struct fsal_obj_handle *obj_hdl,
			      struct state_t *state, void *owner,
			      fsal_lock_op_t lock_op,
			      fsal_lock_param_t *request_lock,
			      fsal_lock_param_t *conflicting_lock);

/* xattr.c */
fsal_status_t casync_getxattrs(struct fsal_obj_handle *obj_hdl,
			       xattrkey4 *xa_name, xattrvalue4 *xa_value);
fsal_status_t casync_setxattrs(struct fsal_obj_handle *obj_hdl,
			       setxattr_option4 option, xattrkey4 *xa_name,
			       xattrvalue4 *xa_value);
fsal_status_t casync_removexattrs(struct fsal_obj_handle *obj_hdl,
				  xattrkey4 *xa_name);
fsal_status_t casync_listxattrs(struct fsal_obj_handle *obj_hdl,
				count4 la_maxcount, nfs_cookie4 *la_cookie,
				bool_t *lr_eof, xattrlist4 *lr_names);

#endif /* CASYNC_OBJ_OPS_H */
