/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The life of a client: who holds it, and that it ends once, when nobody does.
 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"

#include "client.h"
#include "mount.h"
#include "rig.h"
#include "pin.h"
#include "stub_mount.h"

#define SESSION "a node's"

static struct casync_client *client;
static struct casync_mount_params params;

/* The real one may write a line, on a thread that no case waits for. */
void casync_pin_module(void)
{
}

static int up(void **state)
{
	int rc = rig_up(state);

	stub_mount.session.client = "admin@fs:/";
	stub_mount.clients_alive = 0;
	stub_mount.client = NULL;
	params = (struct casync_mount_params){.timeout_s = 10};
	client = casync_client_new(&stub_mount.identity, &stub_mount);
	client->ceph = (struct ceph_mount_info *)&client;
	return rc;
}

/* A sanitizer sees a client that is not freed. */
static int down(void **state)
{
	return NOW(stub_mount.clients_alive) == 0 ? rig_down(state) : -1;
}

#define CASE(test) TEST_WITH(test, up, down)

static int ended(void)
{
	return fake.clients_ended;
}

/* Time for a thread to do what it must not. */
static void linger(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

CASE(last_reference_ends_it)
{
	casync_client_hold(client);
	casync_client_hold(client);
	casync_client_put(client);
	casync_client_put(client);
	linger();
	assert_int_equal(ended(), 0);
	assert_int_equal(NOW(stub_mount.clients_alive), 1);
	casync_client_put(client);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_int_equal(ended(), 1);
}

CASE(end_is_waited_for)
{
	assert_true(casync_client_end(client, 10));
	assert_int_equal(stub_mount.clients_alive, 0);
	assert_int_equal(ended(), 1);
}

CASE(client_of_others_is_not_waited_for)
{
	casync_client_hold(client);
	assert_false(casync_client_end(client, 10));
	assert_int_equal(ended(), 0);
	assert_true(casync_client_end(client, 10));
	assert_int_equal(ended(), 1);
}

CASE(clients_end_side_by_side)
{
	struct casync_client *other =
		casync_client_new(&stub_mount.identity, &stub_mount);

	other->ceph = client->ceph;
	client = casync_client_drop(client);
	other = casync_client_drop(other);
	assert_true(casync_client_await(other, 10));
	assert_true(casync_client_await(client, 10));
	assert_int_equal(ended(), 2);
}

/* --- a call that may never return */

static int reclaim(uint32_t timeout_s)
{
	params.timeout_s = timeout_s;
	return casync_client_reclaim(client, &params, SESSION);
}

static void check_answer(int result, unsigned int finished)
{
	fake.reclaims_finished = 0;
	fake.blocking_result[FAKE_START_RECLAIM] = result;
	assert_int_equal(reclaim(10), result);
	assert_string_equal(fake.reclaimed, SESSION);
	assert_int_equal(fake.reclaims_finished, finished);
	assert_int_equal(NOW(client->users), 1);
}

CASE(session_is_reclaimed)
{
	check_answer(0, 1);
	check_answer(-ENOENT, 1);
	check_answer(-EPERM, 0);
	assert_int_equal(stub_mount.clients_reclaiming, 0);
	assert_true(casync_client_end(client, 10));
}

CASE(client_with_a_call_inside_is_not_released)
{
	rig_hold(FAKE_START_RECLAIM);
	assert_int_equal(reclaim(0), -ETIMEDOUT);
	assert_int_equal(NOW(stub_mount.clients_reclaiming), 1);
	assert_false(casync_client_end(client, 10));
	linger();
	assert_int_equal(ended(), 0);
	assert_int_equal(NOW(stub_mount.clients_alive), 1);

	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_int_equal(ended(), 1);
	assert_int_equal(fake.reclaims_finished, 1);
	assert_int_equal(stub_mount.clients_reclaiming, 0);
	sem_destroy(&rig_held.go);
}

/* A client that READs were left with, and that a call is inside of. */
CASE(last_read_does_not_end_it_under_a_call)
{
	rig_hold(FAKE_START_RECLAIM);
	assert_int_equal(reclaim(0), -ETIMEDOUT);
	casync_client_hold(client);
	client->reads_left = 1;
	client->lost = true;
	assert_false(casync_client_end(client, 10));
	casync_client_put(client);
	linger();
	assert_int_equal(ended(), 0);

	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_int_equal(ended(), 1);
	sem_destroy(&rig_held.go);
}

static void *let_it_return(void *unused)
{
	linger();
	sem_post(&rig_held.go);
	return NULL;
}

/* It is of no mount: none is kept for it.  A start waits for it, as it may be
 * for the name of an export of a former run. */
CASE(session_of_another_node_counts_for_no_mount)
{
	pthread_t thread;
	struct casync_client *other =
		casync_client_new(&stub_mount.identity, NULL);

	assert_int_equal(stub_mount.clients_alive, 1);
	rig_hold(FAKE_START_RECLAIM);
	params.timeout_s = 0;
	assert_int_equal(casync_client_reclaim(other, &params, SESSION),
			 -ETIMEDOUT);
	assert_int_equal(stub_mount.clients_reclaiming, 0);
	assert_false(casync_client_end(other, 0));
	casync_client_wait_for_late_reclaims(&stub_mount, false);
	assert_int_equal(fake.reclaims_finished, 0);
	assert_int_equal(pthread_create(&thread, NULL, let_it_return, NULL), 0);
	casync_client_wait_for_late_reclaims(&stub_mount, true);
	assert_int_equal(fake.reclaims_finished, 1);
	RIG_JOIN(thread, NULL);
	assert_true(casync_client_end(client, 10));
	linger();
	sem_destroy(&rig_held.go);
}

CASE(mds_is_asked_to_journal_what_it_changed)
{
	assert_int_equal(casync_client_sync(client, 10), 0);
	fake.blocking_result[FAKE_SYNC_FS] = -EIO;
	assert_int_equal(casync_client_sync(client, 10), -EIO);
	assert_int_equal(fake.blocking_calls[FAKE_SYNC_FS], 2);
	assert_int_equal(NOW(client->users), 1);
	assert_true(casync_client_end(client, 10));
}

CASE(client_that_is_still_asking_is_not_released)
{
	rig_hold(FAKE_SYNC_FS);
	assert_int_equal(casync_client_sync(client, 0), -ETIMEDOUT);
	assert_false(casync_client_end(client, 10));
	linger();
	assert_int_equal(ended(), 0);
	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_int_equal(ended(), 1);
	sem_destroy(&rig_held.go);
}

/* --- how many may be left */

CASE(clients_that_are_left_are_bounded)
{
	unsigned int i;

	for (i = 1; i <= CASYNC_CLIENTS_LEFT_MAX; i++) {
		stub_mount.clients_alive = i;
		assert_true(casync_client_may_be_left(&stub_mount));
	}
	stub_mount.clients_alive = CASYNC_CLIENTS_LEFT_MAX + 1;
	assert_false(casync_client_may_be_left(&stub_mount));
	/* One of them has no READs. */
	stub_mount.clients_reclaiming = 1;
	assert_true(casync_client_may_be_left(&stub_mount));
	stub_mount.clients_reclaiming = 0;
	stub_mount.clients_alive = 1;
	assert_true(casync_client_end(client, 10));
}
