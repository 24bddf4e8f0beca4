/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sched.h>

#include "check.h"
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
	return casync_guard_enter_up_to(guard, CASYNC_GUARD_LOST);
}

void casync_guard_leave(struct casync_guard *guard)
{
	__atomic_add_fetch(&guard_shard(guard)->left, 1, __ATOMIC_SEQ_CST);
}

/* The table of guard.h. */
static bool guard_may_change(enum casync_guard_phase from,
			     enum casync_guard_phase to)
{
	static const uint8_t next[] = {
		[CASYNC_GUARD_SERVES] = 1U << CASYNC_GUARD_LOST |
					1U << CASYNC_GUARD_LEAVES |
					1U << CASYNC_GUARD_LEFT,
		[CASYNC_GUARD_LOST] = 1U << CASYNC_GUARD_SERVES |
				      1U << CASYNC_GUARD_LEAVES,
		[CASYNC_GUARD_RESTORES] = 1U << CASYNC_GUARD_SERVES |
					  1U << CASYNC_GUARD_LEAVES |
					  1U << CASYNC_GUARD_LEFT,
		[CASYNC_GUARD_LEAVES] = 1U << CASYNC_GUARD_LOST |
					1U << CASYNC_GUARD_CLOSED |
					1U << CASYNC_GUARD_GIVEN_UP,
		[CASYNC_GUARD_CLOSED] = 1U << CASYNC_GUARD_LEAVES |
					1U << CASYNC_GUARD_RESTORES |
					1U << CASYNC_GUARD_GIVEN_UP,
		[CASYNC_GUARD_GIVEN_UP] = 0,
		[CASYNC_GUARD_LEFT] = 0,
	};

	return (next[from] >> to & 1U) != 0;
}

bool casync_guard_change(struct casync_guard *guard,
			 enum casync_guard_phase from,
			 enum casync_guard_phase to)
{
	uint32_t expected = from;

	CASYNC_CHECK(guard_may_change(from, to));
	return __atomic_compare_exchange_n(&guard->phase, &expected,
					   (uint32_t)to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
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
