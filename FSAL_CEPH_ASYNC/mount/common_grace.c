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
