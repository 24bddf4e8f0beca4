/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What libcephfs has made at the end of a symlink, which came between the look
 * for the name and the call, is removed; and nothing else is. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "unit.h"

#include "fake_libcephfs.h"
#include "new_name.h"
#include "rig.h"

#define MADE_INO 77

/* Entries: a path from the request's directory is a name in "dir". */
struct entry {
	char dir, name[8];
	uint64_t ino;
	mode_t mode;
	const char *target;
};

static struct entry entries[4];
static char removed[16];
static const UserPerm *const requester = (const void *)&removed;

static struct Inode *inode_of(struct entry *entry)
{
	fake.inode_refs++;
	return (struct Inode *)entry;
}

/* The folder of the request is 'a'; the path "b/." is folder 'b'. */
static struct entry folder_b = {.name = "b"};

static char dir_of(const struct Inode *parent)
{
	return parent == (struct Inode *)&folder_b ? 'b' : 'a';
}

static struct entry *find(const struct Inode *parent, const char *name)
{
	unsigned int i;

	for (i = 0; i < COUNT(entries); i++)
		if (entries[i].ino != 0 && entries[i].dir == dir_of(parent) &&
		    strcmp(entries[i].name, name) == 0)
			return &entries[i];
	return NULL;
}

int ceph_ll_lookup(struct ceph_mount_info *cmount, Inode *parent,
		   const char *name, Inode **out, struct ceph_statx *stx,
		   unsigned want, unsigned flags, const UserPerm *perms)
{
	struct entry *entry = strcmp(name, "../b/.") == 0 ? &folder_b
							  : find(parent, name);

	assert_ptr_equal(perms, requester);
	if (entry == NULL)
		return -ENOENT;
	stx->stx_ino = entry->ino;
	stx->stx_mode = (uint16_t)entry->mode;
	*out = inode_of(entry);
	return 0;
}

int ceph_ll_readlink(struct ceph_mount_info *cmount, struct Inode *in,
		     char *buf, size_t bufsize, const UserPerm *perms)
{
	const char *target = ((struct entry *)in)->target;
	size_t length = strlen(target);

	memcpy(buf, target, length + 1);
	buf[length] = 'x'; /* not terminated */
	return (int)length;
}

static int remove_entry(struct Inode *in, const char *name, const char *how,
			const UserPerm *perms)
{
	assert_ptr_equal(perms, requester);
	(void)snprintf(removed, sizeof(removed), "%s %c/%s", how, dir_of(in),
		       name);
	return 0;
}

int ceph_ll_unlink(struct ceph_mount_info *cmount, struct Inode *in,
		   const char *name, const UserPerm *perms)
{
	return remove_entry(in, name, "unlink", perms);
}

int ceph_ll_rmdir(struct ceph_mount_info *cmount, struct Inode *in,
		  const char *name, const UserPerm *perms)
{
	return remove_entry(in, name, "rmdir", perms);
}

static int up(void **state)
{
	memset(entries, 0, sizeof(entries));
	removed[0] = '\0';
	return rig_up(state);
}

#define CASE(test) TEST_WITH(test, up, rig_down)

static int check(mode_t mode)
{
	const struct ceph_statx made = {.stx_ino = MADE_INO,
					.stx_mode = (uint16_t)mode};
	int refs = fake.inode_refs;
	int rc = casync_new_name_check(rig.obj, "n", &made, requester);

	assert_int_equal(fake.inode_refs, refs);
	return rc;
}

CASE(a_name_is_taken_or_free)
{
	int refs = fake.inode_refs;

	assert_int_equal(casync_new_name_is_free(rig.obj, "n", requester), 0);
	entries[0] = (struct entry){'a', "n", 5, S_IFLNK, "made"};
	assert_int_equal(casync_new_name_is_free(rig.obj, "n", requester),
			 -EEXIST);
	assert_int_equal(fake.inode_refs, refs);
}

CASE(what_was_made_there_stays)
{
	entries[0] = (struct entry){'a', "n", MADE_INO, S_IFLNK, "made"};
	assert_int_equal(check(S_IFLNK), 0);
	/* Another client was quick: it is gone, or another file. */
	entries[0].ino = 0;
	assert_int_equal(check(S_IFREG), 0);
	entries[0] = (struct entry){'a', "n", 5, S_IFREG, NULL};
	assert_int_equal(check(S_IFREG), 0);
	assert_string_equal(removed, "");
}

CASE(what_was_made_elsewhere_goes)
{
	entries[0] = (struct entry){'a', "n", 5, S_IFLNK, "second"};
	entries[1] = (struct entry){'a', "second", 6, S_IFLNK, "../b/made//"};
	entries[2] = (struct entry){'b', "made", MADE_INO, S_IFDIR, NULL};
	assert_int_equal(check(S_IFDIR), -EEXIST);
	assert_string_equal(removed, "rmdir b/made");
	assert_int_equal(check(S_IFIFO), -EEXIST);
	assert_string_equal(removed, "unlink b/made");
}

CASE(another_file_at_its_end_stays)
{
	entries[0] = (struct entry){'a', "n", 5, S_IFLNK, "made"};
	entries[1] = (struct entry){'a', "made", 8, S_IFREG, NULL};
	assert_int_equal(check(S_IFREG), -EEXIST);
	/* A ring has an end. */
	entries[1] = (struct entry){'a', "made", 6, S_IFLNK, "n"};
	assert_int_equal(check(S_IFREG), -EEXIST);
	assert_string_equal(removed, "");
}
