/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which exports share a client of CephFS, when it is connected and when it ends.
 * What connects, and the threads of a mount, are stood in for.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"

#include "city.h"
#include "client.h"
#include "common_grace.h"
#include "connect.h"
#include "deadline_call.h"
#include "leave.h"
#include "mount.h"
#include "stale_sessions.h"
#include "stub_log.h"

/* --- connecting: each step is written down */

static char steps[2048];
static pthread_mutex_t steps_lock = PTHREAD_MUTEX_INITIALIZER;
static int connect_result;
static int connects, closes; /* atomic */
static bool end_shared, old_uuid;
static int start_results[2]; /* Keeper, lanes. */
static bool does_not_close, closed_as_lost;
static bool keeper_hangs, lanes_hang;
static int stays;
static int nodeid_result;
static sem_t come, go;
/* A connect, or a close, waits for `go`. */
static bool gate, close_gate;
static char said[1024];
static int notes_of_stuck;
static int upcalls_in_use;

static void step(const char *format, ...)
{
	va_list args;
	size_t used;

	pthread_mutex_lock(&steps_lock);
	used = strlen(steps);
	va_start(args, format);
	(void)vsnprintf(steps + used, sizeof(steps) - used, format, args);
	va_end(args);
	pthread_mutex_unlock(&steps_lock);
}

void stub_log_line(log_levels_t level, const char *text)
{
}

/* A client that connected; nothing is counted for one that did not. */
int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params,
		   struct casync_client **client)
{
	assert_true(NOW(upcalls_in_use) > 0);
	step("connect ");
	end_shared = params->end_shared;
	old_uuid = mount->identity.use_old_uuid;
	assert_ptr_equal(params->mds_was_restarted, casync_stale_sessions_end);
	__atomic_add_fetch(&connects, 1, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&gate, __ATOMIC_ACQUIRE)) {
		sem_post(&come);
		(void)rig_wait(&go);
	}
	if (connect_result != 0)
		return connect_result;
	*client = gsh_calloc(1, sizeof(**client));
	(*client)->mount = mount;
	(*client)->fscid = 3;
	(*client)->delegations = true;
	mount->clients_alive++;
	return 0;
}

bool casync_client_end(struct casync_client *client, uint32_t timeout_s)
{
	step("close ");
	closed_as_lost = client->lost;
	if (close_gate) {
		sem_post(&come);
		(void)rig_wait(&go);
	}
	__atomic_add_fetch(&closes, 1, __ATOMIC_ACQ_REL);
	if (does_not_close)
		return false;
	client->mount->clients_alive--;
	gsh_free(client);
	return true;
}

uint32_t casync_client_end_time_s(uint32_t timeout_s)
{
	return timeout_s;
}

void casync_client_note_stuck(const struct casync_identity *identity,
			      uint32_t timeout_s)
{
	notes_of_stuck++;
}

/* As its names are made (identity.h). */
int casync_connect_own_uuid(const struct casync_identity *identity, char *uuid,
			    size_t size)
{
	if (identity->own)
		(void)snprintf(uuid, size, "own-%u", identity->export_id);
	else if (identity->use_old_uuid)
		(void)snprintf(uuid, size, "old-%u", identity->export_id);
	else
		(void)snprintf(uuid, size, "%s@%s:%s", identity->user_id,
			       identity->filesystem, identity->path);
	return nodeid_result;
}

int casync_connect_failed(const struct casync_identity *identity, int rc,
			  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	return rc;
}

/* identity.c's. */
uint64 CityHash64(const char *buf, size_t len)
{
	return 0;
}

/* --- the parts of a mount */

void casync_upcalls_init(struct casync_upcalls *upcalls)
{
	__atomic_add_fetch(&upcalls_in_use, 1, __ATOMIC_RELAXED);
}

void casync_upcalls_destroy(struct casync_upcalls *upcalls)
{
	__atomic_sub_fetch(&upcalls_in_use, 1, __ATOMIC_RELAXED);
}

static uint16_t oldest;

uint16_t casync_upcalls_oldest_export(struct casync_upcalls *upcalls,
				      uint16_t otherwise)
{
	return oldest != 0 ? oldest : otherwise;
}

int casync_keeper_start(struct casync_mount *mount)
{
	step("keeper ");
	return start_results[0];
}

int casync_lane_start_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES])
{
	step("lanes ");
	return start_results[1];
}

bool casync_lane_stop_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES],
			    uint32_t timeout_s)
{
	step("stop-lanes-%u ", timeout_s);
	return !lanes_hang;
}

void casync_pin_module(void)
{
	stays++;
}

bool casync_deadline_call_stop_thread(struct casync_deadline_thread *thread,
				      uint32_t timeout_s)
{
	step("stop-%u ", timeout_s);
	return !keeper_hangs;
}

void casync_deadline_call_free_thread(struct casync_deadline_thread *thread)
{
	step("free-keeper ");
}

void casync_stale_sessions_forget(const char *uuid)
{
	step("forget-%s ", uuid);
}

void casync_stale_sessions_end_former(const struct casync_identity *identity,
				      const struct casync_mount_params *params)
{
}

void casync_stale_sessions_end(const char *filesystem,
			       const struct casync_mount_params *params)
{
	step("end-stale-%s ", filesystem);
}

void casync_common_grace_await_known(void)
{
	step("lead ");
}

void casync_common_grace_begins(void)
{
	step("grace ");
}

static int take_over_results[2];
static int taken_over;

int casync_take_over_node(struct casync_mount *mount, const char *nodeid,
			  uint32_t timeout_s)
{
	assert_string_equal(nodeid, "node2");
	assert_int_equal(timeout_s, 9);
	return take_over_results[taken_over++];
}

void casync_take_over_forget(struct casync_mount *mount)
{
}

static int left;
static bool leave_hangs;

bool casync_leave_session(struct casync_mount *mount, uint32_t timeout_s)
{
	assert_int_equal(timeout_s, 30);
	left++;
	return !leave_hangs;
}

/* --- */

static struct casync_identity key;
static struct casync_mount_params params;

static int up(void **state)
{
	steps[0] = said[0] = '\0';
	connect_result = 0;
	memset(start_results, 0, sizeof(start_results));
	memset(take_over_results, 0, sizeof(take_over_results));
	connects = closes = taken_over = notes_of_stuck = 0;
	does_not_close = closed_as_lost = end_shared = old_uuid = false;
	gate = close_gate = false;
	keeper_hangs = lanes_hang = false;
	stays = left = 0;
	leave_hangs = false;
	nodeid_result = 0;
	oldest = 0;
	key = (struct casync_identity){.user_id = "u",
				       .filesystem = "fs",
				       .path = "/p",
				       .secret = "s",
				       .export_id = 1};
	params = (struct casync_mount_params){.timeout_s = 20,
					      .drain_timeout_s = 30,
					      .reconnect = 1,
					      .reconnect_timeout_s = 40};
	sem_init(&come, 0, 0);
	sem_init(&go, 0, 0);
	return 0;
}

static int down(void **state)
{
	sem_destroy(&come);
	sem_destroy(&go);
	return 0;
}

static struct casync_mount *get(void)
{
	struct casync_mount *mount = NULL;

	assert_int_equal(casync_mount_get(&key, &params, &mount), 0);
	assert_non_null(mount);
	return mount;
}

static void check_refused(int rc)
{
	struct casync_mount *mount = NULL;

	assert_int_equal(casync_mount_get(&key, &params, &mount), rc);
	assert_null(mount);
}

TEST_WITH(exports_of_one_identity_share_a_client, up, down)
{
	struct casync_mount *first = get(), *second;

	assert_string_equal(steps,
			    "forget-u@fs:/p lanes connect grace keeper ");
	assert_int_equal(first->fscid, 3);
	assert_int_equal(first->upcalls.fscid, 3);
	assert_true(first->delegations);
	assert_string_equal(first->session.client, "u@fs:/p");
	key.export_id = 2;
	second = get();
	assert_ptr_equal(first, second);
	assert_int_equal(connects, 1);
	casync_mount_put(first);
	assert_int_equal(closes, 0);
	casync_mount_put(second);
	assert_int_equal(closes, 1);
	assert_int_equal(upcalls_in_use, 0);
	assert_false(closed_as_lost);
}

static const struct identity_case {
	const char *name;
	struct casync_identity key;
	bool shares;
} identities[] = {
	{"same", {"u", "fs", "/p", "s", 2, false, false}, true},
	{"other_user", {"v", "fs", "/p", "s", 2, false, false}, false},
	{"other_file_system", {"u", "gs", "/p", "s", 2, false, false}, false},
	{"other_path", {"u", "fs", "/q", "s", 2, false, false}, false},
	{"own", {"u", "fs", "/p", "s", 2, true, false}, false},
};

TEST_ROWS(check_identity, identities, up, down)
{
	const struct identity_case *c = *state;
	struct casync_mount *first = get(), *second;

	key = c->key;
	second = get();
	assert_int_equal(first == second, c->shares);
	assert_int_equal(connects, c->shares ? 1 : 2);
	casync_mount_put(second);
	casync_mount_put(first);
	assert_int_equal(closes, c->shares ? 1 : 2);
}

TEST_WITH(each_own_client_is_of_one_export, up, down)
{
	struct casync_mount *first, *second, *again;

	key.own = true;
	first = get();
	assert_string_equal(first->session.client, "u@fs:/p#1");
	key.export_id = 2;
	second = get();
	assert_ptr_not_equal(first, second);
	again = get();
	assert_ptr_equal(second, again);
	casync_mount_put(first);
	casync_mount_put(second);
	casync_mount_put(again);
	assert_int_equal(closes, 2);
}

TEST_WITH(what_is_not_set_has_a_name_in_the_metrics, up, down)
{
	struct casync_mount *mount;

	key.user_id = key.filesystem = key.secret = NULL;
	mount = get();
	assert_string_equal(mount->session.client, "admin@(default):/p");
	casync_mount_put(mount);
}

/* --- what cannot be shared */

/* Two clients of one session would end each other's, for ever. */
TEST_WITH(another_secret_for_the_same_session_is_refused, up, down)
{
	struct casync_mount *mount = get();

	key.secret = "t";
	check_refused(-EINVAL);
	assert_non_null(strstr(said, "Secret_Access_Key"));
	assert_int_equal(connects, 1);
	casync_mount_put(mount);
	mount = get();
	assert_int_equal(connects, 2);
	casync_mount_put(mount);
}

/* An older name is of the mount's first export, which may have left it. */
TEST_WITH(older_name_that_is_taken_becomes_the_other_form, up, down)
{
	struct casync_mount *first, *second;

	key.use_old_uuid = true;
	first = get();
	assert_true(old_uuid);
	key.path = "/q";
	second = get();
	assert_ptr_not_equal(first, second);
	assert_false(old_uuid);
	assert_string_equal(second->uuid, "u@fs:/q");
	assert_false(second->identity.use_old_uuid);
	casync_mount_put(first);
	casync_mount_put(second);
}

TEST_WITH(other_options_are_refused, up, down)
{
	struct casync_mount *mount;

	params.ceph_options = "client_cache_size=5\n";
	mount = get();
	params.ceph_options = "client_cache_size=6\n";
	check_refused(-EINVAL);
	assert_non_null(strstr(said, "Ceph_Option"));
	assert_int_equal(closes, 0);
	casync_mount_put(mount);
	assert_int_equal(closes, 1);
}

TEST_WITH(without_a_name_nothing_is_connected, up, down)
{
	nodeid_result = -ENOENT;
	check_refused(-ENOENT);
	assert_int_equal(connects, 0);
}

/* --- building */

TEST_WITH(client_that_does_not_connect_is_forgotten, up, down)
{
	struct casync_mount *mount;

	connect_result = -EACCES;
	check_refused(-EACCES);
	assert_int_equal(upcalls_in_use, 0);
	connect_result = 0;
	mount = get();
	assert_int_equal(connects, 2);
	casync_mount_put(mount);
}

static const struct thread_case {
	const char *name;
	int index;
} threads[] = {{"keeper", 0}, {"lanes", 1}};

TEST_ROWS(check_thread_that_does_not_start, threads, up, down)
{
	const struct thread_case *c = *state;

	start_results[c->index] = -EAGAIN;
	check_refused(-EAGAIN);
	assert_int_equal(closes, connects);
}

static void *get_on_thread(void *mount)
{
	*(struct casync_mount **)mount = get();
	return NULL;
}

static void *fail_on_thread(void *unused)
{
	check_refused(-EACCES);
	return NULL;
}

static void *put_on_thread(void *mount)
{
	casync_mount_put(mount);
	return NULL;
}

static pthread_t run(void *(*main)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, main, arg), 0);
	return thread;
}

/* Time for a thread to do what it must not. */
static void linger(void)
{
	const struct timespec moment = {.tv_nsec = 20000000};

	nanosleep(&moment, NULL);
}

TEST_WITH(export_waits_for_a_client_that_connects, up, down)
{
	struct casync_mount *first = NULL, *second = NULL;
	pthread_t one, other;

	gate = true;
	one = run(get_on_thread, &first);
	assert_true(rig_wait(&come));
	other = run(get_on_thread, &second);
	linger();
	assert_int_equal(__atomic_load_n(&connects, __ATOMIC_ACQUIRE), 1);
	sem_post(&go);
	RIG_JOIN(one, NULL);
	RIG_JOIN(other, NULL);
	assert_ptr_equal(first, second);
	assert_int_equal(connects, 1);
	casync_mount_put(first);
	casync_mount_put(second);
	assert_int_equal(closes, 1);
}

TEST_WITH(both_exports_have_the_error, up, down)
{
	pthread_t one, other;

	gate = true;
	connect_result = -EACCES;
	one = run(fail_on_thread, NULL);
	assert_true(rig_wait(&come));
	other = run(fail_on_thread, NULL);
	linger();
	sem_post(&go);
	sem_post(&go);
	RIG_JOIN(one, NULL);
	RIG_JOIN(other, NULL);
	assert_int_equal(upcalls_in_use, 0);
}

/* --- the end of the shared session of a former run */

TEST_WITH(own_client_ends_the_session_that_was_shared, up, down)
{
	struct casync_mount *own, *shared;

	key.own = true;
	own = get();
	assert_true(end_shared);
	casync_mount_put(own);

	/* Not that of this very run. */
	key.own = false;
	shared = get();
	assert_false(end_shared);
	key.own = true;
	key.export_id = 2;
	own = get();
	assert_false(end_shared);
	casync_mount_put(own);
	/* Its name is that of the shared one's identity. */
	key.path = "/q";
	own = get();
	assert_true(end_shared);
	casync_mount_put(own);
	casync_mount_put(shared);
}

TEST_WITH(older_name_is_that_of_the_export, up, down)
{
	struct casync_mount *own, *shared;

	key.use_old_uuid = true;
	shared = get();
	key.own = true;
	key.path = "/q";
	own = get();
	assert_false(end_shared);
	casync_mount_put(own);
	key.export_id = 2;
	own = get();
	assert_true(end_shared);
	casync_mount_put(own);
	casync_mount_put(shared);
}

/* It has the other form of a name: no mount has the one of a former run. */
TEST_WITH(mount_that_was_renamed_is_not_the_shared_one, up, down)
{
	struct casync_mount *first, *renamed, *own;

	key.use_old_uuid = true;
	first = get();
	key.path = "/q";
	renamed = get();
	key.own = true;
	key.export_id = 2;
	own = get();
	assert_true(end_shared);
	casync_mount_put(own);
	casync_mount_put(renamed);
	casync_mount_put(first);
}

/* --- ending */

TEST_WITH(threads_end_before_the_client, up, down)
{
	struct casync_mount *mount = get();

	steps[0] = '\0';
	casync_mount_put(mount);
	assert_string_equal(steps, "stop-30 stop-lanes-30 free-keeper close ");
}

TEST_WITH(lost_session_is_told_to_the_client, up, down)
{
	struct casync_mount *mount = get();

	assert_true(casync_guard_change(&mount->guard, CASYNC_GUARD_SERVES,
					CASYNC_GUARD_LEAVES));
	casync_mount_put(mount);
	assert_true(closed_as_lost);
}

/* libcephfs may use what is left: it is never freed, and nobody gets it. */
TEST_WITH(client_that_does_not_end_has_a_successor, up, down)
{
	struct casync_mount *mount = get(), *next;

	does_not_close = true;
	casync_mount_put(mount);
	does_not_close = false;
	assert_string_equal(mount->identity.path, "/p");
	next = get();
	assert_ptr_not_equal(mount, next);
	assert_int_equal(connects, 2);
	casync_mount_put(next);
}

TEST_WITH(thread_that_hangs_keeps_its_client, up, down)
{
	struct casync_mount *mount = get();

	keeper_hangs = true;
	steps[0] = '\0';
	casync_mount_put(mount);
	/* The lanes are not waited for. */
	assert_string_equal(steps, "stop-30 stop-lanes-0 ");
	assert_int_equal(closes, 0);
	assert_int_equal(notes_of_stuck, 1);
	assert_string_equal(mount->identity.path, "/p");
}

/* Its threads run our code. */
TEST_WITH(job_that_hangs_keeps_its_client, up, down)
{
	struct casync_mount *mount = get();

	lanes_hang = true;
	casync_mount_put(mount);
	assert_int_equal(closes, 0);
	assert_int_equal(notes_of_stuck, 1);
	assert_int_equal(stays, 1);
	assert_string_equal(mount->identity.path, "/p");
}

/* READs that were left with it, or a call to reclaim a session. */
TEST_WITH(mount_with_another_client_alive_is_kept, up, down)
{
	struct casync_mount *mount = get();

	mount->clients_alive++;
	casync_mount_put(mount);
	assert_int_equal(closes, 1);
	assert_string_equal(mount->identity.path, "/p");
}

/* READs were left with it, and the keeper ended before a WRITE had returned. */
TEST_WITH(client_that_somebody_may_be_inside_is_kept, up, down)
{
	struct casync_mount *mount = get();

	mount->client->reads_left = 1;
	assert_true(casync_guard_enter(&mount->guard));
	casync_mount_put(mount);
	assert_int_equal(closes, 0);
	assert_string_equal(mount->identity.path, "/p");
}

/* The successor has the same session. */
TEST_WITH(successor_waits_until_the_client_has_ended, up, down)
{
	struct casync_mount *first = get(), *next = NULL;
	pthread_t ending, waiting;

	close_gate = true;
	ending = run(put_on_thread, first);
	assert_true(rig_wait(&come));
	waiting = run(get_on_thread, &next);
	linger();
	assert_int_equal(__atomic_load_n(&connects, __ATOMIC_ACQUIRE), 1);
	sem_post(&go);
	RIG_JOIN(ending, NULL);
	RIG_JOIN(waiting, NULL);
	assert_int_equal(connects, 2);
	close_gate = false;
	casync_mount_put(next);
}

/* --- Ganesha ends, and a successor is to come */

TEST_WITH(session_of_several_exports_is_left_once, up, down)
{
	struct casync_mount *first = get(), *other;

	key.export_id = 2;
	assert_ptr_equal(get(), first);
	key.path = "/q";
	other = get();
	casync_mount_leave(first, 30);
	casync_mount_leave(first, 30);
	assert_int_equal(left, 1);
	casync_mount_leave(other, 30);
	assert_int_equal(left, 2);
	casync_mount_put(first);
	assert_int_equal(closes, 0);
	casync_mount_put(first);
	casync_mount_put(other);
	assert_int_equal(closes, 2);
}

TEST_WITH(mount_that_was_not_left_in_time_is_never_ended, up, down)
{
	struct casync_mount *mount;

	/* It stays in the registry, where no other case asks for it. */
	key.path = "/never-ended";
	mount = get();
	leave_hangs = true;
	casync_mount_leave(mount, 30);
	steps[0] = '\0';
	casync_mount_put(mount);
	assert_string_equal(steps, "");
	assert_int_equal(closes, 0);
}

/* --- a reload */

TEST_WITH(reload_takes_the_values_of_the_oldest_export, up, down)
{
	struct casync_mount *mount = get();
	struct casync_tuning tuning = {
		.drain_timeout = 5, .reconnect = 0, .reconnect_timeout = 6};

	assert_int_equal(mount->drain_timeout_s, 30);
	assert_int_equal(mount->keeper.timeout_s, 40);
	oldest = 7;
	assert_int_equal(casync_mount_tune(mount, 1, &tuning), 7);
	assert_int_equal(mount->drain_timeout_s, 30);
	assert_int_equal(mount->keeper.reconnect, 1);
	oldest = 1;
	assert_int_equal(casync_mount_tune(mount, 1, &tuning), 1);
	assert_int_equal(mount->drain_timeout_s, 5);
	assert_int_equal(mount->keeper.reconnect, 0);
	assert_int_equal(mount->keeper.timeout_s, 6);
	casync_mount_put(mount);
}

/* --- another node has died */

TEST_WITH(each_mount_takes_over, up, down)
{
	struct casync_mount *first = get(), *second;

	key.path = "/q";
	second = get();
	take_over_results[1] = -EACCES;
	assert_int_equal(casync_mount_take_over("node2", 9), -EACCES);
	assert_int_equal(taken_over, 2);
	assert_non_null(strstr(steps, "grace lead "));
	taken_over = 0;
	take_over_results[0] = -ETIMEDOUT;
	assert_int_equal(casync_mount_take_over("node2", 9), -ETIMEDOUT);
	assert_int_equal(taken_over, 2);
	taken_over = 0;
	take_over_results[0] = take_over_results[1] = 0;
	assert_int_equal(casync_mount_take_over("node2", 9), 0);
	assert_int_equal(closes, 0);
	casync_mount_put(first);
	casync_mount_put(second);
	assert_int_equal(closes, 2);
	taken_over = 0;
	assert_int_equal(casync_mount_take_over("node2", 9), 0);
	assert_int_equal(taken_over, 0);
}
