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

#include <pthread.h>
#include <stdbool.h>

struct casync_export;
struct casync_object;

struct casync_export_keys;
struct casync_layout_texts;

struct casync_layout {
	pthread_mutex_t lock; /**< Of the texts' users; a leaf. */
	/** NULL: none is wanted.  Atomic: that is seen without the lock. */
	struct casync_layout_texts *texts;
};

void casync_layout_init(struct casync_layout *layout);
void casync_layout_destroy(struct casync_layout *layout);

/**
 * What keys ask for, of an export that is mounted.
 *
 * @param[out] texts  NULL if none is wanted; for casync_layout_replace() or
 *                    casync_layout_free().
 *
 * @return 0, or a negative errno when the keys cannot be had; logged.
 */
int casync_layout_prepare(const struct casync_export *exp,
			  const struct casync_export_keys *keys,
			  struct casync_layout_texts **texts);

/** From now on files get these; who creates one now ends with the old. */
void casync_layout_replace(struct casync_layout *layout,
			   struct casync_layout_texts *texts);

/** Texts that were not used. */
void casync_layout_free(struct casync_layout_texts *texts);

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
