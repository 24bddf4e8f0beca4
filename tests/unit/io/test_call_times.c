/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The time of a call is known without metrics too: the pace of WRITE streams
 * needs it.  submit.c is built here with CASYNC_NO_METRICS.
 */
#include "config.h"

#include "unit.h"

#include "op.h"
#include "request.h"

CASE(time_of_a_call_is_known)
{
	struct io *io = new_io(0, RIG_OBJECT);
	const struct casync_op *op;

	fake.plan.when = FAKE_LATER;
	start_write(io, true);
	op = container_of(glist_first_entry(&rig.exp.inflight.entries,
					    struct casync_inflight_entry, link),
			  struct casync_op, entry);
	assert_true(op->submitted_ns != 0);
	fake_complete_in_order();
	settle(io);
	/* Its memory stays an op (pool.h). */
	assert_true(op->answered_ns >= op->submitted_ns);
	free_io(io);
}
