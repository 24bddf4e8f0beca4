/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file object.h
 * @brief One file, directory, symlink or device: a reference on an Inode.
 *
 * Life: casync_object_new() -> MDCACHE owns it -> obj_ops.release, once.
 * MDCACHE counts the references; only it may release an object.  The object
 * outlives every op on it, because the request that started the op holds it
 * until done_cb.
 */
#ifndef CASYNC_OBJECT_H
#define CASYNC_OBJECT_H

#include <cephfs/libcephfs.h>
#include <sys/stat.h>

#include "fsal_api.h"
#include "fd.h"
#include "file_size.h"
#include "filehandle.h"
#include "flush.h"
#include "delegations.h"
#include "lock_records.h"
#include "room.h"

struct casync_cached_file;
struct casync_export;

struct casync_object {
	struct fsal_obj_handle handle; /**< Ganesha's part. */
	struct casync_export *exp;     /**< Outlives the object. */
	/** One reference for all its objects.  It changes only in
	 * casync_inode_renew(). */
	struct Inode *inode;
	uint32_t generation;	       /**< Of the inode's client; atomic. */
	struct casync_fileid id;       /**< Wire identity. */
	uint8_t key[CASYNC_KEY_BYTES]; /**< MDCACHE's key. */

	struct casync_object *next_in_table; /**< Used by object_table.c. */

	/** The file in the read cache; regular files only.  It does not change
	 * while the object is in the table. */
	struct casync_cached_file *cached;

	/** Its part of the mount's slots (call.h). */
	struct casync_room callers;
	uint64_t answered_ns; /**< The last of them; CLOCK_MONOTONIC, atomic. */
	/** Waiters for attributes: Ganesha's workers, completion threads. */
	struct casync_room getattr[2];
	/** Waiters of SETATTR, COMMIT, DEALLOCATE, and of WRITEs that clear
	 * setuid. */
	struct casync_room change;

	/* Regular files only. */
	struct fsal_share share; /**< Under handle.obj_lock. */
	/**
	 * For I/O without state.  There are two for two reasons.  A WRITE need
	 * not wait for the READs in flight to reopen the fd.  And a file that
	 * is only read is not open for writing, which would take the shared
	 * capabilities from other clients that read it.
	 */
	struct casync_fd read_fd, write_fd;
	/** Of a file: limits and orders its WRITEs.  Its flushes. */
	struct casync_queue queue;
	/** Shares of the threads that ask for its size, repair reads, and
	 * submit reads. */
	struct casync_lane_share look, data, reads;

	struct casync_file_size size; /**< Known sizes of the file. */
	/** The file may be setuid or setgid, or have file capabilities: the
	 * next write looks, and takes them (privileges.h).  It may not, if the
	 * two are the same.  The first counts what may have made it so; the
	 * second is the first's value when a write has found nothing.  Atomic,
	 * relaxed. */
	uint32_t privileged, unprivileged;
	/** casync_object_note_links() has said so; atomic. */
	bool has_no_name;
	/** ctime in ns, when `privileged` last counted it; atomic. */
	uint64_t suspect_ctime_ns;
	/** A SETATTR through this object was journaled, so the owner that it
	 * found was too.  Atomic. */
	bool owner_journaled;
	/** A SETATTR of the owner or group has failed: the change may be in
	 * memory only.  Atomic. */
	bool chown_failed;
	uint16_t chowns; /**< Such SETATTRs under way; atomic. */
	struct casync_delegations delegations; /**< On it. */
	struct casync_lock_records locks;      /**< Byte-range locks on it. */
	/** casync_parts_span() of the layout; 0: unknown (atomic). */
	uint64_t object_span;
};

static inline struct casync_object *
casync_object_of(struct fsal_obj_handle *handle)
{
	return container_of(handle, struct casync_object, handle);
}

/** The global fd for reads or for writes. */
static inline struct casync_fd *
casync_object_global_fd(struct casync_object *obj, fsal_openflags_t openflags)
{
	return openflags & FSAL_O_WRITE ? &obj->write_fd : &obj->read_fd;
}

/**
 * Make an object of an Inode.  May call libcephfs.
 *
 * @param[in] exp    The export that it is seen through.
 * @param[in] inode  A reference, which is taken over.
 * @param[in] stx    At least type, inode number and device.
 *
 * @return The object; never NULL (Ganesha's allocator aborts).
 */
struct casync_object *casync_object_new(struct casync_export *exp,
					struct Inode *inode,
					const struct ceph_statx *stx);

/**
 * Make an object of an Inode that was just looked up, and fill in attributes.
 *
 * @param[in]     inode   The caller's reference; it is taken over.
 * @param[in]     stx     As wanted by casync_attributes_statx_wanted().
 * @param[out]    handle  The new object.
 * @param[in,out] attrs   May be NULL.
 */
void casync_object_from_lookup(struct Inode *inode,
			       const struct ceph_statx *stx,
			       struct fsal_obj_handle **handle,
			       struct fsal_attrlist *attrs);

/** Fill in attributes as an export shows them. */
void casync_object_fill_attrs(struct casync_export *exp,
			      const struct ceph_statx *stx,
			      struct fsal_attrlist *attrs);

/** obj_ops.release: close what is open, drop the Inode, free. */
void casync_object_release(struct fsal_obj_handle *obj_hdl);

/** obj_ops.merge: move the share reservation of a duplicate. */
fsal_status_t casync_object_merge(struct fsal_obj_handle *orig_hdl,
				  struct fsal_obj_handle *dupe_hdl);

/** If @p stx says that the file has no name any more: have Ganesha's cache drop
 * it.  Its space is given back only then. */
void casync_object_note_links(struct casync_object *obj,
			      const struct ceph_statx *stx);

/** Its mode or its extended attributes may have changed: the next write has to
 * look at them. */
static inline void casync_object_may_be_privileged(struct casync_object *obj)
{
	__atomic_add_fetch(&obj->privileged, 1, __ATOMIC_RELAXED);
}

/** Remember whether the next write has to look. */
void casync_object_note_mode(struct casync_object *obj,
			     const struct ceph_statx *stx);

/** May it be setuid or setgid, or have file capabilities? */
bool casync_object_privileged(const struct casync_object *obj);

#endif /* CASYNC_OBJECT_H */
