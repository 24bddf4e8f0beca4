/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file nfsmeta.h
 * @brief What a client can do with names: by libnfs, or in a mounted file
 * system.
 */
#ifndef NFSMETA_H
#define NFSMETA_H

#include <stddef.h>

/** Each returns 0 or a negative errno; listing the number of entries. */
struct way {
	int (*begin)(const char *where); /**< In the client's own process. */
	int (*make_directory)(const char *path);
	int (*create)(const char *path);
	int (*stat)(const char *path);
	int (*list)(const char *path); /**< With all attributes. */
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
	int (*remove_directory)(const char *path);
};

/** `where` is an NFS URL. */
extern const struct way by_libnfs;

/** `where` is a folder. */
extern const struct way by_kernel;

#endif /* NFSMETA_H */
