/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the client is answered when a call begins and when it ends.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "call_rig.h"
#include "clock.h"
#include "errors.h"
#include "ganesha_unit.h"
#include "stub_mount.h"

/* --- answers */

static void *end_call(void *unused)
{
	return FSAL_IS_ERROR(casync_call_end(&call, good)) ? &stub_mount : NULL;
}

/* As a READ's and a WRITE's. */
CALL_CASE(another_thread_ends_a_call)
{
	assert_int_equal(
		begin(CASYNC_CALL_CLIENT | CASYNC_CALL_ANNOUNCES).major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(writers(), 1);
	run(end_call);
	assert_int_equal(writers(), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	/* This thread has no slot left over from it. */
	assert_int_equal(take(CASYNC_CALL_MOUNT_SLOT), 0);
	assert_int_equal(*mount_inside(), 1);
	casync_call_drop(&call);
}

/* --- what Linux would not repeat */

static const fsal_status_t delay = {ERR_FSAL_DELAY, EAGAIN};

/* How a request goes on: it is repeated, not answered, or answered so. */
enum { REPEATED = -1 };

static int goes_on(fsal_status_t status)
{
	return casync_call_is_to_repeat(&status) ? REPEATED : (int)status.major;
}

/* Of each case. */
static uint64_t began_ns;
static uint64_t ahead_ns; /* of the true time */
static bool hold_pauses;  /* atomic */
static int pauses;	  /* atomic */
static int returned;	  /* atomic */

#define ALL_REPEATERS (4 * CASYNC_CALL_REPEATERS)

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (clock == CLOCK_MONOTONIC)
		now->tv_sec += (time_t)(ahead_ns / CASYNC_NS_PER_S);
	return rc;
}

int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
	if (NOW(hold_pauses) &&
	    pause->tv_nsec == CASYNC_CALL_REPEAT_PAUSE_MS * CASYNC_NS_PER_MS) {
		__atomic_add_fetch(&pauses, 1, __ATOMIC_ACQ_REL);
		/* Until all others are answered. */
		(void)RIG_COMES(NOW(returned) >=
				ALL_REPEATERS - CASYNC_CALL_REPEATERS);
	}
	return __real_nanosleep(pause, left);
}

/* The time of repetitions begins anew: the last one was a minute ago. */
static int repeat_up(void **state)
{
	static uint64_t minutes;

	minutes += 2;
	ahead_ns = minutes * 60 * CASYNC_NS_PER_S;
	began_ns = casync_clock_ns();
	return call_up(state);
}

static int repeat_down(void **state)
{
	ahead_ns = 0;
	return call_down(state);
}

#define REPEAT_CASE(test) TEST_WITH(test, repeat_up, repeat_down)

REPEAT_CASE(getacl_is_repeated_after_a_pause)
{
	struct nfs_request request = {0};

	assert_int_equal(goes_on(delay), ERR_FSAL_DELAY);
	set_nfsacl(&request);
	assert_int_equal(goes_on(good), ERR_FSAL_NO_ERROR);
	assert_int_equal(goes_on(fsalstat(ERR_FSAL_IO, EIO)), ERR_FSAL_IO);
	assert_int_equal(goes_on(delay), REPEATED);
	assert_true(casync_clock_ns() - began_ns >=
		    CASYNC_CALL_REPEAT_PAUSE_MS * CASYNC_NS_PER_MS);
}

static void *repeat_once(void *unused)
{
	struct nfs_request request = {0};
	bool waited;

	set_nfsacl(&request);
	waited = goes_on(delay) == REPEATED;
	if (!waited)
		__atomic_add_fetch(&returned, 1, __ATOMIC_ACQ_REL);
	return waited ? &stub_mount : NULL;
}

/* No pause ends before the others are answered. */
REPEAT_CASE(few_workers_wait_for_that)
{
	pthread_t threads[ALL_REPEATERS];
	unsigned int i, waited = 0;
	void *result;

	pauses = returned = 0;
	hold_pauses = true;
	for (i = 0; i < ALL_REPEATERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, repeat_once, NULL),
			0);
	for (i = 0; i < ALL_REPEATERS; i++) {
		RIG_JOIN(threads[i], &result);
		waited += result != NULL;
	}
	hold_pauses = false;
	assert_int_equal(waited, CASYNC_CALL_REPEATERS);
	assert_int_equal(pauses, CASYNC_CALL_REPEATERS);
}

REPEAT_CASE(getacl_that_waits_for_long_has_no_answer)
{
	struct nfs_request request = {0};

	set_nfsacl(&request);
	assert_int_equal(goes_on(delay), REPEATED);
	ahead_ns += CASYNC_CALL_REPEAT_MS * CASYNC_NS_PER_MS;
	assert_int_equal(goes_on(delay), ERR_FSAL_NOT_OPENED);
	/* Once in a minute; which is not over yet. */
	ahead_ns += 57 * CASYNC_NS_PER_S;
	assert_int_equal(goes_on(delay), ERR_FSAL_NOT_OPENED);
	ahead_ns += 3 * CASYNC_NS_PER_S;
	assert_int_equal(goes_on(delay), REPEATED);
}

struct answer_case {
	const char *name;
	int error; /* of the operation */
	bool has_locks;
	uint32_t reconnect;
	fsal_errors_t answer;
	bool lost; /* the session, afterwards */
};

static const struct answer_case answer_cases[] = {
	{"success_is_success", 0, true, 1, ERR_FSAL_NO_ERROR, false},
	{"own_error_is_the_clients", ENOSPC, true, 1, ERR_FSAL_NOSPC, false},
	{"blocklisted_client_is_a_delay", CASYNC_EBLOCKLISTED, false, 1,
	 ERR_FSAL_DELAY, true},
	{"evicted_client_is_a_delay", ENOTCONN, false, 1, ERR_FSAL_DELAY, true},
	{"lost_client_is_an_error_if_none_comes", ENOTCONN, false, 0,
	 ERR_FSAL_IO, true},
	{"fd_that_libcephfs_does_not_know_is_doubted", EBADF, false, 1,
	 ERR_FSAL_DELAY, false},
	{"error_of_a_file_with_locks_is_doubted", EIO, true, 1, ERR_FSAL_DELAY,
	 false},
	{"error_of_a_file_without_locks_is_believed", EIO, false, 1,
	 ERR_FSAL_IO, false},
	{"doubt_needs_a_next_client", EBADF, true, 0, ERR_FSAL_IO, false},
};

TEST_ROWS(check_answer, answer_cases, call_up, call_down)
{
	const struct answer_case *c = *state;
	fsal_status_t status;

	stub_mount.keeper.reconnect = c->reconnect;
	assert_int_equal(begin(ALL).major, ERR_FSAL_NO_ERROR);
	rig.obj->locks.linked = c->has_locks;
	status = casync_call_end(&call, casync_errors_status(-c->error));
	rig.obj->locks.linked = false;
	assert_int_equal(status.major, c->answer);
	assert_int_equal(status.minor, c->error);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 c->lost ? CASYNC_SESSION_LOST : CASYNC_SESSION_SERVES);
	check_steps(ALL_TAKEN ALL_DROPPED);
}

static bool keeper_was_woken(void)
{
	return stub_mount.keeper.thread.woken;
}

/* It looks before the error is believed, or replaces the client. */
CALL_CASE(loss_wakes_the_keeper)
{
	(void)begin(CASYNC_CALL_ASKS_MDS);
	(void)casync_call_end(&call, casync_errors_status(-ENOSPC));
	assert_false(keeper_was_woken());
	(void)begin(CASYNC_CALL_ASKS_MDS);
	(void)casync_call_end(&call, casync_errors_status(-ENOTCONN));
	assert_true(keeper_was_woken());
}

CALL_CASE(without_a_client_a_call_is_delayed)
{
	fsal_status_t status;

	lose_client();
	status = begin(ALL);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, ETIME);
	assert_int_equal(call.holds, 0);
	check_steps("Mm");
	/* No other one comes. */
	stub_mount.keeper.reconnect = 0;
	rig.obj->answered_ns = 0;
	status = begin(ALL);
	assert_int_equal(status.major, ERR_FSAL_IO);
	assert_int_equal(status.minor, CASYNC_EBLOCKLISTED);
	check_steps("Mm");
}

/* A request that was refused before the next client serves may be answered
 * after that. */
CALL_CASE(refusal_is_no_loss_of_the_client_that_serves_next)
{
	fsal_status_t statuses[2];
	size_t i;

	lose_client();
	statuses[0] = begin(ALL);
	statuses[1] = casync_call_begin_mount(&stub_mount);
	stub_mount_set_phase(CASYNC_GUARD_SERVES);
	for (i = 0; i < COUNT(statuses); i++) {
		assert_int_equal(statuses[i].major, ERR_FSAL_DELAY);
		assert_int_equal(
			casync_session_answer(&stub_mount, statuses[i], true)
				.major,
			ERR_FSAL_DELAY);
	}
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
	assert_false(keeper_was_woken());
}

CALL_CASE(look_up_that_shows_the_loss_is_a_delay)
{
	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOTCONN;
	assert_int_equal(begin(ALL).major, ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
}

static void lose_it_meanwhile(enum fake_blocking which)
{
	if (which == FAKE_LOOKUP_VINO)
		casync_session_note_error(&stub_mount, ENOTCONN);
}

/* By the time this is answered the next client may serve. */
CALL_CASE(error_of_a_client_that_is_lost_meanwhile_is_a_delay)
{
	fsal_status_t status;

	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -EPERM;
	fake.hook = lose_it_meanwhile;
	status = casync_errors_status(
		casync_call_take(&call, rig.obj, CASYNC_CALL_CLIENT));
	fake.hook = NULL;
	assert_int_equal(status.major, ERR_FSAL_DELAY);
}

CALL_CASE(file_that_is_gone_is_stale)
{
	new_client();
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(begin(ALL).major, ERR_FSAL_STALE);
	assert_int_equal(call.holds, 0);
}

/* --- names */

/* NFSv3 brings any bytes, and libcephfs takes a name for a path. */
CALL_CASE(path_is_no_name)
{
	static const char *const paths[] = {"", "/", "a/b", "../a", "a/", "/a"};
	fsal_status_t status;
	size_t i;

	for (i = 0; i < COUNT(paths); i++) {
		assert_int_equal(casync_call_check_name(paths[i]), -EACCES);
		status = casync_call_begin_entry(&call, &rig.obj->handle,
						 paths[i], ALL);
		assert_int_equal(status.major, ERR_FSAL_ACCESS);
		assert_int_equal(status.minor, EACCES);
	}
	check_steps("");
}

CALL_CASE(any_other_bytes_are_a_name)
{
	static const char *const names[] = {"a",    "..", ".",	 "...",
					    "a\\b", " ",  "\xff"};
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		assert_int_equal(casync_call_check_name(names[i]), 0);
		assert_int_equal(
			casync_call_begin_entry(&call, &rig.obj->handle,
						names[i], CASYNC_CALL_CLIENT)
				.major,
			ERR_FSAL_NO_ERROR);
		(void)casync_call_end(&call, good);
	}
}

CALL_CASE(call_on_a_name_needs_a_client_too)
{
	lose_client();
	assert_int_equal(casync_call_begin_entry(&call, &rig.obj->handle, "a",
						 CASYNC_CALL_ASKS_MDS)
				 .major,
			 ERR_FSAL_DELAY);
	check_steps("Mm");
}

/* --- without an object */

CALL_CASE(call_on_a_mount_takes_its_slot_and_its_client)
{
	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_NO_ERROR);
	check_steps("MG");
	assert_int_equal(casync_call_end_mount(&stub_mount, good).major,
			 ERR_FSAL_NO_ERROR);
	check_steps("gm");
}

CALL_CASE(call_on_a_full_mount_is_delayed)
{
	fsal_status_t status;

	*mount_inside() = MOUNT_SLOTS;
	status = casync_call_begin_mount(&stub_mount);
	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, ETIME);
	check_steps("");
	*mount_inside() = 0;
}

CALL_CASE(call_on_a_lost_mount_is_delayed)
{
	lose_client();
	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_DELAY);
	check_steps("Mm");
	stub_mount.keeper.reconnect = 0;
	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_IO);
	check_steps("Mm");
}

CALL_CASE(call_on_a_mount_may_show_the_loss)
{
	const fsal_status_t loss = casync_errors_status(-CASYNC_EBLOCKLISTED);

	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_call_end_mount(&stub_mount, loss).major,
			 ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_LOST);
	check_steps("MGgm");
	/* No other one enters, before the keeper has done anything. */
	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_DELAY);
	check_steps("Mm");
	/* Nobody replaces this client. */
	stub_mount.keeper.reconnect = 0;
	stub_mount_set_phase(CASYNC_GUARD_LOST);
	assert_int_equal(casync_call_begin_mount(&stub_mount).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(casync_call_end_mount(&stub_mount, loss).major,
			 ERR_FSAL_IO);
}

/* What the lost client has open is released as long as it is there. */
CALL_CASE(releases_enter_until_the_client_ends)
{
	assert_true(casync_call_begin_release(&stub_mount));
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	casync_call_leave(&stub_mount);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	assert_true(casync_call_begin_release(&stub_mount));
	casync_call_leave(&stub_mount);
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	assert_false(casync_call_begin_release(&stub_mount));
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(*mount_inside(), 0);
}

/* To add or reload an export, the administrator can ask again. */
CALL_CASE(setup_needs_a_client_that_serves)
{
	assert_true(casync_call_begin_setup(&stub_mount));
	check_steps("G");
	casync_call_leave(&stub_mount);
	check_steps("g");
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	assert_false(casync_call_begin_setup(&stub_mount));
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	assert_false(casync_call_begin_setup(&stub_mount));
	check_steps("");
}
