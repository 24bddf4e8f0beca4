/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file write_stream.h
 * @brief Recognizes the WRITEs of one file that continue each other.
 *
 * Small writes that continue each other cost one OSD operation each.  If a
 * stream has as many calls in flight as its pace allows (8 at first), its next
 * write is queued (queue.h).  When one of the calls is answered, the
 * queued adjacent writes go together in one call (gather.h).  No write waits if
 * its stream has fewer calls in flight.  No write waits for a time.  Nor if
 * its stream has moved on to another object, or has a full call's worth of
 * bytes queued.
 *
 * The pace: if the OSD answers at once, the CPUs that make, send and do the
 * calls are what a stream waits for: few and large calls are faster.  If the
 * OSD takes long for a call, it does many at the same time: a write that waits
 * loses time, and nothing is gained.  So a stream makes about one call in
 * CASYNC_PACE_CALL_US without waiting.  The longer a call takes, the more are
 * in flight.  The measure is the fastest call of the piece (gather.h): calls
 * that queue behind others take longer, and must not make the queue longer
 * still.
 *
 * All functions are called under the queue's lock, and none of them blocks.
 */
#ifndef CASYNC_WRITE_STREAM_H
#define CASYNC_WRITE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct casync_op;

/**
 * Compared with 100 µs, rates of five rounds in turns: 128 writes in flight to
 * four files 1.5 (1.1 to 2.7) times behind their ends and 1.25 (1.1 to 4.2)
 * times over old data, 64 to one file 1.09 (0.95 to 1.29).  OSDs that take 0 to
 * 20 ms (lab slow 20): 0.97 and 1.07.  One write at a time: 1.00.  By
 * nfsload --stable file_sync --pattern append --connections 4 --depth 32
 * --files 4 --file-size 0, and likewise for the others.
 */
#define CASYNC_PACE_CALL_US 200

/** Calls in flight of a new stream. */
#define CASYNC_PACE_CALLS 8

/** Of a fast and of a slow OSD.  With one alone, the OSD would be idle while we
 * make the next.  Tests that count calls set both to 8. */
#ifndef CASYNC_PACE_FEWEST
#define CASYNC_PACE_FEWEST 2
#define CASYNC_PACE_MOST 128
#endif

/** Embedded in a stream; the queue's lock protects it. */
struct casync_pace {
	uint32_t calls;	     /**< That may be in flight. */
	uint64_t fastest_ns; /**< Call of the piece; 0: none is known. */
};

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

/** Embedded in the queue; zero at first. */
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

/**
 * A call begins.  Its first op is @p op.  If the stream counts the call,
 * op->gather.stream stays, until the call ends.  Else it is 0, as that of the
 * other ops of the call.
 */
void casync_write_stream_begin_call(struct casync_write_streams *streams,
				    struct casync_op *op);

/**
 * A call has ended: it was answered or refused.
 *
 * @return Whether it was counted, so that another one may go now.
 */
bool casync_write_stream_end_call(struct casync_write_streams *streams,
				  struct casync_op *op);

/** The pace of a new stream. */
void casync_write_stream_pace_init(struct casync_pace *pace);

/** The stream goes on in another object: that may be on another OSD. */
void casync_write_stream_pace_reset(struct casync_pace *pace);

/**
 * A call of the stream's piece has been answered.
 *
 * @param[in] took_ns  Since it was submitted; 0: not known, ignored.
 */
void casync_write_stream_pace_learn(struct casync_pace *pace, uint64_t took_ns);

#endif /* CASYNC_WRITE_STREAM_H */
