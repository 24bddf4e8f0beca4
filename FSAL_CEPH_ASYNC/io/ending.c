/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "clock.h"
#include "ending.h"

void casync_ending_exports_go(struct casync_ending *ending)
{
	__atomic_store_n(&ending->exports_go, true, __ATOMIC_RELEASE);
}

bool casync_ending_hangs(struct casync_ending *ending, bool busy,
			 uint32_t limit_s, uint64_t now_ns)
{
	if (!busy || __atomic_load_n(&ending->exports_go, __ATOMIC_ACQUIRE)) {
		ending->busy_since_ns = 0;
		return false;
	}
	if (ending->busy_since_ns == 0)
		ending->busy_since_ns = now_ns;
	return now_ns - ending->busy_since_ns >= limit_s * CASYNC_NS_PER_S;
}
