/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file rig_lanes.h
 * @brief The lanes of the process and of the stub's mount.
 */
#ifndef RIG_LANES_H
#define RIG_LANES_H

#include "lane.h"
#include "rig.h"
#include "stub_mount.h"

/** Start them.  @return 0 or a negative errno. */
static inline int rig_lanes_up(void)
{
	int rc = casync_lane_start_process();

	return rc != 0 ? rc : casync_lane_start_mount(stub_mount.lanes);
}

/** Run all jobs, also those that they queue, and stop.  May be repeated. */
static inline void rig_lanes_down(void)
{
	casync_lane_stop_process();
	(void)casync_lane_stop_mount(stub_mount.lanes, RIG_TIMEOUT_S);
}

#endif /* RIG_LANES_H */
