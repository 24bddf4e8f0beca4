/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <acl/libacl.h>
#include <endian.h>
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

/** A POSIX ACL as CephFS keeps it. */
struct acl_posix {
	void *value; /**< From acl_get_value(); NULL: there is none. */
	const struct acl_ea_entry *entries;
	size_t count;
};

#define ACL_NAMED (ACL_USER | ACL_GROUP)
#define ACL_NEEDED (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER)

static unsigned int acl_tag_of(const struct acl_ea_entry *entry)
{
	return le16toh(entry->e_tag);
}

static unsigned int acl_allowed_by(const struct acl_ea_entry *entry)
{
	return le16toh(entry->e_perm) & (ACL_READ | ACL_WRITE | ACL_EXECUTE);
}

/* A client of the MDS can store any bytes as an ACL.  The tags are in the order
 * of their numbers, which are bits. */
static bool acl_is_whole(const struct acl_posix *acl)
{
	unsigned int seen = 0, before = 0, tag;
	size_t i;

	for (i = 0; i < acl->count; i++) {
		tag = acl_tag_of(&acl->entries[i]);
		if (tag == 0 || tag > ACL_OTHER || (tag & (tag - 1)) != 0 ||
		    tag < before || (seen & tag & ~ACL_NAMED) != 0)
			return false;
		seen |= tag;
		before = tag;
	}
	return (seen & ACL_NEEDED) == ACL_NEEDED &&
	       ((seen & ACL_NAMED) == 0 || (seen & ACL_MASK) != 0);
}

static bool acl_parse(struct acl_posix *acl, size_t size)
{
	const struct acl_ea_header *header = acl->value;

	if (size < sizeof(*header) ||
	    (size - sizeof(*header)) % sizeof(*acl->entries) != 0 ||
	    le32toh(header->a_version) != ACL_EA_VERSION)
		return false;
	acl->entries = (const void *)(header + 1);
	acl->count = (size - sizeof(*header)) / sizeof(*acl->entries);
	return acl_is_whole(acl);
}

/* The ACL of that name; acl->value is NULL if there is none. */
static int acl_read_acl(const struct casync_acl_file *file, const char *name,
			struct acl_posix *acl)
{
	int rc = acl_get_value(file, name, &acl->value);

	if (rc > 0 && acl_parse(acl, (size_t)rc))
		return 0;
	gsh_free(acl->value);
	acl->value = NULL;
	if (rc > 0)
		return -EIO;
	return rc == -ENODATA || rc == -EOPNOTSUPP ? 0 : rc;
}

/*
 * The entries are those of Ganesha's posix_acl_2_fsal_acl(), which copies and
 * searches the whole ACL for each named user.  With 8,184 entries each ACCESS
 * took 1.2 s.  An entry's denials depend on sums alone.  One thing differs:
 * Ganesha does not deny what the mask takes away, and EVERYONE@ gives it again.
 */

/** The rights that the entries of some kinds allow together. */
struct acl_sums {
	unsigned int mask, users, rest, other;
};

#define ACL_EVERYTHING (ACL_READ | ACL_WRITE | ACL_EXECUTE)

static const struct {
	acl_perm_t posix;
	fsal_aceperm_t nfs4;
	fsal_aceflag_t masked; /* The mask takes it away. */
} acl_rights[] = {
	{ACL_READ, FSAL_ACE_PERM_READ_DATA, FSAL_ACE_FLAG_MASK_READ_DENY},
	{ACL_WRITE, FSAL_ACE_PERM_SET_DEFAULT_WRITE,
	 FSAL_ACE_FLAG_MASK_WRITE_DENY},
	{ACL_EXECUTE, FSAL_ACE_PERM_EXECUTE, FSAL_ACE_FLAG_MASK_EXECUTE_DENY},
};

#define N_RIGHTS (sizeof(acl_rights) / sizeof(acl_rights[0]))

static struct acl_sums acl_sum_up(const struct acl_posix *acl)
{
	struct acl_sums sums = {.mask = ACL_EVERYTHING};
	unsigned int allowed, tag;
	size_t i;

	for (i = 0; i < acl->count; i++) {
		allowed = acl_allowed_by(&acl->entries[i]);
		tag = acl_tag_of(&acl->entries[i]);
		if (tag == ACL_MASK)
			sums.mask = allowed;
		else if (tag == ACL_USER)
			sums.users |= allowed;
		else if (tag != ACL_USER_OBJ)
			sums.rest |= allowed;
		if (tag == ACL_OTHER)
			sums.other = allowed;
	}
	return sums;
}

/* Later entries allow these rights: this one denies what it does not allow. */
static unsigned int acl_allowed_later(unsigned int tag,
				      const struct acl_sums *sums)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return sums->users | sums->rest;
	case ACL_USER:
		return sums->rest;
	case ACL_OTHER:
		return 0;
	default: /* A member of two groups has the rights of both. */
		return sums->other;
	}
}

static void acl_set_who(fsal_ace_t *ace, const struct acl_ea_entry *entry)
{
	switch (acl_tag_of(entry)) {
	case ACL_USER:
		ace->who.uid = le32toh(entry->e_id);
		return;
	case ACL_GROUP:
		ace->who.gid = le32toh(entry->e_id);
		ace->flag |= FSAL_ACE_FLAG_GROUP_ID;
		return;
	case ACL_USER_OBJ:
		ace->who.uid = FSAL_ACE_SPECIAL_OWNER;
		break;
	case ACL_GROUP_OBJ:
		ace->who.uid = FSAL_ACE_SPECIAL_GROUP;
		break;
	default:
		ace->who.uid = FSAL_ACE_SPECIAL_EVERYONE;
		break;
	}
	ace->iflag = FSAL_ACE_IFLAG_SPECIAL_ID;
}

/* These come with the right to write. */
static fsal_aceperm_t acl_with_write(unsigned int tag, bool is_dir)
{
	return (tag == ACL_USER_OBJ ? FSAL_ACE_PERM_SET_OWNER_WRITE : 0) |
	       (is_dir ? FSAL_ACE_PERM_DELETE_CHILD : 0);
}

static fsal_aceperm_t acl_nfs4_rights(unsigned int posix)
{
	fsal_aceperm_t rights = 0;
	size_t i;

	for (i = 0; i < N_RIGHTS; i++)
		if (posix & acl_rights[i].posix)
			rights |= acl_rights[i].nfs4;
	return rights;
}

static fsal_aceflag_t acl_masked_flags(unsigned int posix)
{
	fsal_aceflag_t flags = 0;
	size_t i;

	for (i = 0; i < N_RIGHTS; i++)
		if (posix & acl_rights[i].posix)
			flags |= acl_rights[i].masked;
	return flags;
}

/* At most two entries; returns the place behind them. */
static fsal_ace_t *acl_add_entry(fsal_ace_t *to,
				 const struct acl_ea_entry *entry,
				 const struct acl_sums *sums, bool is_dir,
				 bool inherited)
{
	unsigned int tag = acl_tag_of(entry);
	unsigned int allowed = acl_allowed_by(entry);
	unsigned int masked = tag == ACL_USER_OBJ || tag == ACL_OTHER
				      ? 0
				      : allowed & ~sums->mask;
	/* No later entry gives what the mask takes away. */
	unsigned int denied = acl_allowed_later(tag, sums) &
			      ~(allowed & ~masked);
	fsal_ace_t ace = {.flag = inherited ? FSAL_ACE_FLAG_INHERIT : 0};

	acl_set_who(&ace, entry);
	if (denied != 0) {
		*to = ace;
		to->type = FSAL_ACE_TYPE_DENY;
		to->perm = acl_nfs4_rights(denied);
		if (denied & ACL_WRITE)
			to->perm |= acl_with_write(tag, is_dir);
		to++;
	}
	*to = ace;
	to->type = FSAL_ACE_TYPE_ALLOW;
	to->perm = FSAL_ACE_PERM_SET_DEFAULT |
		   acl_nfs4_rights(allowed & ~masked);
	if (allowed & ACL_WRITE)
		to->perm |= acl_with_write(tag, is_dir);
	to->iflag |= acl_masked_flags(masked);
	return to + 1;
}

static fsal_ace_t *acl_add(fsal_ace_t *to, const struct acl_posix *acl,
			   bool is_dir, bool inherited)
{
	struct acl_sums sums = acl_sum_up(acl);
	size_t i;

	for (i = 0; i < acl->count; i++)
		if (acl_tag_of(&acl->entries[i]) != ACL_MASK)
			to = acl_add_entry(to, &acl->entries[i], &sums, is_dir,
					   inherited);
	return to;
}

static int acl_to_nfs4(const struct acl_posix *access,
		       const struct acl_posix *inherited, bool is_dir,
		       struct fsal_attrlist *attrs)
{
	fsal_acl_status_t status;
	fsal_acl_data_t data;
	fsal_ace_t *end;

	/* Each entry becomes one that allows and one that denies. */
	data.aces =
		nfs4_ace_alloc((int)(2 * (access->count + inherited->count)));
	end = acl_add(data.aces, access, is_dir, false);
	end = acl_add(end, inherited, true, true);
	data.naces = (unsigned int)(end - data.aces);

	/* It takes over the entries, or frees them. */
	attrs->acl = nfs4_acl_new_entry(&data, &status);
	if (attrs->acl == NULL)
		return -EIO;
	FSAL_SET_MASK(attrs->valid_mask, ATTR_ACL);
	return 0;
}

/* The ACL that a mode stands for, in the caller's three entries. */
static struct acl_posix acl_of_mode(struct acl_ea_entry *three, mode_t mode)
{
	three[0].e_tag = htole16(ACL_USER_OBJ);
	three[0].e_perm = htole16(mode >> 6 & ACL_EVERYTHING);
	three[1].e_tag = htole16(ACL_GROUP_OBJ);
	three[1].e_perm = htole16(mode >> 3 & ACL_EVERYTHING);
	three[2].e_tag = htole16(ACL_OTHER);
	three[2].e_perm = htole16(mode & ACL_EVERYTHING);
	return (struct acl_posix){.entries = three, .count = 3};
}

int casync_acl_get(const struct casync_acl_file *file,
		   const struct ceph_statx *stx, struct fsal_attrlist *attrs)
{
	struct acl_posix access = {0}, inherited = {0};
	bool is_dir = file->type == DIRECTORY;
	struct acl_ea_entry three[3];
	int rc = 0;

	if (file->type != SYMBOLIC_LINK)
		rc = acl_read_acl(file, ACL_EA_ACCESS, &access);
	if (rc == 0 && access.value == NULL)
		access = acl_of_mode(three, stx->stx_mode);
	if (rc == 0 && is_dir)
		rc = acl_read_acl(file, ACL_EA_DEFAULT, &inherited);
	if (rc == 0)
		rc = acl_to_nfs4(&access, &inherited, is_dir, attrs);
	gsh_free(access.value);
	gsh_free(inherited.value);
	return rc;
}

static int acl_write_acl(const struct casync_acl_file *file, const char *name,
			 acl_t acl)
{
	size_t wanted = posix_acl_xattr_size(acl_entries(acl));
	char value[XATTR_BYTES_MAX];
	int size;

	/* The answer of the MDS. */
	if (wanted > sizeof(value))
		return -ENOSPC;
	size = posix_acl_2_xattr(acl, value, wanted);
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

/* As fsal_acl_2_posix_acl() decides it: that returns NULL for "nothing", but
 * for a failure too. */
static bool acl_is_inherited(const fsal_acl_t *nfs4)
{
	const fsal_ace_t *ace;

	for (ace = nfs4->aces; ace < nfs4->aces + nfs4->naces; ace++) {
		if (IS_FSAL_ACE_APPLICABLE_FOR_BOTH_ACL(*ace) ||
		    IS_FSAL_ACE_APPLICABLE_ONLY_FOR_INHERITED_ACL(*ace))
			return true;
	}
	return false;
}

static int acl_set_default(const struct casync_acl_file *file, fsal_acl_t *nfs4)
{
	acl_t acl;
	int rc;

	if (!acl_is_inherited(nfs4)) {
		rc = ceph_ll_removexattr(file->ceph, file->inode,
					 ACL_EA_DEFAULT, file->perms);
		return rc == -ENODATA ? 0 : rc;
	}
	acl = fsal_acl_2_posix_acl(nfs4, ACL_TYPE_DEFAULT);
	if (acl == NULL)
		return -EIO;
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
