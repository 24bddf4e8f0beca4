/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "nfs_core.h"

#include "callers.h"
#include "mount.h"
#include "on_thread.h"
#include "waiter_limit.h"

/* The lane with the shorter patience: who waits for room keeps a worker, too. */
#define LANE CASYNC_LANE_COMPLETER

/* How often this thread is inside; it is never inside of two mounts. */
static _Thread_local unsigned int depth;

uint32_t casync_callers_room(uint32_t workers, uint32_t mounts)
{
	uint32_t part = workers / 4 * 3 / mounts;
	uint32_t least = workers / 8 + 1;

	return part > least ? part : least;
}

static bool callers_try(struct casync_mount *mount, uint32_t room)
{
	/* Only the first time counts: the thread is the same. */
	if (depth == 0 && !casync_on_completion_thread() &&
	    !casync_waiter_limit_enter(casync_mount_callers(mount), LANE, room))
		return false;
	depth++;
	return true;
}

bool casync_callers_enter(struct casync_mount *mount)
{
	return callers_try(mount, casync_callers_room(
					  nfs_param.core_param.rpc.ioq_thrd_max,
					  casync_mounts()));
}

void casync_callers_enter_anyway(struct casync_mount *mount)
{
	(void)callers_try(mount, UINT32_MAX);
}

void casync_callers_leave(struct casync_mount *mount)
{
	depth--;
	if (depth == 0 && !casync_on_completion_thread())
		casync_waiter_limit_leave(casync_mount_callers(mount), LANE);
}
