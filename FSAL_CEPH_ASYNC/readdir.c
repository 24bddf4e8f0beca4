/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READDIR.
 *
 * A cookie is libcephfs' position after the entry.  It is made of the hash
 * of the name (or of fragment and index, on very old directories), so it
 * stays good across opens and while entries come and go.  Positions up to 2
 * are taken by "." and "..", which keeps clear of the cookies that NFS
 * reserves.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fsal.h"
#include "attributes.h"
#include "cred.h"
#include "errors.h"
#include "export.h"
#include "object.h"
#include "ops.h"

/* One READDIR under way. */
struct walk {
	struct ceph_mount_info *ceph;
	struct ceph_dir_result *dirp;
	attrmask_t attrmask;
	fsal_readdir_cb cb;
	void *dir_state;
	bool handed_out; /**< The caller has got an entry. */
};

/* One entry of it. */
struct entry {
	struct dirent de;
	struct ceph_statx stx;
	struct Inode *inode;
};

static int open_dir(struct fsal_obj_handle *dir_hdl, fsal_cookie_t whence,
		    struct walk *walk)
{
	UserPerm *perms = casync_userperm(&op_ctx->creds);
	int rc;

	if (perms == NULL)
		return -ENOMEM;

	rc = ceph_ll_opendir(walk->ceph, casync_object_of(dir_hdl)->inode,
			     &walk->dirp, perms);
	ceph_userperm_destroy(perms);
	if (rc < 0)
		return rc;

	/* From the start without a seek, not even past "." and "..": a seek
	 * keeps libcephfs from remembering that it has seen everything. */
	if (whence != 0)
		ceph_seekdir(walk->ceph, walk->dirp, (int64_t)whence);
	return 0;
}

static bool is_self_or_parent(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* 1 for an entry with its Inode referenced, 0 at the end, else an errno. */
static int next_entry(const struct walk *walk, struct entry *entry)
{
	int rc;

	for (;;) {
		entry->inode = NULL;
		rc = ceph_readdirplus_r(
			walk->ceph, walk->dirp, &entry->de, &entry->stx,
			casync_statx_wanted(walk->attrmask), 0, &entry->inode);
		if (rc <= 0 || !is_self_or_parent(entry->de.d_name))
			return rc;

		/* These come with a reference like any other. */
		ceph_ll_put(walk->ceph, entry->inode);
	}
}

/* True when the caller wants another one. */
static bool hand_out(struct walk *walk, const struct entry *entry)
{
	struct fsal_obj_handle *handle;
	struct fsal_attrlist attrs;
	enum fsal_dir_result result;

	fsal_prepare_attrs(&attrs, walk->attrmask);
	casync_object_out(entry->inode, &entry->stx, &handle, &attrs);

	/* The handle is the callback's from here on, whatever it says. */
	result = walk->cb(entry->de.d_name, handle, &attrs, walk->dir_state,
			  (fsal_cookie_t)entry->de.d_off);
	fsal_release_attrs(&attrs);

	walk->handed_out = true;

	/* DIR_READAHEAD is for a cache of entries, and there is none. */
	return result == DIR_CONTINUE;
}

static int walk_dir(struct walk *walk, bool *eof)
{
	struct entry entry;
	int rc;

	do {
		rc = next_entry(walk, &entry);
		if (rc == 0)
			*eof = true;
		if (rc <= 0)
			return rc;
	} while (hand_out(walk, &entry));

	return 0;
}

fsal_status_t casync_readdir(struct fsal_obj_handle *dir_hdl,
			     fsal_cookie_t *whence, void *dir_state,
			     fsal_readdir_cb cb, attrmask_t attrmask, bool *eof)
{
	struct walk walk = {
		.ceph = casync_export_current()->ceph,
		.attrmask = attrmask,
		.cb = cb,
		.dir_state = dir_state,
	};
	int rc;

	*eof = false;

	rc = open_dir(dir_hdl, whence == NULL ? 0 : *whence, &walk);
	if (rc < 0)
		return casync_status(rc);

	rc = walk_dir(&walk, eof);
	ceph_ll_releasedir(walk.ceph, walk.dirp);

	/* A file that goes away between libcephfs' fetch of a batch and our
	 * reading it fails that entry, and libcephfs cannot step over it.
	 * The client comes back after the last good one, to a fresh batch; a
	 * lasting error reaches it then. */
	if (rc < 0 && walk.handed_out) {
		LogDebug(COMPONENT_FSAL,
			 "fileid %" PRIu64 ": directory read cut short, %d",
			 dir_hdl->fileid, rc);
		rc = 0;
	}

	return casync_status(rc);
}
