/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gather.h
 * @brief Puts several WRITEs into one call; each WRITE gets its own answer.
 *
 * The ops of one call are adjacent: no gap, no overlap.  They are in one RADOS
 * object, on the same Fh (so the same file, export and identity towards Ceph),
 * and ask for the same durability.  libcephfs gets the part of the first op,
 * with the iovecs of all.  The other ops are its `members`, sorted by offset.
 * When the call has been answered, each op gets its share of the result.  After
 * that the ops are independent again.
 *
 * There are two cases in which the ops stay together and are submitted again,
 * each alone, before any op that overlaps them (queue.h).  First: the call
 * failed for lack of space (pool, quota, file size); perhaps only one op asked
 * for too much.  Second: the result is short, and some ops got nothing
 * (libcephfs does not do this).  Any other error is the answer to all of them.
 */
#ifndef CASYNC_GATHER_H
#define CASYNC_GATHER_H

#include <stdbool.h>
#include <stdint.h>

struct casync_op;

/** Most iovecs of a call: IOV_MAX, in case they are passed to writev(). */
#define CASYNC_GATHER_IOVS 1024

/** Most ops of the queue that are checked for one call. */
#define CASYNC_GATHER_LOOKS 512

/** Embedded in the op. */
struct casync_gather {
	uint32_t max_bytes; /**< Of a call with this op; 0: alone. */
	/** Its stream, while it is queued, and then while its call counts in
	 * the stream (write_stream.h); 0: none. */
	uint32_t stream;
	uint64_t piece; /**< Piece of the file; each is in one object. */
	uint64_t end;	/**< End of its call. */
	struct casync_op *next_submitting;
	uint8_t epoch; /**< Of the queue; separates flushes. */
};

/** A call that is being put together. */
struct casync_gather_run {
	struct casync_op *first;
	struct casync_op *last;
	uint64_t begin;
	uint64_t end;
	uint32_t count;
	uint32_t iovs;
};

/** Decide whether the WRITE may share a call, and of how many bytes.  Its parts
 * must be laid out. */
void casync_gather_prepare(struct casync_op *op);

void casync_gather_begin(struct casync_gather_run *run, struct casync_op *op);

/** Can the op be added to the call? */
bool casync_gather_fits(const struct casync_gather_run *run,
			const struct casync_op *op);

void casync_gather_add(struct casync_gather_run *run, struct casync_op *op);

/** @return The first op, with the others as its members. */
struct casync_op *casync_gather_end(const struct casync_gather_run *run);

/** Put the members' buffers into the first op's part.  May allocate. */
void casync_gather_lay_out(struct casync_op *first);

/**
 * Give each op its share of the result.
 *
 * @return The members, linked by `next`; they no longer belong to @p first.
 *	   NULL if there are none, or the call was refused: then @p first is
 *	   CASYNC_QUEUE_REFUSED (queue.h) and keeps them.
 */
struct casync_op *casync_gather_scatter(struct casync_op *first);

/** Make an op of a refused call ready for casync_op_lay_out(). */
void casync_gather_make_alone(struct casync_op *op);

#endif /* CASYNC_GATHER_H */
