/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * From libcephfs' results to the answer of a READ: holes, ends, errors.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "clock.h"
#include "request.h"

struct read_case {
	const char *name;
	uint64_t size_bytes; /* 0: as set up */
	unsigned int holes;  /* bit n: object n is missing */
	uint64_t offset;
	size_t length;
	size_t amount;
	bool end_of_file;
};

static const struct read_case read_cases[] = {
	{"read_inside_file_is_not_eof", 0, 0, 10, 100, 100, false},
	{"read_of_last_byte_is_eof", 0, 0, 4 * OBJ - 1, 1, 1, true},
	{"read_to_the_end_is_eof", 0, 0, 3 * OBJ, OBJ, OBJ, true},
	{"read_of_whole_file_is_eof", 0, 0, 0, 4 * OBJ, 4 * OBJ, true},
	{"read_up_to_last_byte_is_not_eof", 0, 0, 3 * OBJ, OBJ - 1, OBJ - 1,
	 false},
	{"read_across_the_end_is_short_and_eof", 0, 0, 4 * OBJ - 100, OBJ, 100,
	 true},
	{"read_at_the_end_is_empty_and_eof", 0, 0, 4 * OBJ, 100, 0, true},
	{"read_far_past_the_end_is_empty_and_eof", 0, 0, 40 * OBJ, 100, 0,
	 true},
	{"read_ending_inside_first_part_is_eof", OBJ / 2, 0, 0, 3 * OBJ,
	 OBJ / 2, true},
	{"read_ending_inside_middle_part_is_eof", OBJ + 7, 0, 0, 3 * OBJ,
	 OBJ + 7, true},
	{"read_ending_between_parts_is_eof", 2 * OBJ, 0, 0, 3 * OBJ, 2 * OBJ,
	 true},
	{"hole_alone_is_zeros", 0, 1 << 1, OBJ, OBJ, OBJ, false},
	{"hole_inside_object_is_zeros", 0, 1 << 1, OBJ + 5, 50, 50, false},
	{"hole_in_front_is_zeros", 0, 1 << 0, 0, 3 * OBJ, 3 * OBJ, false},
	{"hole_in_the_middle_is_zeros", 0, 1 << 1, 0, 3 * OBJ, 3 * OBJ, false},
	{"holes_all_over_are_zeros", 0, 0xf, 0, 3 * OBJ, 3 * OBJ, false},
	{"hole_at_the_end_is_zeros_and_eof", 0, 1 << 3, 2 * OBJ, 2 * OBJ,
	 2 * OBJ, true},
	{"hole_across_the_end_is_short_and_eof", 0, 1 << 3, 2 * OBJ + 1,
	 2 * OBJ, 2 * OBJ - 1, true},
	{"hole_before_short_end_is_zeros_and_eof", 2 * OBJ + 9, 1 << 1, 0,
	 3 * OBJ, 2 * OBJ + 9, true},
	{"hole_ending_inside_part_is_eof", 2 * OBJ + 9, 1 << 2, 0, 3 * OBJ,
	 2 * OBJ + 9, true},
};

TEST_ROWS(check_read, read_cases, request_up, request_down)
{
	const struct read_case *c = *state;
	struct io *io;
	unsigned int i;

	if (c->size_bytes != 0) {
		fake.size_bytes = c->size_bytes;
		rig.obj->size.hint = c->size_bytes;
	}
	for (i = 0; i < RIG_OBJECTS; i++) {
		if (c->holes & (1U << i))
			fake_punch(i);
	}
	io = new_io(c->offset, c->length);
	start_read(io);
	settle(io);
	check_ok(io, c->amount);
	check_bytes_read(io, c->amount);
	assert_int_equal(io->arg.end_of_file, c->end_of_file);
	free_io(io);
}

CASE(full_read_inside_file_asks_nothing_more)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	start_read(io);
	settle(io);
	check_ok(io, 2 * RIG_OBJECT);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	assert_true(io->on_completer);
	free_io(io);
}

CASE(stale_size_does_not_make_a_short_read_complete)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	/* Another client has truncated; we think the file is longer. */
	fake.size_bytes = 100;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_true(io->arg.end_of_file);
	free_io(io);
}

CASE(unknown_size_is_looked_up)
{
	struct io *io = new_io(0, 100);

	rig.obj->size.hint = 0;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_false(io->arg.end_of_file);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	assert_int_equal(rig.obj->size.hint, 4 * OBJ);
	free_io(io);
}

/* A writer appends between our read and its repair. */
static void append(enum fake_blocking which)
{
	uint64_t i;

	if (which != FAKE_READ || fake.size_bytes == 3 * OBJ)
		return;
	for (i = fake.size_bytes; i < 3 * OBJ; i++)
		fake.objects[i / OBJ][i % OBJ] = 77;
	fake.size_bytes = 3 * OBJ;
}

CASE(reader_of_growing_file_sees_no_zeros)
{
	struct io *io = new_io(2 * OBJ, OBJ);
	size_t i;

	fake.size_bytes = 2 * OBJ + 10;
	in_blocking = append;
	start_read(io);
	settle(io);
	assert_true(io->arg.io_amount == 10 || io->arg.io_amount == OBJ);
	check_bytes_read(io, io->arg.io_amount);
	for (i = 0; i < io->arg.io_amount; i++)
		assert_int_not_equal(io->buffer[i], 0);
	free_io(io);
}

CASE(hole_beside_failing_part_is_error)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	fake_punch(0);
	fake_special(2, (struct fake_plan){.when = FAKE_BEFORE_RETURN,
					   .result = -ETIMEDOUT});
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_SERVERFAULT);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	free_io(io);
}

CASE(first_failing_part_in_file_order_is_the_answer)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	fake.plan.when = FAKE_LATER;
	fake_special(1, (struct fake_plan){FAKE_LATER, -EDQUOT, 0, 0});
	fake_special(2, (struct fake_plan){FAKE_LATER, -EROFS, 0, 0});
	start_read(io);
	fake_complete_reversed();
	settle(io);
	check_error(io, ERR_FSAL_DQUOT);
	free_io(io);
}

CASE(failing_repair_is_error)
{
	struct io *io = new_io(0, OBJ);

	fake_punch(0);
	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

CASE(failing_repair_asks_for_nothing_more)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	fake_punch(0);
	fake_punch(1);
	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	free_io(io);
}

/* As Ganesha's buffers are. */
static void use_one_buffer(struct io *io, size_t length)
{
	io->iov[0].iov_len = length;
	io->arg.iov_count = 1;
}

/* Their OSDs answer at the same time. */
CASE(neighbouring_holes_are_one_call)
{
	struct io *io = new_io(0, 4 * RIG_OBJECT);

	use_one_buffer(io, 4 * RIG_OBJECT);
	fake_punch(1);
	fake_punch(2);
	fake_punch(3);
	start_read(io);
	settle(io);
	check_ok(io, 4 * RIG_OBJECT);
	check_bytes_read(io, 4 * RIG_OBJECT);
	assert_true(io->arg.end_of_file);
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	free_io(io);
}

/* Another client has truncated, and we do not know it. */
CASE(neighbouring_holes_end_with_the_file)
{
	struct io *io = new_io(0, 4 * RIG_OBJECT);

	use_one_buffer(io, 4 * RIG_OBJECT);
	fake_punch(1);
	fake_punch(2);
	fake_punch(3);
	fake.size_bytes = 2 * OBJ + 9;
	start_read(io);
	settle(io);
	check_ok(io, 2 * OBJ + 9);
	check_bytes_read(io, 2 * OBJ + 9);
	assert_true(io->arg.end_of_file);
	free_io(io);
}

static void truncate_once(enum fake_blocking which)
{
	if (which != FAKE_READ)
		return;
	in_blocking = NULL;
	__atomic_store_n(&rig.obj->size.truncated_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
}

/* Zeros of the one call may stand for data that came after the truncation. */
CASE(truncation_during_the_one_call_makes_it_several)
{
	struct io *io = new_io(0, 4 * RIG_OBJECT);

	use_one_buffer(io, 4 * RIG_OBJECT);
	fake_punch(1);
	fake_punch(2);
	in_blocking = truncate_once;
	start_read(io);
	settle(io);
	check_ok(io, 4 * RIG_OBJECT);
	check_bytes_read(io, 4 * RIG_OBJECT);
	/* The one, and each twice. */
	assert_int_equal(fake_blocking_count(FAKE_READ), 5);
	free_io(io);
}

/* One call for several objects drops an error, which a writer who shortens the
 * file could turn to zeros for data.  Each is read twice: see repair_read(). */
/* They are no holes, and a call over several objects drops errors. */
CASE(discarded_parts_are_read_alone)
{
	struct io *io = new_io(0, 2 * OBJ);
	uint64_t long_ago_ns = casync_clock_ns() - 61 * CASYNC_NS_PER_S;

	io->iov[0].iov_len = 2 * OBJ;
	io->arg.iov_count = 1;
	fake.plan.when = FAKE_LATER;
	start_read(io);
	/* A truncation while the OSD does not answer, and a size that was
	 * learned after it; both a minute before the answer. */
	rig_shorten();
	rig.obj->size.hint_count = rig.truncations;
	rig.obj->size.truncated_ns = long_ago_ns;
	fake_complete(0);
	fake_complete(1);
	settle(io);
	check_ok(io, 2 * OBJ);
	assert_int_equal(fake_blocking_count(FAKE_READ), 2);
	free_io(io);
}

CASE(after_a_truncation_each_hole_is_a_call)
{
	struct io *io = new_io(0, 4 * RIG_OBJECT);

	use_one_buffer(io, 4 * RIG_OBJECT);
	fake_punch(1);
	fake_punch(2);
	__atomic_store_n(&rig.obj->size.truncated_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
	start_read(io);
	settle(io);
	check_ok(io, 4 * RIG_OBJECT);
	check_bytes_read(io, 4 * RIG_OBJECT);
	assert_int_equal(fake_blocking_count(FAKE_READ), 4);
	free_io(io);
}

/* All bytes are there: not knowing whether more follow is no error. */
CASE(failing_size_lookup_leaves_a_full_read)
{
	struct io *io = new_io(3 * OBJ, OBJ);

	fake.blocking_result[FAKE_GETATTR] = -ESTALE;
	start_read(io);
	settle(io);
	check_ok(io, OBJ);
	assert_false(io->arg.end_of_file);
	free_io(io);
}

/*
 * A settled read that only has to close its temporary fd goes through
 * read_repair() all the same: a getattr that nothing needs, and if it fails,
 * complete data are answered with an error.
 */
CASE(settled_read_with_temporary_fd_asks_nothing_more)
{
	struct io *io;

	io = new_io(0, 100);
	stub.global_fd_busy = true;
	fake.blocking_result[FAKE_GETATTR] = -EIO;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	free_io(io);
}

/* read_repair() leaves the bytes it had in io_amount when a later part fails. */
CASE(failing_repair_of_later_part_counts_no_bytes)
{
	struct io *io;

	io = new_io(0, 2 * RIG_OBJECT);
	fake_punch(1);
	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

/* libcephfs gives zeros for objects of a pool that was deleted. */
CASE(what_a_deleted_pool_had_is_no_hole)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	fake_punch(0);
	fake_punch(1);
	fake.pool_is_gone = true;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

/* A client could not make sense of NOENT for a file that it has open. */
CASE(a_file_that_is_there_is_not_missing)
{
	struct io *io = new_io(0, OBJ);

	fake_special(0, (struct fake_plan){.when = FAKE_BEFORE_RETURN,
					   .result = -ENOENT});
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}
