/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "nfs_core.h"

#include "callers.h"
#include "rig.h"
#include "stub_mount.h"
#include "workers.h"

static uint32_t *inside(void)
{
	return &stub_mount.callers.lanes[CASYNC_LANE_COMPLETER].inside;
}

static int up(void **state)
{
	stub_mount_reset();
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	return 0;
}

struct room_case {
	uint32_t workers, mounts, room;
};

static void room_is_a_part_of_three_quarters(void **state)
{
	static const struct room_case cases[] = {
		{200, 1, 150}, {200, 2, 75}, {200, 5, 30}, {200, 6, 26},
		{200, 40, 26}, {16, 1, 12},  {16, 9, 3},   {2, 1, 1},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			casync_callers_room(cases[i].workers, cases[i].mounts),
			cases[i].room);
}

static void full_mount_refuses(void **state)
{
	stub_mounts = 2;
	*inside() = 74;
	assert_true(casync_callers_enter(&stub_mount));
	assert_int_equal(*inside(), 75);
	casync_callers_leave(&stub_mount);
	*inside() = 75;
	assert_false(casync_callers_enter(&stub_mount));
	assert_int_equal(*inside(), 75);
	/* It was not inside: the next one counts. */
	*inside() = 0;
	assert_true(casync_callers_enter(&stub_mount));
	assert_int_equal(*inside(), 1);
	casync_callers_leave(&stub_mount);
}

/* An operation that opens the file too. */
static void thread_inside_counts_once(void **state)
{
	assert_true(casync_callers_enter(&stub_mount));
	*inside() = 200;
	assert_true(casync_callers_enter(&stub_mount));
	assert_int_equal(*inside(), 200);
	casync_callers_leave(&stub_mount);
	assert_int_equal(*inside(), 200);
	casync_callers_leave(&stub_mount);
	assert_int_equal(*inside(), 199);
}

static void unlock_enters_a_full_mount(void **state)
{
	*inside() = 200;
	casync_callers_enter_anyway(&stub_mount);
	assert_int_equal(*inside(), 201);
	assert_true(casync_callers_enter(&stub_mount));
	casync_callers_leave(&stub_mount);
	casync_callers_leave(&stub_mount);
	assert_int_equal(*inside(), 200);
}

static void *enter_on_completer(void *unused)
{
	(void)unused;
	casync_on_thread_begin();
	if (!casync_callers_enter(&stub_mount))
		return NULL;
	casync_callers_leave(&stub_mount);
	return &stub_mount;
}

static void completion_threads_do_not_count(void **state)
{
	pthread_t thread;
	void *entered;

	*inside() = 200;
	assert_int_equal(
		pthread_create(&thread, NULL, enter_on_completer, NULL), 0);
	assert_int_equal(pthread_join(thread, &entered), 0);
	assert_ptr_equal(entered, &stub_mount);
	assert_int_equal(*inside(), 200);
}

#define CASE(name) cmocka_unit_test_setup(name, up)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(room_is_a_part_of_three_quarters),
		CASE(full_mount_refuses),
		CASE(thread_inside_counts_once),
		CASE(unlock_enters_a_full_mount),
		CASE(completion_threads_do_not_count),
	};

	return cmocka_run_group_tests_name("callers", tests, NULL, NULL);
}
