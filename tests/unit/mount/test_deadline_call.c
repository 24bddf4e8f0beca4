/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"

#include "deadline_call.h"
#include "module.h"
#include "pin.h"

struct call {
	struct casync_deadline_call bounded;
	sem_t *hold; /* waited for, if there is one */
	int rc;
};

static int stays;
static int ended; /* atomic */

/* A call that is left behind, its thread, and its memory when that is freed. */
static struct {
	struct casync_deadline_call *call; /* atomic */
	sem_t hold;
	bool freed; /* atomic */
} left;

void casync_pin_module(void)
{
	stays++;
}

static int run(struct casync_deadline_call *bounded)
{
	struct call *call = container_of(bounded, struct call, bounded);

	if (call->hold != NULL && !rig_wait(call->hold))
		return -EIO;
	__atomic_add_fetch(&ended, 1, __ATOMIC_ACQ_REL);
	return call->rc;
}

/* The call frees itself: a sanitizer sees it if not. */
static struct casync_deadline_call *new_call(sem_t *hold, int rc)
{
	struct call *call = gsh_calloc(1, sizeof(*call));

	call->bounded.run = run;
	call->hold = hold;
	call->rc = rc;
	return &call->bounded;
}

static int make_call(sem_t *hold, int rc, uint32_t timeout_s)
{
	return casync_deadline_call_run(new_call(hold, rc), timeout_s);
}

static int up(void **state)
{
	stays = 0;
	ended = 0;
	return 0;
}

void __wrap_free(void *memory);
void __real_free(void *memory);

void __wrap_free(void *memory)
{
	bool is_left = memory != NULL && memory == NOW(left.call);

	/* Who still looks at it sees that it has changed. */
	if (is_left)
		memset(memory, 0, sizeof(struct call));
	__real_free(memory);
	if (is_left)
		__atomic_store_n(&left.freed, true, __ATOMIC_RELEASE);
}

#define CASE(test) TEST_WITH(test, up, NULL)

CASE(result_is_the_calls)
{
	assert_int_equal(make_call(NULL, 0, 10), 0);
	assert_int_equal(make_call(NULL, -EPERM, 10), -EPERM);
	assert_int_equal(make_call(NULL, 7, 10), 7);
	assert_int_equal(ended, 3);
	assert_int_equal(stays, 0);
}

CASE(call_that_does_not_end_is_left_behind)
{
	struct timespec began, now;
	sem_t hold;

	sem_init(&hold, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_int_equal(make_call(&hold, 0, 1), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &now);
	assert_in_range(now.tv_sec - began.tv_sec, 1, 5);
	/* Its text must stay for it. */
	assert_int_equal(stays, 1);
	assert_int_equal(__atomic_load_n(&ended, __ATOMIC_ACQUIRE), 0);

	/* It comes back all the same. */
	sem_post(&hold);
	RIG_UNTIL(NOW(ended) >= 1);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	sem_destroy(&hold);
}

/* Whoever has left it still runs the end of its own function. */
static void free_what_is_left(pthread_mutex_t *mutex)
{
	if (mutex != &left.call->lock || !left.call->abandoned)
		return;
	rig_after_unlock = NULL;
	sem_post(&left.hold);
	RIG_UNTIL(NOW(left.freed));
}

CASE(call_that_is_left_may_be_freed_at_once)
{
	sem_init(&left.hold, 0, 0);
	__atomic_store_n(&left.call, new_call(&left.hold, 0), __ATOMIC_RELEASE);
	rig_after_unlock = free_what_is_left;
	assert_int_equal(casync_deadline_call_run(left.call, 0), -ETIMEDOUT);
	assert_true(left.freed);
	assert_int_equal(stays, 1);
	sem_destroy(&left.hold);
	__atomic_store_n(&left.call, NULL, __ATOMIC_RELEASE);
}

CASE(others_do_not_wait_for_the_one_left_behind)
{
	sem_t hold;

	sem_init(&hold, 0, 0);
	assert_int_equal(make_call(&hold, 0, 1), -ETIMEDOUT);
	assert_int_equal(make_call(NULL, 0, 10), 0);
	sem_post(&hold);
	RIG_UNTIL(NOW(ended) >= 2);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	sem_destroy(&hold);
}

CASE(calls_run_side_by_side)
{
	struct casync_deadline_call *first, *second;
	sem_t hold;

	sem_init(&hold, 0, 0);
	first = new_call(&hold, -EIO);
	second = new_call(NULL, 7);
	assert_int_equal(casync_deadline_call_begin(first), 0);
	assert_int_equal(casync_deadline_call_begin(second), 0);
	/* The second one comes to its end while the first one does not. */
	RIG_UNTIL(NOW(ended) >= 1);
	sem_post(&hold);
	assert_int_equal(casync_deadline_call_end(first, 10), -EIO);
	assert_int_equal(casync_deadline_call_end(second, 10), 7);
	assert_int_equal(stays, 0);
	sem_destroy(&hold);
}
