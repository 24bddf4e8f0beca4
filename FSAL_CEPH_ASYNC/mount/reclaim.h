/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reclaim.h
 * @brief Ends another CephFS session, with a timeout.
 */
#ifndef CASYNC_RECLAIM_H
#define CASYNC_RECLAIM_H

#include <stdint.h>

#include <cephfs/libcephfs.h>

/**
 * Let the MDS end the session with this uuid (ceph_start_reclaim, RESET).
 *
 * If no MDS has taken the rank yet, libcephfs waits for it without a timeout.
 * So the call runs on its own thread.
 *
 * @return 0.  -ENOENT: there is no such session.  -ETIMEDOUT: the handle must
 *         never be used again, because the call still runs.  Another negative
 *         errno.
 */
int casync_reclaim_session(struct ceph_mount_info *ceph, const char *uuid,
			   uint32_t timeout_s);

#endif /* CASYNC_RECLAIM_H */
