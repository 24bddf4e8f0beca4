/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file mount.h
 * @brief A libcephfs mount and its identity, shared by exports.
 *
 * Exports with the same user, file system, cmount_path and secret share one
 * mount, as FSAL_CEPH's do.  The registry lock (mounts_lock in mount.c) is
 * never held across a libcephfs call: a mount being built is in the registry
 * already, marked as such, and others that want it wait for the outcome.
 */
#ifndef CASYNC_MOUNT_H
#define CASYNC_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <cephfs/libcephfs.h>

#include "upcalls.h"

/** What makes two exports share a mount.  Strings may be NULL (unset). */
struct casync_mount_key {
	const char *user_id;
	const char *filesystem;
	const char *path;
	const char *secret;
};

/**
 * How to build a mount; consulted only by the export that comes first, but
 * for the options, which all its exports must agree on.
 */
struct casync_mount_params {
	const char *ceph_conf;
	const char *ceph_options; /**< Of ceph_options.h; or NULL. */
	bool use_old_uuid;
	uint16_t export_id;
	uint32_t timeout_s;
	uint32_t session_timeout_s;
	uint32_t unmount_timeout_s;
};

struct casync_mount;
struct casync_session;

/**
 * Find or build a mount.
 *
 * Blocks for as long as the cluster takes, at most @p params->timeout_s per
 * step.  On failure one line has been logged that names the key or path, its
 * value and the reason, and nothing is left behind.
 *
 * @param[in]  key     Identity; copied.
 * @param[in]  params  How to build it.
 * @param[out] mount   The mount, referenced.
 *
 * @return 0 or a negative errno.
 */
int casync_mount_get(const struct casync_mount_key *key,
		     const struct casync_mount_params *params,
		     struct casync_mount **mount);

/**
 * Give a mount back; the last export unmounts.
 *
 * May block in ceph_unmount, for the time that was given: the MDS may be gone.
 * What did not end by then is left behind, and never freed.  The caller has drained its I/O: libcephfs frees
 * open Fhs under it otherwise.
 */
void casync_mount_put(struct casync_mount *mount);

/** The libcephfs handle, valid while the caller holds the mount. */
struct ceph_mount_info *casync_mount_ceph(const struct casync_mount *mount);

/** File system cluster id, the third word of a handle. */
int64_t casync_mount_fscid(const struct casync_mount *mount);

/** When it was mounted, CLOCK_REALTIME in nanoseconds. */
uint64_t casync_mount_time_ns(const struct casync_mount *mount);

/** Does libcephfs grant delegations on it? */
bool casync_mount_delegations(const struct casync_mount *mount);

/** Where its exports get their upcalls from. */
struct casync_upcalls *casync_mount_upcalls(struct casync_mount *mount);

/** The objects of its exports. */
struct casync_object_table *
casync_mount_object_table(struct casync_mount *mount);

/** After a reload: how long the unmount may take.  The first export's holds. */
void casync_mount_tune(struct casync_mount *mount, uint16_t export_id,
		       uint32_t unmount_timeout_s);

/** Whether it is still there; valid while the caller holds the mount. */
struct casync_session *casync_mount_session(struct casync_mount *mount);

/** The path this mount is rooted at ("/" unless cmount_path says else). */
const char *casync_mount_path(const struct casync_mount *mount);

/**
 * End the CephFS sessions of another node, whose clients now come here.
 *
 * @param[in] nodeid     As Ganesha's recovery backend names it.
 * @param[in] timeout_s  Longest wait for each mount.
 *
 * @return 0 or the first negative errno; the other mounts are tried all the
 *         same.
 */
int casync_mount_take_over(const char *nodeid, uint32_t timeout_s);

#endif /* CASYNC_MOUNT_H */
