/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * ACLs that cannot be stored: nothing is changed.  test_acls.py has the others,
 * with Ganesha's own conversion.
 */
#include "config.h"

#include <acl/libacl.h>
#include <errno.h>
#include <sys/acl.h>

#include "unit.h"

#include "fsal.h"
#include "nfs4_acls.h"
#include "posix_acls.h"

#include "acl.h"

/* What Ganesha makes of an NFSv4 ACL: this many named users, or nothing. */
static int users;
static bool conversion_fails;
static unsigned int set, removed;
static fsal_ace_t ace;
static fsal_acl_t nfs4;

__thread struct req_op_context *op_ctx;

static void add_entry(acl_t *acl, acl_tag_t tag, uid_t id)
{
	acl_entry_t entry;

	assert_int_equal(acl_create_entry(acl, &entry), 0);
	assert_int_equal(acl_set_tag_type(entry, tag), 0);
	if (tag == ACL_USER)
		assert_int_equal(acl_set_qualifier(entry, &id), 0);
}

acl_t fsal_acl_2_posix_acl(fsal_acl_t *p_fsalacl, acl_type_t type)
{
	acl_t acl;
	int i;

	assert_ptr_equal(p_fsalacl, &nfs4);
	if (conversion_fails || (type == ACL_TYPE_DEFAULT && ace.flag == 0))
		return NULL;
	acl = acl_init(users + 4);
	add_entry(&acl, ACL_USER_OBJ, 0);
	for (i = 0; i < users; i++)
		add_entry(&acl, ACL_USER, 1000 + (uid_t)i);
	add_entry(&acl, ACL_GROUP_OBJ, 0);
	add_entry(&acl, ACL_MASK, 0);
	add_entry(&acl, ACL_OTHER, 0);
	return acl;
}

size_t posix_acl_xattr_size(int count)
{
	return 4 + 8 * (size_t)count;
}

int posix_acl_2_xattr(acl_t acl, void *buf, size_t size)
{
	assert_int_equal(size, posix_acl_xattr_size(acl_entries(acl)));
	memset(buf, 0, size);
	return (int)size;
}

int ceph_ll_setxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, const void *value, size_t size,
		     int flags, const UserPerm *perms)
{
	set++;
	return 0;
}

int ceph_ll_removexattr(struct ceph_mount_info *cmount, struct Inode *in,
			const char *name, const UserPerm *perms)
{
	removed++;
	return 0;
}

/* Reading is not tested here. */
int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, void *value, size_t size,
		     const UserPerm *perms)
{
	fail();
	return 0;
}

fsal_ace_t *nfs4_ace_alloc(int nace)
{
	fail();
	return NULL;
}

fsal_acl_t *nfs4_acl_new_entry(fsal_acl_data_t *acldata,
			       fsal_acl_status_t *status)
{
	fail();
	return NULL;
}

static int up(void **state)
{
	users = 1;
	conversion_fails = false;
	set = removed = 0;
	ace = (fsal_ace_t){.flag = FSAL_ACE_FLAG_FILE_INHERIT |
				   FSAL_ACE_FLAG_DIR_INHERIT};
	nfs4.naces = 1;
	nfs4.aces = &ace;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static int set_on(object_file_type_t type)
{
	const struct casync_acl_file file = {.type = type};
	const struct fsal_attrlist attrs = {.acl = &nfs4};

	return casync_acl_set(&file, &attrs);
}

CASE(folder_gets_both)
{
	assert_int_equal(set_on(DIRECTORY), 0);
	assert_int_equal(set, 2);
	assert_int_equal(removed, 0);
}

CASE(nothing_inherited_removes_the_default)
{
	ace.flag = 0;
	assert_int_equal(set_on(DIRECTORY), 0);
	assert_int_equal(set, 1);
	assert_int_equal(removed, 1);
}

/* Ganesha has no memory: it returns NULL as for "nothing is inherited". */
CASE(failed_conversion_removes_nothing)
{
	conversion_fails = true;
	assert_int_equal(set_on(DIRECTORY), -EIO);
	assert_int_equal(set, 0);
	assert_int_equal(removed, 0);
	assert_int_equal(set_on(REGULAR_FILE), -EINVAL);
	assert_int_equal(set, 0);
}

/* Larger than what the MDS keeps: it is not even put on the stack. */
CASE(too_large_an_acl_is_refused)
{
	users = 8187; /* and 4 others: 65,532 bytes */
	assert_int_equal(set_on(REGULAR_FILE), 0);
	assert_int_equal(set, 1);
	users++;
	assert_int_equal(set_on(REGULAR_FILE), -ENOSPC);
	assert_int_equal(set, 1);
}
