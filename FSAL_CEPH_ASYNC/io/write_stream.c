/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stddef.h>

#include "check.h"
#include "clock.h"
#include "op.h"
#include "write_stream.h"

/* The score at which a stream counts as one, and the highest score. */
#define STREAM_HITS 4
#define STREAM_MOST_HITS 16

/* How far apart the writes of a stream may be. */
static uint64_t write_stream_window_of(const struct casync_op *op)
{
	return UINT64_C(4) * op->gather.max_bytes;
}

/* The stream of an op; NULL: it has none, or the stream has moved on. */
static struct casync_write_stream *
write_stream_of(struct casync_write_streams *streams,
		const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < CASYNC_WRITE_STREAMS && op->gather.stream != 0; i++) {
		if (streams->of[i].id == op->gather.stream)
			return &streams->of[i];
	}
	return NULL;
}

/* --- its pace */

void casync_write_stream_pace_init(struct casync_pace *pace)
{
	pace->calls = CASYNC_PACE_CALLS;
	casync_write_stream_pace_reset(pace);
}

void casync_write_stream_pace_reset(struct casync_pace *pace)
{
	pace->fastest_ns = 0;
}

void casync_write_stream_pace_learn(struct casync_pace *pace, uint64_t took_ns)
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

/* --- finding the stream of a write */

/* Queued writes and calls in flight no longer belong to this stream. */
static void write_stream_begin(struct casync_write_streams *streams,
			       struct casync_write_stream *stream,
			       const struct casync_op *op)
{
	if (++streams->last_id == 0)
		streams->last_id = 1;
	stream->id = streams->last_id;
	stream->piece = op->gather.piece;
	stream->calls = 0;
	stream->queued_bytes = 0;
	casync_write_stream_pace_reset(&stream->pace);
}

/* The stream whose window the op is in. */
static struct casync_write_stream *
write_stream_near(struct casync_write_streams *streams,
		  const struct casync_op *op)
{
	uint64_t window = write_stream_window_of(op);
	unsigned int i;

	for (i = 0; i < CASYNC_WRITE_STREAMS; i++) {
		struct casync_write_stream *stream = &streams->of[i];

		if (stream->id != 0 && op->offset <= stream->next + window &&
		    op->offset + window >= stream->next)
			return stream;
	}
	return NULL;
}

/* Unused and older streams are replaced first. */
static bool write_stream_is_worse(const struct casync_write_stream *a,
				  const struct casync_write_stream *b)
{
	return a->hits != b->hits ? a->hits < b->hits : a->id < b->id;
}

/* A slot for a new stream; NULL: all are in use. */
static struct casync_write_stream *
write_stream_make(struct casync_write_streams *streams,
		  const struct casync_op *op)
{
	struct casync_write_stream *worst = &streams->of[0];
	unsigned int i;

	for (i = 1; i < CASYNC_WRITE_STREAMS; i++) {
		if (write_stream_is_worse(&streams->of[i], worst))
			worst = &streams->of[i];
	}
	if (worst->hits != 0) {
		worst->hits--;
		return NULL;
	}
	casync_write_stream_pace_init(&worst->pace);
	write_stream_begin(streams, worst, op);
	worst->next = op->offset + op->length_bytes;
	worst->gaps_bytes = 0;
	return worst;
}

static void write_stream_hit(struct casync_write_stream *stream)
{
	if (stream->hits < STREAM_MOST_HITS)
		stream->hits++;
}

/*
 * Move a stream on.  Its writes come on several connections and threads, so a
 * stream leaves gaps and fills them later.  Writes that fill no gap, or go to
 * the same place again and again, are no stream.
 */
static void write_stream_score(struct casync_write_stream *stream,
			       const struct casync_op *op)
{
	if (op->offset < stream->next) {
		if (op->length_bytes <= stream->gaps_bytes) {
			stream->gaps_bytes -= op->length_bytes;
			write_stream_hit(stream);
		} else {
			stream->gaps_bytes = 0;
			stream->hits /= 2;
		}
		return;
	}
	if (op->offset == stream->next)
		write_stream_hit(stream);
	stream->gaps_bytes += op->offset - stream->next;
	stream->next = op->offset + op->length_bytes;
	if (stream->gaps_bytes > write_stream_window_of(op)) {
		stream->gaps_bytes = 0;
		stream->hits = 0;
	}
}

void casync_write_stream_follow(struct casync_write_streams *streams,
				struct casync_op *op)
{
	struct casync_write_stream *stream;

	op->gather.stream = 0;
	if (op->gather.max_bytes == 0)
		return;
	stream = write_stream_near(streams, op);
	if (stream == NULL) {
		stream = write_stream_make(streams, op);
		if (stream == NULL)
			return;
	} else {
		if (op->offset >= stream->next &&
		    op->gather.piece != stream->piece)
			write_stream_begin(streams, stream, op);
		write_stream_score(stream, op);
	}
	if (op->gather.piece == stream->piece)
		op->gather.stream = stream->id;
}

/* --- its queued writes and its calls */

bool casync_write_stream_is_busy(struct casync_write_streams *streams,
				 const struct casync_op *op)
{
	const struct casync_write_stream *stream = write_stream_of(streams, op);

	return stream != NULL && stream->hits >= STREAM_HITS &&
	       stream->calls >= stream->pace.calls &&
	       stream->queued_bytes < op->gather.max_bytes;
}

void casync_write_stream_queued(struct casync_write_streams *streams,
				const struct casync_op *op)
{
	struct casync_write_stream *stream = write_stream_of(streams, op);

	if (stream != NULL)
		stream->queued_bytes += op->length_bytes;
}

void casync_write_stream_unqueued(struct casync_write_streams *streams,
				  const struct casync_op *op)
{
	struct casync_write_stream *stream = write_stream_of(streams, op);

	if (stream != NULL)
		stream->queued_bytes -= op->length_bytes;
}

void casync_write_stream_begin_call(struct casync_write_streams *streams,
				    struct casync_op *op)
{
	struct casync_write_stream *stream = write_stream_of(streams, op);
	struct casync_op *member;

	/* The first op alone stands for the call. */
	for (member = op->members; member != NULL; member = member->next)
		member->gather.stream = 0;
	if (stream != NULL && stream->hits >= STREAM_HITS)
		stream->calls++;
	else
		op->gather.stream = 0;
}

/* Time of a call; 0: not known.  An error can come sooner
 * than the OSD could answer. */
static uint64_t write_stream_call_ns(const struct casync_op *op)
{
	if (op->parts.at[0].result <= 0 || op->answered_ns <= op->submitted_ns)
		return 0;
	return op->answered_ns - op->submitted_ns;
}

bool casync_write_stream_end_call(struct casync_write_streams *streams,
				  struct casync_op *op)
{
	struct casync_write_stream *stream = write_stream_of(streams, op);
	bool counted = op->gather.stream != 0;

	op->gather.stream = 0;
	if (stream != NULL) {
		CASYNC_CHECK(stream->calls != 0);
		stream->calls--;
		casync_write_stream_pace_learn(&stream->pace,
					       write_stream_call_ns(op));
	}
	return counted;
}
