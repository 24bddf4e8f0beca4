/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Who submits waits a moment for the answer: when, how long, and that each
 * request is answered once whoever comes first.
 */
#include "config.h"

#include <pthread.h>
#include <time.h>

#include "unit.h"

#include "complete.h"
#include "clock.h"
#include "nfs_core.h"
#include "op.h"
#include "request.h"

#define NEVER UINT64_MAX
#define RACES 60
#define RACE_STEP_NS 20000

static int up(void **state)
{
	int rc = request_up(state);

	rig.exp.await_not_before_ns = 0;
	return rc;
}

#define AWAIT_CASE(test) TEST_WITH(test, up, request_down)

/* Only a wait in vain moves it. */
static bool waited_in_vain(void)
{
	return NOW(rig.exp.await_not_before_ns) != 0;
}

static bool was_answered_here(struct io *io)
{
	bool late = waited_in_vain();

	settle(io);
	if (late)
		return false;
	assert_true(io->in_caller);
	assert_false(io->on_completer);
	assert_true(io->own_export);
	/* The request goes on with its own. */
	assert_ptr_equal(op_ctx, &rig.request);
	return true;
}

static bool read_is_answered_here(struct io *io)
{
	fake.plan.when = FAKE_ON_THREAD;
	start_read(io);
	if (!was_answered_here(io))
		return false;
	check_ok(io, 100);
	check_bytes_read(io, 100);
	return true;
}

AWAIT_CASE(lone_read_is_answered_where_it_was_asked)
{
	request_until_in_time(read_is_answered_here, 0, state);
}

static bool write_is_answered_here(struct io *io)
{
	fake.plan.when = FAKE_ON_THREAD;
	start_write(io, true);
	if (!was_answered_here(io))
		return false;
	check_ok(io, 100);
	check_bytes_written(io, 100);
	return true;
}

AWAIT_CASE(lone_write_is_answered_where_it_was_asked)
{
	request_until_in_time(write_is_answered_here, 0, state);
}

/* The callback in the submission itself, client_lock held: the answer comes
 * when that has returned. */
AWAIT_CASE(answer_within_the_submission)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_BEFORE_RETURN;
	start_read(io);
	assert_true(was_answered_here(io));
	check_ok(io, 100);
	free_io(io);
}

static bool error_is_answered_here(struct io *io)
{
	fake.plan = (struct fake_plan){FAKE_ON_THREAD, -EIO, false, 0};
	start_read(io);
	if (!was_answered_here(io))
		return false;
	check_error(io, ERR_FSAL_IO);
	return true;
}

AWAIT_CASE(error_is_answered_too)
{
	request_until_in_time(error_is_answered_here, 0, state);
}

/* A short read has to ask again, which a worker of ours does. */
AWAIT_CASE(repair_is_left_to_a_worker)
{
	struct io *io = new_io(0, 100);

	fake_punch(0);
	fake.plan.when = FAKE_ON_THREAD;
	start_read(io);
	settle(io);
	assert_false(io->in_caller);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
}

AWAIT_CASE(wait_ends_without_an_answer)
{
	struct io *io = new_io(0, 100);
	uint64_t began_ns = casync_clock_ns();

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_true(casync_clock_ns() - began_ns >=
		    CASYNC_AWAIT_MS * CASYNC_NS_PER_MS);
	assert_int_equal(io->calls, 0);
	assert_true(waited_in_vain());
	fake_complete(0);
	settle(io);
	assert_true(io->on_completer);
	check_ok(io, 100);
	free_io(io);
}

/* A read, with an answer that comes after it has returned in any case. */
static void read_later(struct io *io)
{
	unsigned int call = fake_call_count();

	fake.plan.when = FAKE_LATER;
	start_read(io);
	fake_complete(call);
	assert_true(rig_wait(&io->came));
	sem_post(&io->came);
}

AWAIT_CASE(nobody_waits_after_a_wait_in_vain)
{
	struct io *io = new_io(0, 100);
	uint64_t until_ns;

	/* A while from now: the machine may be slow. */
	until_ns = casync_clock_ns() + 3600 * 1000 * CASYNC_NS_PER_MS;
	rig.exp.await_not_before_ns = until_ns;
	read_later(io);
	assert_true(rig.exp.await_not_before_ns == until_ns);
	settle(io);
	assert_true(io->on_completer);
	free_io(io);
}

static bool read_is_answered_after_the_pause(struct io *io)
{
	uint64_t end_ns = casync_clock_ns();

	rig.exp.await_not_before_ns = end_ns;
	fake.plan.when = FAKE_ON_THREAD;
	start_read(io);
	/* A wait in vain moves it. */
	if (rig.exp.await_not_before_ns == end_ns)
		assert_true(io->in_caller);
	settle(io);
	return io->in_caller;
}

AWAIT_CASE(pause_has_an_end)
{
	struct io *io = new_io(0, 100);
	uint64_t now_ns = casync_clock_ns();

	read_later(io);
	assert_in_range(rig.exp.await_not_before_ns,
			now_ns + CASYNC_AWAIT_PAUSE_MS * CASYNC_NS_PER_MS,
			casync_clock_ns() +
				CASYNC_AWAIT_PAUSE_MS * CASYNC_NS_PER_MS);
	free_io(io);
	request_until_in_time(read_is_answered_after_the_pause, 0, state);
}

/* One that is in flight, and another one beside it. */
static void with_another(struct io *io, bool write)
{
	struct io *other = new_io(OBJ, 100);

	fake.plan.when = FAKE_LATER;
	rig.exp.await_not_before_ns = NEVER;
	start_read(other);
	rig.exp.await_not_before_ns = 0;
	fake.plan.when = FAKE_ON_THREAD;
	if (write)
		start_write(io, true);
	else
		start_read(io);
	assert_true(rig_wait(&io->came));
	fake_complete(0);
	settle(other);
	check_ok(io, 100);
	free_io(other);
}

static bool read_beside_another(struct io *io)
{
	with_another(io, false);
	if (waited_in_vain())
		return false;
	assert_true(io->in_caller);
	return true;
}

AWAIT_CASE(read_beside_others_waits)
{
	request_until_in_time(read_beside_another, 0, state);
}

AWAIT_CASE(write_beside_others_does_not)
{
	struct io *io = new_io(0, 100);

	with_another(io, true);
	assert_false(waited_in_vain());
	assert_true(io->on_completer);
	free_io(io);
}

static struct io *second;

static void ask_again(void)
{
	fake.plan.when = FAKE_LATER;
	rig.exp.await_not_before_ns = 0;
	start_read(second);
}

AWAIT_CASE(completion_thread_does_not_wait)
{
	struct io *io = new_io(0, 100);

	second = new_io(OBJ, 100);
	rig.exp.await_not_before_ns = NEVER;
	io->in_done = ask_again;
	read_later(io);
	assert_true(io->on_completer);
	assert_false(waited_in_vain());
	fake_complete(1);
	settle(second);
	check_ok(second, 100);
	free_io(second);
	free_io(io);
}

AWAIT_CASE(only_so_many_wait)
{
	static struct casync_op ops[CASYNC_AWAIT_MOST + 1];
	unsigned int i;

	for (i = 0; i <= CASYNC_AWAIT_MOST; i++) {
		ops[i].exp = &rig.exp;
		ops[i].kind = CASYNC_OP_READ;
		assert_int_equal(casync_complete_wait_begin(&ops[i]),
				 i < CASYNC_AWAIT_MOST);
	}
	/* Nobody waits for it. */
	assert_false(casync_complete_wake_waiter(&ops[CASYNC_AWAIT_MOST]));
	for (i = 0; i < CASYNC_AWAIT_MOST; i++)
		casync_complete_wait_end(
			&ops[i]); /* in vain, but gives its place up */
	rig.exp.await_not_before_ns = 0;
	assert_true(casync_complete_wait_begin(&ops[0]));
	casync_complete_wait_end(&ops[0]);
}

AWAIT_CASE(half_of_few_workers_wait)
{
	enum { FEW = 9 };
	static struct casync_op ops[FEW];
	unsigned int i;

	nfs_param.core_param.rpc.ioq_thrd_max = 2 * FEW - 1;
	for (i = 0; i < FEW; i++) {
		ops[i].exp = &rig.exp;
		ops[i].kind = CASYNC_OP_READ;
		assert_int_equal(casync_complete_wait_begin(&ops[i]),
				 i < FEW - 1);
	}
	for (i = 0; i < FEW - 1; i++)
		casync_complete_wait_end(&ops[i]);
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
}

struct racer {
	unsigned int call;
	uint64_t pause_ns;
};

static void *answer_at_the_last_moment(void *arg)
{
	const struct racer *racer = arg;

	(void)RIG_COMES(fake_call_count() > racer->call);
	nanosleep(&(struct timespec){.tv_nsec = (long)racer->pause_ns}, NULL);
	fake_complete(racer->call);
	return NULL;
}

/* An answer in time is followed by a later one, and the other way round: so
 * they come near the end of the wait, wherever that is on this machine. */

AWAIT_CASE(answer_and_end_of_the_wait_at_once)
{
	struct io *io = NULL;
	struct racer racer = {.pause_ns = CASYNC_AWAIT_MS * CASYNC_NS_PER_MS};
	uint64_t step_ns = racer.pause_ns / 2;
	unsigned int in_time = 0;
	pthread_t thread;

	fake.plan.when = FAKE_LATER;
	for (racer.call = 0; racer.call < RACES; racer.call++) {
		io = new_io(0, 100);
		rig.exp.await_not_before_ns = 0;
		assert_int_equal(pthread_create(&thread, NULL,
						answer_at_the_last_moment,
						&racer),
				 0);
		start_read(io);
		RIG_JOIN(thread, NULL);
		assert_true(rig_wait(&io->came));
		in_time += io->in_caller;
		racer.pause_ns += io->in_caller ? step_ns : -step_ns;
		if (step_ns > RACE_STEP_NS)
			step_ns /= 2;
		if (racer.call != RACES - 1)
			free_io(io);
	}
	print_message("%u of %d answers were in time\n", in_time, RACES);
	assert_in_range(in_time, 1, RACES - 1);
	sem_post(&io->came);
	settle(io);
	free_io(io);
}

/* --- a worker with something better to do than wait */

static sem_t in_submission[2], submit[2];
static sem_t queue_is_full, one_is_left;
static int submissions; /* atomic */

/* Those before fill the queue; the worker's own goes through when another one
 * was left in the queue; that one stops. */
static void stop_in_submission(void)
{
	int number = __atomic_add_fetch(&submissions, 1, __ATOMIC_ACQ_REL);

	if (number < CASYNC_QUEUE_THREADS) {
		sem_post(&in_submission[0]);
		(void)rig_wait(&submit[0]);
		sem_post(&submit[0]);
	} else if (number == CASYNC_QUEUE_THREADS + 1) {
		sem_post(&in_submission[1]);
		(void)rig_wait(&submit[1]);
	} else if (number == CASYNC_QUEUE_THREADS) {
		sem_post(&queue_is_full);
		(void)rig_wait(&one_is_left);
	}
}

static void *read_on_a_worker(void *io)
{
	op_ctx = &rig.request;
	start_read(io);
	return NULL;
}

AWAIT_CASE(worker_that_submits_for_others_is_not_waited_for)
{
	pthread_t threads[CASYNC_QUEUE_THREADS];
	struct io *ios[CASYNC_QUEUE_THREADS + 1];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sem_init(&in_submission[i], 0, 0);
		sem_init(&submit[i], 0, 0);
	}
	sem_init(&queue_is_full, 0, 0);
	sem_init(&one_is_left, 0, 0);
	submissions = 0;
	fake.plan.when = FAKE_LATER;
	fake.submission = stop_in_submission;
	for (i = 0; i < CASYNC_QUEUE_THREADS; i++) {
		ios[i] = new_io(i * 200, 100);
		assert_int_equal(pthread_create(&threads[i], NULL,
						read_on_a_worker, ios[i]),
				 0);
		if (i < CASYNC_QUEUE_THREADS - 1)
			assert_true(rig_wait(&in_submission[0]));
	}
	assert_true(rig_wait(&queue_is_full));
	/* Who is inside takes it along. */
	ios[i] = new_io(i * 200, 100);
	start_read(ios[i]);
	sem_post(&one_is_left);
	assert_true(rig_wait(&in_submission[1]));
	/* Its own is answered while it is stuck with the other one. */
	fake_complete(0);
	assert_true(rig_wait(&ios[CASYNC_QUEUE_THREADS - 1]->came));
	assert_false(waited_in_vain());

	sem_post(&submit[0]);
	sem_post(&submit[1]);
	for (i = 0; i < CASYNC_QUEUE_THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	fake_complete_in_order();
	sem_post(&ios[CASYNC_QUEUE_THREADS - 1]->came);
	for (i = 0; i <= CASYNC_QUEUE_THREADS; i++)
		assert_true(rig_wait(&ios[i]->came));
	sem_post(&ios[0]->came);
	settle(ios[0]);
	for (i = 0; i <= CASYNC_QUEUE_THREADS; i++) {
		check_ok(ios[i], 100);
		free_io(ios[i]);
	}
	for (i = 0; i < 2; i++) {
		sem_destroy(&in_submission[i]);
		sem_destroy(&submit[i]);
	}
	sem_destroy(&queue_is_full);
	sem_destroy(&one_is_left);
}
