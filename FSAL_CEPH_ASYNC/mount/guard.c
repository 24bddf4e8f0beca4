/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sched.h>

#include "guard.h"

static struct casync_guard_shard *guard_shard(struct casync_guard *guard)
{
	int cpu = sched_getcpu();

	return &guard->shards[cpu < 0 ? 0 : cpu % CASYNC_GUARD_SHARDS];
}

/*
 * First the count, then the look at the phase.  The thread that closes does it
 * the other way round.  So either it sees the count, or we see the phase.
 */
bool casync_guard_enter_up_to(struct casync_guard *guard,
			      enum casync_guard_phase phase)
{
	__atomic_add_fetch(&guard_shard(guard)->entered, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&guard->phase, __ATOMIC_SEQ_CST) <= (uint32_t)phase)
		return true;
	casync_guard_leave(guard);
	return false;
}

bool casync_guard_enter(struct casync_guard *guard)
{
	return casync_guard_enter_up_to(guard, CASYNC_GUARD_SERVES);
}

void casync_guard_leave(struct casync_guard *guard)
{
	__atomic_add_fetch(&guard_shard(guard)->left, 1, __ATOMIC_SEQ_CST);
}

void casync_guard_set(struct casync_guard *guard, enum casync_guard_phase phase)
{
	__atomic_store_n(&guard->phase, (uint32_t)phase, __ATOMIC_SEQ_CST);
}

/* Sum `left` first, then `entered`.  Equal sums mean that nobody was inside
 * between the two reads. */
bool casync_guard_is_empty(const struct casync_guard *guard)
{
	uint64_t left = 0, entered = 0;
	unsigned int i;

	for (i = 0; i < CASYNC_GUARD_SHARDS; i++)
		left += __atomic_load_n(&guard->shards[i].left,
					__ATOMIC_SEQ_CST);
	for (i = 0; i < CASYNC_GUARD_SHARDS; i++)
		entered += __atomic_load_n(&guard->shards[i].entered,
					   __ATOMIC_SEQ_CST);
	return left == entered;
}

void casync_guard_renew(struct casync_guard *guard)
{
	__atomic_add_fetch(&guard->generation, 1, __ATOMIC_ACQ_REL);
}
