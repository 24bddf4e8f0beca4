/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "errors.h"
#include "keeper.h"
#include "rig.h"
#include "pin.h"
#include "stub_mount.h"

/* --- a clock that stands, but for a step at each look: no pause of the keeper
 * ends by itself */

#define STEP_NS CASYNC_NS_PER_US
#define FAR_AHEAD_S 10000000

static bool stands;	  /* atomic */
static uint64_t later_ns; /* atomic */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns;

	if (clock != CLOCK_MONOTONIC ||
	    !__atomic_load_n(&stands, __ATOMIC_ACQUIRE))
		return __real_clock_gettime(clock, now);
	ns = __atomic_add_fetch(&later_ns, STEP_NS, __ATOMIC_ACQ_REL);
	now->tv_sec = FAR_AHEAD_S + (time_t)(ns / CASYNC_NS_PER_S);
	now->tv_nsec = (long)(ns % CASYNC_NS_PER_S);
	return 0;
}

/* From here on it is the real one. */
static void let_go(void)
{
	__atomic_store_n(&stands, false, __ATOMIC_RELEASE);
}

static void let_pass(uint64_t ms)
{
	__atomic_add_fetch(&later_ns, ms * CASYNC_NS_PER_MS, __ATOMIC_ACQ_REL);
}

/* --- what the keeper calls; Ceph is stub_connect.c's */

static int reconnects;	      /* atomic */
static int reconnects_wanted; /* so many, then the session is back */
static int stays;

static void forget(struct casync_mount *mount)
{
	(void)mount;
}

static int restore(struct casync_mount *mount)
{
	(void)mount;
	return __atomic_add_fetch(&reconnects, 1, __ATOMIC_ACQ_REL) >=
			       reconnects_wanted
		       ? 0
		       : -ENOTCONN;
}

static unsigned int disown(struct casync_mount *mount)
{
	(void)mount;
	return 0;
}

static const struct casync_keeper_hooks hooks = {
	.disown = disown,
	.forget = forget,
	.restore = restore,
};

void casync_pin_module(void)
{
	stays++;
}

static int quota_rc;	/* atomic */
static int quota_asked; /* atomic */

int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, void *value, size_t size,
		     const UserPerm *perms)
{
	(void)cmount;
	(void)value;
	(void)perms;
	assert_ptr_equal(in, fake.inode);
	assert_string_equal(name, "ceph.quota.max_bytes");
	assert_int_equal(size, 0);
	__atomic_add_fetch(&quota_asked, 1, __ATOMIC_ACQ_REL);
	return __atomic_load_n(&quota_rc, __ATOMIC_ACQUIRE);
}

/* The keeper that is woken has a new client serve before the waker goes on. */
static bool is_quick;

void __real_casync_deadline_call_wake_thread(
	struct casync_deadline_thread *thread);
void __wrap_casync_deadline_call_wake_thread(
	struct casync_deadline_thread *thread);

void __wrap_casync_deadline_call_wake_thread(
	struct casync_deadline_thread *thread)
{
	__real_casync_deadline_call_wake_thread(thread);
	if (is_quick)
		stub_mount_set_phase(CASYNC_GUARD_SERVES);
}

/* --- */

static struct casync_keeper *const keeper = &stub_mount.keeper;
/* For tests without the thread. */
static struct casync_deadline_call *const some_call =
	(struct casync_deadline_call *)&stub_mount;

static int up(void **state)
{
	int rc = rig_up(state);

	__atomic_store_n(&stands, true, __ATOMIC_RELEASE);
	later_ns = 0;
	reconnects = 0;
	reconnects_wanted = 1;
	stays = 0;
	stub_mount.session.client = "admin@fs:/";
	keeper->reconnect = 1;
	stub_mount.params.hooks = &hooks;
	stub_mount.drain_timeout_s = RIG_TIMEOUT_S;
	stub_mount.clients_alive = 0;
	stub_mount.client =
		casync_client_new(&stub_mount.identity, &stub_mount);
	stub_mount.client->ceph = (struct ceph_mount_info *)&stub_mount;
	return rc;
}

static int down(void **state)
{
	let_go();
	(void)casync_client_end(stub_mount.client, RIG_TIMEOUT_S);
	return rig_down(state);
}

#define THREAD_CASE(test) TEST_WITH(test, up, down)

static int up_without_thread(void **state)
{
	int rc = up(state);

	pthread_mutex_init(&keeper->thread.lock, NULL);
	casync_clock_cond_init(&keeper->thread.wake);
	keeper->thread.call = some_call;
	return rc;
}

static int down_without_thread(void **state)
{
	pthread_cond_destroy(&keeper->thread.wake);
	pthread_mutex_destroy(&keeper->thread.lock);
	return down(state);
}

#define CASE(test) TEST_WITH(test, up_without_thread, down_without_thread)

static bool file_has_locks;

static fsal_status_t answer(fsal_errors_t major, int minor)
{
	return casync_session_answer(&stub_mount, fsalstat(major, minor),
				     file_has_locks);
}

/* Does the client get what libcephfs has said? */
static void check_passes(int error)
{
	fsal_status_t status = answer(ERR_FSAL_IO, error);

	assert_int_equal(status.major, ERR_FSAL_IO);
	assert_int_equal(status.minor, error);
}

static void check_is_delayed(int error)
{
	fsal_status_t status = answer(ERR_FSAL_IO, error);

	assert_int_equal(status.major, ERR_FSAL_DELAY);
	assert_int_equal(status.minor, error);
}

static void check_session(enum casync_session_state expected)
{
	assert_int_equal(casync_session_state(&stub_mount.guard), expected);
}

/* --- answers */

CASE(success_passes)
{
	assert_int_equal(answer(ERR_FSAL_NO_ERROR, 0).major, ERR_FSAL_NO_ERROR);
	check_session(CASYNC_SESSION_SERVES);
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	assert_int_equal(answer(ERR_FSAL_NO_ERROR, 0).major, ERR_FSAL_NO_ERROR);
	check_session(CASYNC_SESSION_LOST);
	assert_false(keeper->thread.woken);
}

/* Between the notice and the keeper's first step. */
CASE(no_request_enters_once_the_loss_is_noticed)
{
	casync_session_note_error(&stub_mount, CASYNC_EBLOCKLISTED);
	assert_false(casync_guard_enter(&stub_mount.guard));
	assert_true(casync_guard_enter_up_to(&stub_mount.guard,
					     CASYNC_GUARD_LEAVES));
	casync_guard_leave(&stub_mount.guard);
	assert_true(keeper->thread.woken);
}

/* Nobody would end them. */
CASE(requests_enter_a_lost_session_without_reconnect)
{
	keeper->reconnect = 0;
	casync_session_note_error(&stub_mount, ENOTCONN);
	assert_true(casync_guard_enter(&stub_mount.guard));
	casync_guard_leave(&stub_mount.guard);
	check_session(CASYNC_SESSION_LOST);
}

CASE(loss_is_delayed_and_wakes_the_keeper)
{
	static const int losses[] = {CASYNC_EBLOCKLISTED, ENOTCONN};
	size_t i;

	for (i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		stub_mount_set_phase(CASYNC_GUARD_SERVES);
		keeper->thread.woken = false;
		check_is_delayed(losses[i]);
		check_session(CASYNC_SESSION_LOST);
		assert_true(keeper->thread.woken);
	}
}

/* A request that has left the guard with such an error is asked again. */
CASE(loss_is_delayed_though_the_next_client_serves)
{
	is_quick = true;
	check_is_delayed(ENOTCONN);
	is_quick = false;
	check_session(CASYNC_SESSION_SERVES);
	assert_true(keeper->thread.woken);
}

CASE(another_error_passes)
{
	check_passes(EDQUOT);
	check_passes(ENOSPC);
	check_passes(ENOENT);
	check_session(CASYNC_SESSION_SERVES);
	assert_false(keeper->thread.woken);
}

CASE(what_a_lost_client_says_does_not_hold)
{
	casync_session_note_error(&stub_mount, ENOTCONN);
	check_is_delayed(EIO);
	check_is_delayed(ENOENT);
	check_is_delayed(EBADF);
}

CASE(keeper_at_work_is_not_woken)
{
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	check_is_delayed(ENOTCONN);
	assert_false(keeper->thread.woken);
}

static void check_all_pass(void)
{
	check_passes(CASYNC_EBLOCKLISTED);
	check_session(CASYNC_SESSION_LOST);
	check_passes(ENOTCONN);
	check_passes(EBADF);
	check_passes(EIO);
	assert_false(keeper->thread.woken);
}

CASE(all_errors_pass_without_reconnect)
{
	keeper->reconnect = 0;
	check_all_pass();
}

CASE(all_errors_pass_once_it_gave_up)
{
	stub_mount_set_phase(CASYNC_GUARD_GIVEN_UP);
	check_all_pass();
}

CASE(all_errors_pass_without_a_keeper)
{
	keeper->thread.call = NULL;
	check_all_pass();
}

static void check_is_doubted(int error)
{
	check_is_delayed(error);
	check_session(CASYNC_SESSION_SERVES);
	assert_true(keeper->thread.woken);
}

CASE(time_out_is_doubted)
{
	check_is_doubted(ETIMEDOUT);
}

CASE(io_error_of_a_file_with_locks_is_doubted)
{
	check_passes(EIO);
	file_has_locks = true;
	check_is_doubted(EIO);
	file_has_locks = false;
}

CASE(doubt_lasts_until_it_is_settled)
{
	/* A look from before the error came. */
	keeper->checked_ns = casync_clock_ns();
	let_pass(20000);
	check_is_delayed(EBADF);
	assert_true(keeper->doubted_since_ns > keeper->checked_ns);
	let_pass(20000);
	check_is_delayed(EBADF);
	keeper->checked_ns = casync_clock_ns();
	check_passes(EBADF);
	check_passes(ETIMEDOUT);
}

/* Linux' NFSv3 client asks again after 5 s. */
CASE(errors_are_believed_for_ten_seconds)
{
	check_is_delayed(EBADF);
	keeper->checked_ns = casync_clock_ns();
	let_pass(9000);
	check_passes(EBADF);
	let_pass(1500);
	check_is_delayed(EBADF);
	assert_true(keeper->doubted_since_ns > keeper->checked_ns);
}

/* --- with its thread */

static void begin_keeper(void)
{
	assert_int_equal(casync_keeper_start(&stub_mount), 0);
}

static void end_keeper(void)
{
	assert_true(casync_deadline_call_stop_thread(&stub_mount.keeper.thread,
						     RIG_TIMEOUT_S));
	assert_null(keeper->thread.call);
	assert_int_equal(stays, 0);
}

static bool is_settled(void)
{
	return __atomic_load_n(&keeper->checked_ns, __ATOMIC_RELAXED) >
	       __atomic_load_n(&keeper->doubted_since_ns, __ATOMIC_RELAXED);
}

static bool is_asked(void)
{
	return __atomic_load_n(&quota_asked, __ATOMIC_ACQUIRE) != 0;
}

static bool is_proved(void)
{
	return __atomic_load_n(&stub_mount.callers.room.answers,
			       __ATOMIC_ACQUIRE) != 0;
}

static void check_question(int result, bool proves)
{
	nfs_param.core_param.rpc.ioq_thrd_max = 200;
	stub_mount.callers = (struct casync_budget_mount){0};
	quota_rc = result;
	quota_asked = 0;
	begin_keeper();
	casync_keeper_ask_mds(&stub_mount);
	RIG_UNTIL(proves ? is_proved() : is_asked());
	end_keeper();
	assert_int_equal(quota_asked, 1);
	assert_int_equal(is_proved(), proves);
	assert_int_equal(fake.inode_refs, 0);
	assert_false(keeper->asked);
}

THREAD_CASE(quota_proves_that_the_mds_answers)
{
	check_question(20, true);
}

THREAD_CASE(no_quota_proves_it_too)
{
	check_question(-ENODATA, true);
}

THREAD_CASE(time_out_proves_nothing)
{
	check_question(-ETIMEDOUT, false);
}

CASE(question_without_a_keeper_is_left)
{
	keeper->thread.call = NULL;
	casync_keeper_ask_mds(&stub_mount);
	assert_false(keeper->thread.woken);
}

/* Who is refused again and again must not have others wait. */
CASE(calls_wait_for_one_question)
{
	uint64_t then_ns;

	keeper->asked = false;
	casync_keeper_ask_mds(&stub_mount);
	then_ns = stub_mount.callers.room.progress_ns;
	assert_true(then_ns != 0 && then_ns < casync_clock_ns());
	casync_keeper_ask_mds(&stub_mount);
	assert_int_equal(stub_mount.callers.room.progress_ns, then_ns);
	assert_true(keeper->thread.woken);
}

THREAD_CASE(doubted_error_passes_after_a_look)
{
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(is_settled());
	check_passes(EBADF);
	assert_int_equal(reconnects, 0);
	assert_int_equal(fake.inode_refs, 0);
	let_pass(11000);
	check_is_delayed(EBADF);
	RIG_UNTIL(is_settled());
	check_passes(EBADF);
	end_keeper();
}

THREAD_CASE(doubted_error_shows_the_loss)
{
	fake.blocking_result[FAKE_GETATTR] = -CASYNC_EBLOCKLISTED;
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(NOW(reconnects) >= 1);
	assert_false(is_settled());
	assert_int_equal(fake.inode_refs, 0);
	end_keeper();
	/* The next look comes after a pause, which does not end here. */
	assert_int_equal(reconnects, 1);
}

/* After the session: only then an error wakes the keeper. */
static bool guard_serves(void)
{
	return casync_guard_phase(&stub_mount.guard) == CASYNC_GUARD_SERVES;
}

/* It may be lost at once, too: no time passes here. */
THREAD_CASE(errors_of_a_new_client_are_doubted_anew)
{
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(is_settled());
	check_passes(EBADF);
	check_is_delayed(ENOTCONN);
	RIG_UNTIL(NOW(reconnects) >= 1);
	RIG_UNTIL(guard_serves());
	check_is_delayed(EBADF);
	RIG_UNTIL(is_settled());
	check_passes(EBADF);
	end_keeper();
}

static bool root_was_looked_up(void)
{
	return fake_blocking_count(FAKE_LOOKUP_ROOT) != 0;
}

THREAD_CASE(error_that_is_no_loss_proves_nothing)
{
	fake.blocking_result[FAKE_LOOKUP_ROOT] = -EIO;
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(root_was_looked_up());
	check_is_delayed(EBADF);
	check_session(CASYNC_SESSION_SERVES);
	end_keeper();
	assert_int_equal(reconnects, 0);
}

static bool doubt_is_settled(void)
{
	return __atomic_load_n(&keeper->checked_ns, __ATOMIC_RELAXED) != 0;
}

/* The MDS has answered, so the session serves: else the client would be asked
 * to retry for ever. */
THREAD_CASE(refusal_of_the_look_settles_a_doubt)
{
	fake.blocking_result[FAKE_LOOKUP_ROOT] = -EACCES;
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(doubt_is_settled());
	check_passes(EBADF);
	end_keeper();
	assert_int_equal(reconnects, 0);
}

THREAD_CASE(loss_is_noticed_without_traffic)
{
	let_go();
	fake.blocking_result[FAKE_LOOKUP_ROOT] = -ENOTCONN;
	begin_keeper();
	RIG_UNTIL(NOW(reconnects) >= 1);
	end_keeper();
}

/* Who asked while there was no client need not ask the new one. */
THREAD_CASE(new_client_is_proof_enough)
{
	let_go();
	stub_mount.callers = (struct casync_budget_mount){0};
	quota_asked = 0;
	keeper->asked = true;
	begin_keeper();
	check_is_delayed(ENOTCONN);
	RIG_UNTIL(NOW(reconnects) >= 1);
	end_keeper();
	check_session(CASYNC_SESSION_SERVES);
	assert_true(is_proved());
	assert_false(keeper->asked);
}

THREAD_CASE(lost_again_is_replaced_again)
{
	let_go();
	reconnects_wanted = 2;
	begin_keeper();
	check_is_delayed(ENOTCONN);
	RIG_UNTIL(NOW(reconnects) >= 2);
	end_keeper();
	check_session(CASYNC_SESSION_SERVES);
}

static bool session_serves(void)
{
	return casync_session_state(&stub_mount.guard) == CASYNC_SESSION_SERVES;
}

/* libcephfs may have come back by itself. */
THREAD_CASE(session_that_comes_back_is_found_without_reconnect)
{
	let_go();
	keeper->reconnect = 0;
	begin_keeper();
	check_passes(ENOTCONN);
	check_session(CASYNC_SESSION_LOST);
	RIG_UNTIL(session_serves());
	end_keeper();
	assert_int_equal(reconnects, 0);
}

static void wake(void)
{
	pthread_mutex_lock(&keeper->thread.lock);
	keeper->thread.woken = true;
	pthread_cond_signal(&keeper->thread.wake);
	pthread_mutex_unlock(&keeper->thread.lock);
}

static bool has_seen_the_wake(void)
{
	bool woken;

	pthread_mutex_lock(&keeper->thread.lock);
	woken = keeper->thread.woken;
	pthread_mutex_unlock(&keeper->thread.lock);
	return !woken;
}

THREAD_CASE(nobody_is_asked_while_there_is_no_client)
{
	unsigned int i;

	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	keeper->reconnect = 0;
	begin_keeper();
	/* The second wake is seen after the first look. */
	for (i = 0; i < 2; i++) {
		wake();
		RIG_UNTIL(has_seen_the_wake());
	}
	end_keeper();
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_ROOT), 0);
}

/* It is for the successor (leave.h). */
THREAD_CASE(session_that_is_left_is_not_replaced)
{
	unsigned int i;

	stub_mount_set_phase(CASYNC_GUARD_LEFT);
	begin_keeper();
	for (i = 0; i < 2; i++) {
		wake();
		RIG_UNTIL(has_seen_the_wake());
	}
	end_keeper();
	assert_int_equal(casync_guard_phase(&stub_mount.guard),
			 CASYNC_GUARD_LEFT);
	assert_int_equal(reconnects, 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_ROOT), 0);
}

static bool nobody_is_inside(void)
{
	return casync_guard_is_empty(&stub_mount.guard);
}

/* --- its pauses */

static int slept; /* atomic; 1: true, 2: false */

static void *sleep_on_thread(void *unused)
{
	__atomic_store_n(
		&slept,
		casync_deadline_call_sleep(&stub_mount.keeper.thread, 1000) ? 1
									    : 2,
		__ATOMIC_RELEASE);
	return NULL;
}

CASE(loss_ends_a_pause_but_no_sleep)
{
	pthread_t thread;
	unsigned int i;

	slept = 0;
	keeper->thread.woken = true;
	assert_true(
		casync_deadline_call_pause(&stub_mount.keeper.thread, 1000));
	assert_int_equal(pthread_create(&thread, NULL, sleep_on_thread, NULL),
			 0);
	for (i = 0; i < 5; i++) {
		wake();
		RIG_UNTIL(has_seen_the_wake());
		assert_int_equal(__atomic_load_n(&slept, __ATOMIC_ACQUIRE), 0);
	}
	let_pass(2000);
	wake();
	RIG_JOIN(thread, NULL);
	assert_int_equal(slept, 1);
}

CASE(end_ends_a_sleep)
{
	pthread_t thread;

	slept = 0;
	assert_int_equal(pthread_create(&thread, NULL, sleep_on_thread, NULL),
			 0);
	pthread_mutex_lock(&keeper->thread.lock);
	keeper->thread.stopping = true;
	pthread_cond_signal(&keeper->thread.wake);
	pthread_mutex_unlock(&keeper->thread.lock);
	RIG_JOIN(thread, NULL);
	assert_int_equal(slept, 2);
	assert_false(
		casync_deadline_call_pause(&stub_mount.keeper.thread, 1000));
}

/* The MDS is away, for good.  The last case: nobody can wait for the end of its
 * thread. */
THREAD_CASE(keeper_that_does_not_return_is_left_behind)
{
	rig_hold(FAKE_GETATTR);
	begin_keeper();
	check_is_delayed(EBADF);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	let_go();
	assert_false(
		casync_deadline_call_stop_thread(&stub_mount.keeper.thread, 0));
	assert_int_equal(stays, 1);
	/* It returns all the same. */
	sem_post(&rig_held.go);
	RIG_UNTIL(nobody_is_inside());
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	sem_destroy(&rig_held.go);
}
