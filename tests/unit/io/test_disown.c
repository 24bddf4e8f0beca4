/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READs that are left with a lost client: each is answered once, and its memory
 * stays until libcephfs has answered.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "unit.h"

#include "call.h"
#include "client.h"
#include "disown.h"
#include "pool_look.h"
#include "request.h"
#include "pin.h"
#include "stub_mount.h"
#include "submit.h"
#include "watchdog.h"

#define RACES 200
#define LARGE CASYNC_READ_HERE_BYTES

static struct casync_watched *watched;
static int released; /* atomic */

/* The real one may write a line, on a thread that no case waits for. */
void casync_pin_module(void)
{
}

static void release(void *data)
{
	(void)data;
	__atomic_add_fetch(&released, 1, __ATOMIC_ACQ_REL);
}

static int up(void **state)
{
	int rc = request_up(state);

	released = 0;
	watched = rig_watch();
	stub_mount.session.client = "admin@fs:/";
	stub_mount.clients_alive = 0;
	stub_mount.client =
		casync_client_new(&stub_mount.identity, &stub_mount);
	stub_mount.client->ceph = (struct ceph_mount_info *)&stub_mount;
	return rc;
}

static int down(void **state)
{
	casync_watchdog_remove(watched);
	return request_down(state);
}

#define DISOWN_CASE(test) TEST_WITH(test, up, down)

/* Its one buffer is of NFS, which lets it be kept.  Ganesha 5.9 frees it itself. */
static struct io *own_io(uint64_t offset, size_t length)
{
	struct io *io = new_io(offset, length);
	void *buffer = HAS_OWN_REPLY ? io->buffer : malloc(length);

	assert_non_null(buffer);
	io->iov[0] = (struct iovec){buffer, length};
	io->arg.iov_count = 1;
	rig.request.req_type = NFS_REQUEST;
	set_release(&io->arg, release, io);
	return io;
}

static void free_own_io(struct io *io)
{
	if (!HAS_OWN_REPLY)
		free(io->iov[0].iov_base);
	free_io(io);
}

static void check_released(unsigned int times)
{
	if (HAS_OWN_REPLY)
		assert_int_equal(released, times);
}

static unsigned int disown(void)
{
	struct casync_disown_round round = {0};

	casync_watchdog_visit(&stub_mount.guard, casync_disown_visit, &round);
	return casync_disown_answer(&round);
}

/* The keeper has taken the client out of the mount. */
static void leave(void)
{
	struct casync_client *client = stub_mount.client;

	stub_mount.client = NULL;
	client->lost = true;
	casync_client_put(client);
}

static bool client_exists(void)
{
	return fake.clients_ended == 0;
}

/* After rig_wait() the answer has been taken note of. */
static void settle_answered(struct io *io)
{
	sem_post(&io->came);
	settle(io);
}

DISOWN_CASE(read_is_answered_and_its_memory_waits)
{
	struct io *io = own_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_int_equal(disown(), 1);
	assert_true(rig_wait(&io->came));
	check_error(io, ERR_FSAL_DELAY);
	assert_int_equal(io->inflight_ops, 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	/* Ganesha frees what it still has. */
	assert_true(has_release(&io->arg, NULL));
	check_released(0);
	leave();
	assert_true(client_exists());

	fake_complete(0);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	assert_false(client_exists());
	check_released(1);
	RIG_UNTIL(pool_in_use(rig.exp.pool) == 0);
	settle_answered(io);
	free_own_io(io);
}

DISOWN_CASE(nothing_is_disowned_twice)
{
	struct io *io = own_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_int_equal(disown(), 1);
	assert_int_equal(disown(), 0);
	assert_true(rig_wait(&io->came));
	leave();
	fake_complete(0);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	settle_answered(io);
	free_own_io(io);
}

/* Two calls; only the second one is late. */
DISOWN_CASE(read_of_two_objects_waits_for_both)
{
	struct io *io = own_io(RIG_OBJECT / 2, RIG_OBJECT);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	fake_complete(1);
	assert_int_equal(disown(), 1);
	assert_true(rig_wait(&io->came));
	check_error(io, ERR_FSAL_DELAY);
	leave();
	check_released(0);
	fake_complete(0);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	check_released(1);
	settle_answered(io);
	free_own_io(io);
}

DISOWN_CASE(write_is_not_disowned)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_write(io, true);
	assert_int_equal(disown(), 0);
	fake_complete(0);
	settle(io);
	check_ok(io, 100);
	leave();
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	free_io(io);
}

/* 9P, RDMA: it is answered with its data, later. */
DISOWN_CASE(buffer_of_others_is_not_kept)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_int_equal(disown(), 0);
	fake_complete(0);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	leave();
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	free_io(io);
}

/* The last op that is put back frees the pool; AddressSanitizer looks. */
DISOWN_CASE(export_may_go_first)
{
	struct io *io = own_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_int_equal(disown(), 1);
	assert_true(rig_wait(&io->came));
	leave();
	casync_pool_free(rig.exp.pool);
	rig.exp.pool = casync_pool_new();
	fake_complete(0);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	settle_answered(io);
	free_own_io(io);
}

/* --- a thread that is inside libcephfs */

static void *read_large(void *arg)
{
	op_ctx = &rig.request;
	start_read(arg);
	return NULL;
}

DISOWN_CASE(blocking_read_leaves_the_guard)
{
	struct io *io = new_io(0, LARGE);
	void *const buffer = malloc(LARGE);
	unsigned int calls;
	pthread_t worker;

	fake_teardown();
	fake_setup(2 * LARGE, 2 * LARGE);
	casync_file_size_update(&rig.obj->size, 2 * LARGE,
				casync_file_size_changes(&rig.obj->size));
	rig.obj->object_span = 2 * LARGE;
	rig.exp.await_not_before_ns = 0;
	io->iov[0] = (struct iovec){buffer, LARGE};
	io->arg.iov_count = 1;
	set_release(&io->arg, release, io);
	rig_hold(FAKE_READ);
	in_blocking = rig_wait_held;
	assert_int_equal(pthread_create(&worker, NULL, read_large, io), 0);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	assert_int_equal(disown(), 1);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	/* Nobody can answer it. */
	assert_int_equal(io->calls, 0);
	leave();
	assert_true(client_exists());

	calls = fake_blocking_count(FAKE_GETATTR);
	sem_post(&rig_held.go);
	RIG_JOIN(worker, NULL);
	settle(io);
	check_error(io, ERR_FSAL_DELAY);
	/* Its buffer is Ganesha's, as ever. */
	assert_true(has_release(&io->arg, release));
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), calls);
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	sem_destroy(&rig_held.go);
	free(buffer);
	free_io(io);
}

/* --- READs that wait until others of their file have been submitted */

static int in_submission; /* atomic */
static sem_t come_back;

static void wait_for_caps(void)
{
	__atomic_add_fetch(&in_submission, 1, __ATOMIC_ACQ_REL);
	(void)rig_wait(&come_back);
}

static void *read_on_a_worker(void *io)
{
	op_ctx = &rig.request;
	start_read(io);
	return NULL;
}

/* The keeper waits for them as for those that are being submitted: the new
 * client gets none of them, and each is left with the lost one. */
DISOWN_CASE(read_that_waits_is_disowned_after_it_was_submitted)
{
	pthread_t workers[CASYNC_LANE_SHARE];
	struct io *ios[CASYNC_LANE_SHARE + 2];
	unsigned int i;

	sem_init(&come_back, 0, 0);
	in_submission = 0;
	fake.plan.when = FAKE_LATER;
	fake.submission = wait_for_caps;
	for (i = 0; i < COUNT(ios); i++)
		ios[i] = own_io(i * 100U, 100);
	for (i = 0; i < COUNT(workers); i++) {
		assert_int_equal(pthread_create(&workers[i], NULL,
						read_on_a_worker, ios[i]),
				 0);
		RIG_UNTIL(NOW(in_submission) == (int)i + 1);
	}
	for (; i < COUNT(ios); i++)
		start_read(ios[i]);
	assert_int_equal(rig.obj->reads.users, COUNT(ios));
	assert_int_equal(disown(), 0);
	assert_false(casync_guard_is_empty(&stub_mount.guard));

	/* The session is lost: libcephfs gives up its wait for capabilities. */
	for (i = 0; i < COUNT(ios); i++)
		sem_post(&come_back);
	for (i = 0; i < COUNT(workers); i++)
		RIG_JOIN(workers[i], NULL);
	RIG_UNTIL(NOW(rig.obj->reads.users) == 0);
	/* The last hold is dropped after the place. */
	i = 0;
	RIG_UNTIL((i += disown()) == COUNT(ios));
	for (i = 0; i < COUNT(ios); i++) {
		assert_true(rig_wait(&ios[i]->came));
		check_error(ios[i], ERR_FSAL_DELAY);
	}
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	leave();
	assert_true(client_exists());
	fake_complete_in_order();
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	check_released(COUNT(ios));
	RIG_UNTIL(pool_in_use(rig.exp.pool) == 0);
	settle_answered(ios[0]);
	for (i = 0; i < COUNT(ios); i++) {
		assert_int_equal(ios[i]->calls, 1);
		free_own_io(ios[i]);
	}
	sem_destroy(&come_back);
}

/* --- the answer comes at the same time */

DISOWN_CASE(answered_once_whoever_comes_first)
{
	const struct timespec moment = {.tv_nsec = 20000};
	struct io *ios[RACES];
	unsigned int disowned = 0;
	int i;

	fake.plan.when = FAKE_ON_THREAD;
	for (i = 0; i < RACES; i++) {
		ios[i] = own_io(0, 100);
		start_read(ios[i]);
		if (i % 2 == 0)
			nanosleep(&moment, NULL);
		disowned += disown();
	}
	for (i = 0; i < RACES; i++)
		assert_true(rig_wait(&ios[i]->came));
	leave();
	fake_join();
	RIG_UNTIL(NOW(stub_mount.clients_alive) == 0);
	RIG_UNTIL(pool_in_use(rig.exp.pool) == 0);
	print_message("%u of %d were disowned\n", disowned, RACES);
	check_released(disowned);
	for (i = 0; i < RACES; i++) {
		assert_int_equal(ios[i]->calls, 1);
		free_own_io(ios[i]);
	}
}
