/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fsal.h"
#include "fsal_convert.h"

#include "attributes.h"
#include "errors.h"
#include "export.h"
#include "inode.h"
#include "object.h"
#include "object_table.h"

/* CEPH_SNAPDIR of Ceph's ceph_fs.h, which libcephfs-dev leaves out: the
 * snapid of a .snap folder. */
#define SNAPDIR UINT64_MAX
_Static_assert(CEPH_NOSNAP == SNAPDIR - 1,
	       "a smaller snapid is that of a snapshot");

/* Guards the change of an fd from an old Fh to a new one.  A leaf. */
static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Does the snapshot exist?  The MDS accepts any number newer than the file, and
 * libcephfs makes a snapshot folder for any inode.  A read of such an inode is
 * never answered, or ends the process: ceph_assert(in->inline_version > 0).
 */
static bool inode_snapshot_exists(struct ceph_mount_info *ceph,
				  struct Inode *inode, uint64_t snapid,
				  const struct ceph_statx *stx,
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
static int inode_find_snapshot(struct ceph_mount_info *ceph,
			       struct Inode *snapdir,
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
static int inode_find_path(struct ceph_mount_info *ceph,
			   const struct casync_fileid *id, const UserPerm *root)
{
	vinodeno_t vino = {.ino.val = id->ino, .snapid.val = SNAPDIR};
	struct Inode *snapdir;
	int rc;

	rc = ceph_ll_lookup_vino(ceph, vino, &snapdir);
	if (rc < 0)
		return rc;
	rc = inode_find_snapshot(ceph, snapdir, id, root);
	ceph_ll_put(ceph, snapdir);
	return rc;
}

/* Make an inode usable that was found by its number, if it is in a snapshot. */
static int inode_use_in_snapshot(struct ceph_mount_info *ceph,
				 struct Inode *inode,
				 const struct casync_fileid *id,
				 const struct ceph_statx *stx,
				 const UserPerm *root)
{
	int rc;

	if (id->snapid == CEPH_NOSNAP)
		return 0;
	if (!inode_snapshot_exists(ceph, inode, id->snapid, stx, root))
		return -ESTALE;
	if (id->snapid == SNAPDIR || !S_ISDIR(stx->stx_mode))
		return 0;
	rc = inode_find_path(ceph, id, root);
	return rc == -ENOENT || rc == -EINVAL ? -ESTALE : rc;
}

int casync_inode_find(struct ceph_mount_info *ceph,
		      const struct casync_fileid *id, unsigned int mask,
		      const UserPerm *root, struct Inode **inode,
		      struct ceph_statx *stx)
{
	vinodeno_t vino = {.ino.val = id->ino, .snapid.val = id->snapid};
	int rc = ceph_ll_lookup_vino(ceph, vino, inode);

	if (rc < 0) /* no inode has that number (any more) */
		return rc == -ENOENT || rc == -EINVAL ? -ESTALE : rc;
	rc = ceph_ll_getattr(ceph, *inode, stx, mask, 0, root);
	if (rc == 0)
		rc = inode_use_in_snapshot(ceph, *inode, id, stx, root);
	if (rc < 0)
		ceph_ll_put(ceph, *inode);
	return rc == -ENOENT ? -ESTALE : rc;
}

void casync_inode_note_snapshot(const struct casync_object *dir)
{
	if (dir->id.snapid < CEPH_NOSNAP)
		casync_snapshots_note(&casync_inode_mount(dir)->snapshots,
				      dir->id.snapid, dir->id.ino);
}

/* The folder is one of the present, or removed: then we do not know. */
bool casync_inode_snapshot_is_gone(const struct casync_object *obj)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	struct casync_fileid folder = {.snapid = obj->id.snapid};
	vinodeno_t vino = {.snapid.val = SNAPDIR};
	struct Inode *snapdir;
	int rc;

	if (obj->id.snapid >= CEPH_NOSNAP)
		return false;
	folder.ino = casync_snapshots_folder(
		&casync_inode_mount(obj)->snapshots, obj->id.snapid);
	vino.ino.val = folder.ino;
	if (folder.ino == 0 || ceph_ll_lookup_vino(ceph, vino, &snapdir) < 0)
		return false;
	rc = inode_find_snapshot(ceph, snapdir, &folder,
				 casync_inode_root(obj));
	ceph_ll_put(ceph, snapdir);
	return rc == -ESTALE;
}

struct casync_mount *casync_inode_mount(const struct casync_object *obj)
{
	return obj->exp->mount;
}

struct casync_lane *casync_inode_lane(const struct casync_object *obj,
				      enum casync_mount_lane which)
{
	return &casync_inode_mount(obj)->lanes[which];
}

struct ceph_mount_info *casync_inode_ceph(const struct casync_object *obj)
{
	return obj->exp->mount->client->ceph;
}

const UserPerm *casync_inode_root(const struct casync_object *obj)
{
	return obj->exp->root_perms;
}

int casync_inode_lookup(struct ceph_mount_info *ceph, struct Inode *dir,
			const char *name, const struct fsal_attrlist *attrs,
			struct Inode **inode, struct ceph_statx *stx)
{
	attrmask_t mask = attrs != NULL ? attrs->request_mask : 0;
	CASYNC_ERRORS_REQUESTER(perms);

	return ceph_ll_lookup(ceph, dir, name, inode, stx,
			      casync_attributes_statx_wanted(mask),
			      AT_SYMLINK_NOFOLLOW, perms);
}

int casync_inode_renew(struct casync_object *obj, uint32_t generation)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	struct casync_object_table *table =
		&casync_inode_mount(obj)->upcalls.table;
	uint64_t size_generation = casync_file_size_changes(&obj->size);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc;

	rc = casync_inode_find(ceph, &obj->id,
			       casync_attributes_statx_wanted(ATTR_SIZE),
			       casync_inode_root(obj), &inode, &stx);
	if (rc < 0)
		return rc;
	if (obj->handle.type == REGULAR_FILE) {
		if (stx.stx_mask & CEPH_STATX_SIZE)
			casync_file_size_update(&obj->size, stx.stx_size,
						size_generation);
		casync_object_may_be_privileged(obj);
	}
	if (casync_object_table_renew(table, obj, inode, generation))
		ceph_ll_put(ceph, inode);
	return 0;
}

/* --- the Fh of an fd */

static uint32_t inode_generation(const struct casync_object *obj)
{
	return casync_guard_generation(&casync_inode_mount(obj)->guard);
}

bool casync_inode_fd_is_lost(const struct casync_object *obj,
			     const struct casync_fd *fd)
{
	return __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE) !=
	       inode_generation(obj);
}

/* True: the Fh is the fd's now. */
static bool inode_set_fh(struct casync_object *obj, struct casync_fd *fd,
			 struct Fh *fh)
{
	bool lost;

	pthread_mutex_lock(&fds_lock);
	lost = casync_inode_fd_is_lost(obj, fd);
	if (lost) {
		fd->narrow_fh = NULL;
		__atomic_store_n(&fd->fh, fh, __ATOMIC_RELEASE);
		__atomic_store_n(&fd->generation, inode_generation(obj),
				 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&fds_lock);
	return lost;
}

int casync_inode_reopen(struct casync_object *obj, struct casync_fd *fd)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	struct Fh *fh = NULL; /* as in fd_open_fh() */
	int posix_flags = 0;
	int rc;

	/* Not O_TRUNC and the like: that was done. */
	fsal2posix_openflags(fd->fh_access & FSAL_O_RDWR, &posix_flags);
	rc = ceph_ll_open(ceph, obj->inode, posix_flags, &fh,
			  casync_inode_root(obj));
	if (rc < 0)
		return rc == -ENOENT ? -ESTALE : rc;
	if (!inode_set_fh(obj, fd, fh))
		(void)ceph_ll_close(ceph, fh);
	return 0;
}

/* --- changed attributes */

/* Read and tested in 20.2.4.  In any other version another open may be another
 * thing, and a reference too few ends the process.  Then each SETATTR waits for
 * the journal, and RENAME sends nothing. */
static bool inode_can_send(void)
{
	int major, minor, patch;

	(void)ceph_version(&major, &minor, &patch);
	return major == 20 && minor == 2 && patch == 4;
}

/* libcephfs has no call for it.  But an open that needs no capabilities sends
 * changed attributes, and does not ask the MDS: O_DIRECTORY makes it such an
 * open (CEPH_FILE_MODE_PIN).  If libcephfs has to ask, the MDS refuses to open
 * a file as a directory.  So success says that they are sent (Ceph 20.2.4,
 * Client::_open()).  Such an open takes a reference on the Inode, and the close
 * does not drop it. */
int casync_inode_send_attributes(struct casync_object *obj)
{
	struct ceph_mount_info *ceph = casync_inode_ceph(obj);
	struct Fh *fh = NULL;
	int rc;

	if (!inode_can_send())
		return -ENOSYS;
	rc = ceph_ll_open(ceph, obj->inode, O_RDONLY | O_DIRECTORY, &fh,
			  casync_inode_root(obj));
	if (rc < 0)
		return rc;
	rc = ceph_ll_close(ceph, fh);
	ceph_ll_put(ceph, obj->inode);
	return rc;
}

/* An attribute that libcephfs itself answers makes it ask the MDS first,
 * whatever capabilities it has (Ceph 20.2.4, Client::_getxattr()): a GETATTR of
 * nothing, which needs no lock and no journal.  An MDS takes the messages of a
 * session in order.  So its answer says that it has what was sent before. */
int casync_inode_ask_mds(const struct casync_object *obj)
{
	char unused[256];
	int rc = ceph_ll_getxattr(casync_inode_ceph(obj), obj->inode,
				  "ceph.caps", unused, sizeof(unused),
				  casync_inode_root(obj));

	return rc < 0 ? rc : 0;
}
