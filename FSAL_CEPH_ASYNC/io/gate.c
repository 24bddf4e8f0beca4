/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "export.h"
#include "gate.h"
#include "gather.h"
#include "op.h"

/*
 * Most ops that one search skips because they cannot go, and most overlapping
 * ops that it follows.  When a blocking op has gone, the search is repeated.
 */
#define BLOCKED_LOOKS 64
#define CHAIN_LOOKS 32

/* The score at which a stream counts as one, and the highest score. */
#define STREAM_HITS 4
#define STREAM_MOST_HITS 16

void casync_gate_init(struct casync_gate *gate)
{
	memset(gate, 0, sizeof(*gate));
	pthread_mutex_init(&gate->lock, NULL);
	gate->end = &gate->oldest;
}

void casync_gate_destroy(struct casync_gate *gate)
{
	/* The last thread that left may still hold the lock. */
	pthread_mutex_lock(&gate->lock);
	pthread_mutex_unlock(&gate->lock);
	pthread_mutex_destroy(&gate->lock);
}

/* --- streams */

/* How far apart the writes of a stream may be. */
static uint64_t gate_window_of(const struct casync_op *op)
{
	return UINT64_C(4) * op->gather.max_bytes;
}

/* The stream of an op; NULL: it has none, or the stream has moved on. */
static struct casync_stream *gate_stream_of(struct casync_gate *gate,
					    const struct casync_op *op)
{
	unsigned int i;

	for (i = 0; i < CASYNC_GATE_STREAMS && op->gather.stream != 0; i++) {
		if (gate->streams[i].id == op->gather.stream)
			return &gate->streams[i];
	}
	return NULL;
}

/* Queued writes and calls in flight no longer belong to this stream. */
static void gate_begin_stream(struct casync_gate *gate,
			      struct casync_stream *stream,
			      const struct casync_op *op)
{
	if (++gate->last_id == 0)
		gate->last_id = 1;
	stream->id = gate->last_id;
	stream->piece = op->gather.piece;
	stream->calls = 0;
	stream->queued_bytes = 0;
	casync_pace_new_piece(&stream->pace);
}

/* The stream whose window the op is in. */
static struct casync_stream *gate_near_stream(struct casync_gate *gate,
					      const struct casync_op *op)
{
	uint64_t window = gate_window_of(op);
	unsigned int i;

	for (i = 0; i < CASYNC_GATE_STREAMS; i++) {
		struct casync_stream *stream = &gate->streams[i];

		if (stream->id != 0 && op->offset <= stream->next + window &&
		    op->offset + window >= stream->next)
			return stream;
	}
	return NULL;
}

/* Unused and older streams are replaced first. */
static bool gate_is_worse(const struct casync_stream *a,
			  const struct casync_stream *b)
{
	return a->hits != b->hits ? a->hits < b->hits : a->id < b->id;
}

/* A slot for a new stream; NULL: all are in use. */
static struct casync_stream *gate_make_stream(struct casync_gate *gate,
					      const struct casync_op *op)
{
	struct casync_stream *worst = &gate->streams[0];
	unsigned int i;

	for (i = 1; i < CASYNC_GATE_STREAMS; i++) {
		if (gate_is_worse(&gate->streams[i], worst))
			worst = &gate->streams[i];
	}
	if (worst->hits != 0) {
		worst->hits--;
		return NULL;
	}
	casync_pace_init(&worst->pace);
	gate_begin_stream(gate, worst, op);
	worst->next = op->offset + op->length_bytes;
	worst->gaps_bytes = 0;
	return worst;
}

static void gate_hit(struct casync_stream *stream)
{
	if (stream->hits < STREAM_MOST_HITS)
		stream->hits++;
}

/*
 * Move a stream on.  Its writes come on several connections and threads, so a
 * stream leaves gaps and fills them later.  Writes that fill no gap, or go to
 * the same place again and again, are no stream.
 */
static void gate_judge(struct casync_stream *stream, const struct casync_op *op)
{
	if (op->offset < stream->next) {
		if (op->length_bytes <= stream->gaps_bytes) {
			stream->gaps_bytes -= op->length_bytes;
			gate_hit(stream);
		} else {
			stream->gaps_bytes = 0;
			stream->hits /= 2;
		}
		return;
	}
	if (op->offset == stream->next)
		gate_hit(stream);
	stream->gaps_bytes += op->offset - stream->next;
	stream->next = op->offset + op->length_bytes;
	if (stream->gaps_bytes > gate_window_of(op)) {
		stream->gaps_bytes = 0;
		stream->hits = 0;
	}
}

/* Find the stream of a new op, and move it on. */
static void gate_follow(struct casync_gate *gate, struct casync_op *op)
{
	struct casync_stream *stream;

	op->gather.stream = 0;
	if (op->gather.max_bytes == 0)
		return;
	stream = gate_near_stream(gate, op);
	if (stream == NULL) {
		stream = gate_make_stream(gate, op);
		if (stream == NULL)
			return;
	} else {
		if (op->offset >= stream->next &&
		    op->gather.piece != stream->piece)
			gate_begin_stream(gate, stream, op);
		gate_judge(stream, op);
	}
	if (op->gather.piece == stream->piece)
		op->gather.stream = stream->id;
}

/* Does it wait for a flush? */
static bool gate_is_held(const struct casync_gate *gate,
			 const struct casync_op *op)
{
	if (op->kind != CASYNC_OP_WRITE)
		return false;
	return op->gather.parked || ((gate->journaling || gate->held) &&
				     op->gather.epoch == gate->epoch);
}

static bool gate_must_wait(struct casync_gate *gate, const struct casync_op *op)
{
	const struct casync_stream *stream = gate_stream_of(gate, op);

	if (gate_is_held(gate, op))
		return true;
	return stream != NULL && stream->hits >= STREAM_HITS &&
	       stream->calls >= stream->pace.calls &&
	       stream->queued_bytes < op->gather.max_bytes;
}

/* --- the queue */

static void gate_append(struct casync_gate *gate, struct casync_op *op)
{
	struct casync_stream *stream = gate_stream_of(gate, op);

	op->next = NULL;
	op->gather.queued = true;
	*gate->end = op;
	gate->end = &op->next;
	if (stream != NULL)
		stream->queued_bytes += op->length_bytes;
}

/* Take out the op at a link. */
static struct casync_op *gate_take_at(struct casync_gate *gate,
				      struct casync_op **link)
{
	struct casync_op *op = *link;
	struct casync_stream *stream = gate_stream_of(gate, op);

	*link = op->next;
	if (gate->end == &op->next)
		gate->end = link;
	op->next = NULL;
	op->gather.queued = false;
	if (stream != NULL)
		stream->queued_bytes -= op->length_bytes;
	return op;
}

/* Does it matter which of the two comes first? */
static bool gate_overlap(const struct casync_op *a, const struct casync_op *b)
{
	if (a->kind != CASYNC_OP_WRITE && b->kind != CASYNC_OP_WRITE)
		return false;
	return a->offset < b->offset + b->length_bytes &&
	       b->offset < a->offset + a->length_bytes;
}

/* Does it overlap an op in sight? */
static bool gate_is_in_the_way(const struct casync_gate *gate,
			       const struct casync_op *op)
{
	const struct casync_op *first;

	if (op->kind != CASYNC_OP_WRITE)
		return false;
	for (first = gate->in_sight; first != NULL;
	     first = first->gather.next_in_sight) {
		if (first->offset < op->offset + op->length_bytes &&
		    op->offset < first->gather.end)
			return true;
	}
	return false;
}

/* Returns whether it was in sight. */
static bool gate_leave_sight(struct casync_gate *gate, struct casync_op *op)
{
	struct casync_op **link = &gate->in_sight;

	if (!op->gather.in_sight)
		return false;
	while (*link != op)
		link = &(*link)->gather.next_in_sight;
	*link = op->gather.next_in_sight;
	op->gather.in_sight = false;
	return true;
}

/* The link of the oldest op before this one that overlaps it, or its own. */
static struct casync_op **gate_first_overlap(struct casync_gate *gate,
					     const struct casync_op *op)
{
	struct casync_op **link = &gate->oldest;

	while (*link != op && !gate_overlap(*link, op))
		link = &(*link)->next;
	return link;
}

/*
 * Collect the ops that go in one call with this one: adjacent ops, in a bounded
 * number of steps through the queue.
 */
static struct casync_op *gate_gather(struct casync_gate *gate,
				     struct casync_op *op)
{
	unsigned int looks = CASYNC_GATHER_LOOKS;
	struct casync_gather_run run;
	struct casync_op **link;
	bool found;

	casync_gather_begin(&run, op);
	do {
		found = false;
		link = &gate->oldest;
		while (*link != NULL && looks != 0) {
			looks--;
			if (!casync_gather_fits(&run, *link) ||
			    gate_is_held(gate, *link) ||
			    gate_is_in_the_way(gate, *link) ||
			    gate_first_overlap(gate, *link) != link) {
				link = &(*link)->next;
				continue;
			}
			casync_gather_add(&run, gate_take_at(gate, link));
			found = true;
		}
	} while (found && looks != 0);
	op = casync_gather_end(&run);
	op->gather.end = run.end;
	return op;
}

/*
 * The op that has to go first before the op at a link: the oldest op that it
 * overlaps, then the oldest op that that one overlaps, and so on.  It is the op
 * itself if it overlaps none.  NULL: it cannot go now.
 */
static struct casync_op **gate_first_to_go(struct casync_gate *gate,
					   struct casync_op **link)
{
	struct casync_op **const wanted = link;
	unsigned int looks = CHAIN_LOOKS;
	const struct casync_op *op;

	do {
		op = *link;
		link = gate_first_overlap(gate, op);
	} while (*link != op && --looks != 0);
	if (*link == op && !gate_is_held(gate, op) &&
	    !gate_is_in_the_way(gate, op))
		return link;
	/* A read does not wait for the reasons of a write. */
	return (*wanted)->kind == CASYNC_OP_WRITE ? NULL : wanted;
}

static struct casync_op **gate_find(struct casync_gate *gate)
{
	unsigned int blocked = BLOCKED_LOOKS;
	struct casync_op **link, **go;

	for (link = &gate->oldest; *link != NULL; link = &(*link)->next) {
		if (gate_must_wait(gate, *link))
			continue;
		go = gate_first_to_go(gate, link);
		if (go != NULL)
			return go;
		if (--blocked == 0)
			break;
	}
	return NULL;
}

/* The op at a link, with the ops that share its call. */
static struct casync_op *gate_take_call(struct casync_gate *gate,
					struct casync_op **link)
{
	struct casync_stream *stream;
	struct casync_op *op = gate_take_at(gate, link);

	op->gather.end = op->offset + op->length_bytes;
	if (op->gather.max_bytes != 0)
		op = gate_gather(gate, op);
	stream = gate_stream_of(gate, op);
	op->gather.counted = stream != NULL && stream->hits >= STREAM_HITS;
	if (op->gather.counted)
		stream->calls++;
	if (op->kind == CASYNC_OP_WRITE) {
		op->gather.in_sight = true;
		op->gather.next_in_sight = gate->in_sight;
		gate->in_sight = op;
	}
	return op;
}

/* The op to submit now, or NULL.  With an op the caller is inside. */
static struct casync_op *gate_take(struct casync_gate *gate)
{
	struct casync_op **link = gate_find(gate);

	return link != NULL ? gate_take_call(gate, link) : NULL;
}

/* The same for the newest op, at that link, if so many other ops cannot go that
 * the search did not reach it. */
static struct casync_op *gate_take_newcomer(struct casync_gate *gate,
					    struct casync_op **link)
{
	struct casync_op **go;

	if (gate_must_wait(gate, *link))
		return NULL;
	go = gate_first_to_go(gate, link);
	return go != NULL ? gate_take_call(gate, go) : NULL;
}

/* Take an op if no thread is inside: no other thread would take it. */
static struct casync_op *gate_take_if_empty(struct casync_gate *gate)
{
	struct casync_op *op = gate->inside == 0 ? gate_take(gate) : NULL;

	if (op != NULL)
		gate->inside++;
	return op;
}

/* Take an op though threads are inside: they may be stuck. */
static struct casync_op *gate_take_beside_others(struct casync_gate *gate)
{
	struct casync_op *op =
		gate->inside < CASYNC_GATE_THREADS ? gate_take(gate) : NULL;

	if (op != NULL)
		gate->inside++;
	return op;
}

static void gate_say_it_waits(const struct casync_gate *gate,
			      struct casync_op *op)
{
	if (gate->journaling && op->kind == CASYNC_OP_WRITE) {
		casync_op_set_state(op, CASYNC_OP_JOURNALING);
		return;
	}
	casync_count(casync_metrics_shard(&op->exp->metrics), CASYNC_C_HELD, 1);
	casync_op_set_state(op, CASYNC_OP_HELD);
}

/* --- */

/* A write is in flight now: it belongs to the current epoch. */
static void gate_take_off(struct casync_gate *gate, struct casync_op *op)
{
	op->gather.epoch = gate->epoch;
	gate->flying[gate->epoch]++;
}

struct casync_op *casync_gate_enter(struct casync_gate *gate,
				    struct casync_op *op)
{
	struct casync_op *now = NULL;
	struct casync_op **link;

	pthread_mutex_lock(&gate->lock);
	if (op->kind == CASYNC_OP_WRITE && !op->gather.parked)
		gate_take_off(gate, op);
	gate_follow(gate, op);
	link = gate->end;
	gate_append(gate, op);
	if (gate->inside < CASYNC_GATE_THREADS)
		now = gate_take(gate);
	if (now == NULL && gate->inside < CASYNC_GATE_THREADS)
		now = gate_take_newcomer(gate, link);
	if (now != NULL)
		gate->inside++;
	if (op->gather.queued)
		gate_say_it_waits(gate, op);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

struct casync_op *casync_gate_next(struct casync_gate *gate,
				   struct casync_op *op)
{
	struct casync_op *next;

	pthread_mutex_lock(&gate->lock);
	/* A call of several ops may still be refused. */
	if (op->members == NULL)
		(void)gate_leave_sight(gate, op);
	next = gate_take(gate);
	if (next == NULL)
		gate->inside--;
	pthread_mutex_unlock(&gate->lock);
	return next;
}

/* What a call took; 0: not known, as without metrics.  An error can come sooner
 * than the OSD could answer. */
static uint64_t gate_call_ns(const struct casync_op *op)
{
	if (op->parts[0].result <= 0 || op->answered_ns <= op->submitted_ns)
		return 0;
	return op->answered_ns - op->submitted_ns;
}

/* Returns whether it was counted. */
static bool gate_uncount_call(struct casync_gate *gate, struct casync_op *op)
{
	struct casync_stream *stream;

	if (!op->gather.counted)
		return false;
	op->gather.counted = false;
	stream = gate_stream_of(gate, op);
	if (stream != NULL) {
		stream->calls--;
		casync_pace_learn(&stream->pace, gate_call_ns(op));
	}
	return true;
}

/* A write is no longer in flight.  Was it the last that a flush waits for? */
static bool gate_land(struct casync_gate *gate, const struct casync_op *op)
{
	gate->flying[op->gather.epoch]--;
	if (!gate->draining || gate->flying[gate->epoch ^ 1] != 0)
		return false;
	gate->draining = false;
	return true;
}

struct casync_op *casync_gate_answered(struct casync_gate *gate,
				       struct casync_op *op, bool *drained)
{
	struct casync_op *now = NULL;
	bool makes_way;

	*drained = false;
	if (op->kind != CASYNC_OP_WRITE)
		return NULL;
	pthread_mutex_lock(&gate->lock);
	makes_way = gate_uncount_call(gate, op);
	makes_way |= gate_leave_sight(gate, op);
	*drained = gate_land(gate, op);
	if (makes_way)
		now = gate_take_if_empty(gate);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

void casync_gate_refused(struct casync_gate *gate, struct casync_op *first)
{
	pthread_mutex_lock(&gate->lock);
	(void)gate_uncount_call(gate, first);
	gate->inside++;
	pthread_mutex_unlock(&gate->lock);
}

/*
 * The first flush does not wait for the writes that wait for it, though they
 * may have come before it began.
 */
static void gate_move_journaling(struct casync_gate *gate)
{
	struct casync_op *op;

	for (op = gate->oldest; op != NULL; op = op->next) {
		if (op->kind != CASYNC_OP_WRITE || op->gather.parked ||
		    op->gather.epoch == gate->epoch)
			continue;
		gate->flying[op->gather.epoch]--;
		gate_take_off(gate, op);
	}
}

bool casync_gate_hold(struct casync_gate *gate)
{
	bool drained;

	pthread_mutex_lock(&gate->lock);
	gate->epoch ^= 1;
	if (gate->journaling)
		gate_move_journaling(gate);
	drained = gate->flying[gate->epoch ^ 1] == 0;
	gate->held = true;
	gate->draining = !drained;
	pthread_mutex_unlock(&gate->lock);
	return drained;
}

bool casync_gate_is_draining(struct casync_gate *gate)
{
	bool draining;

	pthread_mutex_lock(&gate->lock);
	draining = gate->draining;
	pthread_mutex_unlock(&gate->lock);
	return draining;
}

struct casync_op *casync_gate_release(struct casync_gate *gate, bool journaled)
{
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	gate->held = false;
	if (journaled)
		gate->journaling = false;
	now = gate_take_beside_others(gate);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

void casync_gate_hold_for_journal(struct casync_gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->journaling = true;
	pthread_mutex_unlock(&gate->lock);
}

struct casync_op *casync_gate_expel(struct casync_gate *gate)
{
	struct casync_op **link = &gate->oldest;
	struct casync_op *expelled = NULL;
	struct casync_op **end = &expelled;

	pthread_mutex_lock(&gate->lock);
	gate->journaling = false;
	while (*link != NULL) {
		if ((*link)->kind != CASYNC_OP_WRITE ||
		    (*link)->gather.parked) {
			link = &(*link)->next;
			continue;
		}
		*end = gate_take_at(gate, link);
		gate->flying[(*end)->gather.epoch]--;
		end = &(*end)->next;
	}
	pthread_mutex_unlock(&gate->lock);
	return expelled;
}

/* Is there a later op that may have to wait for this one, and that a flush
 * waits for? */
static bool gate_keeps_flush_waiting(const struct casync_gate *gate,
				     const struct casync_op *op)
{
	const struct casync_op *later;

	if (!gate->draining)
		return false;
	for (later = op->next; later != NULL; later = later->next) {
		if (later->kind == CASYNC_OP_WRITE && !later->gather.parked &&
		    later->gather.epoch != gate->epoch)
			return true;
	}
	return false;
}

static void gate_join_other_epoch(struct casync_gate *gate,
				  struct casync_op *op)
{
	gate->flying[op->gather.epoch]--;
	op->gather.epoch = gate->epoch ^ 1;
	gate->flying[op->gather.epoch]++;
}

struct casync_op *casync_gate_unpark(struct casync_gate *gate,
				     struct casync_op *op)
{
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	op->gather.parked = false;
	gate_take_off(gate, op);
	if (gate_keeps_flush_waiting(gate, op))
		gate_join_other_epoch(gate, op);
	now = gate_take_beside_others(gate);
	pthread_mutex_unlock(&gate->lock);
	return now;
}

struct casync_op *casync_gate_give_up(struct casync_gate *gate,
				      struct casync_op *op)
{
	struct casync_op **link = &gate->oldest;
	struct casync_op *now;

	pthread_mutex_lock(&gate->lock);
	while (*link != op)
		link = &(*link)->next;
	(void)gate_take_at(gate, link);
	op->gather.parked = false;
	/* Ops that overlap it no longer wait for it. */
	now = gate_take_beside_others(gate);
	pthread_mutex_unlock(&gate->lock);
	return now;
}
