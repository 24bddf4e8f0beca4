/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file key_changes.h
 * @brief Compares the current values of a block with the values of a reload.
 *
 * It uses the table of keys, so a new key needs no change here.
 */
#ifndef CASYNC_KEY_CHANGES_H
#define CASYNC_KEY_CHANGES_H

#include "keys.h"

/** Room for the text of a value, and of one change of a key. */
#define CASYNC_SHOWN_BYTES 320
#define CASYNC_CHANGE_BYTES 768

/**
 * Find the next key whose value differs.
 *
 * @param[in] block  The block of both values.
 * @param[in] now    The current values.
 * @param[in] fresh  The values of the reload.
 * @param[in] after  The previous key; NULL: find the first.
 *
 * @return NULL: there is no further key.
 */
const struct casync_key *
casync_key_changes_next(enum casync_block block, const void *now,
			const void *fresh, const struct casync_key *after);

/** Write "Stable_Write = full (was data)".  Secrets are not shown. */
void casync_key_changes_describe(const struct casync_key *key,
				 enum casync_block block, const void *now,
				 const void *fresh, char *text, size_t size);

/**
 * List all keys that differ and that a reload may not change.
 *
 * @return Whether there are any.
 */
bool casync_key_changes_list_fixed(enum casync_block block, const void *now,
				   const void *fresh, char *text, size_t size);

/**
 * Make the new values current.
 *
 * Each number is stored atomically: requests read it meanwhile (tuning.h).
 * Texts are swapped with the old ones.  Only reloads read these texts; requests
 * use copies of them (layout.h).
 */
void casync_key_changes_adopt(enum casync_block block, void *now, void *fresh);

#endif /* CASYNC_KEY_CHANGES_H */
