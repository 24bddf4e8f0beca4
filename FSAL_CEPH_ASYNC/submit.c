/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>

#include "fsal.h"

#include "complete.h"
#include "export.h"
#include "op.h"
#include "submit.h"

static uint64_t duplicates;

uint64_t casync_submit_duplicates(void)
{
	return __atomic_load_n(&duplicates, __ATOMIC_RELAXED);
}

/* One hold less; the last one hands the op over. */
static void put_part(struct casync_op *op)
{
	if (__atomic_sub_fetch(&op->parts_left, 1, __ATOMIC_ACQ_REL) == 0)
		casync_complete_queue(op);
}

static void part_completed(struct casync_part *part, int64_t result)
{
	if (__atomic_exchange_n(&part->completed, true, __ATOMIC_ACQ_REL)) {
		__atomic_add_fetch(&duplicates, 1, __ATOMIC_RELAXED);
#ifdef CASYNC_DEBUG
		abort();
#endif
		return;
	}
	part->result = result;
	put_part(part->op);
}

void casync_submit_callback(struct ceph_ll_io_info *io)
{
	part_completed((struct casync_part *)io, io->result);
}

void casync_submit(struct casync_op *op)
{
	struct ceph_ll_io_info *io;
	unsigned int i;
	int64_t rc;

	casync_op_set_state(op, CASYNC_OP_SUBMITTED);
	/* The extra hold keeps the op alive until the loop is done with it. */
	op->parts_left = (int)op->part_count + 1;

	for (i = 0; i < op->part_count; i++) {
		io = &op->parts[i].io;
		rc = ceph_ll_nonblocking_readv_writev(op->exp->ceph, io);
		if (rc != 0)
			part_completed(&op->parts[i], rc);
	}
	put_part(op);
}
