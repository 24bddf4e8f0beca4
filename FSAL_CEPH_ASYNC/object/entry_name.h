/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file entry_name.h
 * @brief What a client may give as the name of a directory's entry.
 *
 * Ganesha checks the names of NFSv4 (RFC 8881, section 14.5), but not those of
 * NFSv3.  libcephfs and the MDS take a name for a path: "../x" would leave the
 * export, and "" is the directory itself, for which MDCACHE would wait for a
 * lock that it holds.
 */
#ifndef CASYNC_ENTRY_NAME_H
#define CASYNC_ENTRY_NAME_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/** Is it one name, and not a path?  "." and ".." are: Ganesha asks for them. */
static inline bool casync_entry_name_is_one(const char *name)
{
	return name[0] != '\0' && strchr(name, '/') == NULL;
}

/** -EACCES if not, as Linux' server answers. */
static inline int casync_entry_name_check(const char *name)
{
	return casync_entry_name_is_one(name) ? 0 : -EACCES;
}

#endif /* CASYNC_ENTRY_NAME_H */
