/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file write_stream.h
 * @brief Recognizes the WRITEs of one file that continue each other.
 *
 * Small writes that continue each other cost one OSD operation each.  If a
 * stream has as many calls in flight as its pace allows (pace.h: 8 at first),
 * its next write is queued (gate.h).  When one of the calls is answered, the
 * queued adjacent writes go together in one call (gather.h).  No write waits if
 * its stream has fewer calls in flight.  No write waits for a time.  No write
 * waits if its stream has moved on to another object, or has a full call's worth
 * of bytes queued.
 *
 * All functions are called under the gate's lock, and none of them blocks.
 */
#ifndef CASYNC_WRITE_STREAM_H
#define CASYNC_WRITE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "pace.h"

struct casync_op;

/** Streams of one file that are followed. */
#define CASYNC_WRITE_STREAMS 2

/** Only write_stream.c reads it. */
struct casync_write_stream {
	uint64_t next;	/**< End of the furthest write. */
	uint64_t piece; /**< Piece of the file in one object; gather.h. */
	uint32_t id;	/**< Reused after 2^32 others; 0: no stream. */
	uint32_t calls; /**< In flight. */
	uint64_t queued_bytes;
	uint64_t gaps_bytes; /**< Not written yet before `next`. */
	unsigned int hits;   /**< Rises with writes that continue it. */
	struct casync_pace pace;
};

/** Embedded in the gate; zero at first. */
struct casync_write_streams {
	uint32_t last_id;
	struct casync_write_stream of[CASYNC_WRITE_STREAMS];
};

/** Find the stream of a new op, and move it on. */
void casync_write_stream_follow(struct casync_write_streams *streams,
				struct casync_op *op);

/** Does the op wait until a call of its stream has been answered? */
bool casync_write_stream_is_busy(struct casync_write_streams *streams,
				 const struct casync_op *op);

/** The op is in the queue now. */
void casync_write_stream_queued(struct casync_write_streams *streams,
				const struct casync_op *op);

/** The op has left the queue. */
void casync_write_stream_unqueued(struct casync_write_streams *streams,
				  const struct casync_op *op);

/** A call begins.  Its first op is @p op. */
void casync_write_stream_begin_call(struct casync_write_streams *streams,
				    struct casync_op *op);

/**
 * A call has ended: it was answered or refused.
 *
 * @return Whether it was counted, so that another one may go now.
 */
bool casync_write_stream_end_call(struct casync_write_streams *streams,
				  struct casync_op *op);

#endif /* CASYNC_WRITE_STREAM_H */
