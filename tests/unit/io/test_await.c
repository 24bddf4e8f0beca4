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

/* --- what else there is to submit does not keep the answer */

static sem_t inside[2], go_on[2];
static int submissions; /* atomic */

/* The first stops, and the second. */
static void stop_in_submission(void)
{
	int number = __atomic_fetch_add(&submissions, 1, __ATOMIC_ACQ_REL);

	sem_post(&inside[number]);
	(void)rig_wait(&go_on[number]);
}

struct worker {
	pthread_t thread;
	struct io *io;
	void (*start)(struct io *io);
};

static void start_a_write(struct io *io)
{
	start_write(io, true);
}

static void *submit_on_a_worker(void *arg)
{
	struct worker *worker = arg;

	op_ctx = &rig.request;
	worker->start(worker->io);
	return NULL;
}

/* The second one waits for the first one's submission, is submitted next, and
 * stops in that.  The worker that brought the first one answers it meanwhile. */
static void check_next_is_not_waited_for(void (*start)(struct io *io))
{
	struct worker worker = {.io = new_io(0, 100), .start = start};
	struct io *next = new_io(0, 100);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sem_init(&inside[i], 0, 0);
		sem_init(&go_on[i], 0, 0);
	}
	submissions = 0;
	fake.plan.when = FAKE_BEFORE_RETURN;
	fake.submission = stop_in_submission;
	assert_int_equal(pthread_create(&worker.thread, NULL,
					submit_on_a_worker, &worker),
			 0);
	assert_true(rig_wait(&inside[0]));
	start(next);
	assert_int_equal(NOW(submissions), 1);
	sem_post(&go_on[0]);
	assert_true(rig_wait(&inside[1]));
	RIG_JOIN(worker.thread, NULL);
	assert_int_equal(NOW(worker.io->calls), 1);
	assert_false(worker.io->on_completer);
	assert_false(waited_in_vain());

	sem_post(&go_on[1]);
	settle(next);
	check_ok(worker.io, 100);
	check_ok(next, 100);
	free_io(worker.io);
	free_io(next);
	for (i = 0; i < 2; i++) {
		sem_destroy(&inside[i]);
		sem_destroy(&go_on[i]);
	}
}

AWAIT_CASE(worker_does_not_submit_the_next_write)
{
	check_next_is_not_waited_for(start_a_write);
}

AWAIT_CASE(worker_does_not_submit_the_next_read)
{
	rig.obj->reads.most = 1;
	check_next_is_not_waited_for(start_read);
}
