/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "snapshot.h"

/* CEPH_SNAPDIR of Ceph's ceph_fs.h, which libcephfs-dev leaves out: the
 * snapid of a .snap folder. */
#define SNAPDIR UINT64_MAX

/*
 * Does the snapshot exist?  The MDS accepts any number newer than the file, and
 * libcephfs makes a snapshot folder for any inode.  A read of such an inode is
 * never answered, or ends the process: ceph_assert(in->inline_version > 0).
 */
static bool snapshot_exists(struct ceph_mount_info *ceph, struct Inode *inode,
			    uint64_t snapid, const struct ceph_statx *stx,
			    const UserPerm *root)
{
	char btime[64];

	if (snapid == SNAPDIR)
		return S_ISDIR(stx->stx_mode);
	/* Every inode in a snapshot has the snapshot's creation time. */
	return ceph_ll_getxattr(ceph, inode, "ceph.snap.btime", btime,
				sizeof(btime), root) > 0;
}

/* Reads a folder's .snap until it finds the snapshot; 0: found. */
static int snapshot_pass_by(struct ceph_mount_info *ceph, struct Inode *snapdir,
			    const struct casync_fileid *id,
			    const UserPerm *root)
{
	struct ceph_dir_result *dirp;
	struct ceph_statx stx;
	struct Inode *inode;
	struct dirent de;
	bool found = false;
	int rc;

	rc = ceph_ll_opendir(ceph, snapdir, &dirp, root);
	if (rc < 0)
		return rc;
	while (!found) {
		inode = NULL;
		rc = ceph_readdirplus_r(ceph, dirp, &de, &stx, CEPH_STATX_INO,
					0, &inode);
		if (rc <= 0)
			break;
		found = stx.stx_ino == id->ino && stx.stx_dev == id->snapid;
		ceph_ll_put(ceph, inode);
	}
	ceph_ll_releasedir(ceph, dirp);
	if (found)
		return 0;
	return rc < 0 ? rc : -ESTALE;
}

/*
 * libcephfs asks the MDS for a folder by the path that led to it.  A folder
 * that was found by its number has no path.  Then libcephfs leaves out the
 * snapshot, and the MDS lists the folder, and looks up names in it, in their
 * present state.  The folder's entry in its own .snap is a path.  libcephfs
 * keeps it as long as the inode has a reference (Dentry::link).
 */
static int snapshot_find_way(struct ceph_mount_info *ceph,
			     const struct casync_fileid *id,
			     const UserPerm *root)
{
	vinodeno_t vino = {.ino.val = id->ino, .snapid.val = SNAPDIR};
	struct Inode *snapdir;
	int rc;

	rc = ceph_ll_lookup_vino(ceph, vino, &snapdir);
	if (rc < 0)
		return rc;
	rc = snapshot_pass_by(ceph, snapdir, id, root);
	ceph_ll_put(ceph, snapdir);
	return rc;
}

int casync_snapshot_settle(struct ceph_mount_info *ceph, struct Inode *inode,
			   const struct casync_fileid *id,
			   const struct ceph_statx *stx, const UserPerm *root)
{
	int rc;

	if (id->snapid == CEPH_NOSNAP)
		return 0;
	if (!snapshot_exists(ceph, inode, id->snapid, stx, root))
		return -ESTALE;
	if (id->snapid == SNAPDIR || !S_ISDIR(stx->stx_mode))
		return 0;
	rc = snapshot_find_way(ceph, id, root);
	return rc == -ENOENT || rc == -EINVAL ? -ESTALE : rc;
}
