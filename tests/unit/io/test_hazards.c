/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What is kept from libcephfs' non-blocking call: reads past the end of the
 * file, and data of a file that the MDS may forget.
 */
#include "config.h"

#include <errno.h>

#include "unit.h"

#include "object.h"
#include "request.h"
#include "submit.h"

#define SIZE (OBJ * RIG_OBJECTS)

static uint64_t asked_up_to(void)
{
	uint64_t end = 0;
	unsigned int i;

	for (i = 0; i < fake.call_count; i++) {
		uint64_t call_end = (uint64_t)fake.calls[i].asked.off +
				    fake.calls[i].length_bytes;

		if (end < call_end)
			end = call_end;
	}
	return end;
}

CASE(read_across_the_end_asks_for_what_there_is)
{
	struct io *io = new_io(SIZE - 100, OBJ);

	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_true(io->arg.end_of_file);
	assert_int_equal(asked_up_to(), SIZE);
	free_io(io);
}

CASE(read_past_the_end_blocks_a_worker_instead)
{
	struct io *io = new_io(SIZE, 100);

	start_read(io);
	settle(io);
	check_ok(io, 0);
	assert_true(io->arg.end_of_file);
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	free_io(io);
}

/* Somebody else has written there since: it is found, not called EOF. */
CASE(read_past_an_old_end_gets_what_has_grown)
{
	struct io *io = new_io(SIZE - 100, 100);

	rig.obj->size.hint = SIZE - 100;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
}

CASE(read_up_to_an_old_end_is_not_end_of_file)
{
	struct io *io = new_io(0, 2 * OBJ);

	rig.obj->size.hint = 100;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_false(io->arg.end_of_file);
	free_io(io);
}

/* A shorter size from Ceph that no truncate of ours explains. */
CASE(after_a_truncate_by_others_reads_block)
{
	struct io *io = new_io(0, 100);

	casync_file_size_update(&rig.obj->size, SIZE - 1,
				casync_file_size_changes(&rig.obj->size));
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_int_equal(fake.call_count, 0);
	free_io(io);
}

/* libcephfs fills in zeros up to a size that has just grown. */
CASE(zeros_are_read_twice_while_others_truncate)
{
	struct io *io = new_io(0, 100);

	casync_file_size_update(&rig.obj->size, SIZE - 1,
				casync_file_size_changes(&rig.obj->size));
	fake.zero_reads = 1;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_READ), io->arg.iov_count + 1);
	free_io(io);
}

/* A hole stays a hole, and is not read for ever. */
CASE(zeros_that_stay_are_read_twice_only)
{
	struct io *io = new_io(0, 100);

	casync_file_size_update(&rig.obj->size, SIZE - 1,
				casync_file_size_changes(&rig.obj->size));
	fake.zero_reads = 100;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_READ), 2 * io->arg.iov_count);
	fake.zero_reads = 0;
	free_io(io);
}

/* The data of object 0 are not on the OSD yet; they come before it is asked
 * again. */
static void write_object_0(enum fake_blocking which)
{
	uint64_t i;

	for (i = 0; which == FAKE_READ && i < OBJ; i++)
		fake.objects[0][i] = fake_byte(i);
}

/* libcephfs learns of a truncation and of a new size while a READ is in flight:
 * it has filled in zeros up to that. */
CASE(what_a_truncate_overtook_is_read_again)
{
	struct io *io = new_io(0, OBJ);

	fake.plan.when = FAKE_LATER;
	memset(fake.objects[0], 0, OBJ);
	in_blocking = write_object_0;
	start_read(io);
	rig_shorten();
	fake_complete_in_order();
	settle(io);
	check_ok(io, OBJ);
	/* Also if it was not asked again. */
	write_object_0(FAKE_READ);
	check_bytes_read(io, OBJ);
	free_io(io);
}

/* From the truncation on, until a size comes from Ceph. */
CASE(a_size_from_before_a_truncate_is_not_used)
{
	struct io *first = new_io(0, 100), *second = new_io(0, 100);

	rig_shorten();
	start_read(first);
	assert_true(rig_wait(&first->came));
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	start_read(second);
	settle(second);
	check_ok(first, 100);
	check_ok(second, 100);
	assert_int_equal(fake.call_count, 1);
	free_io(first);
	free_io(second);
}

/* The counter may have been another file's: then nobody else asks. */
CASE(a_short_read_after_a_truncate_learns_the_size)
{
	struct io *first = new_io(SIZE - 50, 100), *second = new_io(0, 100);

	rig_shorten();
	start_read(first);
	assert_true(rig_wait(&first->came));
	assert_true(first->arg.end_of_file);
	start_read(second);
	settle(second);
	check_ok(first, 50);
	check_ok(second, 100);
	assert_int_equal(fake.call_count, 1);
	free_io(first);
	free_io(second);
}

/* The file has grown again when it is read for the second time, and the data
 * are there for the third. */
static void grow_again(enum fake_blocking which)
{
	if (which != FAKE_READ)
		return;
	switch (fake_blocking_count(FAKE_READ)) {
	case 1:
		fake.size_bytes = 10;
		break;
	case 2:
		fake.size_bytes = 50;
		memset(fake.objects[0] + 10, 0, 40);
		break;
	default:
		write_object_0(which);
	}
}

CASE(the_second_time_reads_no_more_than_the_first)
{
	struct io *io = new_io(0, 100);

	rig_shorten();
	fake.zero_reads = 1;
	io->arg.iov_count = 1;
	io->iov[0].iov_len = 100;
	in_blocking = grow_again;
	start_read(io);
	settle(io);
	check_ok(io, 50);
	check_bytes_read(io, 50);
	free_io(io);
}

/* --- zeros that nobody wrote (repair.h) */

static void use_one_iovec(struct io *io, size_t length)
{
	io->iov[0].iov_len = length;
	io->arg.iov_count = 1;
}

/* A writer appends: libcephfs fills in zeros up to a size that came after the
 * OSD had looked.  Nobody truncates. */
CASE(a_read_past_an_old_end_gets_no_zeros)
{
	struct io *io = new_io(SIZE - 100, 100);

	rig.obj->size.hint = SIZE - 100;
	fake.zero_reads = 1;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
}

/* It was truncated by us, and written, while the READ was in flight; libcephfs
 * has not told of it yet. */
CASE(what_our_truncate_overtook_is_read_again)
{
	struct io *io = new_io(0, OBJ);

	fake.plan.when = FAKE_LATER;
	memset(fake.objects[0], 0, OBJ);
	in_blocking = write_object_0;
	start_read(io);
	rig_set_size(0);
	rig_grow(SIZE);
	fake_complete_in_order();
	settle(io);
	check_ok(io, OBJ);
	write_object_0(FAKE_READ);
	check_bytes_read(io, OBJ);
	free_io(io);
}

/* Our truncate has begun before the READ, and ends after it. */
CASE(a_read_within_our_truncate_does_not_trust_the_size)
{
	struct io *io = new_io(0, 100);
	uint64_t begun = casync_file_size_truncates(&rig.obj->size);

	fake.zero_reads = 1;
	start_read(io);
	settle(io);
	casync_file_size_truncated(&rig.obj->size, begun, SIZE);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_int_equal(fake.call_count, 0);
	free_io(io);
}

/* The file has another version each time that a READ has zeros. */
static void write_at_each_read(enum fake_blocking which)
{
	if (which == FAKE_READ)
		fake.version++;
}

CASE(zeros_are_read_again_until_the_file_stays_the_same)
{
	struct io *io = new_io(0, 100);

	rig_shorten();
	use_one_iovec(io, 100);
	fake.zero_reads = 3;
	in_blocking = write_at_each_read;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_READ), 4);
	free_io(io);
}

/* A hole of a file that is written all the time. */
CASE(zeros_beside_a_busy_writer_are_answered)
{
	struct io *io = new_io(0, 100);

	rig_shorten();
	use_one_iovec(io, 100);
	fake.zero_reads = 100;
	in_blocking = write_at_each_read;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_in_range(fake_blocking_count(FAKE_READ), 3, 10);
	fake.zero_reads = 0;
	free_io(io);
}

static void shorten_at_each_read(enum fake_blocking which)
{
	write_at_each_read(which);
	if (which == FAKE_READ)
		rig_shorten();
}

CASE(zeros_that_are_never_sure_are_not_answered)
{
	struct io *io = new_io(0, 100);

	use_one_iovec(io, 100);
	rig_shorten();
	fake.zero_reads = 100;
	in_blocking = shorten_at_each_read;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_DELAY);
	fake.zero_reads = 0;
	free_io(io);
}

CASE(growth_by_others_and_own_truncates_do_not)
{
	struct io *io = new_io(0, 100);

	casync_file_size_update(&rig.obj->size, SIZE + 1,
				casync_file_size_changes(&rig.obj->size));
	rig_set_size(SIZE);
	casync_file_size_update(&rig.obj->size, SIZE,
				casync_file_size_changes(&rig.obj->size));
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake.call_count, 1);
	free_io(io);
}

/* --- new files */

static unsigned int calls_at_sync; /* atomic */

static void look(enum fake_blocking which)
{
	if (which == FAKE_SYNC_INODE)
		__atomic_store_n(&calls_at_sync, fake.call_count,
				 __ATOMIC_RELEASE);
}

static void check_new_file(bool stable)
{
	struct io *io = new_io(0, 100);

	casync_queue_mark_new(&rig.obj->queue);
	calls_at_sync = 99;
	in_blocking = look;
	start_write(io, stable);
	settle(io);
	check_ok(io, 100);
	check_bytes_written(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_int_equal(calls_at_sync, 0);
	assert_false(casync_flush_before_data(rig.obj));
	free_io(io);
}

CASE(new_file_is_journaled_before_stable_data)
{
	check_new_file(true);
}

/* They would be shown by the next file of that inode number as well. */
CASE(new_file_is_journaled_before_unstable_data)
{
	check_new_file(false);
}

CASE(known_file_is_not)
{
	struct io *io = new_io(0, 100);

	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	free_io(io);
}

CASE(reading_a_new_file_journals_nothing)
{
	struct io *io = new_io(0, 100);

	casync_queue_mark_new(&rig.obj->queue);
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	free_io(io);
}

/* No data go anywhere, and the next write tries again. */
CASE(file_that_cannot_be_journaled_takes_no_data)
{
	struct io *io = new_io(0, 100);

	casync_queue_mark_new(&rig.obj->queue);
	fake.blocking_result[FAKE_SYNC_INODE] = -EIO;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake.call_count, 0);
	assert_true(casync_queue_is_unjournaled(&rig.obj->queue));
	free_io(io);
}

/* The flush has failed while the write was on its way to the queue. */
CASE(write_after_a_failed_first_flush_takes_no_data)
{
	struct casync_flush_waiter waiter;
	struct casync_queue_todo todo;
	struct io *io = new_io(0, 100);
	struct glist_head covered;

	assert_true(casync_queue_want_flush(&rig.obj->queue, &waiter));
	casync_queue_cover(&rig.obj->queue, &covered);
	start_write(io, true);
	assert_int_equal(fake.call_count, 0);
	todo = casync_queue_flushed(&rig.obj->queue, 0);
	casync_queue_mark_new(&rig.obj->queue);
	casync_flush_go_on(rig.obj, &todo, 0);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake.call_count, 0);
	free_io(io);
}
