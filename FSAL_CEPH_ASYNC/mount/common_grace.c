/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <time.h>

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "common_grace.h"

bool casync_common_grace(void)
{
	return nfs_param.nfsv4_param.recovery_backend ==
	       RECOVERY_BACKEND_RADOS_CLUSTER;
}

void casync_common_grace_await_known(void)
{
	const struct timespec until =
		casync_clock_deadline(CASYNC_GRACE_LEAD_MS);

	if (!casync_common_grace())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) !=
	       0)
		; /* EINTR */
}

void casync_common_grace_await_known_once(void)
{
	static bool given; /* atomic */

	if (!__atomic_exchange_n(&given, true, __ATOMIC_RELAXED))
		casync_common_grace_await_known();
}

static uint64_t grace_until_ns, next_look_ns; /* CLOCK_MONOTONIC; atomic */

void casync_common_grace_begins(void)
{
	const uint64_t grace_s = nfs_param.nfsv4_param.grace_period;

	__atomic_store_n(&grace_until_ns,
			 casync_clock_ns() + grace_s * CASYNC_NS_PER_S,
			 __ATOMIC_RELAXED);
}

bool casync_common_grace_look(void)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t next_ns = __atomic_load_n(&next_look_ns, __ATOMIC_RELAXED);

	if (now_ns >= __atomic_load_n(&grace_until_ns, __ATOMIC_RELAXED) ||
	    admin_shutdown)
		return false;
	/* One keeper of all that come now. */
	if (now_ns >= next_ns &&
	    __atomic_compare_exchange_n(
		    &next_look_ns, &next_ns,
		    now_ns + CASYNC_GRACE_LOOK_MS * CASYNC_NS_PER_MS, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		reaper_wake();
	return true;
}
