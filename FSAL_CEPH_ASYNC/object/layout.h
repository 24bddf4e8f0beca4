/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file layout.h
 * @brief Sets the RADOS layout of new files: Object_Size and the other keys.
 *
 * No libcephfs call creates a file by inode with a layout.  So the layout is
 * set right after the create, with one more request to the MDS.  If a user has
 * given the folder a layout, that layout wins.
 */
#ifndef CASYNC_LAYOUT_H
#define CASYNC_LAYOUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_export_keys;
struct casync_mount;
struct casync_object;
struct casync_layout_texts;

/** Of the new files of an export; embedded in it. */
struct casync_layout {
	uint16_t export_id;   /**< For the log. */
	pthread_mutex_t lock; /**< For the texts' user count; a leaf. */
	/** NULL: no layout is wanted.  Atomic: NULL is read without the
	 * lock. */
	struct casync_layout_texts *texts;
};

void casync_layout_init(struct casync_layout *layout, uint16_t export_id);
void casync_layout_destroy(struct casync_layout *layout);

/**
 * Prepare the layout that the keys ask for.
 *
 * @param[in]  mount  The export's; the caller is in its guard.
 * @param[out] texts  NULL if no layout is wanted; for casync_layout_replace().
 *
 * @return 0 or a negative errno, which has been logged.
 */
int casync_layout_prepare(const struct casync_layout *layout,
			  const struct casync_mount *mount,
			  const struct casync_export_keys *keys,
			  struct casync_layout_texts **texts);

/** Do both ask for the same layout? */
bool casync_layout_is_same(const struct casync_export_keys *a,
			   const struct casync_export_keys *b);

/** Use these texts for new files.  A create that runs may use the old. */
void casync_layout_replace(struct casync_layout *layout,
			   struct casync_layout_texts *texts);

/**
 * Set the layout of a new, empty file.
 *
 * @param[in]  dir      Where it is; NULL: not known; it counts as
 *                      a folder without a layout.
 * @param[out] changed  Whether it was set: then the attributes have changed.
 *
 * @return 0 or a negative errno, logged from time to time.  On error the caller
 *         must remove the file: its data would go to the wrong place.
 */
int casync_layout_apply(struct casync_layout *layout,
			const struct casync_object *dir,
			const struct casync_object *file, bool *changed);

#endif /* CASYNC_LAYOUT_H */
