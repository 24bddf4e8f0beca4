/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "fsal.h"
#include "fsal_up.h"

#include "filehandle.h"
#include "object.h"
#include "rig.h"
#include "rig_lanes.h"
#include "strict.h"
#include "stub_mount.h"
#include "upcalls.h"

#define FSCID 7
#define INO 0x10000000123
#define EXPORTS 2

enum heard_kind { TRY_RELEASE, INVALIDATE, KINDS };

/* What an export's cache was told; all by the worker, one after the other. */
struct listener {
	struct casync_export exp;
	struct fsal_up_vector up;
	int heard[KINDS]; /* atomic */
	struct casync_fileid last;
	uint16_t last_export_id;
	uint32_t last_flags;
	bool on_thread; /* casync_upcalls_on_thread(), the last time */
};

static struct listener listeners[EXPORTS];
/* The mount's. */
static struct casync_upcalls *const upcalls = &stub_mount.upcalls;

/* An upcall stops here when gated. */
static bool gated; /* atomic */
static sem_t begun;
static sem_t gate;
static bool gate_timed_out;
static fsal_errors_t release_status;
static int bad_handles;
static int ready_waits; /* atomic */
static void (*in_upcall)(void);

void up_ready_wait(struct fsal_up_vector *up_ops)
{
	(void)up_ops;
	__atomic_add_fetch(&ready_waits, 1, __ATOMIC_ACQ_REL);
}

static void heard(const struct fsal_up_vector *up, enum heard_kind kind,
		  const struct gsh_buffdesc *handle, uint32_t flags)
{
	struct listener *to = container_of(up, struct listener, up);

	/* Not an assert_: those jump, and this is a worker. */
	if (handle->len != CASYNC_KEY_BYTES ||
	    !casync_filehandle_decode(handle->addr, CASYNC_WIRE_BYTES,
				      &to->last))
		bad_handles++;
	memcpy(&to->last_export_id, (char *)handle->addr + CASYNC_WIRE_BYTES,
	       sizeof(to->last_export_id));
	to->last_flags = flags;
	to->on_thread = casync_upcalls_on_thread();
	if (__atomic_load_n(&gated, __ATOMIC_ACQUIRE)) {
		sem_post(&begun);
		if (!rig_wait(&gate))
			gate_timed_out = true;
	}
	if (in_upcall != NULL)
		in_upcall();
	__atomic_add_fetch(&to->heard[kind], 1, __ATOMIC_ACQ_REL);
}

static fsal_status_t try_release(const struct fsal_up_vector *vec,
				 struct gsh_buffdesc *obj, uint32_t flags)
{
	heard(vec, TRY_RELEASE, obj, flags);
	return fsalstat(release_status, 0);
}

static fsal_status_t invalidate(const struct fsal_up_vector *vec,
				struct gsh_buffdesc *obj, uint32_t flags)
{
	heard(vec, INVALIDATE, obj, flags);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static void set_up(struct listener *listener, uint16_t export_id)
{
	memset(listener, 0, sizeof(*listener));
	listener->up.try_release = try_release;
	listener->up.invalidate = invalidate;
	listener->exp.export.up_ops = &listener->up;
	listener->exp.export.export_id = export_id;
	listener->exp.mount = &stub_mount;
	casync_upcalls_join(upcalls, &listener->exp);
}

/* A callback queues its event, and the job of the mount. */
static void allow_locks(void)
{
	strict_allow_begin();
	pthread_mutex_lock(&upcalls->lock);
	pthread_mutex_unlock(&upcalls->lock);
	(void)casync_lane_is_stopping(
		casync_lane_of_process(CASYNC_LANE_UPCALL));
	strict_allow_end();
}

static int up(void **state)
{
	unsigned int i;

	stub_reset();
	fake_setup(0, RIG_OBJECT);
	gated = false;
	gate_timed_out = false;
	release_status = ERR_FSAL_STILL_IN_USE;
	bad_handles = 0;
	in_upcall = NULL;
	ready_waits = 0;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	stub_mount_reset();
	casync_upcalls_init(upcalls);
	upcalls->fscid = FSCID;
	for (i = 0; i < EXPORTS; i++)
		set_up(&listeners[i], (uint16_t)(77 + i));
	if (casync_upcalls_register(upcalls, NULL) != 0)
		return -1;
	if (rig_lanes_up() != 0)
		return -1;
	allow_locks();
	return 0;
}

static int down(void **state)
{
	unsigned int i;

	for (i = 0; i < EXPORTS; i++)
		casync_upcalls_leave(upcalls, &listeners[i].exp);
	casync_upcalls_destroy(upcalls);
	rig_lanes_down();
	fake_teardown();
	sem_destroy(&begun);
	sem_destroy(&gate);
	return gate_timed_out || bad_handles != 0 || strict_offences() != 0 ? -1
									    : 0;
}

#define CASE(test) TEST_WITH(test, up, down)

/* --- libcephfs calls, on a thread of its own */

static vinodeno_t vino_of(uint64_t ino)
{
	vinodeno_t vino;

	memset(&vino, 0, sizeof(vino));
	vino.ino.val = ino;
	vino.snapid.val = CEPH_NOSNAP;
	return vino;
}

struct calls {
	void (*call)(uint64_t ino);
	unsigned int count;
};

static void *call_on_thread(void *arg)
{
	const struct calls *calls = arg;
	unsigned int i;

	strict_begin();
	for (i = 0; i < calls->count; i++)
		calls->call(INO + i);
	strict_end();
	return NULL;
}

static void libcephfs_calls(void (*call)(uint64_t ino), unsigned int count)
{
	struct calls calls = {.call = call, .count = count};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_on_thread, &calls),
			 0);
	RIG_JOIN(thread, NULL);
}

static void release_inode(uint64_t ino)
{
	fake.callbacks.ino_release_cb(fake.callbacks.handle, vino_of(ino));
}

static void invalidate_inode(uint64_t ino)
{
	fake.callbacks.ino_cb(fake.callbacks.handle, vino_of(ino), 0, 0);
}

static void cut_inode(uint64_t ino)
{
	fake.callbacks.ino_cb(fake.callbacks.handle, vino_of(ino), 100, 900);
}

static void invalidate_dentry(uint64_t ino)
{
	fake.callbacks.dentry_cb(fake.callbacks.handle, vino_of(ino),
				 vino_of(0), "name", 4);
}

static void remove_dentry(uint64_t ino)
{
	fake.callbacks.dentry_cb(fake.callbacks.handle, vino_of(INO - 1),
				 vino_of(ino), "name", 4);
}

static void check_heard(unsigned int listener, enum heard_kind kind, int count)
{
	assert_int_equal(__atomic_load_n(&listeners[listener].heard[kind],
					 __ATOMIC_ACQUIRE),
			 count);
}

static void close_gate(void)
{
	__atomic_store_n(&gated, true, __ATOMIC_RELEASE);
}

static void open_gate(void)
{
	__atomic_store_n(&gated, false, __ATOMIC_RELEASE);
	sem_post(&gate);
}

static bool is_running(void)
{
	bool running;

	pthread_mutex_lock(&upcalls->lock);
	running = upcalls->running;
	pthread_mutex_unlock(&upcalls->lock);
	return running;
}

/* Everything queued has been carried: the job is at its end. */
static void settle(void)
{
	RIG_UNTIL(!is_running());
}

/* --- what comes of each */

struct kind_case {
	const char *name;
	void (*call)(uint64_t ino);
	enum heard_kind kind;
	bool flags_known; /* the constants are variables in C */
	bool directory;
};

static const struct kind_case kind_cases[] = {
	{"release_is_told_to_every_export", release_inode, TRY_RELEASE, false,
	 false},
	{"invalid_inode_is_told_to_every_export", invalidate_inode, INVALIDATE,
	 true, false},
	{"invalid_name_is_told_of_its_directory", invalidate_dentry, INVALIDATE,
	 true, true},
};

TEST_ROWS(check_kind, kind_cases, up, down)
{
	const struct kind_case *c = *state;
	uint32_t flags = c->directory ? FSAL_UP_INVALIDATE_DIR_POPULATED |
						FSAL_UP_INVALIDATE_DIR_CHUNKS
				      : FSAL_UP_INVALIDATE_CACHE;
	unsigned int i, kind;

	libcephfs_calls(c->call, 1);
	settle();
	for (i = 0; i < EXPORTS; i++) {
		for (kind = 0; kind < KINDS; kind++)
			check_heard(i, kind, kind == c->kind);
		assert_true(listeners[i].last.ino == INO);
		assert_true(listeners[i].last.snapid == CEPH_NOSNAP);
		assert_int_equal(listeners[i].last.fscid, FSCID);
		assert_int_equal(listeners[i].last_export_id, 77 + i);
		assert_true(listeners[i].on_thread);
		if (c->flags_known)
			assert_int_equal(listeners[i].last_flags, flags);
	}
	assert_false(casync_upcalls_on_thread());
	/* None before Ganesha has set the export up. */
	assert_int_equal(ready_waits, EXPORTS);
}

/* --- files that somebody else has removed */

static void check_tried(int count)
{
	unsigned int i;

	settle();
	for (i = 0; i < EXPORTS; i++) {
		check_heard(i, TRY_RELEASE, count);
		check_heard(i, INVALIDATE, 1); /* the directory */
	}
}

CASE(removed_file_is_released)
{
	release_status = ERR_FSAL_NO_ERROR;
	libcephfs_calls(remove_dentry, 1);
	check_tried(1);
	assert_true(listeners[0].last.ino == INO);
	casync_upcalls_try_removed(upcalls);
	check_tried(1);
}

CASE(removed_file_in_use_is_released_later)
{
	libcephfs_calls(remove_dentry, 1);
	check_tried(1);
	casync_upcalls_try_removed(upcalls);
	check_tried(2);
	release_status = ERR_FSAL_NO_ERROR;
	casync_upcalls_try_removed(upcalls);
	check_tried(3);
	casync_upcalls_try_removed(upcalls);
	check_tried(3);
}

/* A request has just found it: it gets into the cache. */
CASE(removed_file_that_is_not_cached_is_looked_for_again)
{
	release_status = ERR_FSAL_NOENT;
	libcephfs_calls(remove_dentry, 1);
	check_tried(1);
	casync_upcalls_try_removed(upcalls);
	check_tried(2);
	casync_upcalls_try_removed(upcalls);
	check_tried(2);
}

CASE(removed_files_in_use_are_bounded)
{
	libcephfs_calls(remove_dentry, CASYNC_UPCALLS_REMOVED_MAX + 9);
	settle();
	assert_int_equal(upcalls->removed_count, CASYNC_UPCALLS_REMOVED_MAX);
	/* The same ones take no more room. */
	casync_upcalls_try_removed(upcalls);
	casync_upcalls_removed(upcalls, INO, CEPH_NOSNAP);
	settle();
	assert_int_equal(upcalls->removed_count, CASYNC_UPCALLS_REMOVED_MAX);
}

/* READs in flight must know of a truncation at once: not by the queue, which
 * stands still here. */
CASE(truncation_is_told_to_the_file_at_once)
{
	struct casync_file_size sizes[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		casync_file_size_init(
			&sizes[i], casync_upcalls_truncations(
					   upcalls, INO + i / 2, CEPH_NOSNAP));
	close_gate();
	libcephfs_calls(invalidate_inode, 2);
	assert_true(rig_wait(&begun));
	for (i = 0; i < 3; i++)
		assert_int_equal(casync_file_size_truncations(&sizes[i]), 0);
	libcephfs_calls(cut_inode, 1);
	assert_int_equal(casync_file_size_truncations(&sizes[0]),
			 CASYNC_TRUNCATION_TOLD);
	assert_int_equal(casync_file_size_truncations(&sizes[1]),
			 CASYNC_TRUNCATION_TOLD);
	assert_int_equal(casync_file_size_truncations(&sizes[2]), 0);
	assert_true(casync_file_size_is_unknown(&sizes[0]));
	assert_false(casync_file_size_is_unknown(&sizes[2]));
	open_gate();
	settle();
	check_heard(0, INVALIDATE, 3);
	for (i = 0; i < 3; i++)
		casync_file_size_destroy(&sizes[i]);
}

/* Most files have a counter to themselves. */
CASE(files_are_spread_over_the_counters)
{
	bool used[CASYNC_UPCALLS_TRUNCATIONS] = {false};
	unsigned int counters = 0;
	const uint64_t *truncations;
	unsigned int i;

	for (i = 0; i < CASYNC_UPCALLS_TRUNCATIONS; i++) {
		truncations = casync_upcalls_truncations(upcalls, INO + i,
							 CEPH_NOSNAP);
		assert_in_range(truncations - upcalls->truncations, 0,
				CASYNC_UPCALLS_TRUNCATIONS - 1);
		counters += !used[truncations - upcalls->truncations];
		used[truncations - upcalls->truncations] = true;
	}
	/* By chance it would be 63 %. */
	assert_in_range(counters, CASYNC_UPCALLS_TRUNCATIONS / 2,
			CASYNC_UPCALLS_TRUNCATIONS);
}

/* libcephfs' threads must get away while an upcall takes its time. */
CASE(callback_does_not_wait_for_an_upcall)
{
	close_gate();
	libcephfs_calls(invalidate_inode, 1);
	assert_true(rig_wait(&begun));
	libcephfs_calls(invalidate_inode, 100);
	check_heard(0, INVALIDATE, 0);
	open_gate();
	settle();
	check_heard(0, INVALIDATE, 101);
	check_heard(1, INVALIDATE, 101);
}

CASE(events_are_told_in_their_order)
{
	close_gate();
	libcephfs_calls(release_inode, 1);
	assert_true(rig_wait(&begun));
	libcephfs_calls(invalidate_inode, 5);
	open_gate();
	settle();
	assert_true(listeners[0].last.ino == INO + 4);
}

/* --- what is counted */

static void check_counted(enum casync_metric counter, uint64_t first,
			  uint64_t second)
{
	static struct casync_view totals;

	casync_metrics_add_up(&listeners[0].exp.metrics, &totals);
	assert_int_equal(totals.numbers[counter], first);
	casync_metrics_add_up(&listeners[1].exp.metrics, &totals);
	assert_int_equal(totals.numbers[counter], second);
}

CASE(releases_are_counted_by_what_came_of_them)
{
	libcephfs_calls(release_inode, 3);
	settle();
	release_status = ERR_FSAL_NO_ERROR;
	libcephfs_calls(release_inode, 2);
	settle();
	/* Not in that export's cache. */
	release_status = ERR_FSAL_STALE;
	libcephfs_calls(release_inode, 5);
	settle();
	check_counted(CASYNC_C_CAPS_KEPT, 3, 3);
	check_counted(CASYNC_C_CAPS_RELEASED, 2, 2);
	check_counted(CASYNC_C_INVALIDATIONS, 0, 0);
}

CASE(invalidations_are_counted)
{
	libcephfs_calls(invalidate_inode, 3);
	settle();
	casync_upcalls_leave(upcalls, &listeners[1].exp);
	libcephfs_calls(invalidate_dentry, 4);
	settle();
	check_counted(CASYNC_C_INVALIDATIONS, 7, 3);
	check_counted(CASYNC_C_CAPS_KEPT, 0, 0);
	check_counted(CASYNC_C_CAPS_RELEASED, 0, 0);
}

/* --- too many */

CASE(releases_beyond_the_limit_are_dropped)
{
	const int beyond = 1000;
	const int limit = CASYNC_UPCALLS_RELEASES_MAX;

	close_gate();
	libcephfs_calls(release_inode, 1);
	assert_true(rig_wait(&begun));
	/* The first is off the queue. */
	libcephfs_calls(release_inode, (unsigned int)(limit + beyond));
	assert_int_equal(upcalls->event_count, limit);
	open_gate();
	settle();
	check_heard(0, TRY_RELEASE, limit + 1);
	assert_int_equal(upcalls->event_count, 0);
}

CASE(invalidations_are_never_dropped)
{
	const int limit = CASYNC_UPCALLS_RELEASES_MAX;

	close_gate();
	libcephfs_calls(release_inode, 1);
	assert_true(rig_wait(&begun));
	libcephfs_calls(release_inode, CASYNC_UPCALLS_RELEASES_MAX);
	libcephfs_calls(invalidate_inode, 10);
	libcephfs_calls(invalidate_dentry, 10);
	libcephfs_calls(release_inode, 10);
	open_gate();
	settle();
	check_heard(0, TRY_RELEASE, limit + 1);
	check_heard(0, INVALIDATE, 20);
}

static void set_up_object(struct casync_object *obj, struct listener *listener,
			  uint64_t ino)
{
	memset(obj, 0, sizeof(*obj));
	obj->exp = &listener->exp;
	obj->inode = (struct Inode *)(uintptr_t)ino;
	obj->id.ino = ino;
	obj->id.snapid = CEPH_NOSNAP;
	obj->id.fscid = FSCID;
	casync_filehandle_key(&obj->id, listener->exp.export.export_id,
			      obj->key);
	assert_false(casync_object_table_enter(&upcalls->table, obj));
}

/* What finds no room is not lost: each object is invalidated. */
CASE(more_invalidations_than_room_are_for_everything)
{
	static struct casync_object objs[100];
	unsigned int i;

	for (i = 0; i < 100; i++)
		set_up_object(&objs[i], &listeners[i < 60 ? 0 : 1], INO + i);
	close_gate();
	libcephfs_calls(invalidate_inode, 1);
	assert_true(rig_wait(&begun));
	libcephfs_calls(invalidate_dentry, CASYNC_UPCALLS_MAX);
	assert_int_equal(stub.warnings, 0);
	libcephfs_calls(invalidate_inode, 5);
	open_gate();
	settle();
	/* What was queued is among everything. */
	check_heard(0, INVALIDATE, 1 + 60);
	check_heard(1, INVALIDATE, 1 + 40);
	assert_int_equal(stub.warnings, EXPORTS);
	assert_true(stub_warned("too many changes by other clients"));

	/* And it goes on as before. */
	libcephfs_calls(invalidate_inode, 3);
	settle();
	check_heard(0, INVALIDATE, 4 + 60);
	for (i = 0; i < 100; i++)
		assert_true(
			casync_object_table_leave(&upcalls->table, &objs[i]));
}

CASE(events_keep_their_order_past_the_end_of_the_ring)
{
	int i;

	close_gate();
	libcephfs_calls(invalidate_inode, 1);
	assert_true(rig_wait(&begun));
	pthread_mutex_lock(&upcalls->lock);
	upcalls->first = CASYNC_UPCALLS_MAX - 10;
	pthread_mutex_unlock(&upcalls->lock);
	for (i = 0; i < 10; i++)
		libcephfs_calls(invalidate_inode, 2);
	libcephfs_calls(release_inode, 5);
	open_gate();
	settle();
	assert_true(listeners[0].last.ino == INO + 4);
	check_heard(1, INVALIDATE, 21);
	check_heard(1, TRY_RELEASE, 5);
	assert_int_equal(bad_handles, 0);
}

/* --- leaving */

struct leaver {
	pthread_t thread;
	int left; /* atomic */
};

static void *leave(void *arg)
{
	struct leaver *leaver = arg;

	casync_upcalls_leave(upcalls, &listeners[0].exp);
	__atomic_store_n(&leaver->left, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_listed(void)
{
	bool listed;

	pthread_mutex_lock(&upcalls->lock);
	listed = listeners[0].exp.upcalls.listed;
	pthread_mutex_unlock(&upcalls->lock);
	return listed;
}

CASE(leave_waits_for_an_upcall_on_its_way)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	struct leaver leaver = {.left = 0};

	close_gate();
	libcephfs_calls(invalidate_inode, 1);
	assert_true(rig_wait(&begun));
	assert_int_equal(pthread_create(&leaver.thread, NULL, leave, &leaver),
			 0);
	RIG_UNTIL(!is_listed());
	nanosleep(&pause, NULL);
	assert_false(__atomic_load_n(&leaver.left, __ATOMIC_ACQUIRE));
	open_gate();
	RIG_UNTIL(NOW(leaver.left) >= 1);
	RIG_JOIN(leaver.thread, NULL);
	check_heard(0, INVALIDATE, 1);
}

CASE(who_has_left_hears_nothing)
{
	casync_upcalls_leave(upcalls, &listeners[0].exp);
	casync_upcalls_leave(upcalls, &listeners[0].exp);
	libcephfs_calls(invalidate_inode, 3);
	settle();
	check_heard(0, INVALIDATE, 0);
	check_heard(1, INVALIDATE, 3);
}

/* Events queued before it left, but not on their way yet. */
CASE(who_leaves_hears_nothing_of_what_is_queued)
{
	struct leaver leaver = {.left = 0};

	close_gate();
	libcephfs_calls(invalidate_inode, 1);
	assert_true(rig_wait(&begun));
	libcephfs_calls(invalidate_inode, 10);
	assert_int_equal(pthread_create(&leaver.thread, NULL, leave, &leaver),
			 0);
	RIG_UNTIL(!is_listed());
	open_gate();
	RIG_UNTIL(NOW(leaver.left) >= 1);
	RIG_JOIN(leaver.thread, NULL);
	settle();
	check_heard(0, INVALIDATE, 1);
	check_heard(1, INVALIDATE, 11);
}

static void leave_itself(void)
{
	casync_upcalls_leave(upcalls, &listeners[0].exp);
}

/* An upcall may drop the last reference to an export. */
CASE(leave_in_an_upcall_does_not_wait_for_it)
{
	in_upcall = leave_itself;
	libcephfs_calls(invalidate_inode, 2);
	settle();
	check_heard(0, INVALIDATE, 1);
	check_heard(1, INVALIDATE, 2);
}

CASE(destroy_waits_for_the_job)
{
	libcephfs_calls(invalidate_inode, 1000);
	casync_upcalls_destroy(upcalls);
	check_heard(0, INVALIDATE, 1000);
	casync_upcalls_init(upcalls);
	listeners[0].exp.upcalls.listed = false;
	listeners[1].exp.upcalls.listed = false;
}

CASE(modes_are_not_masked_again)
{
	assert_int_equal(fake.callbacks.umask_cb(fake.callbacks.handle), 0);
}
