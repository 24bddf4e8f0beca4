/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file attributes.h
 * @brief Converts between ceph_statx and fsal_attrlist: pure functions.
 */
#ifndef CASYNC_ATTRIBUTES_H
#define CASYNC_ATTRIBUTES_H

#include <cephfs/libcephfs.h>

#include "fsal_types.h"

/** Attributes that we can return, for any object. */
extern const attrmask_t casync_supported_attributes;

/** Attributes that we can set. */
extern const attrmask_t casync_settable_attributes;

/**
 * The NFSv4 change attribute: max(ctime, floor) in nanoseconds plus CephFS'
 * own counter (stx_version).  knfsd mixes them in the same way.
 *
 * While the server runs it goes forward, because both parts do.  If a client of
 * CephFS dies with data-only writes, the MDS recovers ctime from the mtimes of
 * the objects.  These are older than the ctime that the dead client has shown,
 * by the latency of the last write.  The counter is not recovered.  The floor
 * is the time at which the successor mounted.  It lifts the attribute above all
 * values shown before.  Proof and cost: docs/durability.md.
 *
 * @param[in] floor_ns  casync_mount_time_ns()
 */
uint64_t casync_attributes_change(const struct ceph_statx *stx,
				  uint64_t floor_ns);

/** CEPH_STATX_* for a mask of ATTR_*; always includes type, ino and device. */
unsigned int casync_attributes_statx_wanted(attrmask_t mask);

/**
 * Fill an attribute list.
 *
 * @param[in]     stx       As libcephfs returned it.
 * @param[in]     floor_ns  For the change attribute.
 * @param[in,out] attrs     valid_mask and supported are set.  The caller sets
 *                          ATTR_ACL.
 */
void casync_attributes_from_statx(const struct ceph_statx *stx,
				  uint64_t floor_ns,
				  struct fsal_attrlist *attrs);

/**
 * Convert the attributes of a SETATTR to libcephfs' form.
 *
 * @param[in]  attrs  Attributes with valid_mask.
 * @param[in]  umask  Applied to the mode (creation); 0 for a plain SETATTR.
 * @param[out] stx    Values.
 *
 * @return CEPH_SETATTR_* mask; 0 if libcephfs has nothing to set.
 */
int casync_attributes_to_statx(const struct fsal_attrlist *attrs, mode_t umask,
			       struct ceph_statx *stx);

#endif /* CASYNC_ATTRIBUTES_H */
