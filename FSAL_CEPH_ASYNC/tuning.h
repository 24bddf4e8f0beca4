/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file tuning.h
 * @brief The tuning keys: name, type, range and default, in one table.
 *
 * They are parsed here and not by Ganesha's typed items, whose messages name
 * the value and the line but neither the key nor what it may be.
 */
#ifndef CASYNC_TUNING_H
#define CASYNC_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config_parsing.h"

/** Keys of CEPH_ASYNC { } and of EXPORT { FSAL { } }; the export's wins. */
struct casync_tuning {
	uint32_t stable_write;	   /**< enum casync_stable_write */
	uint32_t promote_unstable; /**< boolean */
	uint32_t max_inflight;	   /**< requests */
	uint32_t mount_timeout;	   /**< seconds, per step of a mount */
	uint32_t session_timeout;  /**< seconds */
	uint32_t drain_timeout;	   /**< seconds */
	uint32_t slow_op_warn;	   /**< milliseconds; 0 is off */
	uint64_t max_inflight_bytes;
};

/** Number of keys. */
#define CASYNC_TUNING_KEYS 8

/** The defaults of the table. */
void casync_tuning_defaults(struct casync_tuning *tuning);

/**
 * Set one key from its text.
 *
 * @param[in]     key     As written in the file; case does not matter.
 * @param[in]     text    Its value.
 * @param[in,out] tuning  Where it goes; untouched on error.
 * @param[out]    wanted  What the value must be, for a message.
 * @param[in]     size    Of @p wanted, in bytes.
 *
 * @return Whether the value is right.
 */
bool casync_tuning_set(const char *key, const char *text,
		       struct casync_tuning *tuning, char *wanted, size_t size);

/**
 * Append the keys to a block's items.
 *
 * The values must be preset: a key that is not in the file keeps its value.
 *
 * @param[out] items   Room for CASYNC_TUNING_KEYS items.
 * @param[in]  offset  Of the struct casync_tuning in the block's struct.
 */
void casync_tuning_items(struct config_item *items, size_t offset);

#endif /* CASYNC_TUNING_H */
