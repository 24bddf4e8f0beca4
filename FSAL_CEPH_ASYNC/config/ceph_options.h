/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ceph_options.h
 * @brief Parses and sets Ceph_Option: options of the Ceph client.
 *
 * A list of options is one text with a line "name=value" for each option.  If a
 * name occurs twice, the later line wins.
 */
#ifndef CASYNC_CEPH_OPTIONS_H
#define CASYNC_CEPH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <cephfs/libcephfs.h>

/** Longest "name = value". */
#define CASYNC_CEPH_OPTION_MAX 1024

/**
 * Parse "name = value".  Spaces and dashes in the name become underscores, as
 * in Ceph.
 *
 * @param[in]  text  As written.
 * @param[out] line  "name=value\n", at least CASYNC_CEPH_OPTION_MAX + 2 bytes.
 * @param[out] why   On error the reason: the form is wrong, or the option would
 *                   break a promise of the FSAL.
 */
bool casync_ceph_options_parse(const char *text, char *line, char *why,
			       size_t size);

/**
 * Set the options of a list.
 *
 * @param[out] why  On error: the option that Ceph refuses, and the reason.
 *
 * @return 0 or a negative errno.
 */
int casync_ceph_options_set(struct ceph_mount_info *ceph, const char *list,
			    char *why, size_t size);

/** Does the list (NULL: empty) have this option? */
bool casync_ceph_options_have(const char *list, const char *name);

#endif /* CASYNC_CEPH_OPTIONS_H */
