/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <time.h>

#include "nfs_core.h"

#include "waiter_limit.h"
#include "clock.h"
#include "futex.h"

static const uint64_t patience_ns[CASYNC_LANES] = {
	[CASYNC_LANE_WORKER] = CASYNC_WAITER_LIMIT_WORKER_MS * CASYNC_NS_PER_MS,
	[CASYNC_LANE_COMPLETER] =
		CASYNC_WAITER_LIMIT_COMPLETER_MS * CASYNC_NS_PER_MS,
};

bool casync_waiter_limit_try(struct casync_waiter_limit *limit,
			     enum casync_lane lane, uint32_t room)
{
	uint32_t *word = &limit->lanes[lane].inside;
	uint32_t inside = __atomic_load_n(word, __ATOMIC_SEQ_CST);

	while (inside < room) {
		if (!__atomic_compare_exchange_n(word, &inside, inside + 1,
						 false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		/* Time without waiters is not a lack of progress. */
		if (inside == 0)
			__atomic_store_n(&limit->progress_ns, casync_clock_ns(),
					 __ATOMIC_SEQ_CST);
		return true;
	}
	return false;
}

bool casync_waiter_limit_enter(struct casync_waiter_limit *limit,
			       enum casync_lane lane, uint32_t room)
{
	uint32_t *left_word = &limit->lanes[lane].left;
	uint32_t *sleepers = &limit->lanes[lane].sleepers;
	uint64_t give_up_ns, now_ns;
	uint32_t left;

	for (;;) {
		left = __atomic_load_n(left_word, __ATOMIC_SEQ_CST);
		if (casync_waiter_limit_try(limit, lane, room))
			return true;
		now_ns = casync_clock_ns();
		give_up_ns =
			patience_ns[lane] +
			__atomic_load_n(&limit->progress_ns, __ATOMIC_SEQ_CST);
		if (now_ns >= give_up_ns)
			return false;

		__atomic_add_fetch(sleepers, 1, __ATOMIC_SEQ_CST);
		casync_futex_wait(left_word, left, give_up_ns - now_ns);
		__atomic_sub_fetch(sleepers, 1, __ATOMIC_SEQ_CST);
	}
}

void casync_waiter_limit_leave(struct casync_waiter_limit *limit,
			       enum casync_lane lane)
{
	__atomic_store_n(&limit->progress_ns, casync_clock_ns(),
			 __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&limit->lanes[lane].inside, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&limit->lanes[lane].left, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&limit->lanes[lane].sleepers, __ATOMIC_SEQ_CST) !=
	    0)
		casync_futex_wake(&limit->lanes[lane].left, 1);
}

uint32_t casync_waiter_limit_workers(void)
{
	return nfs_param.core_param.rpc.ioq_thrd_max / 4 + 1;
}
