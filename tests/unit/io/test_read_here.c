/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Large READs by a blocking call: which ones, how many at once, and what comes
 * of their answers.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "unit.h"

#include "call.h"
#include "clock.h"
#include "complete.h"
#include "nfs_core.h"
#include "request.h"
#include "stub_mount.h"
#include "submit.h"

#define LARGE CASYNC_READ_HERE_BYTES
#define OBJECT (2 * LARGE)
#define FILE_BYTES (2 * OBJECT)

static uint32_t *inside(void)
{
	return &stub_mount.callers.room.inside;
}

static int up(void **state)
{
	int rc = request_up(state);

	fake_teardown();
	fake_setup(FILE_BYTES, OBJECT);
	casync_file_size_update(&rig.obj->size, FILE_BYTES,
				casync_file_size_changes(&rig.obj->size));
	rig.obj->object_span = OBJECT;
	rig.exp.await_not_before_ns = 0;
	*inside() = 0;
	return rc;
}

#define HERE_CASE(test) TEST_WITH(test, up, request_down)

static struct io *large_io(uint64_t offset, size_t length)
{
	struct io *io = new_io(offset, length);

	io->iov[0] = (struct iovec){malloc(length), length};
	io->arg.iov_count = 1;
	return io;
}

static void free_large_io(struct io *io)
{
	free(io->iov[0].iov_base);
	free_io(io);
}

static void check_content(const struct io *io, size_t amount)
{
	const uint8_t *bytes = io->iov[0].iov_base;
	size_t i;

	check_ok(io, amount);
	for (i = 0; i < amount; i++)
		assert_int_equal(bytes[i], fake_content(io->arg.offset + i));
}

/* Reads, and returns whether a blocking call did it. */
static bool reads_here(uint64_t offset, size_t length)
{
	unsigned int blocking = fake_blocking_count(FAKE_READ);
	unsigned int calls = fake_call_count();
	struct io *io = large_io(offset, length);
	bool here;

	start_read(io);
	assert_true(rig_wait(&io->came));
	check_content(io, length);
	free_large_io(io);
	here = fake_blocking_count(FAKE_READ) == blocking + 1;
	assert_int_equal(fake_call_count(), calls + (here ? 0 : 1));
	assert_int_equal(*inside(), 0);
	return here;
}

HERE_CASE(large_read_is_blocking)
{
	assert_true(reads_here(0, LARGE));
	/* On a busy machine the first may have taken long: no pause for it. */
	rig.exp.await_not_before_ns = 0;
	assert_true(reads_here(OBJECT, OBJECT));
}

HERE_CASE(smaller_read_is_not)
{
	assert_false(reads_here(0, LARGE - 1));
}

/* Two calls, one after the other, would take longer. */
HERE_CASE(read_of_two_objects_is_not)
{
	struct io *io = large_io(OBJECT / 2, OBJECT);

	start_read(io);
	assert_true(rig_wait(&io->came));
	check_content(io, OBJECT);
	assert_int_equal(fake_call_count(), 2);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	free_large_io(io);
}

HERE_CASE(half_of_the_mounts_room_is_enough)
{
	unsigned int blocking, calls;
	struct io *io;

	*inside() = 75;
	blocking = fake_blocking_count(FAKE_READ);
	calls = fake_call_count();
	io = large_io(0, LARGE);
	start_read(io);
	assert_true(rig_wait(&io->came));
	check_content(io, LARGE);
	free_large_io(io);
	assert_int_equal(fake_blocking_count(FAKE_READ), blocking);
	assert_int_equal(fake_call_count(), calls + 1);
	*inside() -= 1;
	io = large_io(0, LARGE);
	start_read(io);
	assert_true(rig_wait(&io->came));
	free_large_io(io);
	assert_int_equal(fake_blocking_count(FAKE_READ), blocking + 1);
	*inside() = 0;
}

static void be_slow(enum fake_blocking which)
{
	const struct timespec pause = {.tv_nsec = (CASYNC_READ_HERE_MS + 50) *
						  1000000L};

	if (which == FAKE_READ)
		nanosleep(&pause, NULL);
}

HERE_CASE(slow_read_makes_the_export_pause)
{
	const uint64_t began_ns = casync_clock_ns();

	rig.exp.await_not_before_ns = 0;
	fake.hook = be_slow;
	assert_true(reads_here(0, LARGE));
	fake.hook = NULL;
	/* Not by the time now: on a slow machine the pause may be over. */
	assert_true(rig.exp.await_not_before_ns >=
		    began_ns + CASYNC_AWAIT_PAUSE_MS * CASYNC_NS_PER_MS);
	rig.exp.await_not_before_ns =
		casync_clock_ns() + 3600 * CASYNC_NS_PER_S;
	assert_false(reads_here(0, LARGE));
	rig.exp.await_not_before_ns = casync_clock_ns();
	assert_true(reads_here(0, LARGE));
}

HERE_CASE(error_is_answered)
{
	struct io *io = large_io(0, LARGE);

	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	assert_true(rig_wait(&io->came));
	check_error(io, ERR_FSAL_IO);
	fake.blocking_result[FAKE_READ] = 0;
	assert_int_equal(*inside(), 0);
	free_large_io(io);
}

/* libcephfs gives zeros for a deleted pool. */
HERE_CASE(deleted_pool_is_an_error)
{
	struct io *io = large_io(0, LARGE);

	fake.pool_is_gone = true;
	start_read(io);
	assert_true(rig_wait(&io->came));
	check_error(io, ERR_FSAL_IO);
	free_large_io(io);
}
