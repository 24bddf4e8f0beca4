/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "client.h"
#include "clock.h"
#include "common_grace.h"
#include "connect.h"
#include "keeper.h"
#include "rig.h"
#include "pin.h"
#include "stub_mount.h"
#include "take_over.h"

#define FSCID 7
#define TEXT 4096
#define PAUSES_MAX 10000

/* --- a time of its own: a pause of the keeper takes none, and moves the clock
 * to its end.  It stands still where a test asks for that, so that it is not
 * later than the test thinks. */

#define AHEAD_NS (UINT64_C(10000000) * CASYNC_NS_PER_S)

static struct casync_keeper *const keeper = &stub_mount.keeper;
static uint64_t now_ns;		      /* atomic */
static bool pauses_last;	      /* atomic: they end only when woken */
static int pauses;		      /* atomic; those that have begun */
static int pauses_end;		      /* atomic; those that may end */
static uint64_t pause_ms[PAUSES_MAX]; /* the keeper's; read when it ended */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns = AHEAD_NS + __atomic_load_n(&now_ns, __ATOMIC_ACQUIRE);

	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	now->tv_sec = (time_t)(ns / CASYNC_NS_PER_S);
	now->tv_nsec = (long)(ns % CASYNC_NS_PER_S);
	return 0;
}

/* Its number. */
static int note_pause(uint64_t ms)
{
	int i = __atomic_load_n(&pauses, __ATOMIC_RELAXED);

	if (i < PAUSES_MAX)
		pause_ms[i] = ms;
	return __atomic_add_fetch(&pauses, 1, __ATOMIC_ACQ_REL);
}

/* 0 if it is woken before. */
static int wait_until_it_may_end(int number, pthread_cond_t *cond,
				 pthread_mutex_t *lock)
{
	struct timespec until;

	while (number > __atomic_load_n(&pauses_end, __ATOMIC_ACQUIRE)) {
		__real_clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 1000000;
		if (until.tv_nsec >= (long)CASYNC_NS_PER_S) {
			until.tv_nsec -= (long)CASYNC_NS_PER_S;
			until.tv_sec++;
		}
		if (__real_pthread_cond_timedwait(cond, lock, &until) == 0)
			return 0;
	}
	return ETIMEDOUT;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	const struct timespec moment = {.tv_nsec = 100000};
	uint64_t until_ns = (uint64_t)until->tv_sec * CASYNC_NS_PER_S +
			    (uint64_t)until->tv_nsec - AHEAD_NS;
	uint64_t from_ns = __atomic_load_n(&now_ns, __ATOMIC_ACQUIRE);
	struct timespec give_up;
	int number;

	if (cond != &keeper->thread.wake) {
		/* What does not come at all is noticed. */
		__real_clock_gettime(CLOCK_MONOTONIC, &give_up);
		give_up.tv_sec += RIG_TIMEOUT_S;
		return __real_pthread_cond_timedwait(cond, lock, &give_up);
	}
	number = note_pause((until_ns - from_ns) / CASYNC_NS_PER_MS);
	if (__atomic_load_n(&pauses_last, __ATOMIC_ACQUIRE))
		return pthread_cond_wait(cond, lock);
	if (wait_until_it_may_end(number, cond, lock) == 0)
		return 0;
	pthread_mutex_unlock(lock);
	nanosleep(&moment, NULL);
	pthread_mutex_lock(lock);
	__atomic_store_n(&now_ns, until_ns, __ATOMIC_RELEASE);
	return ETIMEDOUT;
}

/* --- what is called, in its order, and who may be inside then */

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static char trace[TEXT];
static int forgets, connects, disconnects, restores; /* atomic */
static int disowns, ended_sessions;		     /* atomic */

static int fails;      /* connects that fail; INT_MAX: all */
static int taken;      /* of these, from the first on, by another's name */
static int others;     /* connects that find another file system */
static bool end_fails; /* our own session cannot be ended */
static int stuck;      /* the nth disconnect does not end */
static struct casync_client *stuck_client;
static int lost_again; /* restores that fail */
static void (*in_forget)(void);
static int wrong_handles;

static char phase(void)
{
	struct casync_guard *guard = &stub_mount.guard;

	if (casync_guard_enter(guard)) {
		casync_guard_leave(guard);
		return 's';
	}
	if (casync_guard_enter_up_to(guard, CASYNC_GUARD_RESTORES)) {
		casync_guard_leave(guard);
		return 'u';
	}
	if (casync_guard_enter_up_to(guard, CASYNC_GUARD_LEAVES)) {
		casync_guard_leave(guard);
		return 'r';
	}
	return 'c';
}

static int note(int *count, const char *what, const char *how)
{
	size_t length;

	pthread_mutex_lock(&trace_lock);
	length = strlen(trace);
	(void)snprintf(trace + length, TEXT - length, "%s%s%s/%c",
		       length == 0 ? "" : " ", what, how, phase());
	pthread_mutex_unlock(&trace_lock);
	return __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
}

static void check_trace(const char *expected)
{
	char seen_calls[TEXT];

	/* An assertion that fails keeps no lock. */
	pthread_mutex_lock(&trace_lock);
	memcpy(seen_calls, trace, TEXT);
	pthread_mutex_unlock(&trace_lock);
	assert_string_equal(seen_calls, expected);
}

static void forget(struct casync_mount *mount)
{
	/* The old client exists as yet. */
	if (mount->client == NULL)
		wrong_handles++;
	if (in_forget != NULL)
		in_forget();
	(void)note(&forgets, "forget", "");
}

static int restore(struct casync_mount *mount)
{
	char generation[8];

	(void)snprintf(generation, sizeof(generation), "%u",
		       casync_guard_generation(&mount->guard));
	return note(&restores, "restore", generation) <= lost_again ? -ENOTCONN
								    : 0;
}

/* Calls that are inside, and are to be disowned: of them and no others. */
static unsigned int reads_inside;
static struct casync_client *reads_of;

static unsigned int disown(struct casync_mount *mount)
{
	struct casync_client *client = mount->client;
	unsigned int count = reads_inside;

	if (count != 0)
		(void)note(&disowns, "disown", "");
	for (; reads_inside != 0; reads_inside--) {
		casync_client_hold(client);
		casync_guard_leave(&mount->guard);
		reads_of = client;
	}
	return count;
}

static const struct casync_keeper_hooks hooks = {
	.disown = disown,
	.forget = forget,
	.restore = restore,
};

static struct casync_client *new_client(void)
{
	struct casync_client *client =
		casync_client_new(&stub_mount.identity, &stub_mount);

	client->ceph = (struct ceph_mount_info *)&stub_mount;
	client->fscid = FSCID;
	return client;
}

int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params,
		   struct casync_client **client)
{
	int nth;

	/* Each client has left the mount before the next one. */
	if (mount->client != NULL || params != &mount->params)
		wrong_handles++;
	nth = note(&connects, "connect", "");
	if (fails == INT_MAX || nth <= fails)
		return nth <= taken ? CASYNC_CONNECT_NAME_TAKEN : -ETIMEDOUT;
	*client = new_client();
	if (nth <= others)
		(*client)->fscid++;
	return 0;
}

int casync_connect_end_session(struct casync_client *client,
			       const struct casync_mount_params *params,
			       const char *nodeid)
{
	char of[64] = "";

	/* A client of its own: the mount's is in use. */
	if (client == stub_mount.client || client->ceph != NULL ||
	    (nodeid == NULL && params != &stub_mount.params))
		wrong_handles++;
	/* Who ends another node's session is not counted. */
	if ((client->mount != NULL) != (nodeid == NULL))
		wrong_handles++;
	if (nodeid != NULL)
		(void)snprintf(of, sizeof(of), "-of-%s", nodeid);
	(void)note(&ended_sessions, "end-session", of);
	return end_fails ? -ETIMEDOUT : 0;
}

void casync_connect_uuid(const struct casync_identity *identity,
			 const char *nodeid, char *uuid, size_t size)
{
	(void)identity;
	(void)snprintf(uuid, size, "uuid of %s", nodeid);
}

static int times_set; /* atomic */

void casync_connect_set_time(struct casync_mount *mount)
{
	(void)mount;
	__atomic_add_fetch(&times_set, 1, __ATOMIC_ACQ_REL);
}

const char *casync_connect_reason(int rc)
{
	return rc == -ETIMEDOUT ? "no answer" : "error";
}

bool __real_casync_client_end(struct casync_client *client, uint32_t timeout_s);
bool __wrap_casync_client_end(struct casync_client *client, uint32_t timeout_s);

bool __wrap_casync_client_end(struct casync_client *client, uint32_t timeout_s)
{
	if (client == stub_mount.client ||
	    timeout_s != (client->mount != NULL ? 3 : 5))
		wrong_handles++;
	/* Handles are compared with it meanwhile, outside of the guard. */
	if (stub_mount.fscid != FSCID || stub_mount.upcalls.fscid != FSCID)
		wrong_handles++;
	/* It does not end if READs are left with it. */
	if (NOW(client->users) == 1 &&
	    note(&disconnects, "disconnect", client->lost ? "-lost" : "") ==
		    stuck) {
		stuck_client = client;
		return false;
	}
	return __real_casync_client_end(client, timeout_s);
}

int casync_connect_failed(const struct casync_identity *identity, int rc,
			  const char *format, ...)
{
	(void)identity;
	LogCrit(COMPONENT_FSAL, "%s", format);
	return rc;
}

static int invalidations; /* atomic */

void casync_upcalls_try_removed(struct casync_upcalls *upcalls)
{
	(void)upcalls;
}

void casync_upcalls_invalidate_all(struct casync_upcalls *upcalls)
{
	if (upcalls == &stub_mount.upcalls)
		(void)note(&invalidations, "invalidate", "");
}

void casync_pin_module(void)
{
}

/* --- */

static int up(void **state)
{
	int rc = rig_up(state);

	now_ns = 0;
	pauses_last = false;
	pauses = 0;
	pauses_end = INT_MAX;
	trace[0] = '\0';
	forgets = connects = disconnects = restores = invalidations = 0;
	fails = others = stuck = lost_again = taken = 0;
	disowns = ended_sessions = times_set = 0;
	end_fails = false;
	reads_inside = 0;
	in_forget = NULL;
	wrong_handles = 0;
	stuck_client = NULL;
	stub_mount.session.client = "admin@fs:/";
	stub_mount.params.hooks = &hooks;
	stub_mount.drain_timeout_s = 3;
	stub_mount.clients_alive = 0;
	stub_mount.client = new_client();
	stub_mount.fscid = FSCID;
	stub_mount.upcalls.fscid = FSCID;
	keeper->reconnect = 1;
	return rc;
}

static int down(void **state)
{
	int rc;

	if (stub_mount.client != NULL)
		(void)__real_casync_client_end(stub_mount.client,
					       RIG_TIMEOUT_S);
	if (stuck_client != NULL)
		(void)__real_casync_client_end(stuck_client, RIG_TIMEOUT_S);
	if (!RIG_COMES(NOW(stub_mount.clients_alive) == 0))
		return -1;
	rc = rig_down(state);
	casync_take_over_forget(&stub_mount);
	memset(stub_mount.take_overs, 0, sizeof(stub_mount.take_overs));
	return rc == 0 && wrong_handles == 0 ? 0 : -1;
}

#define CASE(test) TEST_WITH(test, up, down)

/* A request finds out. */
static void lose_session(void)
{
	fsal_status_t status = casync_session_answer(
		&stub_mount, fsalstat(ERR_FSAL_IO, ENOTCONN), false);

	assert_int_equal(status.major, ERR_FSAL_DELAY);
}

/* The time stands still meanwhile: this thread may get no CPU for as long as
 * the keeper has pauses in which it does other things. */
static void begin(void)
{
	int may_end = __atomic_exchange_n(&pauses_end, 0, __ATOMIC_ACQ_REL);

	assert_int_equal(casync_keeper_start(&stub_mount), 0);
	lose_session();
	/* It may be in a pause that began before the loss: that one ends. */
	__atomic_store_n(&pauses_end, may_end == 0 ? 1 : may_end,
			 __ATOMIC_RELEASE);
}

static void end(void)
{
	assert_true(casync_deadline_call_stop_thread(&stub_mount.keeper.thread,
						     RIG_TIMEOUT_S));
}

static bool serves(void)
{
	return __atomic_load_n(&stub_mount.session.reconnects,
			       __ATOMIC_ACQUIRE) != 0;
}

static bool gave_up(void)
{
	return casync_guard_phase(&stub_mount.guard) == CASYNC_GUARD_GIVEN_UP;
}

/* Before the keeper begins: wait_pauses() moves it then, and no further. */
static void stop_the_time(void)
{
	__atomic_store_n(&pauses_end, 0, __ATOMIC_RELEASE);
}

static void start_the_time(void)
{
	__atomic_store_n(&pauses_end, INT_MAX, __ATOMIC_RELEASE);
}

/* So many pauses more. */
static void wait_pauses(int count)
{
	int until = __atomic_load_n(&pauses, __ATOMIC_ACQUIRE) + count;

	if (__atomic_load_n(&pauses_end, __ATOMIC_ACQUIRE) != INT_MAX)
		/* Until the one after them has begun. */
		until = 1 + __atomic_add_fetch(&pauses_end, count,
					       __ATOMIC_ACQ_REL);
	RIG_UNTIL(NOW(pauses) >= until);
}

static int seen(const int *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

#define STEPS "forget/r disconnect-lost/c connect/c restore1/u invalidate/u"

CASE(steps_come_in_order)
{
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
	assert_int_equal(phase(), 's');
	assert_int_equal(casync_session_state(&stub_mount.guard),
			 CASYNC_SESSION_SERVES);
	assert_int_equal(stub_mount.session.reconnects, 1);
	assert_int_equal(stub_mount.clients_alive, 1);
	assert_false(stub_mount.client->lost);
}

CASE(requests_inside_are_waited_for)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	assert_true(casync_guard_enter(&stub_mount.guard));
	stop_the_time();
	begin();
	wait_pauses(10);
	casync_guard_leave(&stub_mount.guard);
	wait_pauses(10);
	check_trace("");
	assert_int_equal(phase(), 'r');
	casync_guard_leave(&stub_mount.guard);
	start_the_time();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
}

static void enter_to_release(void)
{
	if (!casync_guard_enter_up_to(&stub_mount.guard, CASYNC_GUARD_LEAVES))
		wrong_handles++;
}

CASE(releases_inside_are_waited_for)
{
	in_forget = enter_to_release;
	stop_the_time();
	begin();
	RIG_UNTIL(NOW(forgets) >= 1);
	wait_pauses(10);
	check_trace("forget/r");
	assert_int_equal(phase(), 'c');
	casync_guard_leave(&stub_mount.guard);
	start_the_time();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
}

/* It began while the keeper forgot, and lasts longer than READs are waited for. */
CASE(guard_stays_closed_for_a_release_that_takes_long)
{
	in_forget = enter_to_release;
	stop_the_time();
	begin();
	RIG_UNTIL(NOW(forgets) >= 1);
	in_forget = NULL;
	wait_pauses(CASYNC_KEEPER_DISOWN_MS / 5 + 20);
	assert_int_equal(phase(), 'c');
	casync_guard_leave(&stub_mount.guard);
	start_the_time();
	RIG_UNTIL(serves());
	end();
	check_trace("forget/r forget/c disconnect-lost/c connect/c restore1/u "
		    "invalidate/u");
}

CASE(who_stays_inside_long_is_told_of)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	begin();
	/* 10 s of its time. */
	wait_pauses(2100);
	assert_true(stub_warned("have not returned for 10 s"));
	assert_int_equal(seen(&disconnects), 0);
	casync_guard_leave(&stub_mount.guard);
	RIG_UNTIL(serves());
	end();
}

/* --- READs that no OSD answers */

CASE(reads_are_left_with_the_old_client)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	assert_true(casync_guard_enter(&stub_mount.guard));
	reads_inside = 2;
	begin();
	RIG_UNTIL(serves());
	end();
	/* Nothing is released in it, and it does not end. */
	check_trace("forget/r disown/c forget/c connect/c restore1/u "
		    "invalidate/u");
	assert_true(stub_warned("2 READs that Ceph does not answer"));
	assert_int_equal(stub_mount.session.reconnects, 1);
	assert_int_equal(stub_mount.clients_alive, 2);
	assert_int_equal(reads_of->reads_left, 2);
	assert_int_equal(fake.clients_ended, 0);

	casync_client_put(reads_of);
	assert_int_equal(fake.clients_ended, 0);
	casync_client_put(reads_of);
	RIG_UNTIL(fake.clients_ended >= 1);
}

CASE(reads_get_a_second_to_end)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	reads_inside = 1;
	stop_the_time();
	begin();
	wait_pauses(CASYNC_KEEPER_DISOWN_MS / 5 - 20);
	check_trace("");
	assert_int_equal(phase(), 'r');
	start_the_time();
	RIG_UNTIL(serves());
	end();
	casync_client_put(reads_of);
	RIG_UNTIL(fake.clients_ended >= 1);
}

/* A WRITE that is not cancelled is waited for as ever. */
CASE(what_is_no_read_is_waited_for)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	begin();
	wait_pauses(2 * CASYNC_KEEPER_DISOWN_MS / 5);
	assert_int_equal(seen(&disconnects), 0);
	casync_guard_leave(&stub_mount.guard);
	RIG_UNTIL(serves());
	end();
	check_trace("forget/r " STEPS);
	assert_int_equal(stub_mount.clients_alive, 1);
}

/* Ganesha ends meanwhile: libcephfs may still use what is open. */
CASE(old_client_is_never_ended_if_the_keeper_ends)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	assert_true(casync_guard_enter(&stub_mount.guard));
	reads_inside = 1;
	begin();
	RIG_UNTIL(NOW(disowns) >= 1);
	end();
	check_trace("forget/r disown/c");
	/* mount_end() looks at both. */
	assert_int_equal(stub_mount.client->reads_left, 1);
	casync_client_put(reads_of);
	assert_int_equal(fake.clients_ended, 0);
	casync_guard_leave(&stub_mount.guard);
}

/* --- a READ that waits for itself */

CASE(session_is_ended_for_a_read_that_hangs)
{
	assert_int_equal(casync_keeper_start(&stub_mount), 0);
	casync_keeper_end_session(&stub_mount, 0x1234);
	RIG_UNTIL(serves());
	end();
	check_trace("end-session/s disconnect/s " STEPS);
}

CASE(session_is_not_ended_again_and_again)
{
	end_fails = true;
	assert_int_equal(casync_keeper_start(&stub_mount), 0);
	casync_keeper_end_session(&stub_mount, 0x1234);
	RIG_UNTIL(NOW(disconnects) >= 1);
	wait_pauses(2);
	casync_keeper_end_session(&stub_mount, 0x1234);
	wait_pauses(2);
	assert_int_equal(seen(&ended_sessions), 1);
	assert_false(serves());
	/* A minute of its time is over. */
	wait_pauses(40);
	casync_keeper_end_session(&stub_mount, 0x1234);
	RIG_UNTIL(NOW(ended_sessions) >= 2);
	end();
}

/* It hung in the lost client, and was answered: the next one is healthy. */
CASE(read_of_the_lost_client_does_not_end_the_next_session)
{
	/* A request inside: no next client before the READ is named. */
	assert_true(casync_guard_enter(&stub_mount.guard));
	begin();
	wait_pauses(2);
	casync_keeper_end_session(&stub_mount, 0x1234);
	casync_guard_leave(&stub_mount.guard);
	RIG_UNTIL(serves());
	wait_pauses(4);
	end();
	assert_int_equal(ended_sessions, 0);
	check_trace(STEPS);
}

/* --- a take-over of a dead node */

static int take_over(void)
{
	return casync_take_over_node(&stub_mount, "n2", 1);
}

/* One cause has hit both gateways. */
CASE(dead_node_is_ended_while_the_own_session_is_lost)
{
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	pauses_last = true;
	begin();
	RIG_UNTIL(NOW(disconnects) >= 1);
	assert_int_equal(phase(), 'c');
	assert_int_equal(take_over(), 0);
	assert_int_equal(times_set, 1);
	end();
	check_trace("forget/r disconnect-lost/c end-session-of-n2/c "
		    "disconnect/c");
}

CASE(dead_node_is_ended_before_locks_are_restored)
{
	stub_mount.params.session_timeout_s = 300;
	end_fails = true;
	assert_int_equal(take_over(), -ETIMEDOUT);
	assert_int_equal(times_set, 0);
	end_fails = false;
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace("end-session-of-n2/s disconnect/s "
		    "forget/r disconnect-lost/c "
		    "end-session-of-n2/c disconnect/c "
		    "connect/c restore1/u invalidate/u");
	assert_int_equal(times_set, 1);
	assert_null(stub_mount.take_overs[0].nodeid);
}

/* The session of this gateway is not lost. */
CASE(dead_node_is_tried_again_until_its_timeout)
{
	int i;

	stub_mount.params.session_timeout_s = 300;
	end_fails = true;
	for (i = 0; i < 2; i++)
		assert_int_equal(take_over(), -ETIMEDOUT);
	/* A node is noted once. */
	assert_null(stub_mount.take_overs[1].nodeid);
	assert_int_equal(casync_keeper_start(&stub_mount), 0);
	/* 600 s of its time: after 5, 15, 35, 75, 155 and 315. */
	wait_pauses(300);
	end();
	assert_int_equal(seen(&ended_sessions), 2 + 6);
	assert_null(stub_mount.take_overs[0].nodeid);
	assert_int_equal(connects, 0);
}

CASE(nodes_that_are_noted_have_a_bound)
{
	char nodeid[16];
	int i;

	stub_mount.params.session_timeout_s = 300;
	end_fails = true;
	for (i = 0; i < CASYNC_TAKE_OVERS_MAX + 1; i++) {
		(void)snprintf(nodeid, sizeof(nodeid), "n%d", i);
		assert_int_equal(casync_take_over_node(&stub_mount, nodeid, 1),
				 -ETIMEDOUT);
	}
	assert_true(stub_warned("session 'uuid of n8' is not ended: no answer; "
				"too many nodes"));
	for (i = 0; i < CASYNC_TAKE_OVERS_MAX; i++)
		assert_non_null(stub_mount.take_overs[i].nodeid);
}

/* --- another host may be this gateway now */

static int pauses_of(uint64_t ms)
{
	int i, found = 0;

	for (i = 0; i < pauses && i < PAUSES_MAX; i++)
		found += pause_ms[i] == ms || pause_ms[i] == ms + 1;
	return found;
}

CASE(one_of_several_gateways_waits_for_its_successor)
{
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
	assert_int_equal(pauses_of(CASYNC_NEW_SESSION_PAUSE_MS), 1);
	assert_true(stub_mount.session.reconnect_ms >=
		    CASYNC_NEW_SESSION_PAUSE_MS);
}

CASE(waiting_takes_nothing_of_its_time)
{
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	keeper->timeout_s = 1;
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
}

CASE(gateway_alone_does_not_wait)
{
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(pauses_of(CASYNC_NEW_SESSION_PAUSE_MS), 0);
	assert_true(stub_mount.session.reconnect_ms <
		    CASYNC_NEW_SESSION_PAUSE_MS);
}

CASE(end_comes_while_it_waits_for_its_successor)
{
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	pauses_last = true;
	begin();
	RIG_UNTIL(NOW(disconnects) >= 1);
	end();
	check_trace("forget/r disconnect-lost/c");
	assert_int_equal(seen(&connects), 0);
}

/* --- tries */

/* The pauses between tries, a moment longer each; not those that look after
 * something. */
static void check_pauses(const uint64_t *expected, size_t count)
{
	size_t i, n = 0;

	for (i = 0; i < (size_t)pauses && i < PAUSES_MAX && n < count; i++) {
		if (pause_ms[i] < 100 || pause_ms[i] == CASYNC_KEEPER_CHECK_MS)
			continue;
		assert_int_equal(pause_ms[i], expected[n] + 1);
		n++;
	}
	assert_int_equal(n, count);
}

CASE(tries_come_less_and_less_often)
{
	static const uint64_t expected[] = {500,  1000,	 2000,	4000,
					    8000, 16000, 30000, 30000};
	const size_t count = sizeof(expected) / sizeof(expected[0]);
	uint64_t all_ms = 0;
	size_t i;

	fails = (int)count;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(connects, count + 1);
	assert_int_equal(disconnects, 1);
	check_pauses(expected, count);
	for (i = 0; i < count; i++)
		all_ms += expected[i] + 1;
	assert_int_equal(stub_mount.session.reconnect_ms, all_ms);
}

CASE(another_file_system_is_refused)
{
	others = 3;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(connects, 4);
	assert_int_equal(disconnects, 4);
	assert_int_equal(restores, 1);
	assert_int_equal(stub_mount.fscid, FSCID);
}

/* Handles of clients name it. */
CASE(id_of_the_file_system_stays)
{
	others = INT_MAX;
	begin();
	RIG_UNTIL(NOW(connects) >= 3);
	end();
	assert_int_equal(stub_mount.fscid, FSCID);
	assert_int_equal(stub_mount.upcalls.fscid, FSCID);
	assert_int_equal(restores, 0);
}

CASE(client_that_does_not_end_is_left_behind)
{
	stuck = 1;
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
	/* The mount is not freed. */
	assert_int_equal(stub_mount.clients_alive, 2);
	assert_non_null(stub_mount.client);
}

CASE(client_that_is_refused_and_does_not_end_is_left_behind)
{
	others = 1;
	stuck = 2;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(stub_mount.clients_alive, 2);
	assert_int_equal(connects, 2);
}

CASE(session_that_is_lost_again_is_replaced_again)
{
	lost_again = 1;
	begin();
	RIG_UNTIL(serves());
	end();
	check_trace("forget/r disconnect-lost/c connect/c restore1/u "
		    "forget/r disconnect-lost/c connect/c restore2/u "
		    "invalidate/u");
	assert_int_equal(stub_mount.session.reconnects, 1);
}

CASE(next_loss_has_a_client_of_its_own)
{
	begin();
	RIG_UNTIL(serves());
	__atomic_store_n(&stub_mount.session.reconnects, 0, __ATOMIC_RELEASE);
	lose_session();
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS " forget/r disconnect-lost/c connect/c restore2/u "
			  "invalidate/u");
}

/* A reload says so while there is no client. */
CASE(without_reconnect_no_client_is_made)
{
	pauses_last = true;
	nfs_param.nfsv4_param.recovery_backend = RECOVERY_BACKEND_RADOS_CLUSTER;
	begin();
	RIG_UNTIL(NOW(disconnects) >= 1);
	__atomic_store_n(&keeper->reconnect, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&pauses_last, false, __ATOMIC_RELEASE);
	/* That wakes it. */
	casync_keeper_end_session(&stub_mount, 1);
	wait_pauses(4);
	check_trace("forget/r disconnect-lost/c");
	assert_int_equal(phase(), 'c');

	/* Nothing of the client that is gone is released. */
	__atomic_store_n(&keeper->reconnect, 1, __ATOMIC_RELEASE);
	RIG_UNTIL(serves());
	end();
	check_trace(STEPS);
}

/* --- its end */

CASE(end_comes_between_tries)
{
	fails = INT_MAX;
	begin();
	RIG_UNTIL(NOW(connects) >= 3);
	/* The next pause would last for ever. */
	__atomic_store_n(&pauses_last, true, __ATOMIC_RELEASE);
	wait_pauses(1);
	end();
	assert_int_equal(restores, 0);
	assert_int_equal(phase(), 'c');
	assert_null(stub_mount.client);
	assert_false(gave_up());
}

CASE(end_comes_while_somebody_is_inside)
{
	assert_true(casync_guard_enter(&stub_mount.guard));
	stop_the_time();
	begin();
	wait_pauses(10);
	end();
	check_trace("");
	assert_non_null(stub_mount.client);
	casync_guard_leave(&stub_mount.guard);
}

/* What comes after it gave up: no try, and the client gets the error. */
static void check_given_up(const char *why)
{
	int before;

	assert_true(stub_warned(why));
	before = seen(&connects);
	/* Three looks at least. */
	wait_pauses(4);
	assert_int_equal(seen(&connects), before);
	assert_int_equal(casync_session_answer(&stub_mount,
					       fsalstat(ERR_FSAL_IO, ENOTCONN),
					       false)
				 .major,
			 ERR_FSAL_IO);
	assert_false(serves());
	end();
}

CASE(it_gives_up_in_time)
{
	fails = INT_MAX;
	keeper->timeout_s = 60;
	begin();
	RIG_UNTIL(gave_up());
	/* 61.5 s after seven tries; it does not wait for an eighth. */
	assert_int_equal(seen(&connects), 8);
	check_given_up("(Reconnect_Timeout)");
	assert_int_equal(phase(), 'c');
}

CASE(without_a_time_it_never_gives_up)
{
	fails = 500;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(connects, 501);
	assert_false(gave_up());
}

/* The MDS has yet to end the lost session, or the other one has gone. */
CASE(name_that_becomes_free_is_taken)
{
	fails = taken = 5;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(connects, 6);
	assert_false(gave_up());
}

CASE(whoever_was_replaced_stays_down)
{
	stub_mount.params.session_timeout_s = 300;
	fails = taken = INT_MAX;
	begin();
	RIG_UNTIL(gave_up());
	check_given_up("keeps its name");
	/* 31.5 s for seven tries, then one each 30 s until 360 s are over. */
	assert_int_equal(seen(&connects), 18);
	assert_int_equal(phase(), 'c');
}

/* An MDS that is away says nothing about the name. */
CASE(only_a_refusal_without_a_gap_counts)
{
	stub_mount.params.session_timeout_s = 300;
	fails = 60;
	taken = 10;
	begin();
	RIG_UNTIL(serves());
	end();
	assert_int_equal(connects, 61);
}

/* How long it has waited for who is inside. */
static uint64_t short_pauses_ms(void)
{
	uint64_t all_ms = 0;
	int i;

	for (i = 0; i < pauses && i < PAUSES_MAX; i++)
		all_ms += pause_ms[i] < 100 ? pause_ms[i] : 0;
	return all_ms;
}

/* Each try succeeds, and is lost before it serves. */
CASE(losing_again_and_again_takes_no_more_time)
{
	lost_again = INT_MAX;
	keeper->timeout_s = 60;
	begin();
	RIG_UNTIL(gave_up());
	check_given_up("(Reconnect_Timeout)");
	/* One for each pause of 2 s. */
	assert_in_range(connects, 25, 35);
}

CASE(it_gives_up_while_somebody_is_inside)
{
	keeper->timeout_s = 4;
	assert_true(casync_guard_enter(&stub_mount.guard));
	begin();
	RIG_UNTIL(gave_up());
	check_given_up("(Reconnect_Timeout)");
	assert_int_equal(connects, 0);
	assert_in_range(short_pauses_ms(), 4000, 4100);
	/* Nothing is released any more.  So no delegation may be left. */
	assert_int_equal(phase(), 'c');
	check_trace("forget/r forget/r");
	casync_guard_leave(&stub_mount.guard);
}
