/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file duplicates.h
 * @brief Parts that libcephfs has completed twice, kept for the log.
 */
#ifndef CASYNC_DUPLICATES_H
#define CASYNC_DUPLICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "dump.h"

struct casync_part;

/**
 * Count a part's second completion, and keep it for the log while there is
 * room.  On a libcephfs thread, under client_lock: no lock, no allocation.
 */
void casync_duplicates_record(const struct casync_part *part);

/** A part that was completed a second time. */
struct casync_duplicate {
	struct casync_dump op; /**< When that happened. */
	uint64_t part_offset;
	int64_t result; /**< Of the second completion. */
};

/**
 * The next duplicate to be logged.  For one caller at a time.
 *
 * @return Whether there was one.
 */
bool casync_duplicates_next(struct casync_duplicate *duplicate);

/** Duplicates in all, logged or not; always 0 but for bugs. */
uint64_t casync_duplicates_count(void);

#endif /* CASYNC_DUPLICATES_H */
