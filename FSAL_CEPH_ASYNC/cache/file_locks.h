/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file file_locks.h
 * @brief The locks of cached files, and what is counted under them.
 *
 * index.h says what they protect, and why files have none of their own.
 */
#ifndef CASYNC_CACHE_FILE_LOCKS_H
#define CASYNC_CACHE_FILE_LOCKS_H

#include <stdint.h>

#define CASYNC_CACHE_LOCKS 256U

struct casync_cache_file;

/** The number of a file's lock. */
uint32_t casync_cache_lock_of(const struct casync_cache_file *file);

void casync_cache_lock(uint32_t lock);
void casync_cache_unlock(uint32_t lock);

/** Count a hit; the lock is held. */
void casync_cache_count_hit(uint32_t lock, uint64_t bytes);

/** Count a miss; the lock may be held. */
void casync_cache_count_miss(uint32_t lock);

/** The sums over all locks. */
void casync_cache_sum_hits(uint64_t *hits, uint64_t *misses, uint64_t *bytes);

#endif /* CASYNC_CACHE_FILE_LOCKS_H */
