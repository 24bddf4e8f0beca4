/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Ganesha ends, and its successor is to find the session: what is waited for,
 * and that nothing is released.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"
#include "sal_functions.h"

#include "clock.h"
#include "leave.h"
#include "mount.h"
#include "rig.h"
#include "pin.h"
#include "stub_mount.h"

#define TIMEOUT_S 20

static int stays, forgets;   /* atomic */
static bool keeper_ended;    /* atomic */
static bool keeper_hangs;    /* atomic */
static sem_t keeper_goes_on; /* a keeper that hangs */
static bool is_member;
static bool rados_hangs; /* atomic */
static int questions;	 /* atomic */

void casync_pin_module(void)
{
	__atomic_add_fetch(&stays, 1, __ATOMIC_ACQ_REL);
}

bool nfs_grace_is_member(void)
{
	bool answer = is_member;

	__atomic_add_fetch(&questions, 1, __ATOMIC_ACQ_REL);
	while (NOW(rados_hangs))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return answer;
}

static void forget(struct casync_mount *mount)
{
	assert_non_null(mount->client);
	__atomic_add_fetch(&forgets, 1, __ATOMIC_ACQ_REL);
}

static const struct casync_keeper_hooks hooks = {.forget = forget};

static void keep(struct casync_mount *mount)
{
	while (casync_deadline_call_pause(&mount->keeper.thread, 1000))
		;
	if (NOW(keeper_hangs))
		(void)rig_wait(&keeper_goes_on);
	/* It looks at nothing of the mount from then on. */
	__atomic_store_n(&keeper_ended, true, __ATOMIC_RELEASE);
}

static int up(void **state)
{
	int rc = rig_up(state);

	forgets = questions = 0;
	/* A thread that was left behind may pin the module late. */
	__atomic_store_n(&stays, 0, __ATOMIC_RELAXED);
	keeper_hangs = rados_hangs = keeper_ended = false;
	sem_init(&keeper_goes_on, 0, 0);
	is_member = true;
	admin_shutdown = true;
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	stub_mount.session.client = "admin@fs:/";
	stub_mount.uuid = "uuid";
	stub_mount.params.hooks = &hooks;
	stub_mount.clients_alive = 0;
	stub_mount.client =
		casync_client_new(&stub_mount.identity, &stub_mount);
	stub_mount.client->ceph = (struct ceph_mount_info *)&stub_mount;
	if (casync_deadline_call_start_thread(&stub_mount.keeper.thread, keep,
					      &stub_mount) != 0)
		return -1;
	return rc;
}

/* As mount.c ends the mount then. */
static int down(void **state)
{
	struct casync_client *client = stub_mount.client;

	admin_shutdown = false;
	(void)casync_deadline_call_stop_thread(&stub_mount.keeper.thread,
					       RIG_TIMEOUT_S);
	casync_deadline_call_free_thread(&stub_mount.keeper.thread);
	if (client != NULL)
		(void)casync_client_end(client, RIG_TIMEOUT_S);
	sem_destroy(&keeper_goes_on);
	stub_mount_set_phase(CASYNC_GUARD_SERVES);
	return NOW(stub_mount.clients_alive) == 0 ? rig_down(state) : -1;
}

#define CASE(test) TEST_WITH(test, up, down)

static enum casync_guard_phase phase(void)
{
	return casync_guard_phase(&stub_mount.guard);
}

static unsigned int flushes(void)
{
	return fake.blocking_calls[FAKE_SYNC_FS];
}

static bool leave(uint32_t timeout_s)
{
	return casync_leave_session(&stub_mount, timeout_s);
}

/* --- whether */

CASE(gateway_of_several_has_a_successor_at_its_end)
{
	assert_true(casync_leave_is_due(TIMEOUT_S));
	admin_shutdown = false;
	assert_false(casync_leave_is_due(TIMEOUT_S));
}

CASE(gateway_that_was_taken_off_the_list_has_none)
{
	is_member = false;
	assert_false(casync_leave_is_due(TIMEOUT_S));
}

CASE(single_gateway_has_none)
{
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_FS;
	assert_false(casync_leave_is_due(TIMEOUT_S));
	assert_int_equal(questions, 0);
}

/* --- a session that serves */

/* Nothing is cut before the MDS has said that it is journaled. */
static void flushed_while_connected(enum fake_blocking which)
{
	if (which != FAKE_SYNC_FS)
		return;
	assert_int_equal(fake.clients_aborted, 0);
	assert_false(casync_guard_enter_up_to(&stub_mount.guard,
					      CASYNC_GUARD_LEAVES));
}

CASE(session_is_flushed_and_cut)
{
	fake.hook = flushed_while_connected;
	assert_true(leave(TIMEOUT_S));
	assert_int_equal(flushes(), 1);
	assert_int_equal(fake.clients_aborted, 1);
	assert_int_equal(fake.clients_ended, 1);
	assert_null(stub_mount.client);
	assert_int_equal(phase(), CASYNC_GUARD_LEFT);
	assert_int_equal(NOW(forgets), 0);
}

/* The keeper has ended: nobody makes a new session. */
CASE(keeper_ends_first)
{
	assert_true(leave(TIMEOUT_S));
	assert_null(stub_mount.keeper.thread.call);
}

/* What the MDS refuses is in the log; the session is left all the same. */
CASE(flush_that_fails_does_not_end_the_session)
{
	fake.blocking_result[FAKE_SYNC_FS] = -EIO;
	assert_true(leave(TIMEOUT_S));
	assert_int_equal(fake.clients_aborted, 1);
	assert_true(stub_warned("Input/output error"));
}

static void *leave_on_thread(void *arg)
{
	*(bool *)arg = leave(TIMEOUT_S);
	return NULL;
}

/* Of another export of the mount, for instance. */
CASE(request_inside_is_waited_for)
{
	bool left = false;
	pthread_t thread;

	assert_true(casync_guard_enter(&stub_mount.guard));
	assert_int_equal(pthread_create(&thread, NULL, leave_on_thread, &left),
			 0);
	RIG_UNTIL(phase() == CASYNC_GUARD_LEFT);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	assert_int_equal(flushes(), 0);
	casync_guard_leave(&stub_mount.guard);
	RIG_JOIN(thread, NULL);
	assert_true(left);
	assert_int_equal(fake.clients_aborted, 1);
}

/* Its session stays too: the process ends without a word to the MDS. */
CASE(request_that_stays_inside_is_left)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	assert_false(leave(0));
	assert_int_equal(phase(), CASYNC_GUARD_LEFT);
	assert_int_equal(flushes(), 0);
	assert_int_equal(fake.clients_ended, 0);
	assert_true(NOW(stays) > 0);
	assert_int_equal(NOW(forgets), 1);
	casync_guard_leave(&stub_mount.guard);
}

CASE(keeper_that_hangs_is_left)
{
	__atomic_store_n(&keeper_hangs, true, __ATOMIC_RELEASE);
	assert_false(leave(0));
	assert_int_equal(phase(), CASYNC_GUARD_LEFT);
	assert_int_equal(fake.clients_ended, 0);
	/* mount.c would not touch it any more. */
	stub_mount.keeper.thread.call = NULL;
	sem_post(&keeper_goes_on);
	RIG_UNTIL(NOW(keeper_ended));
}

/* --- a session whose MDS is away */

CASE(mds_that_does_not_answer_keeps_nobody)
{
	rig_hold(FAKE_SYNC_FS);
	assert_true(leave(0));
	assert_int_equal(phase(), CASYNC_GUARD_LEFT);
	/* libcephfs calls back for no delegation that Ganesha frees. */
	assert_int_equal(NOW(forgets), 1);
	assert_non_null(stub_mount.client);
	assert_true(stub_mount.client->lost);
	assert_int_equal(fake.clients_ended, 0);
	/* It is cut when the call returns, if it does. */
	assert_false(casync_client_end(stub_mount.client, 0));
	stub_mount.client = NULL;
	sem_post(&rig_held.go);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_int_equal(fake.clients_aborted, 1);
	sem_destroy(&rig_held.go);
}

/* --- a session that is lost already */

static const struct lost_case {
	const char *name;
	enum casync_guard_phase phase;
} lost_cases[] = {
	{"lost_session_is_not_left", CASYNC_GUARD_LOST},
	{"client_that_is_being_left_is_not_asked", CASYNC_GUARD_LEAVES},
	{"client_out_of_use_is_not_asked", CASYNC_GUARD_CLOSED},
	{"client_that_was_given_up_is_not_asked", CASYNC_GUARD_GIVEN_UP},
};

TEST_ROWS(check_lost, lost_cases, up, down)
{
	const struct lost_case *c = *state;

	stub_mount_set_phase(c->phase);
	assert_true(leave(TIMEOUT_S));
	assert_int_equal(phase(), c->phase);
	assert_int_equal(flushes(), 0);
	assert_int_equal(fake.clients_ended, 0);
	assert_non_null(stub_mount.client);
}

/* Its locks are half taken: none of them is for others. */
CASE(session_that_was_just_made_is_left)
{
	stub_mount_set_phase(CASYNC_GUARD_RESTORES);
	assert_true(leave(TIMEOUT_S));
	assert_int_equal(phase(), CASYNC_GUARD_LEFT);
	assert_int_equal(fake.clients_aborted, 1);
}

/* --- the last case: its answer is kept */

CASE(rados_that_does_not_answer_is_asked_once)
{
	is_member = false;
	__atomic_store_n(&rados_hangs, true, __ATOMIC_RELEASE);
	assert_true(casync_leave_is_due(0));
	assert_true(casync_leave_is_due(TIMEOUT_S));
	__atomic_store_n(&rados_hangs, false, __ATOMIC_RELEASE);
	assert_true(casync_leave_is_due(TIMEOUT_S));
	RIG_UNTIL(NOW(questions) == 1);
}
