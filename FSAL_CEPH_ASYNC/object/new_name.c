/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>

#include "fsal.h"

#include "clock.h"
#include "inode.h"
#include "new_name.h"
#include "object.h"

/* A name on the way from symlink to symlink.  The first is the request's. */
struct place {
	struct ceph_mount_info *ceph;
	const UserPerm *perms;
	struct Inode *dir;
	bool dir_is_ours; /* Its reference. */
	char name[PATH_MAX + 2];
};

static int new_name_look(const struct place *at, const char *name,
			 struct Inode **inode, struct ceph_statx *stx)
{
	return ceph_ll_lookup(at->ceph, at->dir, name, inode, stx,
			      CEPH_STATX_INO, AT_SYMLINK_NOFOLLOW, at->perms);
}

int casync_new_name_is_free(const struct casync_object *dir, const char *name,
			    const UserPerm *perms)
{
	const struct place at = {.ceph = casync_inode_ceph(dir),
				 .dir = dir->inode,
				 .perms = perms};
	struct ceph_statx stx;
	struct Inode *inode;
	int rc = new_name_look(&at, name, &inode, &stx);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	ceph_ll_put(at.ceph, inode);
	return -EEXIST;
}

static void new_name_set(struct place *at, const char *name)
{
	(void)snprintf(at->name, sizeof(at->name), "%s", name);
}

static void new_name_enter(struct place *at, struct Inode *dir)
{
	if (at->dir_is_ours)
		ceph_ll_put(at->ceph, at->dir);
	at->dir = dir;
	at->dir_is_ours = true;
}

/* Go where the symlink leads.  libcephfs takes "a/b/." for a path. */
static int new_name_follow(struct place *at, struct Inode *symlink)
{
	char target[PATH_MAX + 2];
	struct ceph_statx stx;
	struct Inode *dir;
	char *name;
	int rc = ceph_ll_readlink(at->ceph, symlink, target, PATH_MAX,
				  at->perms);

	if (rc < 0)
		return rc;
	while (rc > 1 && target[rc - 1] == '/')
		rc--;
	target[rc] = '\0';
	name = strrchr(target, '/');
	name = name == NULL ? target : name + 1;
	new_name_set(at, name);
	if (name == target)
		return 0;
	name[0] = '.';
	name[1] = '\0';
	rc = new_name_look(at, target, &dir, &stx);
	if (rc == 0)
		new_name_enter(at, dir);
	return rc;
}

/* 1: a symlink was followed; go on. */
static int new_name_undo_step(struct place *at, const struct ceph_statx *made)
{
	struct ceph_statx stx;
	struct Inode *inode;
	int rc = new_name_look(at, at->name, &inode, &stx);

	if (rc < 0)
		return rc;
	if (stx.stx_ino == made->stx_ino)
		rc = S_ISDIR(made->stx_mode)
			     ? ceph_ll_rmdir(at->ceph, at->dir, at->name,
					     at->perms)
			     : ceph_ll_unlink(at->ceph, at->dir, at->name,
					      at->perms);
	else if (S_ISLNK(stx.stx_mode))
		rc = new_name_follow(at, inode);
	else
		rc = -ENOENT;
	ceph_ll_put(at->ceph, inode);
	return rc == 0 && stx.stx_ino != made->stx_ino ? 1 : rc;
}

static void new_name_undo(struct place *at, const struct ceph_statx *made)
{
	static uint64_t line_ns;
	int tries, rc = 1;

	for (tries = 0; rc == 1 && tries <= MAXSYMLINKS; tries++)
		rc = new_name_undo_step(at, made);
	if (at->dir_is_ours)
		ceph_ll_put(at->ceph, at->dir);
	if (rc != 0 && casync_clock_once_a_minute(&line_ns))
		LogWarn(COMPONENT_FSAL,
			"fileid %" PRIu64
			" was made where a symbolic link led to, and stays there: %s (no other such line for a minute)",
			made->stx_ino, strerror(rc < 0 ? -rc : ELOOP));
}

int casync_new_name_check(const struct casync_object *dir, const char *name,
			  const struct ceph_statx *made, const UserPerm *perms)
{
	struct place at = {.ceph = casync_inode_ceph(dir),
			   .dir = dir->inode,
			   .perms = perms};
	struct ceph_statx stx;
	struct Inode *inode;

	/* An error: it was removed or moved meanwhile, and had been made. */
	if (new_name_look(&at, name, &inode, &stx) < 0)
		return 0;
	ceph_ll_put(at.ceph, inode);
	/* A new symlink is no symlink that was followed. */
	if (stx.stx_ino == made->stx_ino || !S_ISLNK(stx.stx_mode))
		return 0;
	new_name_set(&at, name);
	new_name_undo(&at, made);
	return -EEXIST;
}
