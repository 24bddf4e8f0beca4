/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What READ, WRITE and COMMIT answer without asking libcephfs.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "inflight.h"
#include "request.h"

CASE(read_plus_is_not_supported)
{
	struct io_info info = {0};
	struct io *io = new_io(0, 100);

	io->arg.info = &info;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_NOTSUPP);
	check_nothing_asked(io);
	free_io(io);
}

CASE(empty_read_is_answered_at_once)
{
	struct io *io = new_io(0, 0);

	io->arg.end_of_file = true;
	start_read(io);
	settle(io);
	check_ok(io, 0);
	check_nothing_asked(io);
	assert_false(io->arg.end_of_file);
	free_io(io);
}

CASE(empty_write_is_answered_at_once)
{
	struct io *io = new_io(0, 0);

	start_write(io, true);
	settle(io);
	check_ok(io, 0);
	check_nothing_asked(io);
	assert_true(io->arg.fsal_stable);
	free_io(io);
}

struct far_case {
	const char *name;
	uint64_t offset;
	size_t length;
	bool write;
};

static const struct far_case far_cases[] = {
	{"read_past_last_offset_is_eof", UINT64_C(1) << 63, 100, false},
	{"read_at_largest_offset_is_eof", UINT64_MAX, 100, false},
	{"read_across_last_offset_is_eof", INT64_MAX - 50, 100, false},
	{"write_past_last_offset_is_fbig", UINT64_C(1) << 63, 100, true},
	{"write_at_largest_offset_is_fbig", UINT64_MAX, 100, true},
	{"write_across_last_offset_is_fbig", INT64_MAX - 50, 100, true},
};

TEST_ROWS(check_far, far_cases, request_up, request_down)
{
	const struct far_case *c = *state;
	struct io *io = new_io(c->offset, c->length);

	if (c->write)
		start_write(io, true);
	else
		start_read(io);
	settle(io);
	check_nothing_asked(io);
	if (c->write) {
		check_error(io, ERR_FSAL_FBIG);
	} else {
		check_ok(io, 0);
		assert_true(io->arg.end_of_file);
	}
	free_io(io);
}

CASE(read_up_to_last_offset_is_asked_for)
{
	struct io *io = new_io(INT64_MAX - 100, 100);

	start_read(io);
	settle(io);
	check_ok(io, 0);
	assert_true(io->arg.end_of_file);
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	free_io(io);
}

CASE(write_to_snapshot_is_rofs)
{
	struct io *io = new_io(0, 100);

	rig.obj->id.snapid = 5;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_ROFS);
	check_nothing_asked(io);
	free_io(io);
}

CASE(read_of_snapshot_works)
{
	struct io *io = new_io(0, 100);

	rig.obj->id.snapid = 5;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
}

CASE(failing_start_of_io_is_the_answer)
{
	struct io *io = new_io(0, 100);

	stub.start_status = fsalstat(ERR_FSAL_SHARE_DENIED, 0);
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_SHARE_DENIED);
	check_nothing_asked(io);
	assert_int_equal(stub.reservations, 0);
	assert_int_equal(stub.reservation_changes, CHANGES_OF_REFUSED_IO);
	free_io(io);
}

CASE(closed_export_is_delay)
{
	struct io *io = new_io(0, 100);

	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_DELAY);
	/* The file may have been opened for it, and nothing more. */
	assert_int_equal(fake.call_count, 0);
	assert_true(io->in_caller);
	free_io(io);
}
