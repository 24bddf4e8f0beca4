/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "dump.h"
#include "duplicates.h"
#include "op.h"

/*
 * Duplicates that the watchdog has not logged yet.  A callback may not lock
 * or allocate, so it takes one of a few slots; where none is free the
 * duplicate is only counted.
 */
#define DUPLICATE_SLOTS 16

enum slot_state { FREE, FILLING, FULL };

static struct {
	int state; /* enum slot_state, atomic */
	struct casync_duplicate duplicate;
} slots[DUPLICATE_SLOTS];

static uint64_t duplicates;

uint64_t casync_duplicates_count(void)
{
	return __atomic_load_n(&duplicates, __ATOMIC_RELAXED);
}

void casync_duplicates_record(const struct casync_part *part)
{
	unsigned int i;

	__atomic_add_fetch(&duplicates, 1, __ATOMIC_RELAXED);
	for (i = 0; i < DUPLICATE_SLOTS; i++) {
		int expected = FREE;

		if (!__atomic_compare_exchange_n(
			    &slots[i].state, &expected, FILLING, false,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		casync_dump_take(part->op, &slots[i].duplicate.op);
		slots[i].duplicate.part_offset = (uint64_t)part->io.off;
		slots[i].duplicate.result = part->io.result;
		__atomic_store_n(&slots[i].state, FULL, __ATOMIC_RELEASE);
		return;
	}
}

bool casync_duplicates_next(struct casync_duplicate *duplicate)
{
	unsigned int i;

	for (i = 0; i < DUPLICATE_SLOTS; i++) {
		if (__atomic_load_n(&slots[i].state, __ATOMIC_ACQUIRE) != FULL)
			continue;
		*duplicate = slots[i].duplicate;
		__atomic_store_n(&slots[i].state, FREE, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}
