/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file dump.h
 * @brief A READ or WRITE as text for the log.
 *
 * It takes two steps.  The fields are copied where the op is found: in a
 * libcephfs callback, or under the in-flight set's lock.  Nothing may be
 * formatted or logged there.  The text is formatted later.
 */
#ifndef CASYNC_DUMP_H
#define CASYNC_DUMP_H

#include <stddef.h>
#include <stdint.h>

struct casync_op;

struct casync_dump {
	uint64_t ino;
	uint64_t offset;
	uint64_t length_bytes;
	uint64_t since_ns; /**< CLOCK_MONOTONIC; 0 before it was let in. */
	int kind;	   /**< enum casync_op_kind */
	int state;	   /**< enum casync_op_state */
	int parts_left;
};

/** Room for any line that casync_dump_format() writes. */
#define CASYNC_DUMP_LINE 256

/** Copy the fields that the log shows.  Takes no lock; any thread. */
void casync_dump_take(const struct casync_op *op, struct casync_dump *dump);

/**
 * "WRITE inode 0x10000000001 offset 4096 length 4096 age 1503 ms state
 * SUBMITTED (with libcephfs), 1 calls unanswered".
 *
 * @return @p line
 */
const char *casync_dump_format(const struct casync_dump *dump, char *line,
			       size_t size);

/** Log that a slow request has completed, with its status. */
void casync_dump_ended(const struct casync_op *op);

#endif /* CASYNC_DUMP_H */
