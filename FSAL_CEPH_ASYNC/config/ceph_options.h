/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file ceph_options.h
 * @brief Ceph_Option: options of the Ceph client, by the administrator.
 *
 * A list is text, a line "name=value\n" for each option, the later one wins.
 */
#ifndef CASYNC_CEPH_OPTIONS_H
#define CASYNC_CEPH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <cephfs/libcephfs.h>

/** Longest "name = value". */
#define CASYNC_CEPH_OPTION_MAX 1024

/**
 * Take "name = value" apart; spaces and dashes in the name are underscores,
 * as Ceph has it.
 *
 * @param[in]  text  As written.
 * @param[out] line  "name=value\n", at least CASYNC_CEPH_OPTION_MAX + 2 bytes.
 * @param[out] why   On error the reason: the form, or a name that is not to
 *                   be had, because it would break what the FSAL promises.
 */
bool casync_ceph_option_parse(const char *text, char *line, char *why,
			      size_t size);

/**
 * Set the options of a list.
 *
 * @param[out] why  On error which one Ceph refuses, and why.
 *
 * @return 0 or a negative errno.
 */
int casync_ceph_options_set(struct ceph_mount_info *ceph, const char *list,
			    char *why, size_t size);

/** Does the list (NULL: none) have that option? */
bool casync_ceph_options_have(const char *list, const char *name);

#endif /* CASYNC_CEPH_OPTIONS_H */
