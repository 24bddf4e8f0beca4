/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gather.h
 * @brief Several WRITEs in one call of libcephfs, each with its own answer.
 *
 * Ops of one run lie behind each other without a gap or an overlap, in one
 * RADOS object, on the same Fh (so: the same file, export and identity
 * towards Ceph), and want the same of the answer.  The first one's part is
 * what libcephfs gets, with everybody's iovecs; the others are its `members`,
 * by offset.  When the call has been answered each op gets its share of the
 * result, and from then on they have nothing to do with each other.
 *
 * A call that failed for want of room (space, quota, file size) could have
 * been refused for what others asked, and a short result (libcephfs has none)
 * leaves some with nothing: then all stay together, and are submitted again,
 * each by itself, before anything that overlaps them (gate.h).  Any other
 * error is everybody's.
 */
#ifndef CASYNC_GATHER_H
#define CASYNC_GATHER_H

#include <stdbool.h>
#include <stdint.h>

struct casync_op;

/** Most iovecs of a call: IOV_MAX, for whoever hands them to writev(). */
#define CASYNC_GATHER_IOVS 1024

/** Ops of the queue that are looked at for one call. */
#define CASYNC_GATHER_LOOKS 512

/** Embedded in the op. */
struct casync_gather {
	uint32_t max_bytes; /**< Of a call with this op; 0: by itself. */
	uint32_t stream;    /**< gate.c's, as all that follows. */
	uint64_t piece;	    /**< Which one of the file's, each in one object. */
	uint64_t end;	    /**< Where its call ends. */
	struct casync_op *next_in_sight;
	bool queued;
	bool parked;   /**< Queued, and has no place in flight yet. */
	bool counted;  /**< Among the calls of its stream in the air. */
	bool in_sight; /**< Not to be overtaken. */
	bool alone;    /**< The call is refused: each once more by itself. */
	uint8_t epoch; /**< Before or after a flush began. */
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

/** May the op go with others, and with how many bytes?  After its parts. */
void casync_gather_prepare(struct casync_op *op);

void casync_gather_begin(struct casync_gather_run *run, struct casync_op *op);

/** Can it be added? */
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
 * @return The members, linked by `next`; they are none of first's any more.
 *	   NULL where there are none, or the call is refused: then it is
 *	   `alone` and keeps them.
 */
struct casync_op *casync_gather_scatter(struct casync_op *first);

/** Make an op of a refused call ready for casync_parts_lay_out(). */
void casync_gather_make_alone(struct casync_op *op);

#endif /* CASYNC_GATHER_H */
