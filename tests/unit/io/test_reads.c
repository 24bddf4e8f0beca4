/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READs of a file whose submissions do not return: how many threads they keep,
 * how the others wait, and what goes on beside them.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "complete.h"
#include "flush.h"
#include "inflight.h"
#include "lane.h"
#include "op.h"
#include "parts.h"
#include "request.h"
#include "stub_mount.h"
#include "watchdog.h"

#define STUCK CASYNC_LANE_SHARE
#define WAITING 3U
#define READS (STUCK + WAITING)

/* The file that is stuck: threads in its submissions, READs and WRITEs. */
static struct casync_object *stuck_file; /* atomic */
static int stuck, most_stuck;		 /* atomic */
static sem_t unstuck;

/* Offsets of the READs that have been submitted, in the order in which that
 * began; and whether a thread of ours has submitted each. */
static uint64_t offsets[READS];
static bool by_us[READS];
static unsigned int begun; /* atomic */

static const struct casync_op *submitted(void)
{
	return container_of(fake_submitting, const struct casync_part, io)->op;
}

static void wait_for_caps(void)
{
	unsigned int number;
	int now;

	if (submitted()->obj != NOW(stuck_file) ||
	    submitted()->kind != CASYNC_OP_READ)
		return;
	number = __atomic_fetch_add(&begun, 1, __ATOMIC_ACQ_REL);
	offsets[number] = (uint64_t)fake_submitting->off;
	by_us[number] = casync_lane_on_own_thread();
	now = __atomic_add_fetch(&stuck, 1, __ATOMIC_ACQ_REL);
	if (now > NOW(most_stuck))
		__atomic_store_n(&most_stuck, now, __ATOMIC_RELEASE);
	(void)rig_wait(&unstuck);
	__atomic_sub_fetch(&stuck, 1, __ATOMIC_ACQ_REL);
}

static pthread_t workers[STUCK];
static struct io *ios[READS];

static int up(void **state)
{
	int rc = request_up(state);

	sem_init(&unstuck, 0, 0);
	stuck = 0;
	most_stuck = 0;
	begun = 0;
	stuck_file = rig.obj;
	fake.submission = wait_for_caps;
	return rc;
}

static int down(void **state)
{
	int rc = request_down(state);

	sem_destroy(&unstuck);
	return rc;
}

#define READS_CASE(test) TEST_WITH(test, up, down)

static void *read_on_a_worker(void *io)
{
	op_ctx = &rig.request;
	start_read(io);
	return NULL;
}

static bool newest_is_held(void)
{
	struct casync_inflight *inflight = &rig.exp.inflight;
	const struct casync_inflight_entry *entry;

	pthread_mutex_lock(&inflight->lock);
	entry = glist_last_entry(&inflight->entries,
				 struct casync_inflight_entry, link);
	pthread_mutex_unlock(&inflight->lock);
	return NOW(container_of(entry, const struct casync_op, entry)->state) ==
	       CASYNC_OP_HELD;
}

static uint64_t waits_counted(void)
{
	static struct casync_view totals;

	casync_metrics_add_up(&rig.exp.metrics, &totals);
	return totals.numbers[CASYNC_C_FILE_QUEUE_WAITS];
}

/* As many workers as may be are stuck, and further READs wait.  None of their
 * workers is kept: it is this thread. */
static void get_stuck(void)
{
	unsigned int i;

	for (i = 0; i < READS; i++)
		ios[i] = new_io(i * 100U, 100);
	for (i = 0; i < STUCK; i++) {
		assert_int_equal(pthread_create(&workers[i], NULL,
						read_on_a_worker, ios[i]),
				 0);
		RIG_UNTIL(NOW(stuck) == (int)i + 1);
	}
	for (; i < READS; i++) {
		start_read(ios[i]);
		assert_true(newest_is_held());
	}
	assert_int_equal(NOW(stuck), STUCK);
	assert_int_equal(rig.obj->reads.users, READS);
	assert_int_equal(waits_counted(), WAITING);
}

static void let_all_go(void)
{
	unsigned int i;

	for (i = 0; i < READS; i++)
		sem_post(&unstuck);
	for (i = 0; i < STUCK; i++)
		RIG_JOIN(workers[i], NULL);
}

static void await_all(void)
{
	unsigned int i;

	for (i = 0; i < READS; i++) {
		assert_true(rig_wait(&ios[i]->came));
		sem_post(&ios[i]->came); /* for settle() */
	}
}

static void end_all(void)
{
	unsigned int i;

	settle(ios[0]);
	assert_int_equal(rig.obj->reads.users, 0);
	assert_null(rig.obj->reads.waiting);
	for (i = 0; i < READS; i++) {
		assert_int_equal(ios[i]->calls, 1);
		free_io(ios[i]);
	}
}

static void check_all_read(void)
{
	unsigned int i;

	for (i = 0; i < READS; i++) {
		check_ok(ios[i], 100);
		check_bytes_read(ios[i], 100);
	}
}

READS_CASE(four_are_submitted_and_the_others_wait_in_line)
{
	unsigned int i;

	get_stuck();
	for (i = 0; i < WAITING; i++) {
		sem_post(&unstuck);
		RIG_UNTIL(NOW(begun) == STUCK + i + 1);
		RIG_UNTIL(NOW(stuck) == STUCK);
		assert_int_equal(offsets[STUCK + i], (STUCK + i) * 100U);
		assert_true(by_us[STUCK + i]);
	}
	let_all_go();
	await_all();
	assert_int_equal(most_stuck, STUCK);
	check_all_read();
	end_all();
}

/* --- beside a file that is stuck */

/* Its READs are stuck, and its WRITEs go: libcephfs has other capabilities for
 * them.  A flush waits for no READ. */
static sem_t flushed;

static void note_flush(struct casync_flush_waiter *waiter, int rc)
{
	(void)waiter;
	assert_int_equal(rc, 0);
	sem_post(&flushed);
}

READS_CASE(writes_and_flushes_of_the_file_go_on)
{
	struct casync_flush_waiter waiter = {.done = note_flush};
	struct io *write = new_io(OBJ, 100);

	sem_init(&flushed, 0, 0);
	get_stuck();
	start_write(write, false);
	assert_true(rig_wait(&write->came));
	check_ok(write, 100);
	casync_flush_request(rig.obj, &waiter);
	assert_true(rig_wait(&flushed));
	assert_int_equal(NOW(stuck), STUCK);
	let_all_go();
	await_all();
	check_all_read();
	end_all();
	free_io(write);
	sem_destroy(&flushed);
}

/* A READ of the file that rig.obj is now, which has to wait for its turn. */
static void check_goes_on(void)
{
	struct io *io;
	unsigned int i;

	for (i = 0; i < STUCK; i++)
		assert_true(casync_lane_enter_share(&rig.obj->reads));
	io = new_io(0, 100);
	start_read(io);
	assert_int_equal(NOW(io->calls), 0);
	for (i = 0; i < STUCK; i++)
		casync_lane_release_share(
			&rig.exp.mount->lanes[CASYNC_LANE_SUBMIT],
			&rig.obj->reads);
	assert_true(rig_wait(&io->came));
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
	assert_int_equal(NOW(stuck), STUCK);
}

READS_CASE(another_file_goes_on)
{
	struct casync_object *other = rig_new_object();

	get_stuck();
	rig.obj = other;
	check_goes_on();
	rig_free_object();
	rig.obj = stuck_file;
	let_all_go();
	await_all();
	check_all_read();
	end_all();
}

/* --- two mounts */

#define FILES (CASYNC_LANE_THREADS / STUCK)

static struct casync_lane *submit_lane(struct casync_mount *mount)
{
	return &mount->lanes[CASYNC_LANE_SUBMIT];
}

/* A READ of a file of the stub's mount that a thread of ours submits. */
static struct io *read_by_us(struct casync_object *file)
{
	struct io *io = new_io(0, 100);
	unsigned int i;

	for (i = 0; i < STUCK; i++)
		assert_true(casync_lane_enter_share(&file->reads));
	rig.obj = file;
	start_read(io);
	for (i = 0; i < STUCK; i++)
		casync_lane_release_share(submit_lane(&stub_mount),
					  &file->reads);
	return io;
}

static void wait_for_go(void)
{
	if (submitted()->exp->mount != &stub_mount)
		return;
	__atomic_add_fetch(&stuck, 1, __ATOMIC_ACQ_REL);
	(void)rig_wait(&unstuck);
}

/* Every thread that the lane has at rest is stuck with a READ of another file,
 * and one more waits for a thread.  A READ of the other mount that has to wait
 * for a thread is submitted. */
READS_CASE(another_mount_goes_on)
{
	static struct casync_mount other_mount;
	struct casync_object *files[CASYNC_LANE_THREADS + 1];
	struct io *reads[CASYNC_LANE_THREADS + 1];
	struct casync_object *first = rig.obj;
	struct casync_object *other = rig_new_object();
	struct casync_lane_share *share = &other->reads;
	static struct casync_export exp;
	struct io *io;
	unsigned int i;

	/* No thread is added where a lane stands still. */
	casync_watchdog_stop();
	fake.submission = wait_for_go;
	for (i = 0; i <= CASYNC_LANE_THREADS; i++) {
		files[i] = rig_new_object();
		reads[i] = read_by_us(files[i]);
	}
	RIG_UNTIL(NOW(stuck) == CASYNC_LANE_THREADS);

	/* The same export and client, with lanes and limits of its own. */
	memset(&other_mount, 0, sizeof(other_mount));
	other_mount.client = stub_mount.client;
	other_mount.identity = stub_mount.identity;
	assert_int_equal(casync_lane_start_mount(other_mount.lanes), 0);
	exp.mount = &other_mount;
	exp.await_not_before_ns = UINT64_MAX;
	casync_inflight_init(&exp.inflight, 64, 1U << 30);
	exp.pool = casync_pool_new();
	other->exp = &exp;
	rig.request.fsal_export = &exp.export;
	rig.obj = other;
	for (i = 0; i < STUCK; i++)
		assert_true(casync_lane_enter_share(share));
	io = new_io(0, 100);
	start_read(io);
	assert_int_equal(NOW(io->calls), 0);
	for (i = 0; i < STUCK; i++)
		casync_lane_release_share(submit_lane(&other_mount), share);
	assert_true(rig_wait(&io->came));
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
	assert_int_equal(NOW(stuck), CASYNC_LANE_THREADS);

	assert_true(casync_lane_stop_mount(other_mount.lanes, RIG_TIMEOUT_S));
	rig_free_object();
	casync_inflight_destroy(&exp.inflight);
	rig.request.fsal_export = &rig.exp.export;
	for (i = 0; i <= CASYNC_LANE_THREADS; i++)
		sem_post(&unstuck);
	for (i = 0; i <= CASYNC_LANE_THREADS; i++) {
		assert_true(rig_wait(&reads[i]->came));
		check_ok(reads[i], 100);
	}
	sem_post(&reads[0]->came);
	settle(reads[0]);
	for (i = 0; i <= CASYNC_LANE_THREADS; i++) {
		free_io(reads[i]);
		rig.obj = files[i];
		rig_free_object();
	}
	casync_pool_free(exp.pool);
	rig.obj = first;
}

/* --- what happens meanwhile */

/* Past the end a non-blocking READ may be lost: a blocking one finds the rest. */
READS_CASE(file_is_cut_while_reads_wait)
{
	const uint64_t left = STUCK * 100 + 50;
	unsigned int i;

	get_stuck();
	fake.size_bytes = left;
	rig_set_size(left);
	let_all_go();
	await_all();
	assert_int_equal(fake_call_count(), STUCK);
	check_ok(ios[STUCK], 50);
	assert_true(ios[STUCK]->arg.end_of_file);
	for (i = STUCK + 1; i < READS; i++) {
		check_ok(ios[i], 0);
		assert_true(ios[i]->arg.end_of_file);
	}
	end_all();
}

/* The log names them, with why they wait.  The last line is seen here. */
READS_CASE(waiting_reads_are_in_the_watchdogs_list)
{
	get_stuck();
	casync_watchdog_list(&rig.exp.inflight, 7, "still there");
	assert_true(stub_warned(
		"READ inode 0x10000000001 offset 600 length 100 age "));
	assert_true(stub_warned("HELD (waits for other requests of its file)"));
	let_all_go();
	await_all();
	check_all_read();
	end_all();
}

/* --- many at once */

#define THREADS 8U
#define EACH 100U /* all have room in the line for a place in flight */

static struct io *crowd[THREADS][EACH];
static int inside; /* atomic */

/* Libcephfs lets others run meanwhile. */
static void be_inside(void)
{
	int now = __atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL);
	int most = NOW(most_stuck);

	while (now > most &&
	       !__atomic_compare_exchange_n(&most_stuck, &most, now, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	sched_yield();
	__atomic_sub_fetch(&inside, 1, __ATOMIC_ACQ_REL);
}

static void *read_many(void *arg)
{
	struct io **mine = arg;
	unsigned int i;

	op_ctx = &rig.request;
	for (i = 0; i < EACH; i++)
		start_read(mine[i]);
	return NULL;
}

/* More than have a place in flight: some are submitted by a thread of ours from
 * the start.  Each is answered once, and never are more inside than may be. */
READS_CASE(each_of_many_is_answered_once)
{
	pthread_t threads[THREADS];
	unsigned int t, i;

	fake.plan.when = FAKE_BEFORE_RETURN;
	fake.submission = be_inside;
	casync_inflight_limit(&rig.exp.inflight, 6, 1U << 30);
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < EACH; i++)
			crowd[t][i] = new_io(100U * (t + 1), 100);
	}
	for (t = 0; t < THREADS; t++)
		assert_int_equal(
			pthread_create(&threads[t], NULL, read_many, crowd[t]),
			0);
	for (t = 0; t < THREADS; t++)
		RIG_JOIN(threads[t], NULL);
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < EACH; i++)
			assert_true(rig_wait(&crowd[t][i]->came));
	}
	sem_post(&crowd[0][0]->came);
	settle(crowd[0][0]);
	assert_in_range(most_stuck, 1, STUCK);
	print_message("%d were inside at most, %u waited\n", most_stuck,
		      (unsigned int)waits_counted());
	assert_int_equal(rig.obj->reads.users, 0);
	assert_null(rig.obj->reads.waiting);
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < EACH; i++) {
			assert_int_equal(crowd[t][i]->calls, 1);
			check_ok(crowd[t][i], 100);
			check_bytes_read(crowd[t][i], 100);
			free_io(crowd[t][i]);
		}
	}
}
