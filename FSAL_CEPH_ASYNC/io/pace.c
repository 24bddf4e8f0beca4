/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "clock.h"
#include "pace.h"

void casync_pace_init(struct casync_pace *pace)
{
	pace->calls = CASYNC_PACE_CALLS;
	casync_pace_new_piece(pace);
}

void casync_pace_new_piece(struct casync_pace *pace)
{
	pace->fastest_ns = 0;
}

void casync_pace_learn(struct casync_pace *pace, uint64_t took_ns)
{
	uint64_t calls = took_ns / (CASYNC_PACE_CALL_US * CASYNC_NS_PER_US);

	if (took_ns == 0 ||
	    (pace->fastest_ns != 0 && took_ns >= pace->fastest_ns))
		return;
	pace->fastest_ns = took_ns;
	if (calls < CASYNC_PACE_FEWEST)
		calls = CASYNC_PACE_FEWEST;
	if (calls > CASYNC_PACE_MOST)
		calls = CASYNC_PACE_MOST;
	pace->calls = (uint32_t)calls;
}
