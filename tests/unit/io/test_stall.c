/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A file whose submissions do not return (libcephfs waits for capabilities)
 * keeps a few workers and no more, and no request is lost over it.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "complete.h"
#include "ganesha_unit.h"
#include "op.h"
#include "obj_ops.h"
#include "pool_look.h"
#include "rig.h"
#include "rig_lanes.h"
#include "watchdog.h"

#define WORKERS 40
#define IO_BYTES 256U

/* One worker of Ganesha's with one request. */
struct worker {
	pthread_t thread;
	struct fsal_io_arg arg;
	struct iovec iov;
	uint8_t buffer[IO_BYTES];
	bool writes;
	fsal_status_t status; /* of the answer */
};

static struct worker workers[WORKERS];
static int free_workers; /* returned from the call; atomic */
static int answers;	 /* atomic */
static int stuck;	 /* threads in the submission; atomic */
static sem_t unstuck;

static void wait_for_caps(void)
{
	__atomic_add_fetch(&stuck, 1, __ATOMIC_ACQ_REL);
	assert_true(rig_wait(&unstuck));
	sem_post(&unstuck); /* for the next one */
}

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	struct worker *worker = caller_data;

	(void)obj;
	(void)obj_data;
	worker->status = status;
	__atomic_add_fetch(&answers, 1, __ATOMIC_ACQ_REL);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	op_ctx = &rig.request;
	if (worker->writes)
		casync_write2(&rig.obj->handle, false, done, &worker->arg,
			      worker);
	else
		casync_read2(&rig.obj->handle, false, done, &worker->arg,
			     worker);
	__atomic_add_fetch(&free_workers, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

static int up(void **state)
{
	rig_up(state);
	memset(workers, 0, sizeof(workers));
	free_workers = 0;
	answers = 0;
	stuck = 0;
	sem_init(&unstuck, 0, 0);
	/* Opened before: opening is not what is tested here. */
	if (rig_lanes_up() != 0 || casync_complete_start(casync_finish) != 0)
		return -1;
	return casync_watchdog_start();
}

static int down(void **state)
{
	casync_watchdog_stop();
	casync_complete_stop();
	rig_lanes_down();
	assert_int_equal(pool_in_use(rig.exp.pool), 0);
	sem_destroy(&unstuck);
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static void start_all(bool write)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		struct worker *worker = &workers[i];

		/* Within what is there, so that nothing is short, and apart, so
		 * that none waits for another. */
		worker->arg.offset = i * IO_BYTES;
		set_buffers(&worker->arg, &worker->iov, IO_BYTES);
		worker->arg.iov_count = 1;
		worker->iov.iov_base = worker->buffer;
		worker->iov.iov_len = IO_BYTES;
		worker->writes = write;
		assert_int_equal(
			pthread_create(&worker->thread, NULL, work, worker), 0);
	}
}

static void join_all(void)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		RIG_JOIN(workers[i].thread, NULL);
}

static void check_stall(bool write, enum fake_when when)
{
	unsigned int i;

	fake.plan.when = when;
	fake.submission = wait_for_caps;
	start_all(write);

	/* All but a few are free again though none has been answered. */
	RIG_UNTIL(NOW(free_workers) >= WORKERS - CASYNC_QUEUE_THREADS);
	RIG_UNTIL(NOW(stuck) >= CASYNC_QUEUE_THREADS);
	assert_int_equal(free_workers, WORKERS - CASYNC_QUEUE_THREADS);
	assert_int_equal(stuck, CASYNC_QUEUE_THREADS);
	assert_int_equal(answers, 0);
	assert_int_equal(rig.exp.inflight.ops, WORKERS);

	sem_post(&unstuck);
	RIG_UNTIL(NOW(answers) >= WORKERS);
	join_all();
	fake_join();
	assert_int_equal(answers, WORKERS);
	assert_int_equal(fake.call_count, WORKERS);
	for (i = 0; i < WORKERS; i++) {
		assert_int_equal(workers[i].status.major, ERR_FSAL_NO_ERROR);
		assert_int_equal(workers[i].arg.io_amount, IO_BYTES);
	}
}

CASE(stalled_reads_keep_few_workers)
{
	check_stall(false, FAKE_ON_THREAD);
}

CASE(stalled_writes_keep_few_workers)
{
	check_stall(true, FAKE_ON_THREAD);
}

/* The answer may come, and with it the end of the op, before the thread that
 * submitted it is back. */
CASE(answers_before_return_are_no_danger_to_the_gate)
{
	check_stall(false, FAKE_BEFORE_RETURN);
}
