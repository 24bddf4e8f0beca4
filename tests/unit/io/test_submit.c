/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Each op is answered exactly once, whatever the order of events.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "complete.h"
#include "op.h"
#include "request.h"
#include "stub_mount.h"
#include "submit.h"

static void answer_twice(void)
{
	fake_special(0, (struct fake_plan){.when = FAKE_BEFORE_RETURN,
					   .result = FAKE_TRUE_RESULT,
					   .twice = true,
					   .second_result = RIG_OBJECT});
}

#ifdef CASYNC_DEBUG
CASE(second_completion_aborts_debug_build)
{
	int status;
	pid_t child;

	answer_twice();
	child = fork();
	if (child == 0) {
		start_read(new_io(0, RIG_OBJECT));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#else
CASE(second_completion_is_counted_and_ignored)
{
	struct io *io = new_io(0, RIG_OBJECT);

	answer_twice();
	start_read(io);
	settle(io);
	check_ok(io, RIG_OBJECT);
	check_bytes_read(io, RIG_OBJECT);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
	free_io(io);
}

CASE(second_completion_of_part_does_not_stand_for_other)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	fake.plan.when = FAKE_LATER;
	answer_twice();
	start_read(io);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
	assert_int_equal(rig.exp.inflight.ops, 1);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 2 * RIG_OBJECT);
	check_bytes_read(io, 2 * RIG_OBJECT);
	free_io(io);
}

/*
 * libcephfs stores io->result before it calls back, and that is the field
 * the result is kept in: the guard drops the second completion, but its
 * result has replaced the first one's.
 */
CASE(second_completion_leaves_first_result)
{
	struct io *io;

	io = new_io(0, 2 * RIG_OBJECT);
	fake.plan.when = FAKE_LATER;
	fake_special(0, (struct fake_plan){.when = FAKE_BEFORE_RETURN,
					   .result = -EIO,
					   .twice = true,
					   .second_result = RIG_OBJECT});
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

static void complete_twice(uint64_t offset, int64_t second_result)
{
	unsigned int call = fake.call_count;
	struct io *io = new_io(offset, RIG_OBJECT);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	fake_complete(call);
	assert_true(rig_wait(&io->came));
	fake_complete_again(call, second_result);
	free_io(io);
}

CASE(second_completion_after_the_answer_is_counted)
{
	complete_twice(OBJ, -EIO);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
}

CASE(each_second_completion_is_counted)
{
	const unsigned int many = 40;
	unsigned int i;

	for (i = 0; i < many; i++)
		complete_twice(0, 7);
	assert_int_equal(casync_submit_duplicates() - duplicates_before, many);
}

/* The watchdog looks ten times a second. */
CASE(second_completion_is_logged)
{
	complete_twice(OBJ, -EIO);
	RIG_UNTIL(stub_warned("a second completion is ignored: 1 in the "));
}
#endif

CASE(completion_and_return_both_are_one_answer)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	/* Three of the five ways of answering, in one request. */
	fake_special(0,
		     (struct fake_plan){FAKE_RETURNED, FAKE_TRUE_RESULT, 0, 0});
	fake_special(
		1, (struct fake_plan){FAKE_ON_THREAD, FAKE_TRUE_RESULT, 0, 0});
	fake_special(2, (struct fake_plan){FAKE_LATER, FAKE_TRUE_RESULT, 0, 0});
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 3 * RIG_OBJECT);
	check_bytes_read(io, 3 * RIG_OBJECT);
	free_io(io);
}

/* The last reference on the object may go in done. */
CASE(object_may_go_in_done)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	/* Closing it waits for Ceph; here it is the test that does. */
	fake.hook = NULL;
	io->frees_object = true;
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

/* And with it the share of READs, which the submitting thread has yet to leave.
 */
CASE(object_may_go_while_it_is_being_submitted)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_ON_THREAD;
	fake.hook = NULL;
	io->frees_object = true;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

/* Somebody else has the lock that the submitting thread takes when it leaves:
 * that of the queue for a WRITE, that of the lane for a READ, if another READ of
 * the file waits. */
static pthread_mutex_t *lock;
static sem_t lock_taken;
static sem_t lock_free;
static struct casync_work waiting_read;

static void run_nothing(struct casync_work *work)
{
	(void)work;
}

static void *take_lock(void *unused)
{
	pthread_mutex_lock(lock);
	sem_post(&lock_taken); /* for the submitter */
	sem_post(&lock_taken); /* and the test */
	(void)rig_wait(&lock_free);
	pthread_mutex_unlock(lock);
	return unused;
}

static pthread_t taker;

static void have_lock_taken(void)
{
	fake.submission = NULL;
	assert_int_equal(pthread_create(&taker, NULL, take_lock, NULL), 0);
	assert_true(rig_wait(&lock_taken));
}

/* As if the file had as many READs in submission as may be, and one more. */
static void have_another_wait(void)
{
	waiting_read.run = run_nothing;
	rig.obj->reads.waiting = &waiting_read;
	rig.obj->reads.users += CASYNC_LANE_SHARE;
	have_lock_taken();
}

static void *submit_read(void *io)
{
	op_ctx = &rig.request;
	start_read(io);
	return NULL;
}

static void *submit_write(void *io)
{
	op_ctx = &rig.request;
	start_write(io, false);
	return NULL;
}

/* The answer may take the file away: it waits until the thread is out. */
static void check_answer_waits(void *(*submit)(void *io), void (*inside)(void))
{
	const struct timespec pause = {.tv_nsec = 50000000};
	struct io *io = new_io(0, 100);
	pthread_t submitter;

	sem_init(&lock_taken, 0, 0);
	sem_init(&lock_free, 0, 0);
	fake.submission = inside;
	fake.hook = NULL;
	io->frees_object = true;
	assert_int_equal(pthread_create(&submitter, NULL, submit, io), 0);
	assert_true(rig_wait(&lock_taken));
	nanosleep(&pause, NULL);
	assert_int_equal(__atomic_load_n(&io->calls, __ATOMIC_ACQUIRE), 0);
	sem_post(&lock_free);
	RIG_JOIN(submitter, NULL);
	RIG_JOIN(taker, NULL);
	settle(io);
	check_ok(io, 100);
	free_io(io);
	sem_destroy(&lock_taken);
	sem_destroy(&lock_free);
}

CASE(answer_waits_for_the_thread_that_leaves_the_queue)
{
	lock = &rig.obj->queue.lock;
	check_answer_waits(submit_write, have_lock_taken);
}

CASE(answer_waits_for_the_thread_that_hands_its_place_over)
{
	lock = &stub_mount.lanes[CASYNC_LANE_SUBMIT].lock;
	check_answer_waits(submit_read, have_another_wait);
}

CASE(object_may_go_in_done_after_flush)
{
	struct io *io = new_io(0, 100);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	io->frees_object = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

CASE(object_may_go_in_done_with_temporary_fd)
{
	struct io *io = new_io(0, 100);

	stub.global_fd_busy = true;
	io->frees_object = true;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

#define CROWD 60

CASE(crowd_is_answered_once_each)
{
	struct io *ios[CROWD];
	unsigned int i;

	fake.plan.when = FAKE_ON_THREAD;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake_punch(1);
	for (i = 0; i < CROWD; i++) {
		/* Writes and reads of the same bytes would be a race. */
		ios[i] = new_io(i % 3 == 0 ? 3 * OBJ : 0,
				i % 3 == 0 ? 500 : 3 * RIG_OBJECT);
		if (i % 3 == 0)
			start_write(ios[i], i % 2 == 0);
		else
			start_read(ios[i]);
	}
	for (i = 0; i < CROWD; i++)
		assert_true(rig_wait(&ios[i]->came));
	sem_post(&ios[0]->came);
	settle(ios[0]);
	for (i = 0; i < CROWD; i++) {
		assert_int_equal(ios[i]->calls, 1);
		check_ok(ios[i], asked_bytes(&ios[i]->arg));
		if (i % 3 != 0)
			check_bytes_read(ios[i], 3 * RIG_OBJECT);
		free_io(ios[i]);
	}
	assert_int_equal(casync_submit_duplicates(), duplicates_before);
}

/*
 * Unexport waits for the end of I/O under locks that done_cb takes (op.h).
 * With as many answers held up as there are completion threads, no further
 * fsal_complete_io() comes, and both wait for ever.
 */
CASE(answers_held_up_leave_io_of_others_to_end)
{
	struct io *ios[CASYNC_COMPLETERS + 1];
	const unsigned int last = CASYNC_COMPLETERS;
	sem_t hold;
	unsigned int i;
	bool ended;

	sem_init(&hold, 0, 0);
	for (i = 0; i <= last; i++) {
		ios[i] = new_io(0, 100);
		if (i != last)
			ios[i]->hold = &hold;
		start_read(ios[i]);
		if (i != last)
			assert_true(rig_wait(&ios[i]->came));
	}
	ended = RIG_COMES(stub_ios_completed() == (int)last + 1);
	for (i = 0; i < last; i++)
		sem_post(&hold);
	assert_true(rig_wait(&ios[last]->came));
	stop_threads();
	for (i = 0; i <= last; i++)
		free_io(ios[i]);
	sem_destroy(&hold);
	assert_true(ended);
}

static pthread_t submitter;
static uint32_t inside_then;

static void note_submitter(void)
{
	submitter = pthread_self();
	inside_then = __atomic_load_n(&stub_mount.callers.room.inside,
				      __ATOMIC_SEQ_CST);
}

/* Is it the thread that brought the request? */
static bool submits_itself(bool write)
{
	struct io *io = new_io(0, RIG_OBJECT);

	if (write)
		start_write(io, true);
	else
		start_read(io);
	assert_true(rig_wait(&io->came));
	check_ok(io, RIG_OBJECT);
	assert_int_equal(io->calls, 1);
	free_io(io);
	return pthread_equal(submitter, pthread_self());
}

/* It waits for capabilities: a worker of Ganesha's needs a slot for it. */
CASE(without_a_slot_another_thread_submits)
{
	const uint32_t half = 75;
	uint32_t *inside = &stub_mount.callers.room.inside;
	int write;

	fake.submission = note_submitter;
	for (write = 0; write < 2; write++) {
		assert_true(submits_itself(write));
		assert_int_equal(inside_then, 1);
		assert_int_equal(*inside, 0);
		*inside = half;
		assert_false(submits_itself(write));
		assert_int_equal(*inside, half);
		*inside = 0;
	}
	fake.submission = NULL;
}
