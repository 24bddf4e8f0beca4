/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdio.h>

#include "fsal.h"

#include "clock.h"
#include "dump.h"
#include "export.h"
#include "op.h"

static const char *const state_names[] = {
	[CASYNC_OP_NEW] = "NEW (opening the file)",
	[CASYNC_OP_JOURNALING] = "JOURNALING (first flush of a new file)",
	[CASYNC_OP_HELD] = "HELD (waits for other requests of its file)",
	[CASYNC_OP_SUBMITTED] = "SUBMITTED (with libcephfs)",
	[CASYNC_OP_QUEUED] = "QUEUED (libcephfs has answered)",
	[CASYNC_OP_FINISHING] = "FINISHING",
	[CASYNC_OP_BLOCKING] = "BLOCKING (repair, flush or close)",
	[CASYNC_OP_DONE] = "DONE",
};

void casync_dump_take(const struct casync_op *op, struct casync_dump *dump)
{
	dump->ino = op->ino;
	dump->offset = op->offset;
	dump->length_bytes = op->length_bytes;
	dump->since_ns = op->entry.since_ns;
	dump->kind = op->kind;
	dump->state = __atomic_load_n(&op->state, __ATOMIC_ACQUIRE);
	dump->parts_left = __atomic_load_n(&op->parts_left, __ATOMIC_RELAXED);
}

const char *casync_dump_format(const struct casync_dump *dump, char *line,
			       size_t size)
{
	uint64_t age_ns =
		dump->since_ns == 0 ? 0 : casync_now_ns() - dump->since_ns;

	(void)snprintf(line, size,
		       "%s inode 0x%" PRIx64 " offset %" PRIu64
		       " length %" PRIu64 " age %" PRIu64
		       " ms state %s, %d calls unanswered",
		       dump->kind == CASYNC_OP_READ ? "READ" : "WRITE",
		       dump->ino, dump->offset, dump->length_bytes,
		       (uint64_t)(age_ns / CASYNC_NS_PER_MS),
		       state_names[dump->state], dump->parts_left);
	return line;
}

void casync_dump_ended(const struct casync_op *op)
{
	struct casync_dump dump;
	char line[CASYNC_DUMP_LINE];

	casync_dump_take(op, &dump);
	LogWarn(COMPONENT_FSAL,
		"export %" PRIu16 ": slow request completed: %s: %s",
		op->exp->export.export_id,
		casync_dump_format(&dump, line, sizeof(line)),
		fsal_err_txt(op->status));
}
