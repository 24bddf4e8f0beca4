/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * GETATTR and SETATTR.
 */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "check.h"
#include "inode.h"
#include "mount.h"
#include "nfs_core.h"
#include "acl.h"
#include "attributes.h"
#include "borrow.h"
#include "call.h"
#include "durability.h"
#include "errors.h"
#include "export.h"
#include "object.h"
#include "object_table.h"
#include "obj_ops.h"
#include "privileges.h"

/* An operation on a handle has no name that could be missing.  So ENOENT means
 * that the inode is gone.  Only STALE makes the caller forget it. */
static fsal_status_t getset_handle_status(int rc)
{
	return casync_errors_status(rc == -ENOENT ? -ESTALE : rc);
}

static int getset_get_statx(struct casync_object *obj, attrmask_t mask,
			    struct ceph_statx *stx, const UserPerm *perms)
{
	/* Flags 0: attributes covered by our capabilities come from memory. */
	return ceph_ll_getattr(casync_inode_ceph(obj), obj->inode, stx,
			       casync_attributes_statx_wanted(mask), 0, perms);
}

static struct casync_acl_file getset_acl_file(const struct casync_object *obj,
					      const UserPerm *perms)
{
	return (struct casync_acl_file){
		.ceph = casync_inode_ceph(obj),
		.inode = obj->inode,
		.type = obj->handle.type,
		.perms = perms,
	};
}

/* Attributes that CephFS keeps in extended attributes.  They are read as root:
 * a client that may read attributes may read these too. */
static int getset_get_extras(struct casync_object *obj,
			     const struct ceph_statx *stx,
			     struct fsal_attrlist *attrs)
{
	const struct casync_acl_file file =
		getset_acl_file(obj, casync_inode_root(obj));
	int rc = 0;

	if (FSAL_TEST_MASK(attrs->request_mask, ATTR_ACL) &&
	    casync_acl_offered())
		rc = casync_acl_get(&file, stx, attrs);
	if (rc == 0 && FSAL_TEST_MASK(attrs->request_mask, ATTR4_SEC_LABEL) &&
	    casync_acl_label_offered())
		rc = casync_acl_label_get(&file, attrs);
	return rc;
}

static int getset_get_all(struct casync_object *obj, attrmask_t mask,
			  struct ceph_statx *stx,
			  struct fsal_attrlist *attrs_out)
{
	CASYNC_ERRORS_REQUESTER(perms);
	int rc = getset_get_statx(obj, mask, stx, perms);

	if (rc != 0)
		return rc;
	casync_object_fill_attrs(obj->exp, stx, attrs_out);
	return getset_get_extras(obj, stx, attrs_out);
}

static int getset_get(struct casync_object *obj,
		      struct fsal_attrlist *attrs_out)
{
	uint64_t generation = casync_file_size_changes(&obj->size);
	attrmask_t mask = attrs_out->request_mask;
	struct ceph_statx stx;
	int rc;

	if (FSAL_TEST_MASK(mask, ATTR_ACL)) /* may be made from the mode */
		FSAL_SET_MASK(mask, ATTR_MODE);
	rc = getset_get_all(obj, mask, &stx, attrs_out);
	if (rc < 0)
		return rc;
	casync_object_note_mode(obj, &stx);
	casync_object_note_links(obj, &stx);
	if (obj->handle.type == REGULAR_FILE &&
	    (stx.stx_mask & CEPH_STATX_SIZE))
		casync_file_size_update(&obj->size, stx.stx_size, generation);
	return 0;
}

static fsal_status_t getset_getattrs(struct fsal_obj_handle *obj_hdl,
				     struct fsal_attrlist *attrs_out)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_call call;
	fsal_status_t status;

	status = casync_delegations_recall_writers(&obj->delegations)
			 ? fsalstat(ERR_FSAL_DELAY, EAGAIN)
			 : casync_call_begin(&call, obj_hdl,
					     CASYNC_CALL_ASKS_MDS |
						     CASYNC_CALL_ATTR_SLOT);
	if (!FSAL_IS_ERROR(status))
		status = casync_call_end(&call, getset_handle_status(getset_get(
							obj, attrs_out)));
	if (FSAL_IS_ERROR(status) &&
	    FSAL_TEST_MASK(attrs_out->request_mask, ATTR_RDATTR_ERR))
		attrs_out->valid_mask = ATTR_RDATTR_ERR;
	return status;
}

fsal_status_t casync_getattrs(struct fsal_obj_handle *obj_hdl,
			      struct fsal_attrlist *attrs_out)
{
	fsal_status_t status;

	do {
		status = getset_getattrs(obj_hdl, attrs_out);
	} while (casync_call_is_to_repeat(&status));
	return status;
}

/* A SETATTR. */
struct change {
	struct casync_object *obj;
	const struct fsal_attrlist *attrs;
	struct ceph_statx stx; /* the same, for libcephfs */
	int mask;	       /* of stx */
	const UserPerm *perms; /* the requester's */
};

static int getset_call_setattr(const struct change *change, int mask,
			       const UserPerm *perms)
{
	/* libcephfs writes the resulting attributes into its argument. */
	struct ceph_statx scratch = change->stx;

	return ceph_ll_setattr(casync_inode_ceph(change->obj),
			       change->obj->inode, &scratch, mask, perms);
}

static int getset_set_statx(const struct change *change, int mask,
			    const UserPerm *perms)
{
	struct casync_file_size *size = &change->obj->size;
	uint64_t begun;
	int rc;

	if (!(mask & CEPH_SETATTR_SIZE))
		return getset_call_setattr(change, mask, perms);
	begun = casync_file_size_truncates(size);
	rc = getset_call_setattr(change, mask, perms);
	if (rc == 0)
		casync_file_size_truncated(size, begun, change->stx.stx_size);
	else
		casync_file_size_not_truncated(size);
	return rc;
}

/*
 * The owner may truncate a file even if its mode does not allow him to write: a
 * client that created it with mode 0444 has it open for writing, and libcephfs
 * cannot know that.  Ganesha allows it by the same rule, but it may use old
 * attributes.  So the owner is read again here.
 */
static int getset_set_size_as_owner(const struct change *change)
{
	struct ceph_statx current;
	int rc;

	rc = getset_get_statx(change->obj, ATTR_OWNER, &current, change->perms);
	if (rc < 0)
		return rc;

	if (current.stx_uid != op_ctx->creds.caller_uid)
		return -EACCES;

	return getset_set_statx(change, CEPH_SETATTR_SIZE,
				casync_inode_root(change->obj));
}

static int getset_set_as_requester(const struct change *change, int mask)
{
	int rc = getset_set_statx(change, mask, change->perms);

	if (rc == -EACCES && (mask & CEPH_SETATTR_SIZE)) {
		rc = getset_set_size_as_owner(change);
		mask &= ~CEPH_SETATTR_SIZE;
		/* An empty mask would still change ctime. */
		if (rc == 0 && mask != 0)
			rc = getset_set_statx(change, mask, change->perms);
	}
	return rc;
}

static bool getset_has_extras(const struct change *change)
{
	return FSAL_TEST_MASK(change->attrs->valid_mask,
			      ATTR_ACL | ATTR4_SEC_LABEL);
}

static int getset_set_extras(const struct change *change)
{
	const struct casync_acl_file file =
		getset_acl_file(change->obj, change->perms);
	attrmask_t wanted = change->attrs->valid_mask;
	int rc = 0;

	/* After the mode: an ACL implies a mode (RFC 8881, 6.4.1.3). */
	if (FSAL_TEST_MASK(wanted, ATTR_ACL)) {
		rc = casync_privileges_before_acl(change->obj);
		if (rc == 0)
			rc = casync_acl_set(&file, change->attrs);
	}
	if (rc == 0 && FSAL_TEST_MASK(wanted, ATTR4_SEC_LABEL))
		rc = casync_acl_label_set(&file, change->attrs);
	return rc;
}

#define GETSET_CHOWN (CEPH_SETATTR_UID | CEPH_SETATTR_GID)

/*
 * Is the owner that CephFS has shown before this call as stable as an answer
 * says?  A chown that CephFS has shown is still counted in `chowns`, or has
 * ended: then the MDS has it, as a failure is stored before it ends.
 */
static bool getset_owner_is_stable(struct casync_object *obj,
				   enum casync_stable_metadata when)
{
	struct casync_mount *mount = casync_inode_mount(obj);

	return __atomic_load_n(&obj->chowns, __ATOMIC_ACQUIRE) == 0 &&
	       !__atomic_load_n(&obj->chown_failed, __ATOMIC_ACQUIRE) &&
	       (when == CASYNC_METADATA_MDS ||
		(__atomic_load_n(&obj->owner_journaled, __ATOMIC_ACQUIRE) &&
		 !casync_queue_is_unjournaled(&obj->queue))) &&
	       casync_object_table_is_alone(&mount->upcalls.table, &obj->id);
}

/* Such a chown() is allowed, and clears no set-id bits. */
static bool getset_has_owner(const struct ceph_statx *now,
			     const struct change *change)
{
	const struct ceph_statx *stx = &change->stx;
	uid_t caller = op_ctx->creds.caller_uid;

	return (caller == 0 || caller == now->stx_uid) &&
	       (now->stx_mode & (S_ISUID | S_ISGID)) == 0 &&
	       (!(change->mask & CEPH_SETATTR_UID) ||
		now->stx_uid == stx->stx_uid) &&
	       (!(change->mask & CEPH_SETATTR_GID) ||
		now->stx_gid == stx->stx_gid);
}

/* A tar or rsync sends a chown() for each file, and most files have that owner
 * already. */
static bool getset_marks_ctime_alone(const struct change *change,
				     enum casync_stable_metadata when)
{
	struct ceph_statx now;

	return change->mask != 0 && (change->mask & ~GETSET_CHOWN) == 0 &&
	       !getset_has_extras(change) &&
	       getset_get_statx(change->obj,
				ATTR_MODE | ATTR_OWNER | ATTR_GROUP, &now,
				change->perms) == 0 &&
	       getset_has_owner(&now, change) &&
	       getset_owner_is_stable(change->obj, when);
}

/* When may this SETATTR be answered? */
static enum casync_stable_metadata
getset_stable_when(const struct change *change)
{
	const struct casync_tuning *tuning = &change->obj->exp->keys.tuning;

	if ((change->mask & CEPH_SETATTR_SIZE) || getset_has_extras(change) ||
	    change->obj->handle.type != REGULAR_FILE)
		return CASYNC_METADATA_JOURNAL;
	return casync_tuning_read(&tuning->stable_metadata);
}

static int getset_set_and_flush(const struct change *change,
				enum casync_stable_metadata when)
{
	struct casync_object *obj = change->obj;
	int mask = change->mask;
	int rc = mask != 0 ? getset_set_as_requester(change, mask) : 0;

	if (rc == 0 && getset_has_extras(change))
		rc = getset_set_extras(change);
	if (rc == 0 && (mask & CEPH_SETATTR_MODE))
		casync_object_may_be_privileged(obj);
	if (rc == 0 && (mask & GETSET_CHOWN))
		rc = casync_privileges_chowned(obj);
	else if (rc == 0 && (mask & CEPH_SETATTR_SIZE))
		rc = casync_privileges_drop(obj);

	/* After the answer the client forgets the change, so it must survive a
	 * crash of the gateway: libcephfs may have made it in memory only. */
	if (rc == 0 && when == CASYNC_METADATA_MDS)
		return casync_flush_tell_mds(obj);
	if (rc == 0)
		rc = casync_flush_wait(obj);
	if (rc == 0)
		__atomic_store_n(&obj->owner_journaled, true, __ATOMIC_RELEASE);
	return rc;
}

static int getset_chown(const struct change *change,
			enum casync_stable_metadata when)
{
	struct casync_object *obj = change->obj;
	int rc;

	__atomic_add_fetch(&obj->chowns, 1, __ATOMIC_ACQ_REL);
	rc = getset_set_and_flush(change, when);
	if (rc != 0)
		__atomic_store_n(&obj->chown_failed, true, __ATOMIC_RELEASE);
	CASYNC_CHECK_DOWN(&obj->chowns, __ATOMIC_ACQ_REL);
	return rc;
}

static int getset_set_stable(const struct change *change)
{
	enum casync_stable_metadata when = getset_stable_when(change);
	int rc = 0;

	if (getset_marks_ctime_alone(change, when)) {
		if (when == CASYNC_METADATA_JOURNAL)
			rc = casync_flush_wait(change->obj);
		return rc == 0 ? getset_set_as_requester(change, 0) : rc;
	}
	if ((change->mask & GETSET_CHOWN) != 0)
		return getset_chown(change, when);
	return getset_set_and_flush(change, when);
}

/* Changes of a file wait for the MDS, for capabilities and for the end of its
 * writes.  So only some workers may wait for one file, as with GETATTR. */
static fsal_status_t getset_set_announced(struct change *change)
{
	CASYNC_ERRORS_REQUESTER(perms);
	struct casync_call call;
	int rc = casync_call_take(&call, change->obj,
				  CASYNC_CALL_SETATTR_SLOT |
					  CASYNC_CALL_ANNOUNCES);

	if (rc == 0) {
		change->perms = perms;
		rc = getset_set_stable(change);
		casync_call_drop(&call);
	}
	return getset_handle_status(rc);
}

/* A size change is a write: it takes the share reservation, and keeps the fd
 * open. */
static fsal_status_t getset_set_with_size(struct change *change, bool bypass,
					  struct state_t *state)
{
	struct casync_borrowed fd;
	fsal_status_t status;

	status = casync_borrow(&fd, change->obj, state, FSAL_O_WRITE, false,
			       bypass);
	if (FSAL_IS_ERROR(status))
		return status;
	status = getset_set_announced(change);
	casync_borrow_return(&fd);
	return status;
}

static fsal_status_t getset_setattr(struct fsal_obj_handle *obj_hdl,
				    bool bypass, struct state_t *state,
				    struct fsal_attrlist *attrib_set)
{
	struct change change = {.obj = casync_object_of(obj_hdl),
				.attrs = attrib_set};
	attrmask_t wanted = attrib_set->valid_mask;
	struct casync_call call;
	fsal_status_t status;

	if (wanted & ~casync_settable_attributes) {
		LogDebug(COMPONENT_FSAL, "cannot set attributes %#" PRIx64,
			 wanted & ~casync_settable_attributes);
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	}

	/* No umask: a SETATTR sets exactly its mode. */
	change.mask = casync_attributes_to_statx(attrib_set, 0, &change.stx);
	if (change.mask == 0 && !getset_has_extras(&change))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);

	if ((change.mask & CEPH_SETATTR_SIZE) && obj_hdl->type != REGULAR_FILE)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);

	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	casync_delegations_return_recalled(&change.obj->delegations, true);
	if (change.mask & CEPH_SETATTR_SIZE)
		status = getset_set_with_size(&change, bypass, state);
	else
		status = getset_set_announced(&change);
	return casync_call_end(&call, status);
}

fsal_status_t casync_setattr2(struct fsal_obj_handle *obj_hdl, bool bypass,
			      struct state_t *state,
			      struct fsal_attrlist *attrib_set)
{
	fsal_status_t status;

	do {
		status = getset_setattr(obj_hdl, bypass, state, attrib_set);
	} while (casync_call_is_to_repeat(&status));
	return status;
}

fsal_status_t casync_getset_set_verifier(struct fsal_obj_handle *obj_hdl,
					 const struct fsal_attrlist *verifier)
{
	CASYNC_ERRORS_REQUESTER(perms);
	struct change change = {.obj = casync_object_of(obj_hdl),
				.perms = perms};

	change.mask = casync_attributes_to_statx(verifier, 0, &change.stx);
	return getset_handle_status(
		getset_set_as_requester(&change, change.mask));
}
