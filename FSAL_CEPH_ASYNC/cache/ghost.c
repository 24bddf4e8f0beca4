/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stddef.h>

#include "ghost.h"

#define SET 4U

/* A ghost: the key's upper half above, the clock below.  0 is none: the clock
 * begins with 1, and what comes 2^32 ghosts later may be forgotten. */
static uint64_t ghost_make(uint64_t key, uint32_t clock)
{
	return (key & ~(uint64_t)UINT32_MAX) | clock;
}

static bool ghost_is(uint64_t ghost, uint64_t key)
{
	return ghost != 0 && ghost >> 32 == key >> 32;
}

static uint64_t *ghost_set(const struct casync_cache_ghosts *ghosts,
			   uint64_t key)
{
	return &ghosts->sets[key & (ghosts->count - 1) & ~(uint64_t)(SET - 1)];
}

static uint32_t ghost_age(const struct casync_cache_ghosts *ghosts,
			  uint64_t ghost)
{
	return ghosts->clock - (uint32_t)ghost;
}

void casync_cache_ghosts_add(struct casync_cache_ghosts *ghosts, uint64_t key)
{
	uint64_t *set, *place;
	unsigned int i;

	if (ghosts->sets == NULL)
		return;
	set = ghost_set(ghosts, key);
	place = set;
	for (i = 0; i < SET; i++) {
		if (set[i] == 0 || ghost_is(set[i], key)) {
			place = &set[i];
			break;
		}
		if (ghost_age(ghosts, set[i]) > ghost_age(ghosts, *place))
			place = &set[i];
	}
	*place = ghost_make(key, ++ghosts->clock);
}

bool casync_cache_ghosts_take(struct casync_cache_ghosts *ghosts, uint64_t key,
			      uint32_t age)
{
	uint64_t *set;
	unsigned int i;
	bool young;

	if (ghosts->sets == NULL)
		return false;
	set = ghost_set(ghosts, key);
	for (i = 0; i < SET; i++) {
		if (!ghost_is(set[i], key))
			continue;
		young = ghost_age(ghosts, set[i]) <= age;
		set[i] = 0;
		return young;
	}
	return false;
}
