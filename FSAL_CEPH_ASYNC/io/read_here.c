/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "await.h"
#include "call.h"
#include "clock.h"
#include "export.h"
#include "object.h"
#include "op.h"
#include "read_here.h"
#include "repair.h"
#include "workers.h"

bool casync_read_here_begin(const struct casync_op *op,
			    struct casync_call *slot)
{
	const uint64_t *until_ns = &op->exp->await_not_before_ns;

	return op->kind == CASYNC_OP_READ && op->part_count == 1 &&
	       op->length_bytes >= CASYNC_READ_HERE_BYTES &&
	       !casync_on_completion_thread() &&
	       op->entry.since_ns >=
		       __atomic_load_n(until_ns, __ATOMIC_RELAXED) &&
	       casync_call_try(slot, op->obj, CASYNC_CALL_MOUNT_SLOT, 0);
}

void casync_read_here(struct casync_op *op, struct casync_call *slot)
{
	uint64_t now_ns = casync_now_ns();
	uint64_t late_ns = now_ns + CASYNC_READ_HERE_MS * CASYNC_NS_PER_MS;

	op->parts[0].result = casync_repair_part(op, &op->parts[0]);
	casync_call_drop(slot);
	now_ns = casync_now_ns();
	if (now_ns > late_ns)
		__atomic_store_n(&op->exp->await_not_before_ns,
				 now_ns + CASYNC_AWAIT_PAUSE_MS *
						  CASYNC_NS_PER_MS,
				 __ATOMIC_RELAXED);
}
