/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Extended attributes of NFSv4.2 (RFC 8276).  They are in the name space
 * "user."; the wire does not carry this prefix.
 */
#include "config.h"

#include <errno.h>
#include <linux/limits.h>
#include <sys/xattr.h>

#include "fsal.h"
#include "gsh_rpc.h"

#include "call.h"
#include "errors.h"
#include "inode.h"
#include "object.h"
#include "obj_ops.h"

#define PREFIX "user."

/* Longest value in an answer.  For a longer one Ganesha drops the connection,
 * and the client asks again for ever. */
#define VALUE_BYTES_MAX XDR_STRING_MAXLEN

/* Tries to list names while other clients change them. */
#define LIST_TRIES 4

static fsal_status_t xattr_status(int rc)
{
	switch (-rc) {
	case ENODATA:
		return fsalstat(ERR_FSAL_NOXATTR, ENODATA);
	case ERANGE: /* the buffer is too small */
	case E2BIG:
		return fsalstat(ERR_FSAL_XATTR2BIG, -rc);
	default:
		return casync_errors_status(rc);
	}
}

/* "user." and the name, 0-terminated. */
static int xattr_local_name(const xattrkey4 *key, char *name)
{
	size_t prefix = sizeof(PREFIX) - 1;

	if (key->utf8string_len == 0)
		return -EINVAL;
	if (prefix + key->utf8string_len > XATTR_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, PREFIX, prefix);
	memcpy(name + prefix, key->utf8string_val, key->utf8string_len);
	name[prefix + key->utf8string_len] = '\0';
	return 0;
}

/* A request on one attribute. */
struct xattr_call {
	struct casync_call call;
	char name[XATTR_NAME_MAX + 1]; /* libcephfs' */
};

static fsal_status_t xattr_call_begin(struct xattr_call *c,
				      struct fsal_obj_handle *obj_hdl,
				      const xattrkey4 *key, uint32_t needs)
{
	int rc = xattr_local_name(key, c->name);

	if (rc < 0)
		return casync_errors_status(rc);
	return casync_call_begin(&c->call, obj_hdl, needs);
}

fsal_status_t casync_getxattrs(struct fsal_obj_handle *obj_hdl,
			       xattrkey4 *xa_name, xattrvalue4 *xa_value)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	CASYNC_ERRORS_REQUESTER(perms);
	struct xattr_call c;
	fsal_status_t status;
	int rc;

	status = xattr_call_begin(&c, obj_hdl, xa_name, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	/* A length of 0 asks for the size. */
	rc = ceph_ll_getxattr(casync_inode_ceph(obj), obj->inode, c.name,
			      xa_value->utf8string_val,
			      xa_value->utf8string_len, perms);
	if (rc > VALUE_BYTES_MAX)
		rc = -E2BIG;
	if (rc >= 0)
		xa_value->utf8string_len = (unsigned int)rc;
	return casync_call_end(&c.call, xattr_status(rc));
}

fsal_status_t casync_setxattrs(struct fsal_obj_handle *obj_hdl,
			       setxattr_option4 option, xattrkey4 *xa_name,
			       xattrvalue4 *xa_value)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	CASYNC_ERRORS_REQUESTER(perms);
	struct xattr_call c;
	fsal_status_t status;
	int flags = 0;
	int rc;

	if (option == SETXATTR4_CREATE)
		flags = XATTR_CREATE;
	else if (option == SETXATTR4_REPLACE)
		flags = XATTR_REPLACE;

	status = xattr_call_begin(&c, obj_hdl, xa_name,
				  CASYNC_CALL_ASKS_MDS | CASYNC_CALL_ANNOUNCES);
	if (FSAL_IS_ERROR(status))
		return status;
	/* libcephfs takes "no value" for "remove". */
	rc = ceph_ll_setxattr(
		casync_inode_ceph(obj), obj->inode, c.name,
		xa_value->utf8string_len != 0 ? xa_value->utf8string_val : "",
		xa_value->utf8string_len, flags, perms);
	return casync_call_end(&c.call, xattr_status(rc));
}

fsal_status_t casync_removexattrs(struct fsal_obj_handle *obj_hdl,
				  xattrkey4 *xa_name)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	CASYNC_ERRORS_REQUESTER(perms);
	struct xattr_call c;
	fsal_status_t status;
	int rc;

	status = xattr_call_begin(&c, obj_hdl, xa_name,
				  CASYNC_CALL_ASKS_MDS | CASYNC_CALL_ANNOUNCES);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = ceph_ll_removexattr(casync_inode_ceph(obj), obj->inode, c.name,
				 perms);
	return casync_call_end(&c.call, xattr_status(rc));
}

/*
 * All names, each 0-terminated, in new memory.  Returns their length or an
 * errno.
 *
 * The names that Linux allows fit into the first buffer.  CephFS allows more
 * (mds_max_xattr_pairs_size), and the list may grow between the call for the
 * size and the call for the names.  So there are some tries, with room to
 * spare.  If the list has grown each time, the client is asked to retry.
 */
static int xattr_list_names(struct casync_object *obj, const UserPerm *perms,
			    char **names)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	size_t room = XATTR_LIST_MAX;
	size_t length = 0;
	int tries, rc;

	*names = NULL;
	for (tries = 0; tries < LIST_TRIES; tries++) {
		gsh_free(*names);
		*names = gsh_malloc(room);
		rc = ceph_ll_listxattr(ceph, obj->inode, *names, room, &length,
				       perms);
		if (rc != -ERANGE)
			return rc < 0 ? rc : (int)length;
		/* Without a buffer it returns the size. */
		rc = ceph_ll_listxattr(ceph, obj->inode, NULL, 0, &length,
				       perms);
		if (rc < 0)
			return rc;
		room = 2 * length + 1;
	}
	return -EAGAIN;
}

fsal_status_t casync_listxattrs(struct fsal_obj_handle *obj_hdl,
				count4 la_maxcount, nfs_cookie4 *la_cookie,
				bool_t *lr_eof, xattrlist4 *lr_names)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_call call;
	CASYNC_ERRORS_REQUESTER(perms);
	fsal_status_t status;
	char *names;
	int length;

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	length = xattr_list_names(obj, perms, &names);
	if (length < 0)
		status = xattr_status(length);
	else
		status = fsal_listxattr_helper(names, (size_t)length,
					       la_maxcount, la_cookie, lr_eof,
					       lr_names);
	gsh_free(names);
	return casync_call_end(&call, status);
}
