/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file layout.h
 * @brief How new files of an export lie in RADOS: Object_Size and the others.
 *
 * No libcephfs call creates by inode with a layout, so it is set right after
 * the file is created, at the price of one more request to the MDS.  A layout
 * that somebody has given a folder wins: it is the user's word on the files
 * in it.
 */
#ifndef CASYNC_LAYOUT_H
#define CASYNC_LAYOUT_H

struct casync_export;
struct casync_object;

struct casync_layout {
	char *wanted; /**< Value of ceph.file.layout; NULL: none is wanted. */
	char *preset; /**< The same of a file nobody has said anything of. */
};

/**
 * Prepare an export that is mounted.
 *
 * @return 0, or a negative errno when the keys cannot be had; logged.
 */
int casync_layout_init(struct casync_export *exp);

void casync_layout_destroy(struct casync_layout *layout);

/**
 * Set the layout of a file that was created just now and is empty.
 *
 * @param[out] changed  Whether it was set: attributes are new then.
 *
 * @return 0 or a negative errno, logged now and then: the file must not stay,
 *         its data would go where it should not.
 */
int casync_layout_apply(const struct casync_object *dir,
			const struct casync_object *file, bool *changed);

#endif /* CASYNC_LAYOUT_H */
