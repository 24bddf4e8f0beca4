/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file random.h
 * @brief xorshift64*: the same numbers on every machine, for little time.
 */
#ifndef NFSLOAD_RANDOM_H
#define NFSLOAD_RANDOM_H

#include <stdint.h>

/** In [0, below).  The seed must not be 0. */
static inline uint64_t random_below(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return ((*seed * 0x2545F4914F6CDD1DULL) >> 16) % below;
}

#endif /* NFSLOAD_RANDOM_H */
