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
 * Is there such a snapshot?  The MDS takes any number newer than the file, and
 * libcephfs makes a snapshot folder of anything.  A read of such an inode is
 * never answered, or ends the process: ceph_assert(in->inline_version > 0).
 */
static bool snapshot_exists(struct ceph_mount_info *ceph, struct Inode *inode,
			    uint64_t snapid, const struct ceph_statx *stx,
			    const UserPerm *root)
{
	char btime[64];

	if (snapid == SNAPDIR)
		return S_ISDIR(stx->stx_mode);
	/* Everything in a snapshot tells when that was made. */
	return ceph_ll_getxattr(ceph, inode, "ceph.snap.btime", btime,
				sizeof(btime), root) > 0;
}

/* Goes through a folder's .snap; 0 once the snapshot has passed. */
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
 * libcephfs asks the MDS about a folder by the way that led to it.  To one that
 * was found by its number none did; it leaves the snapshot out then, and the
 * MDS lists the folder, and looks names up in it, as it is today.  Its entry in
 * the folder's own .snap is a way, and stays for as long as somebody holds the
 * inode (Dentry::link).
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
