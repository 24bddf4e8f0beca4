/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What can run out: memory cannot (Ganesha's allocator aborts), threads can.
 * pthread_create() is wrapped by the linker and fails when told to.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "unit.h"

#include "complete.h"
#include "op.h"
#include "request.h"
#include "rig.h"
#include "stub_mount.h"
#include "watchdog.h"
#include "lane.h"

#define NO_LIMIT 1000
#define REQUESTS 20

static int threads_left = NO_LIMIT; /* atomic */
static int refused;		    /* atomic */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (__atomic_sub_fetch(&threads_left, 1, __ATOMIC_ACQ_REL) < 0) {
		__atomic_add_fetch(&refused, 1, __ATOMIC_ACQ_REL);
		return EAGAIN;
	}
	return __real_pthread_create(thread, attr, start, arg);
}

static void allow(int threads)
{
	__atomic_store_n(&threads_left, threads, __ATOMIC_RELEASE);
	__atomic_store_n(&refused, 0, __ATOMIC_RELEASE);
}

/* A start that fails leaves nothing behind, and the next one works.  (That
 * no thread is left is for ThreadSanitizer to see.) */
static void check_start(int (*begin)(void), void (*end)(void), int threads)
{
	int i;

	for (i = 0; i < threads; i++) {
		allow(i);
		assert_int_equal(begin(), -EAGAIN);
		end();
	}
	allow(NO_LIMIT);
	assert_int_equal(begin(), 0);
	end();
}

TEST(lanes_of_the_process_do_not_start)
{
	check_start(casync_lane_start_process, casync_lane_stop_process,
		    CASYNC_PROCESS_LANES - 1 + CASYNC_LANE_RECALLERS);
}

static int start_lanes_of_mount(void)
{
	return casync_lane_start_mount(stub_mount.lanes);
}

static void stop_lanes_of_mount(void)
{
	assert_true(casync_lane_stop_mount(stub_mount.lanes, RIG_TIMEOUT_S));
}

TEST(lanes_of_a_mount_do_not_start)
{
	check_start(start_lanes_of_mount, stop_lanes_of_mount,
		    CASYNC_MOUNT_LANES);
}

static int start_completers(void)
{
	return casync_complete_start(casync_finish);
}

TEST(completers_do_not_start)
{
	check_start(start_completers, casync_complete_stop, CASYNC_COMPLETERS);
}

TEST(watchdog_does_not_start)
{
	check_start(casync_watchdog_start, casync_watchdog_stop, 1);
}

static int up(void **state)
{
	int rc = request_up(state);

	allow(0);
	return rc;
}

static int down(void **state)
{
	allow(NO_LIMIT);
	return request_down(state);
}

/* Each has a temporary fd, which a worker closes: there is but one of its
 * lane. */
TEST_WITH(one_worker_does_it_all, up, down)
{
	struct io *ios[REQUESTS];
	unsigned int i;

	stub.global_fd_busy = true;
	fake.plan.when = FAKE_LATER;
	for (i = 0; i < REQUESTS; i++) {
		ios[i] = new_io(0, 100);
		start_read(ios[i]);
	}
	fake_complete_in_order();
	for (i = 0; i < REQUESTS; i++)
		assert_true(rig_wait(&ios[i]->came));
	sem_post(&ios[0]->came);
	settle(ios[0]);
	for (i = 0; i < REQUESTS; i++) {
		assert_int_equal(ios[i]->calls, 1);
		check_ok(ios[i], 100);
		free_io(ios[i]);
	}
	assert_int_equal(fake.open_fhs, 0);
}

/* All completion threads are held up in answers and no more can be had: who
 * comes then is answered when one is free again. */
TEST_WITH(answers_wait_where_no_thread_helps, up, down)
{
	struct io *ios[CASYNC_COMPLETERS + 1];
	const unsigned int last = CASYNC_COMPLETERS;
	unsigned int i;
	sem_t hold;

	sem_init(&hold, 0, 0);
	for (i = 0; i <= last; i++) {
		ios[i] = new_io(0, 100);
		if (i != last)
			ios[i]->hold = &hold;
		start_read(ios[i]);
		if (i != last)
			assert_true(rig_wait(&ios[i]->came));
	}
	RIG_UNTIL(NOW(refused) >= 1);
	assert_int_equal(ios[last]->calls, 0);
	for (i = 0; i < last; i++)
		sem_post(&hold);
	settle(ios[last]);
	for (i = 0; i <= last; i++)
		free_io(ios[i]);
	sem_destroy(&hold);
}
