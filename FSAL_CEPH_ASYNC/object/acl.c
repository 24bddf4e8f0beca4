/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <acl/libacl.h>
#include <errno.h>
#include <sys/acl.h>

#include "fsal.h"
#include "export_mgr.h"
#include "nfs_exports.h"
#include "nfs4_acls.h"
#include "posix_acls.h"

#include <cephfs/libcephfs.h>

#include "acl.h"
#include "export.h"

/* The MDS holds all extended attributes of an inode to 64 KiB. */
#define XATTR_BYTES_MAX 65536

/* Tries to read a value while other clients change it. */
#define VALUE_TRIES 4

bool casync_acl_offered(void)
{
	return !op_ctx_export_has_option(EXPORT_OPTION_DISABLE_ACL);
}

bool casync_acl_label_offered(void)
{
	return op_ctx_export_has_option(EXPORT_OPTION_SECLABEL_SET);
}

/*
 * Read a value of unknown size into new memory.  Returns its size or a negative
 * errno; -EAGAIN if the value has grown at each try.
 */
static int acl_get_value(const struct casync_acl_file *file, const char *name,
			 void **value)
{
	int tries, rc;

	*value = NULL;
	for (tries = 0; tries < VALUE_TRIES; tries++) {
		rc = ceph_ll_getxattr(file->ceph, file->inode, name, NULL, 0,
				      file->perms);
		if (rc <= 0)
			return rc;
		gsh_free(*value);
		*value = gsh_malloc((size_t)rc);
		rc = ceph_ll_getxattr(file->ceph, file->inode, name, *value,
				      (size_t)rc, file->perms);
		if (rc != -ERANGE)
			return rc;
	}
	return -EAGAIN;
}

/* A client of the MDS can store any bytes as an ACL. */
static bool acl_is_whole(acl_t acl)
{
	int last;
	int wrong = acl_check(acl, &last);

	return wrong == 0 || wrong == ACL_DUPLICATE_ERROR;
}

/* The ACL of that name; *acl is NULL if there is none. */
static int acl_read_acl(const struct casync_acl_file *file, const char *name,
			acl_t *acl)
{
	void *value;
	int rc = acl_get_value(file, name, &value);

	*acl = NULL;
	if (rc > 0) {
		*acl = xattr_2_posix_acl(value, (size_t)rc);
		rc = *acl != NULL ? 0 : -EIO;
		/* Ganesha loops for ever in an ACL that lacks an entry. */
		if (rc == 0 && !acl_is_whole(*acl)) {
			acl_free(*acl);
			*acl = NULL;
			rc = -EIO;
		}
	}
	gsh_free(value);
	return rc == -ENODATA || rc == -EOPNOTSUPP ? 0 : rc;
}

static int acl_entries_of(acl_t acl)
{
	int count = acl != NULL ? acl_entries(acl) : 0;

	return count > 0 ? count : 0;
}

static int acl_to_nfs4(acl_t access, acl_t inherited, bool is_dir,
		       struct fsal_attrlist *attrs)
{
	fsal_acl_status_t status;
	fsal_acl_data_t data;
	fsal_ace_t *next;
	int count;

	/* Each entry becomes one that allows and one that denies. */
	data.aces = nfs4_ace_alloc(
		2 * (acl_entries_of(access) + acl_entries_of(inherited)));
	next = data.aces;
	count = posix_acl_2_fsal_acl(access, is_dir, false, ACL_FOR_V4, &next);
	if (inherited != NULL && count >= 0)
		count += posix_acl_2_fsal_acl(inherited, true, true, ACL_FOR_V4,
					      &next);
	if (count <= 0) {
		nfs4_ace_free(data.aces);
		return -EIO;
	}
	data.naces = (unsigned int)count;

	/* It takes over the entries, or frees them. */
	attrs->acl = nfs4_acl_new_entry(&data, &status);
	if (attrs->acl == NULL)
		return -EIO;
	FSAL_SET_MASK(attrs->valid_mask, ATTR_ACL);
	return 0;
}

int casync_acl_get(const struct casync_acl_file *file,
		   const struct ceph_statx *stx, struct fsal_attrlist *attrs)
{
	bool is_dir = file->type == DIRECTORY;
	acl_t access = NULL, inherited = NULL;
	int rc = 0;

	if (file->type != SYMBOLIC_LINK)
		rc = acl_read_acl(file, ACL_EA_ACCESS, &access);
	if (rc == 0 && access == NULL)
		access = acl_from_mode(stx->stx_mode);
	if (rc == 0 && is_dir)
		rc = acl_read_acl(file, ACL_EA_DEFAULT, &inherited);
	if (rc == 0)
		rc = access != NULL
			     ? acl_to_nfs4(access, inherited, is_dir, attrs)
			     : -ENOMEM;
	if (access != NULL)
		acl_free(access);
	if (inherited != NULL)
		acl_free(inherited);
	return rc;
}

static int acl_write_acl(const struct casync_acl_file *file, const char *name,
			 acl_t acl)
{
	char value[posix_acl_xattr_size(acl_entries(acl))];
	int size = posix_acl_2_xattr(acl, value, sizeof(value));

	if (size <= 0)
		return -EINVAL;
	return ceph_ll_setxattr(file->ceph, file->inode, name, value,
				(size_t)size, 0, file->perms);
}

static int acl_set_access(const struct casync_acl_file *file, fsal_acl_t *nfs4)
{
	acl_t acl = fsal_acl_2_posix_acl(nfs4, ACL_TYPE_ACCESS);
	int rc;

	if (acl == NULL)
		return -EINVAL;
	rc = acl_valid(acl) == 0 ? acl_write_acl(file, ACL_EA_ACCESS, acl)
				 : -EINVAL;
	acl_free(acl);
	return rc;
}

static int acl_set_default(const struct casync_acl_file *file, fsal_acl_t *nfs4)
{
	acl_t acl = fsal_acl_2_posix_acl(nfs4, ACL_TYPE_DEFAULT);
	int rc;

	if (acl == NULL) { /* nothing is inherited */
		rc = ceph_ll_removexattr(file->ceph, file->inode,
					 ACL_EA_DEFAULT, file->perms);
		return rc == -ENODATA ? 0 : rc;
	}
	rc = acl_valid(acl) == 0 ? acl_write_acl(file, ACL_EA_DEFAULT, acl)
				 : -EINVAL;
	acl_free(acl);
	return rc;
}

int casync_acl_set(const struct casync_acl_file *file,
		   const struct fsal_attrlist *attrs)
{
	int rc;

	if (attrs->acl == NULL || file->type == SYMBOLIC_LINK)
		return -EINVAL;
	/* The default ACL goes first: if it is refused, nothing has changed. */
	if (file->type == DIRECTORY) {
		rc = acl_set_default(file, attrs->acl);
		if (rc != 0)
			return rc;
	}
	return acl_set_access(file, attrs->acl);
}

/* The attribute of the export of op_ctx. */
static const char *acl_label_name(void)
{
	return casync_export_current()->keys.sec_label_xattr;
}

int casync_acl_label_get(const struct casync_acl_file *file,
			 struct fsal_attrlist *attrs)
{
	void *value;
	int rc = acl_get_value(file, acl_label_name(), &value);

	if (rc < 0) {
		gsh_free(value);
		value = NULL;
	}
	if (rc < 0 && rc != -ENODATA)
		return rc;
	gsh_free(attrs->sec_label.slai_data.slai_data_val);
	attrs->sec_label.slai_data.slai_data_val = value;
	attrs->sec_label.slai_data.slai_data_len = rc > 0 ? (u_int)rc : 0;
	if (rc > 0)
		FSAL_SET_MASK(attrs->valid_mask, ATTR4_SEC_LABEL);
	return 0;
}

int casync_acl_label_set(const struct casync_acl_file *file,
			 const struct fsal_attrlist *attrs)
{
	u_int length = attrs->sec_label.slai_data.slai_data_len;

	if (length > XATTR_BYTES_MAX)
		return -E2BIG;
	return ceph_ll_setxattr(file->ceph, file->inode, acl_label_name(),
				attrs->sec_label.slai_data.slai_data_val,
				length, 0, file->perms);
}
