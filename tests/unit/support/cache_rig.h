/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the tests of the read cache share: READs of made-up files through it,
 * as the data path makes them.  Each page says which file's it is, and of which
 * version.
 */
#ifndef CACHE_RIG_H
#define CACHE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "evict.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define PAGE ((uint64_t)CASYNC_CACHE_PAGE)

/* The tag of a version. */
struct casync_cache_tag rig_tag(uint64_t version);

/* Write into each page what it is. */
void rig_fill(struct casync_cache_buffer *buf, uint64_t stamp, uint64_t offset);

/* A READ that missed: fetched with the version as stamp, offered, answered.
 * Returns whether the cache took it. */
bool rig_fetch(struct casync_cache_file *file, uint64_t version, uint16_t owner,
	       uint64_t offset, uint32_t length);

/* Likewise, of a file that ends after so many bytes of it. */
bool rig_fetch_end(struct casync_cache_file *file, uint64_t version,
		   uint64_t offset, uint32_t length, uint32_t valid);

/* A look-up whose bytes are compared; segments, 0 for a miss.  What it found is
 * released. */
unsigned int rig_look(struct casync_cache_file *file, uint64_t version,
		      uint64_t offset, uint64_t length);

/* Look up, and fetch after a miss.  Returns whether it was a hit. */
bool rig_read(struct casync_cache_file *file, uint64_t version, uint16_t owner,
	      uint64_t offset, uint32_t length);

struct casync_cache_stats rig_stats(void);

/* Teardown of a case: the cache is off, and nothing is left of it. */
int rig_end(void **state);

#endif /* CACHE_RIG_H */
