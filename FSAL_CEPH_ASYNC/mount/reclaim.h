/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reclaim.h
 * @brief Ending another session of CephFS, in bounded time.
 */
#ifndef CASYNC_RECLAIM_H
#define CASYNC_RECLAIM_H

#include <stdint.h>

#include <cephfs/libcephfs.h>

/**
 * Have the MDS end the session of that uuid (ceph_start_reclaim, RESET).
 *
 * libcephfs waits without a timeout for an MDS that has not taken its rank
 * when it is asked; so it is asked on a thread of its own.
 *
 * @return 0; -ENOENT if there is no such session; -ETIMEDOUT, and then the
 *         handle must be left alone for good, because libcephfs is still at
 *         it; another negative errno.
 */
int casync_reclaim_session(struct ceph_mount_info *ceph, const char *uuid,
			   uint32_t timeout_s);

#endif /* CASYNC_RECLAIM_H */
