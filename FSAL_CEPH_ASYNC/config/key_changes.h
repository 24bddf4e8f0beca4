/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file key_changes.h
 * @brief Values of a block that are in force, and those a reload brings.
 *
 * By the table of keys, so that a new key needs nothing here.
 */
#ifndef CASYNC_KEY_CHANGES_H
#define CASYNC_KEY_CHANGES_H

#include "keys.h"

/** Room for a value as it is shown, and for one change of a key. */
#define CASYNC_SHOWN_BYTES 320
#define CASYNC_CHANGE_BYTES 768

/**
 * The next key whose value differs.
 *
 * @param[in] block  Of which both are.
 * @param[in] now    What is in force.
 * @param[in] fresh  What a reload brings.
 * @param[in] after  The one before, or NULL for the first.
 *
 * @return NULL when there is no further one.
 */
const struct casync_key *casync_key_changed(enum casync_block block,
					    const void *now, const void *fresh,
					    const struct casync_key *after);

/**
 * May a reload change it there?  An export's defaults may change that it
 * could not follow itself: they are for exports to come.
 */
bool casync_key_reloads(const struct casync_key *key, enum casync_block block);

/** "Stable_Write = full (was data)"; secrets are not shown. */
void casync_key_change_show(const struct casync_key *key,
			    enum casync_block block, const void *now,
			    const void *fresh, char *text, size_t size);

/**
 * All that a reload may not change and that differs, as one list.
 *
 * @return Whether there is any.
 */
bool casync_keys_fixed(enum casync_block block, const void *now,
		       const void *fresh, char *text, size_t size);

/**
 * Bring every value that differs into force.
 *
 * Numbers are stored atomically, each by itself: they are read meanwhile
 * (tuning.h).  Texts change places with the old ones, which nobody reads but
 * reloads: what requests need of them is kept elsewhere (layout.h).
 */
void casync_keys_adopt(enum casync_block block, void *now, void *fresh);

#endif /* CASYNC_KEY_CHANGES_H */
