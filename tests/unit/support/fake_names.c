/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fake_names.h"

#define WEAK __attribute__((weak))

struct fake_names fake_names;

static const char a_dir;

void fake_names_setup(void)
{
	memset(&fake_names, 0, sizeof(fake_names));
	fake_names.ino = 0x10000000500;
	fake_names.mode = S_IFREG | 0644;
}

static void note(const char *call)
{
	size_t used = strlen(fake_names.log);

	(void)snprintf(fake_names.log + used, sizeof(fake_names.log) - used,
		       "%s%s", used == 0 ? "" : " ", call);
	fake_names.calls++;
}

/* 0 or what the call fails with. */
static int made(const char *call, const struct Inode *in)
{
	note(call);
	if (fake_names.hook != NULL)
		fake_names.hook(call, in);
	if (fake_names.fails != NULL && strcmp(fake_names.fails, call) != 0)
		return 0;
	return fake_names.result;
}

static int found(int rc, struct Inode **out, struct ceph_statx *stx)
{
	if (rc < 0)
		return rc;
	fake_names.nothing_yet = false;
	memset(stx, 0, sizeof(*stx));
	stx->stx_mask = CEPH_STATX_INO | CEPH_STATX_MODE;
	stx->stx_ino = fake_names.ino;
	stx->stx_dev = CEPH_NOSNAP;
	stx->stx_mode = (uint16_t)fake_names.mode;
	*out = fake.inode;
	fake.inode_refs++;
	return 0;
}

/* Parameters that nobody looks at. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

WEAK UserPerm *ceph_userperm_new(uid_t uid, gid_t gid, int ngids,
				 gid_t *gidlist)
{
	fake_names.perms_made += uid != 0;
	fake_names.perms++;
	/* On the heap: sanitizers see one that is not destroyed. */
	return calloc(1, 1);
}

WEAK void ceph_userperm_destroy(UserPerm *perm)
{
	fake_names.perms--;
	free(perm);
}

WEAK int ceph_ll_lookup(struct ceph_mount_info *cmount, Inode *parent,
			const char *name, Inode **out, struct ceph_statx *stx,
			unsigned want, unsigned flags, const UserPerm *perms)
{
	int rc = made("lookup", parent);

	return found(rc == 0 && fake_names.nothing_yet ? -ENOENT : rc, out,
		     stx);
}

WEAK int ceph_ll_walk(struct ceph_mount_info *cmount, const char *name,
		      Inode **i, struct ceph_statx *stx, unsigned int want,
		      unsigned int flags, const UserPerm *perms)
{
	return found(made("walk", NULL), i, stx);
}

WEAK int ceph_ll_mkdir(struct ceph_mount_info *cmount, Inode *parent,
		       const char *name, mode_t mode, Inode **out,
		       struct ceph_statx *stx, unsigned want, unsigned flags,
		       const UserPerm *perms)
{
	fake_names.mode = S_IFDIR | mode;
	return found(made("mkdir", parent), out, stx);
}

WEAK int ceph_ll_mknod(struct ceph_mount_info *cmount, Inode *parent,
		       const char *name, mode_t mode, dev_t rdev, Inode **out,
		       struct ceph_statx *stx, unsigned want, unsigned flags,
		       const UserPerm *perms)
{
	fake_names.mode = mode;
	return found(made("mknod", parent), out, stx);
}

WEAK int ceph_ll_symlink(struct ceph_mount_info *cmount, Inode *in,
			 const char *name, const char *value, Inode **out,
			 struct ceph_statx *stx, unsigned want, unsigned flags,
			 const UserPerm *perms)
{
	fake_names.mode = S_IFLNK | 0777;
	return found(made("symlink", in), out, stx);
}

WEAK int ceph_ll_create(struct ceph_mount_info *cmount, Inode *parent,
			const char *name, mode_t mode, int oflags, Inode **outp,
			Fh **fhp, struct ceph_statx *stx, unsigned want,
			unsigned lflags, const UserPerm *perms)
{
	int rc = made("create", parent);

	if (rc == 0)
		rc = ceph_ll_open(cmount, parent, oflags, fhp, perms);
	fake_names.mode = S_IFREG | mode;
	return found(rc, outp, stx);
}

WEAK int ceph_ll_readlink(struct ceph_mount_info *cmount, struct Inode *in,
			  char *buf, size_t bufsize, const UserPerm *perms)
{
	int rc = made("readlink", in);

	return rc < 0 ? rc : snprintf(buf, bufsize, "target");
}

WEAK int ceph_ll_link(struct ceph_mount_info *cmount, struct Inode *in,
		      struct Inode *newparent, const char *name,
		      const UserPerm *perms)
{
	fake_names.nothing_yet = false;
	return made("link", in);
}

WEAK int ceph_ll_rename(struct ceph_mount_info *cmount, struct Inode *parent,
			const char *name, struct Inode *newparent,
			const char *newname, const UserPerm *perms)
{
	return made("rename", parent);
}

WEAK int ceph_ll_unlink(struct ceph_mount_info *cmount, struct Inode *in,
			const char *name, const UserPerm *perms)
{
	return made("unlink", in);
}

WEAK int ceph_ll_rmdir(struct ceph_mount_info *cmount, struct Inode *in,
		       const char *name, const UserPerm *perms)
{
	return made("rmdir", in);
}

WEAK int ceph_ll_setattr(struct ceph_mount_info *cmount, struct Inode *in,
			 struct ceph_statx *stx, int mask,
			 const UserPerm *perms)
{
	fake_names.set = *stx;
	fake_names.set_mask = mask;
	return made("setattr", in);
}

WEAK int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
			  const char *name, void *value, size_t size,
			  const UserPerm *perms)
{
	int rc = made("getxattr", in);

	if (rc >= 0 && strcmp(name, "security.capability") == 0)
		return fake_names.capability ? 20 : -ENODATA;
	return rc < 0 ? rc : fake_names.xattr_bytes;
}

WEAK int ceph_ll_setxattr(struct ceph_mount_info *cmount, struct Inode *in,
			  const char *name, const void *value, size_t size,
			  int flags, const UserPerm *perms)
{
	return made("setxattr", in);
}

WEAK int ceph_ll_removexattr(struct ceph_mount_info *cmount, struct Inode *in,
			     const char *name, const UserPerm *perms)
{
	fake_names.capability = false;
	return made("removexattr", in);
}

WEAK int ceph_ll_listxattr(struct ceph_mount_info *cmount, struct Inode *in,
			   char *list, size_t buf_size, size_t *list_size,
			   const UserPerm *perms)
{
	*list_size = 0;
	return made("listxattr", in);
}

WEAK int ceph_ll_fallocate(struct ceph_mount_info *cmount, struct Fh *fh,
			   int mode, int64_t offset, int64_t length)
{
	int rc = made("fallocate", NULL);

	if (rc == 0 && (mode & FALLOC_FL_PUNCH_HOLE))
		fake_zero((uint64_t)offset, (uint64_t)length);
	return rc;
}

WEAK int ceph_ll_statfs(struct ceph_mount_info *cmount, struct Inode *in,
			struct statvfs *stbuf)
{
	memset(stbuf, 0, sizeof(*stbuf));
	return made("statfs", in);
}

WEAK int ceph_ll_opendir(struct ceph_mount_info *cmount, struct Inode *in,
			 struct ceph_dir_result **dirpp, const UserPerm *perms)
{
	int rc = made("opendir", in);

	if (rc < 0)
		return rc;
	*dirpp = (struct ceph_dir_result *)&a_dir;
	fake_names.entries_read = 0;
	return 0;
}

WEAK void ceph_seekdir(struct ceph_mount_info *cmount,
		       struct ceph_dir_result *dirp, int64_t offset)
{
	(void)made("seekdir", NULL);
}

WEAK int ceph_readdirplus_r(struct ceph_mount_info *cmount,
			    struct ceph_dir_result *dirp, struct dirent *de,
			    struct ceph_statx *stx, unsigned want,
			    unsigned flags, struct Inode **out)
{
	int rc = made("readdir", NULL);

	if (rc < 0 || fake_names.entries_read == fake_names.entry_count)
		return rc;
	rc = found(rc, out, stx);
	*stx = fake_names.entries[fake_names.entries_read++];
	memset(de, 0, sizeof(*de));
	de->d_off = fake_names.entries_read + 2;
	(void)snprintf(de->d_name, sizeof(de->d_name), "e%u",
		       fake_names.entries_read);
	return rc < 0 ? rc : 1;
}

WEAK int ceph_get_default_data_pool_name(struct ceph_mount_info *cmount,
					 char *buf, size_t len)
{
	return -ENOENT;
}

WEAK int ceph_get_pool_id(struct ceph_mount_info *cmount, const char *pool_name)
{
	return -ENOENT;
}

#pragma GCC diagnostic pop
