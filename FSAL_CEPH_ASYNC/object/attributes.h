/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file attributes.h
 * @brief Pure conversions between ceph_statx and fsal_attrlist.
 */
#ifndef CASYNC_ATTRIBUTES_H
#define CASYNC_ATTRIBUTES_H

#include <cephfs/libcephfs.h>

#include "fsal_types.h"

/** Attributes we can answer, whatever the object. */
extern const attrmask_t casync_supported_attributes;

/** Attributes we can set. */
extern const attrmask_t casync_settable_attributes;

/**
 * The NFSv4 change attribute: max(ctime, floor) in nanoseconds plus CephFS'
 * own counter (stx_version), as knfsd mixes them.
 *
 * Forward while the server runs, because each part is.  When a client of
 * CephFS dies with data-only writes, the MDS recovers ctime from the objects'
 * mtimes, which are older than what the dead client had shown by the latency
 * of the last write, and does not recover the counter; the floor, which is
 * when its successor mounted, lifts the attribute above all that was shown.
 * Proof and cost: docs/durability.md.
 *
 * @param[in] floor_ns  casync_mount_time_ns()
 */
uint64_t casync_change_attr(const struct ceph_statx *stx, uint64_t floor_ns);

/** CEPH_STATX_* wanted for a mask of ATTR_*; always type, ino and device. */
unsigned int casync_statx_wanted(attrmask_t mask);

/**
 * Fill an attribute list.
 *
 * @param[in]     stx       What libcephfs returned.
 * @param[in]     floor_ns  For the change attribute.
 * @param[in,out] attrs     valid_mask and supported are set; ATTR_ACL is left
 *                          to the caller.
 */
void casync_statx_to_attrs(const struct ceph_statx *stx, uint64_t floor_ns,
			   struct fsal_attrlist *attrs);

/**
 * Turn a SETATTR into libcephfs' terms.
 *
 * @param[in]  attrs  Attributes with valid_mask.
 * @param[in]  umask  Applied to the mode (creation); 0 for a plain SETATTR.
 * @param[out] stx    Values.
 *
 * @return CEPH_SETATTR_* mask; 0 when nothing of it is for libcephfs.
 */
int casync_attrs_to_statx(const struct fsal_attrlist *attrs, mode_t umask,
			  struct ceph_statx *stx);

#endif /* CASYNC_ATTRIBUTES_H */
