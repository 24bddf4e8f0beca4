/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "nfs_core.h"

#include "callers.h"
#include "complete.h"
#include "mount.h"
#include "object.h"
#include "waiter_limit.h"
#include "workers.h"

/* The lane with the shorter patience: who waits for room keeps a worker too. */
#define LANE CASYNC_LANE_COMPLETER

/* How often this thread is inside; it is never inside of two mounts. */
static _Thread_local unsigned int depth;

uint32_t casync_callers_room(uint32_t workers, uint32_t mounts)
{
	uint32_t part = workers / 4 * 3 / mounts;
	uint32_t least = workers / 8 + 1;

	return part > least ? part : least;
}

static bool callers_enter(struct casync_mount *mount, uint32_t room)
{
	/* Only the first time counts: the thread is the same. */
	if (depth == 0 && !casync_on_completion_thread() &&
	    !casync_waiter_limit_enter(casync_mount_callers(mount), LANE, room))
		return false;
	depth++;
	return true;
}

static uint32_t callers_room(void)
{
	return casync_callers_room(nfs_param.core_param.rpc.ioq_thrd_max,
				   casync_mounts());
}

bool casync_callers_enter(struct casync_mount *mount)
{
	return callers_enter(mount, callers_room());
}

bool casync_callers_try(struct casync_mount *mount, uint32_t part)
{
	if (depth == 0 && !casync_on_completion_thread() &&
	    !casync_waiter_limit_try(casync_mount_callers(mount), LANE,
				     callers_room() / part))
		return false;
	depth++;
	return true;
}

void casync_callers_enter_anyway(struct casync_mount *mount)
{
	(void)callers_enter(mount, UINT32_MAX);
}

static enum casync_lane callers_lane(void)
{
	return casync_on_completion_thread() ? CASYNC_LANE_COMPLETER
					     : CASYNC_LANE_WORKER;
}

bool casync_getattr_enter(struct casync_object *obj)
{
	enum casync_lane lane = callers_lane();
	uint32_t room = lane == CASYNC_LANE_COMPLETER
				? CASYNC_COMPLETERS
				: casync_waiter_limit_workers();

	return casync_waiter_limit_enter(&obj->getattr, lane, room);
}

void casync_getattr_leave(struct casync_object *obj)
{
	casync_waiter_limit_leave(&obj->getattr, callers_lane());
}

void casync_callers_leave(struct casync_mount *mount)
{
	depth--;
	if (depth == 0 && !casync_on_completion_thread())
		casync_waiter_limit_leave(casync_mount_callers(mount), LANE);
}
