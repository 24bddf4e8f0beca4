/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file rados_object.h
 * @brief Reads a small object by its URL, rados://POOL/NAMESPACE/OBJECT.
 *
 * Ganesha's own configuration may be such an object (RADOS_URLS).  It waits
 * for Ceph: only the start and a reload call it, never a request.
 */
#ifndef CASYNC_RADOS_OBJECT_H
#define CASYNC_RADOS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/** How such a URL begins. */
#define CASYNC_RADOS_SCHEME "rados://"

/** Longest wait for each step: connecting, and the read. */
#define CASYNC_RADOS_TIMEOUT_S "10"

/** The gateway's own user. */
struct casync_rados_user {
	const char *user_id;   /**< Without "client."; NULL: admin. */
	const char *ceph_conf; /**< NULL: Ceph's own search path. */
};

/** Is it a URL of this kind? */
static inline bool casync_rados_object_is_url(const char *text)
{
	return strncmp(text, CASYNC_RADOS_SCHEME,
		       sizeof(CASYNC_RADOS_SCHEME) - 1) == 0;
}

/**
 * Read an object.
 *
 * @param[in]  url   POOL and OBJECT are not empty; NAMESPACE may be.
 * @param[in]  user  The user that reads.
 * @param[out] text  The content, with a NUL behind it.
 * @param[in]  room  Of @p text, in bytes; a longer object is refused.
 * @param[out] why   On error: what is wrong.
 * @param[in]  size  Of @p why, in bytes.
 *
 * @return Whether it was read.
 */
bool casync_rados_object_read(const char *url,
			      const struct casync_rados_user *user, char *text,
			      size_t room, char *why, size_t size);

#endif /* CASYNC_RADOS_OBJECT_H */
