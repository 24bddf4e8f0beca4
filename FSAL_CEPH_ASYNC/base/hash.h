/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file hash.h
 * @brief Spreads neighbouring numbers over a hash table.
 *
 * Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
 */
#ifndef CASYNC_HASH_H
#define CASYNC_HASH_H

#include <stdint.h>

/** @return A number whose upper bits depend on all of @p key. */
static inline uint64_t casync_hash_u64(uint64_t key)
{
	/* 2^64 by the golden ratio. */
	return key * UINT64_C(0x9e3779b97f4a7c15);
}

#endif /* CASYNC_HASH_H */
