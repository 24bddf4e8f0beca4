/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What waits for its turn: a COMMIT of a new file for the flush that its first
 * data wait for, and a READ whose file becomes shorter before it is submitted.
 */
#include "config.h"

#include <time.h>

#include "unit.h"

#include "request.h"

static sem_t begun, let_through, flushed;
/* Atomic: flushes in libcephfs. */
static int inside, most_inside;

/* A flush stops in libcephfs until it is let through. */
static void stop_flush(enum fake_blocking which)
{
	int now;

	if (which != FAKE_SYNC_INODE)
		return;
	now = __atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL);
	if (now > __atomic_load_n(&most_inside, __ATOMIC_ACQUIRE))
		__atomic_store_n(&most_inside, now, __ATOMIC_RELEASE);
	sem_post(&begun);
	(void)rig_wait(&let_through);
	__atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
}

static int up(void **state)
{
	int rc = request_up(state);

	sem_init(&begun, 0, 0);
	sem_init(&let_through, 0, 0);
	sem_init(&flushed, 0, 0);
	inside = 0;
	most_inside = 0;
	in_blocking = stop_flush;
	return rc;
}

static int down(void **state)
{
	int rc = request_down(state);

	sem_destroy(&begun);
	sem_destroy(&let_through);
	sem_destroy(&flushed);
	return rc;
}

static void done(struct casync_flush_waiter *waiter, int rc)
{
	assert_int_equal(rc, 0);
	sem_post(&flushed);
}

static struct casync_flush_waiter waiter = {.done = done};

/* Time for a second flush, if there were one, to begin. */
static void linger(void)
{
	const struct timespec time = {.tv_nsec = 20000000};

	nanosleep(&time, NULL);
}

TEST_WITH(commit_waits_for_the_flush_of_the_first_data, up, down)
{
	struct io *io = new_io(0, 100);

	casync_queue_mark_new(&rig.obj->queue);
	start_write(io, false);
	assert_true(rig_wait(&begun));
	casync_flush_request(rig.obj, &waiter);
	linger();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	/* Its own comes then: the first one knew nothing of it. */
	sem_post(&let_through);
	assert_true(rig_wait(&begun));
	sem_post(&let_through);
	assert_true(rig_wait(&flushed));
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	assert_int_equal(most_inside, 1);
	free_io(io);
}

TEST_WITH(first_data_wait_for_the_flush_of_a_commit, up, down)
{
	struct io *io = new_io(0, 100);

	casync_queue_mark_new(&rig.obj->queue);
	casync_flush_request(rig.obj, &waiter);
	assert_true(rig_wait(&begun));
	start_write(io, false);
	linger();
	assert_int_equal(fake_call_count(), 0);
	sem_post(&let_through);
	assert_true(rig_wait(&flushed));
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(io);
}

/* Neither begins while WRITEs are in flight, and then it is one. */
TEST_WITH(flush_that_waits_for_writes_is_begun_once, up, down)
{
	struct io *before = new_io(OBJ, 100);
	struct io *first = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_write(before, false);
	casync_queue_mark_new(&rig.obj->queue);
	start_write(first, false);
	casync_flush_request(rig.obj, &waiter);
	linger();
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	fake.plan.when = FAKE_BEFORE_RETURN;
	fake_complete_in_order();
	assert_true(rig_wait(&begun));
	sem_post(&let_through);
	assert_true(rig_wait(&flushed));
	assert_true(rig_wait(&before->came));
	settle(first);
	check_ok(before, 100);
	check_ok(first, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	free_io(before);
	free_io(first);
}

static uint64_t count_of(unsigned int counter)
{
	static struct casync_view totals;

	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.numbers[counter];
}

static void cut(enum fake_blocking which)
{
	if (which != FAKE_OPEN)
		return;
	fake.size_bytes = 50;
	rig_set_size(50);
}

/* Past the end a non-blocking READ may be lost, so libcephfs does not get it.  It
 * is counted as one of the blocking call, not as a short one. */
TEST_WITH(read_whose_file_is_cut_before_its_turn_is_not_submitted, up, down)
{
	struct io *io = new_io(0, 100);

	in_blocking = cut;
	start_read(io);
	settle(io);
	check_ok(io, 50);
	check_bytes_read(io, 50);
	assert_true(io->arg.end_of_file);
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(count_of(CASYNC_C_BLOCKING_READS), 1);
	assert_int_equal(count_of(CASYNC_C_SHORT_READS), 0);
	free_io(io);
}
