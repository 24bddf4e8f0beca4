/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file duplicates.h
 * @brief Records parts that libcephfs completed twice, for the log.
 */
#ifndef CASYNC_DUPLICATES_H
#define CASYNC_DUPLICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "dump.h"

struct casync_part;

/**
 * Count a part's second completion, and keep it for the log if there is room.
 * Runs on a libcephfs thread under client_lock: it takes no lock and allocates
 * nothing.
 */
void casync_duplicates_record(const struct casync_part *part);

/** A second completion of a part. */
struct casync_duplicate {
	struct casync_dump op; /**< The op at that time. */
	uint64_t part_offset;
	int64_t result; /**< Of the second completion. */
};

/**
 * Take the next duplicate to log.  One caller at a time.
 *
 * @return Whether there was one.
 */
bool casync_duplicates_next(struct casync_duplicate *duplicate);

/** All duplicates, logged or not; more than 0 only after a bug. */
uint64_t casync_duplicates_count(void);

#endif /* CASYNC_DUPLICATES_H */
