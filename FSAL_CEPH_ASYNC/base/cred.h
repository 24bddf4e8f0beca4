/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file cred.h
 * @brief Converts Ganesha's credentials to libcephfs' UserPerm.
 */
#ifndef CASYNC_CRED_H
#define CASYNC_CRED_H

#include <cephfs/libcephfs.h>

#include "fsal_types.h"

/**
 * Make a UserPerm from the requester's credentials.
 *
 * The group array is borrowed, not copied: destroy the UserPerm
 * (ceph_userperm_destroy()) before the credentials are freed.
 *
 * @param[in] cred  Credentials after Ganesha's squashing.
 *
 * @return A new UserPerm; NULL only when memory is exhausted.
 */
UserPerm *casync_userperm(const struct user_cred *cred);

#endif /* CASYNC_CRED_H */
