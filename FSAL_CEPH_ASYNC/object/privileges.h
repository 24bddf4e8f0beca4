/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file privileges.h
 * @brief Takes from a file what makes a program of it that runs with the rights
 * of others: set-id bits and file capabilities (security.capability).
 *
 * Linux does this between a system call and the file system, and leaves it to
 * the server of a network file system (docs/security.md lists these duties).
 * libcephfs does not: we open files with root's credentials.
 */
#ifndef CASYNC_PRIVILEGES_H
#define CASYNC_PRIVILEGES_H

#include <sys/types.h>

struct casync_object;

/**
 * Before a WRITE of the requester of op_ctx.  Root leaves the set-id bits, as
 * CAP_FSETID does.
 *
 * @return 0 or a negative errno.
 */
int casync_privileges_drop(struct casync_object *obj);

/**
 * After a chown.  A regular file loses its set-id bits whoever did it.
 *
 * @return 0 or a negative errno.
 */
int casync_privileges_chowned(struct casync_object *obj);

/** Before the requester sets an ACL: a setgid bit goes if he is not in the
 * file's group.  The ACL's mask could allow the group to execute the file. */
int casync_privileges_before_acl(struct casync_object *obj);

/** The mode that the requester may give a new file.  In a setgid folder the
 * file gets the folder's group, which may not be his. */
mode_t casync_privileges_of_new(const struct casync_object *dir, mode_t mode);

#endif /* CASYNC_PRIVILEGES_H */
