/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file errors.h
 * @brief Converts libcephfs results (0 or a negative errno) to FSAL status.
 */
#ifndef CASYNC_ERRORS_H
#define CASYNC_ERRORS_H

#include "fsal_types.h"

/** Ceph's EBLOCKLISTED is ESHUTDOWN on Linux. */
#define CASYNC_EBLOCKLISTED 108

/**
 * Convert a libcephfs result.
 *
 * @param[in] rc  0 or positive for success, a negative errno otherwise.
 *
 * @return Major and minor of the FSAL status.  The minor is the positive
 *         errno, so a log line or a test shows what Ceph answered.
 */
fsal_status_t casync_status(int64_t rc);

#endif /* CASYNC_ERRORS_H */
