/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file errors.h
 * @brief Converts between Ganesha and libcephfs: results (0 or a negative
 * errno) to FSAL status, and credentials to a UserPerm.
 */
#ifndef CASYNC_ERRORS_H
#define CASYNC_ERRORS_H

#include <cephfs/libcephfs.h>

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
fsal_status_t casync_errors_status(int64_t rc);

/**
 * Make a UserPerm from the requester's credentials.
 *
 * The group array is borrowed, not copied: the UserPerm ends before them.
 *
 * @param[in] cred  Credentials after Ganesha's squashing.
 *
 * @return A new UserPerm.  Without memory the process ends, as in gsh_malloc().
 */
UserPerm *casync_errors_userperm(const struct user_cred *cred);
void casync_errors_userperm_end(const UserPerm **perms);

/** Declare @p perms: the requester's, until the end of the block. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none */
#define CASYNC_ERRORS_REQUESTER(perms)                                 \
	const UserPerm *perms                                          \
		__attribute__((cleanup(casync_errors_userperm_end))) = \
			casync_errors_userperm(&op_ctx->creds)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif /* CASYNC_ERRORS_H */
