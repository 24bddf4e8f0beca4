/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READDIR.
 *
 * A cookie is libcephfs' position after the entry.  It is made of the hash of
 * the name (or of fragment and index, on very old directories).  So it stays
 * valid across opens, and while entries are added and removed.  Positions up to
 * 2 belong to "." and "..", so no cookie is one of those that NFS reserves.
 *
 * If the caller stops before the end, the handle is kept for the READDIR that
 * continues (dir_cache.h).
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fsal.h"
#include "attributes.h"
#include "call.h"
#include "errors.h"
#include "export.h"
#include "dir_cache.h"
#include "listing_order.h"
#include "object.h"
#include "obj_ops.h"
#include "read_cache.h"
#include "hash.h"

/* One READDIR under way. */
struct walk {
	struct casync_export *exp;
	struct casync_object *dir;
	attrmask_t attrmask;
	fsal_readdir_cb cb;
	void *dir_state;
	bool handed_out; /**< The caller has got an entry. */
	/** The last entry of the previous READDIR comes first here. */
	bool last_again;
	struct casync_listing listing;
	struct casync_listed_walk listed;
};

/* One entry of it. */
struct entry {
	struct dirent de;
	struct ceph_statx stx;
	struct Inode *inode;
};

static int readdir_open_dir_as(struct walk *walk, fsal_cookie_t whence,
			       const UserPerm *perms)
{
	struct ceph_mount_info *ceph = casync_export_ceph(walk->exp);
	struct Inode *dir = walk->dir->inode;
	struct ceph_statx stx;
	int rc;

	/* No seek for a read from the start, not even past "." and "..": after
	 * a seek libcephfs does not record that the listing is complete. */
	if (whence == 0)
		return ceph_ll_opendir(ceph, dir, &walk->listing.dirp, perms);

	/* Before an entry is read: a later change of the directory shows. */
	rc = ceph_ll_getattr(ceph, dir, &stx,
			     CEPH_STATX_CTIME | CEPH_STATX_VERSION, 0, perms);
	if (rc < 0)
		return rc;
	walk->listing.stamp = casync_dir_cache_stamp(&stx);
	if (casync_dir_cache_take(&walk->exp->dir_cache, &walk->listing)) {
		walk->last_again = walk->listing.position != whence;
		return 0;
	}

	rc = ceph_ll_opendir(ceph, dir, &walk->listing.dirp, perms);
	if (rc == 0)
		ceph_seekdir(ceph, walk->listing.dirp, (int64_t)whence);
	return rc;
}

/* Two lists of groups have the same number by chance alone. */
static uint64_t readdir_groups(const struct user_cred *creds)
{
	uint64_t number = creds->caller_glen;
	unsigned int i;

	for (i = 0; i < creds->caller_glen; i++)
		number = casync_hash_u64(number + creds->caller_garray[i]);
	return number;
}

static int readdir_open_dir(struct walk *walk, fsal_cookie_t whence)
{
	CASYNC_ERRORS_REQUESTER(perms);

	walk->listing.generation =
		casync_guard_generation(&walk->exp->mount->guard);
	walk->listing.id = walk->dir->id;
	walk->listing.position = whence;
	walk->listing.uid = op_ctx->creds.caller_uid;
	walk->listing.gid = op_ctx->creds.caller_gid;
	walk->listing.groups = readdir_groups(&op_ctx->creds);
	return readdir_open_dir_as(walk, whence, perms);
}

/* End a READDIR.  The handle is kept if the listing may continue. */
static void readdir_close_dir(struct walk *walk, bool goes_on)
{
	struct casync_listing unwanted = walk->listing;

	if (goes_on && walk->listing.stamp.known)
		casync_dir_cache_keep(&walk->exp->dir_cache, &walk->listing,
				      &unwanted);
	if (unwanted.dirp != NULL)
		ceph_ll_releasedir(casync_export_ceph(walk->exp),
				   unwanted.dirp);
}

static bool readdir_is_self(const char *name)
{
	return strcmp(name, ".") == 0;
}

static bool readdir_is_self_or_parent(const char *name)
{
	return readdir_is_self(name) || strcmp(name, "..") == 0;
}

/* 1: an entry, with a reference on its Inode; 0: the end; else an errno. */
static int readdir_next_entry(struct walk *walk, struct entry *entry)
{
	struct ceph_mount_info *ceph = casync_export_ceph(walk->exp);
	int rc;

	for (;;) {
		entry->inode = NULL;
		rc = ceph_readdirplus_r(
			ceph, walk->listing.dirp, &entry->de, &entry->stx,
			casync_attributes_statx_wanted(walk->attrmask), 0,
			&entry->inode);
		if (rc <= 0 || !readdir_is_self_or_parent(entry->de.d_name))
			return rc;

		/* The first entry, before libcephfs has read others. */
		if (readdir_is_self(entry->de.d_name))
			walk->listing.stamp =
				casync_dir_cache_stamp(&entry->stx);
		/* These have a reference too. */
		ceph_ll_put(ceph, entry->inode);
	}
}

/* A client that reads files in this order gets the next ones sooner. */
static void readdir_note_place(struct walk *walk, struct casync_object *obj)
{
	if (obj->cached != NULL)
		__atomic_store_n(
			&obj->cached->place,
			casync_listing_order_note(&walk->listed, obj->id.ino),
			__ATOMIC_RELAXED);
}

/* True: the caller wants another entry. */
static bool readdir_emit(struct walk *walk, const struct entry *entry)
{
	struct fsal_obj_handle *handle;
	struct fsal_attrlist attrs;
	enum fsal_dir_result result;

	fsal_prepare_attrs(&attrs, walk->attrmask);
	casync_object_from_lookup(entry->inode, &entry->stx, &handle, &attrs);
	readdir_note_place(walk, casync_object_of(handle));

	/* The callback owns the handle, whatever it returns. */
	result = walk->cb(entry->de.d_name, handle, &attrs, walk->dir_state,
			  (fsal_cookie_t)entry->de.d_off);
	fsal_release_attrs(&attrs);

	walk->handed_out = true;
	walk->listing.before = walk->listing.position;
	walk->listing.position = (uint64_t)entry->de.d_off;
	/* DIR_READAHEAD is for a cache of entries; there is none here. */
	if (result == DIR_CONTINUE)
		return true;
	(void)snprintf(walk->listing.last, sizeof(walk->listing.last), "%s",
		       entry->de.d_name);
	return false;
}

/*
 * Look up the last entry of the previous READDIR by its name.  libcephfs has
 * passed it, and would read the whole directory again to go back.  Returns as
 * readdir_next_entry(); 0 if the entry is gone.
 */
static int readdir_last_entry(struct walk *walk, struct entry *entry)
{
	CASYNC_ERRORS_REQUESTER(perms);
	int rc;

	entry->de.d_off = (off_t)walk->listing.position;
	walk->listing.position = walk->listing.before;
	(void)snprintf(entry->de.d_name, sizeof(entry->de.d_name), "%s",
		       walk->listing.last);
	rc = ceph_ll_lookup(casync_export_ceph(walk->exp), walk->dir->inode,
			    entry->de.d_name, &entry->inode, &entry->stx,
			    casync_attributes_statx_wanted(walk->attrmask), 0,
			    perms);
	return rc == -ENOENT ? 0 : rc < 0 ? rc : 1;
}

static int readdir_walk_dir(struct walk *walk, bool *eof)
{
	struct entry entry;
	int rc;

	if (walk->last_again) {
		rc = readdir_last_entry(walk, &entry);
		if (rc < 0 || (rc == 1 && !readdir_emit(walk, &entry)))
			return rc < 0 ? rc : 0;
	}
	do {
		rc = readdir_next_entry(walk, &entry);
		if (rc == 0) {
			*eof = true;
			casync_listing_order_end(&walk->listed);
		}
		if (rc <= 0)
			return rc;
	} while (readdir_emit(walk, &entry));

	return 0;
}

fsal_status_t casync_readdir(struct fsal_obj_handle *dir_hdl,
			     fsal_cookie_t *whence, void *dir_state,
			     fsal_readdir_cb cb, attrmask_t attrmask, bool *eof)
{
	struct walk walk = {
		.exp = casync_export_current(),
		.dir = casync_object_of(dir_hdl),
		.attrmask = attrmask,
		.cb = cb,
		.dir_state = dir_state,
		.listed = {.dir = casync_object_of(dir_hdl)->id.ino,
			   .export_id = op_ctx->ctx_export->export_id,
			   .first = whence == NULL || *whence == 0},
	};
	struct casync_call call;
	fsal_status_t status;
	int rc;

	*eof = false;

	status = casync_call_begin(&call, dir_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = readdir_open_dir(&walk, whence == NULL ? 0 : *whence);
	if (rc < 0)
		return casync_call_end(&call, casync_errors_status(rc));

	rc = readdir_walk_dir(&walk, eof);
	readdir_close_dir(&walk, rc >= 0 && !*eof);

	/* A file can be removed after libcephfs has fetched a batch and before
	 * we read the entry.  That entry fails, and libcephfs cannot skip it.
	 * The client continues after the last good entry, with a new batch.  A
	 * lasting error reaches it then. */
	if (rc < 0 && walk.handed_out) {
		LogDebug(COMPONENT_FSAL,
			 "fileid %" PRIu64 ": directory read cut short, %d",
			 dir_hdl->fileid, rc);
		rc = 0;
	}

	return casync_call_end(&call, casync_errors_status(rc));
}
