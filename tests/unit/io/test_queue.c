/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "export.h"
#include "queue.h"
#include "op.h"

#define THREADS 16
#define OPS_EACH 500

static struct casync_queue queue;
static struct casync_export exp;
#define OPS (CASYNC_QUEUE_THREADS + 3)
static struct casync_op ops[OPS];

static int up(void **state)
{
	unsigned int i;

	memset(ops, 0, sizeof(ops));
	memset(&exp.metrics, 0, sizeof(exp.metrics));
	/* All are WRITEs, and as they are none overlaps another one. */
	for (i = 0; i < OPS; i++) {
		ops[i].exp = &exp;
		ops[i].kind = CASYNC_OP_WRITE;
	}
	casync_queue_init(&queue);
	return 0;
}

/* A write of 10 bytes. */
static struct casync_op *write_at(unsigned int number, uint64_t offset)
{
	ops[number].offset = offset;
	ops[number].length_bytes = 10;
	return &ops[number];
}

static struct casync_op *enter(struct casync_op *op)
{
	return casync_queue_enter(&queue, op);
}

static struct casync_op *next(struct casync_op *op)
{
	return casync_queue_next(&queue, op);
}

/* What the answer lets in; no flush is to be run after it. */
static struct casync_op *answer(struct casync_op *op)
{
	struct casync_queue_todo todo = casync_queue_answered(&queue, op);

	assert_false(todo.flush);
	assert_null(todo.fail);
	return todo.submit;
}

/* A flush is to be run, and nothing else goes. */
static bool drains(struct casync_op *op)
{
	struct casync_queue_todo todo = casync_queue_answered(&queue, op);

	assert_null(todo.submit);
	return todo.flush;
}

static struct casync_flush_waiter waiter;

/* True: the flush is to be run. */
static bool hold(void)
{
	return casync_queue_want_flush(&queue, &waiter);
}

/* True: the flush is to be run. */
static bool await_create(void)
{
	bool flush;

	assert_true(casync_queue_want_create(&queue, &flush));
	return flush;
}

static struct casync_queue_todo flushed(int rc)
{
	struct glist_head covered;

	casync_queue_cover(&queue, &covered);
	return casync_queue_flushed(&queue, rc);
}

/* The flush ends, and none is wanted.  What goes now? */
static struct casync_op *release(void)
{
	struct casync_queue_todo todo = flushed(0);

	assert_false(todo.flush);
	assert_null(todo.fail);
	return todo.submit;
}

static int down(void **state)
{
	assert_int_equal(queue.inside, 0);
	assert_null(queue.oldest);
	assert_null(queue.submitting);
	assert_ptr_equal(queue.end, &queue.oldest);
	casync_queue_destroy(&queue);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static struct casync_view totals;

CASE(so_many_are_let_in_and_the_rest_is_held)
{
	unsigned int i;

	for (i = 0; i < CASYNC_QUEUE_THREADS; i++) {
		assert_ptr_equal(enter(&ops[i]), &ops[i]);
		assert_int_equal(ops[i].state, CASYNC_OP_NEW);
	}
	for (; i < CASYNC_QUEUE_THREADS + 3; i++) {
		assert_null(enter(&ops[i]));
		assert_int_equal(ops[i].state, CASYNC_OP_HELD);
	}
	casync_metrics_add_up(&exp.metrics, &totals);
	assert_int_equal(totals.numbers[CASYNC_C_FILE_QUEUE_WAITS], 3);
	/* In the order they came, whoever asks. */
	for (i = CASYNC_QUEUE_THREADS; i < CASYNC_QUEUE_THREADS + 3; i++)
		assert_ptr_equal(next(&ops[i - CASYNC_QUEUE_THREADS]), &ops[i]);
	for (i = 0; i < CASYNC_QUEUE_THREADS; i++)
		assert_null(next(&ops[i + 3]));
}

CASE(place_that_is_free_again_is_given)
{
	unsigned int i;

	for (i = 0; i < CASYNC_QUEUE_THREADS; i++)
		assert_ptr_equal(enter(&ops[i]), &ops[i]);
	assert_null(next(&ops[0]));
	assert_ptr_equal(enter(&ops[i]), &ops[i]);
	for (i = 0; i < CASYNC_QUEUE_THREADS; i++)
		assert_null(next(&ops[i + 1]));
}

/* Many threads with many ops; each op is to be submitted once. */
static struct casync_op crowd[THREADS][OPS_EACH];
static unsigned int submitted[THREADS][OPS_EACH]; /* atomic */

static void submit(struct casync_op *op)
{
	size_t number = (size_t)(op - &crowd[0][0]);

	__atomic_add_fetch(&submitted[0][0] + number, 1, __ATOMIC_RELAXED);
}

static void *submit_many(void *arg)
{
	struct casync_op *mine = arg;
	struct casync_op *op;
	unsigned int i;

	for (i = 0; i < OPS_EACH; i++) {
		for (op = casync_queue_enter(&queue, &mine[i]); op != NULL;
		     op = casync_queue_next(&queue, op))
			submit(op);
	}
	return NULL;
}

CASE(each_of_many_is_submitted_once)
{
	pthread_t threads[THREADS];
	unsigned int t, i;

	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < OPS_EACH; i++) {
			crowd[t][i].exp = &exp;
			crowd[t][i].kind = CASYNC_OP_WRITE;
		}
	}
	for (t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, submit_many,
						crowd[t]),
				 0);
	for (t = 0; t < THREADS; t++)
		RIG_JOIN(threads[t], NULL);
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < OPS_EACH; i++)
			assert_int_equal(submitted[t][i], 1);
	}
}

/* --- order */

/* The fault: the older one is taken, and not submitted yet, when the younger
 * one comes. */
CASE(younger_write_does_not_overtake_one_that_is_taken)
{
	struct casync_op *older = write_at(0, 100);
	struct casync_op *younger = write_at(1, 105);

	assert_ptr_equal(enter(older), older);
	assert_null(enter(younger));
	assert_int_equal(younger->state, CASYNC_OP_HELD);
	/* Submitted: now it may come, and not before. */
	assert_ptr_equal(next(older), younger);
	assert_null(next(younger));
	assert_null(answer(older));
	assert_null(answer(younger));
}

/* The same where an answer has popped it and a worker is about to come. */
CASE(nor_one_that_waits_for_a_worker)
{
	struct casync_op *older = write_at(0, 100);
	struct casync_op *younger = write_at(1, 105);
	struct casync_op *apart = write_at(2, 500);

	assert_true(hold());
	assert_null(enter(older));
	assert_ptr_equal(release(), older);
	assert_null(enter(younger));
	assert_ptr_equal(enter(apart), apart);
	assert_null(next(apart));
	assert_ptr_equal(next(older), younger);
	assert_null(next(younger));
	assert_null(answer(younger));
	assert_null(answer(older));
	assert_null(answer(apart));
}

/* Enters the first of a call of two, as gather() leaves it. */
static void enter_call(struct casync_op *first, struct casync_op *member)
{
	assert_ptr_equal(enter(first), first);
	first->members = member;
	first->gather.end = member->offset + member->length_bytes;
	queue.writes.in_flight[0]++;
}

/* A call of several may be refused: then they go each by itself, and nothing
 * has overtaken them. */
CASE(call_of_several_stays_in_sight_until_it_is_answered)
{
	struct casync_op *first = write_at(0, 100);
	struct casync_op *member = write_at(1, 110);
	struct casync_op *younger = write_at(2, 115);

	enter_call(first, member);
	assert_null(enter(younger));
	assert_null(next(first));

	casync_queue_refused(&queue, first);
	first->members = NULL;
	assert_ptr_equal(next(first), younger);
	assert_null(next(younger));
	assert_null(answer(first));
	assert_null(answer(member));
	assert_null(answer(younger));
}

CASE(answered_call_makes_way)
{
	struct casync_op *first = write_at(0, 100);
	struct casync_op *member = write_at(1, 110);
	struct casync_op *younger = write_at(2, 115);

	enter_call(first, member);
	assert_null(next(first));
	assert_null(enter(younger));
	first->members = NULL;
	assert_ptr_equal(answer(first), younger);
	assert_null(next(younger));
	assert_null(answer(member));
	assert_null(answer(younger));
}

/* --- flushes */

CASE(nothing_in_flight_is_drained_at_once)
{
	assert_true(hold());
	assert_null(release());
	assert_true(hold());
	assert_null(release());
}

CASE(writes_of_before_are_waited_for_and_others_held)
{
	struct casync_op *first = write_at(0, 0);
	struct casync_op *second = write_at(1, 100);
	struct casync_op *later = write_at(2, 200);

	assert_ptr_equal(enter(first), first);
	assert_ptr_equal(enter(second), second);
	assert_null(next(first));
	assert_null(next(second));
	assert_false(hold());
	assert_null(enter(later));
	assert_false(drains(first));
	assert_true(drains(second));
	assert_ptr_equal(release(), later);
	assert_null(next(later));
	assert_null(answer(later));
}

/* What was held for one flush is what the next one waits for: flush after
 * flush, each write gets its turn. */
CASE(held_writes_come_before_the_next_flush)
{
	struct casync_op *held = write_at(0, 0);
	struct casync_op *also_held = write_at(1, 100);
	struct casync_op *later = write_at(2, 200);

	assert_true(hold());
	assert_null(enter(held));
	assert_null(enter(also_held));
	assert_ptr_equal(release(), held);
	assert_false(hold());
	/* There is a place inside: it goes to the one that is not held. */
	assert_ptr_equal(enter(later), also_held);
	assert_null(next(held));
	assert_null(next(also_held));
	assert_false(drains(held));
	assert_true(drains(also_held));
	assert_ptr_equal(release(), later);
	assert_null(next(later));
	assert_null(answer(later));
}

CASE(all_writes_wait_for_the_journal)
{
	struct casync_op *first = write_at(0, 0);
	struct casync_op *now;

	casync_queue_mark_new(&queue);
	assert_true(await_create());
	assert_null(enter(first));
	assert_int_equal(first->state, CASYNC_OP_JOURNALING);
	/* Not after a second of it either. */
	queue.hold.since_ns = 1;
	assert_true(casync_queue_release_oldest(&now));
	assert_null(now);
	assert_ptr_equal(release(), first);
	assert_null(next(first));
	assert_null(answer(first));
}

CASE(failed_journal_expels_what_has_a_place)
{
	struct casync_op *first = write_at(0, 0);
	struct casync_op *second = write_at(1, 5);
	struct casync_op *parked = write_at(2, 100);
	struct casync_queue_todo todo;

	casync_queue_mark_new(&queue);
	assert_true(await_create());
	assert_null(enter(first));
	assert_null(casync_queue_park(&queue, parked));
	assert_null(enter(second));
	todo = flushed(-EIO);
	assert_false(todo.flush);
	assert_null(todo.submit);
	assert_ptr_equal(todo.fail, first);
	assert_ptr_equal(first->next, second);
	assert_null(second->next);
	assert_int_equal(queue.writes.in_flight[0], 0);
	assert_int_equal(queue.writes.in_flight[1], 0);
	assert_true(casync_queue_is_unjournaled(&queue));
	assert_false(casync_queue_awaits_create(&queue));
	assert_null(casync_queue_cancel_parked(&queue, parked));
}

/* It came before the flush began, and the flush is what it waits for. */
CASE(first_write_that_came_before_its_flush_is_not_waited_for)
{
	struct casync_op *first = write_at(0, 0);

	casync_queue_mark_new(&queue);
	assert_true(casync_queue_begin_send(&queue));
	assert_false(await_create());
	assert_null(enter(first));
	assert_true(casync_queue_end_send(&queue, true));
	assert_ptr_equal(release(), first);
	assert_null(next(first));
	assert_null(answer(first));
	assert_int_equal(queue.writes.in_flight[0] + queue.writes.in_flight[1],
			 0);
}

/* --- the states of a flush */

static void state_is(enum casync_flush_state state)
{
	assert_int_equal(queue.flush, state);
}

/* Two that came at different times are told apart by what covers them. */
CASE(who_comes_during_a_flush_waits_for_the_next_one)
{
	struct casync_flush_waiter other = {0};
	struct casync_queue_todo todo;
	struct glist_head covered;

	assert_true(hold());
	casync_queue_cover(&queue, &covered);
	assert_true(waiter.covered);
	assert_false(casync_queue_want_flush(&queue, &other));
	assert_false(casync_queue_withdraw(&queue, &other));
	todo = casync_queue_flushed(&queue, 0);
	assert_true(todo.flush);
	state_is(CASYNC_FLUSH_SYNCING);
	assert_false(other.covered);
	assert_null(release());
	assert_true(other.covered);
	state_is(CASYNC_FLUSH_IDLE);
}

CASE(flush_that_nobody_wants_any_more_is_not_run)
{
	struct casync_op *before = write_at(0, 0);
	struct casync_op *held = write_at(1, 100);

	assert_ptr_equal(enter(before), before);
	assert_null(next(before));
	assert_false(hold());
	state_is(CASYNC_FLUSH_DRAINING);
	assert_null(enter(held));
	assert_true(casync_queue_withdraw(&queue, &waiter));
	assert_ptr_equal(answer(before), held);
	state_is(CASYNC_FLUSH_IDLE);
	assert_null(next(held));
	assert_null(answer(held));
}

/* What went after a second is waited for as well, so often and no more. */
CASE(flush_of_slow_writes_holds_again)
{
	struct casync_op *op = write_at(0, 0), *later;
	unsigned int i;

	assert_ptr_equal(enter(op), op);
	assert_null(next(op));
	assert_false(hold());
	for (i = 1; i < CASYNC_QUEUE_HOLDS; i++) {
		later = write_at(i % 2, 100 * i);
		assert_null(enter(later));
		queue.hold.since_ns = 1;
		assert_true(casync_queue_release_oldest(&later));
		assert_null(next(later));
		assert_false(drains(op));
		op = later;
	}
	later = write_at(i % 2, 100 * i);
	assert_null(enter(later));
	queue.hold.since_ns = 1;
	assert_true(casync_queue_release_oldest(&later));
	assert_false(casync_queue_release_oldest(&op));
	assert_null(next(later));
	assert_true(drains(write_at((i - 1) % 2, 100 * (i - 1))));
	assert_null(release());
	assert_null(answer(later));
}

CASE(changes_are_sent_while_no_flush_is_under_way)
{
	unsigned int i;

	for (i = 0; i < CASYNC_QUEUE_SENT_MAX; i++) {
		assert_true(casync_queue_begin_send(&queue));
		assert_false(casync_queue_begin_send(&queue));
		assert_false(casync_queue_end_send(&queue, true));
	}
	assert_false(casync_queue_begin_send(&queue));
	queue.sent = 0;
	assert_true(casync_queue_begin_send(&queue));
	assert_false(hold());
	assert_true(casync_queue_end_send(&queue, false));
	assert_int_equal(queue.sent, 0);
	assert_false(casync_queue_begin_send(&queue));
	assert_null(release());
}

/* The tick does not wait for whoever is at work in the queue. */
CASE(locked_queue_is_released_at_the_next_tick)
{
	struct casync_op *now;

	assert_true(hold());
	assert_false(casync_queue_release_oldest(&now));
	queue.hold.since_ns = 1;
	pthread_mutex_lock(&queue.lock);
	assert_false(casync_queue_release_oldest(&now));
	pthread_mutex_unlock(&queue.lock);
	assert_true(casync_queue_release_oldest(&now));
	assert_null(release());
}

/* --- writes that wait for a place */

CASE(parked_write_keeps_its_place)
{
	struct casync_op *older = write_at(0, 100);
	struct casync_op *younger = write_at(1, 105);
	struct casync_op *apart = write_at(2, 500);

	assert_null(casync_queue_park(&queue, older));
	assert_null(enter(younger));
	assert_ptr_equal(enter(apart), apart);
	assert_null(next(apart));
	assert_ptr_equal(casync_queue_unpark(&queue, older), older);
	assert_ptr_equal(next(older), younger);
	assert_null(next(younger));
	assert_null(answer(older));
	assert_null(answer(younger));
	assert_null(answer(apart));
}

CASE(parked_write_that_gives_up_makes_way)
{
	struct casync_op *older = write_at(0, 100);
	struct casync_op *younger = write_at(1, 105);

	assert_null(casync_queue_park(&queue, older));
	assert_null(enter(younger));
	assert_ptr_equal(casync_queue_cancel_parked(&queue, older), younger);
	assert_null(next(younger));
	assert_null(answer(younger));
}

/* It is not in flight: nobody has been told that it will be written. */
CASE(flush_does_not_wait_for_a_parked_write)
{
	struct casync_op *parked = write_at(0, 100);

	assert_null(casync_queue_park(&queue, parked));
	assert_true(hold());
	assert_null(casync_queue_unpark(&queue, parked));
	assert_ptr_equal(release(), parked);
	assert_null(next(parked));
	assert_null(answer(parked));
}

/* --- what cannot go keeps nobody else */

static struct casync_op many[200];

CASE(long_queue_that_is_blocked_lets_others_pass)
{
	struct casync_op *way = write_at(0, 1000);
	unsigned int i;

	assert_ptr_equal(enter(way), way);
	memset(many, 0, sizeof(many));
	for (i = 0; i < 200; i++) {
		many[i] = *way;
		many[i].gather = (struct casync_gather){0};
		assert_null(enter(&many[i]));
	}
	assert_ptr_equal(enter(write_at(1, 5000)), &ops[1]);
	assert_null(next(&ops[1]));
	assert_null(answer(&ops[1]));
	for (i = 0; i < 200; i++) {
		assert_ptr_equal(next(i == 0 ? way : &many[i - 1]), &many[i]);
		assert_null(answer(i == 0 ? way : &many[i - 1]));
	}
	assert_null(next(&many[199]));
	assert_null(answer(&many[199]));
}

/* --- streams: how many calls, by what they take */

static unsigned int began;

static void begin_stream(void)
{
	memset(many, 0, sizeof(many));
	began = 0;
}

/* The next write of the stream. */
static struct casync_op *stream_write(void)
{
	struct casync_op *op = &many[began];

	op->exp = &exp;
	op->kind = CASYNC_OP_WRITE;
	op->offset = began++ * 10U;
	op->length_bytes = 10;
	op->parts.at = op->parts.own;
	op->gather.max_bytes = 10000;
	return enter(op);
}

/* As many writes as go at once; returns how many. */
static unsigned int stream_fill(void)
{
	struct casync_op *op = stream_write();
	unsigned int went = 0;

	for (; op != NULL; op = stream_write()) {
		went++;
		assert_null(next(op));
	}
	return went;
}

static struct casync_op *answer_after(struct casync_op *op, int64_t result,
				      uint64_t us)
{
	op->submitted_ns = 1;
	op->answered_ns = 1 + us * 1000;
	op->parts.at[0].result = result;
	return answer(op);
}

/* The calls FROM to TO; and the one that the first answer lets in, of which
 * nothing can be learned. */
static void answer_all(unsigned int from, unsigned int to, int64_t result,
		       uint64_t us)
{
	struct casync_op *waited = NULL;
	struct casync_op *now;

	for (; from < to; from++) {
		now = answer_after(&many[from], result, us);
		if (now == NULL)
			continue;
		assert_null(waited);
		waited = now;
		assert_null(next(waited));
	}
	if (waited != NULL)
		assert_null(answer_after(waited, -EIO, 1));
}

/* The first four writes are no stream yet, and do not count. */
#define UNCOUNTED 4U

CASE(slow_calls_let_more_be_in_flight)
{
	begin_stream();
	assert_int_equal(stream_fill(), UNCOUNTED + 8);
	answer_all(0, UNCOUNTED + 8, 10, 30 * CASYNC_PACE_CALL_US);
	assert_int_equal(stream_fill(), 30);
	answer_all(UNCOUNTED + 9, UNCOUNTED + 9 + 30, 10,
		   60 * CASYNC_PACE_CALL_US);
	assert_int_equal(stream_fill(), 30);
	answer_all(UNCOUNTED + 40, UNCOUNTED + 40 + 30, 10,
		   30 * CASYNC_PACE_CALL_US);
}

CASE(fast_calls_let_fewer_be_in_flight)
{
	begin_stream();
	assert_int_equal(stream_fill(), UNCOUNTED + 8);
	answer_all(0, UNCOUNTED + 7, 10, 5000);
	answer_all(UNCOUNTED + 7, UNCOUNTED + 8, 10, 3 * CASYNC_PACE_CALL_US);
	assert_int_equal(stream_fill(), 3);
	answer_all(UNCOUNTED + 9, UNCOUNTED + 9 + 3, 10, 1);
	assert_int_equal(stream_fill(), 2);
	answer_all(UNCOUNTED + 13, UNCOUNTED + 13 + 2, 10, 5000);
	assert_int_equal(stream_fill(), 2);
	answer_all(UNCOUNTED + 16, UNCOUNTED + 16 + 2, 10, 5000);
}

/* As when the mount has been evicted. */
CASE(errors_and_unknown_times_change_nothing)
{
	begin_stream();
	assert_int_equal(stream_fill(), UNCOUNTED + 8);
	answer_all(0, UNCOUNTED + 8, -EIO, 10);
	assert_int_equal(stream_fill(), 8);
	answer_all(UNCOUNTED + 9, UNCOUNTED + 9 + 8, 10, 0);
	assert_int_equal(stream_fill(), 8);
	answer_all(UNCOUNTED + 18, UNCOUNTED + 18 + 8, -EIO, 10);
}
