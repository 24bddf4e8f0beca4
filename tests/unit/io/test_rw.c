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

static void read_plus_is_not_supported(void **state)
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

static void empty_read_is_answered_at_once(void **state)
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

static void empty_write_is_answered_at_once(void **state)
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

#define FAR_CASES (sizeof(far_cases) / sizeof(far_cases[0]))

static void check_far(void **state)
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

static void read_up_to_last_offset_is_asked_for(void **state)
{
	struct io *io = new_io(INT64_MAX - 100, 100);

	start_read(io);
	settle(io);
	check_ok(io, 0);
	assert_true(io->arg.end_of_file);
	assert_int_equal(fake_blocking_count(FAKE_READ), 1);
	free_io(io);
}

static void write_to_snapshot_is_rofs(void **state)
{
	struct io *io = new_io(0, 100);

	rig.obj->id.snapid = 5;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_ROFS);
	check_nothing_asked(io);
	free_io(io);
}

static void read_of_snapshot_works(void **state)
{
	struct io *io = new_io(0, 100);

	rig.obj->id.snapid = 5;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	free_io(io);
}

static void failing_start_of_io_is_the_answer(void **state)
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

static void closed_export_is_delay(void **state)
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

static const struct CMUnitTest plain[] = {
	CASE(read_plus_is_not_supported),
	CASE(empty_read_is_answered_at_once),
	CASE(empty_write_is_answered_at_once),
	CASE(read_up_to_last_offset_is_asked_for),
	CASE(write_to_snapshot_is_rofs),
	CASE(read_of_snapshot_works),
	CASE(failing_start_of_io_is_the_answer),
	CASE(closed_export_is_delay),
};

#define PLAIN (sizeof(plain) / sizeof(plain[0]))

int main(void)
{
	static struct CMUnitTest tests[FAR_CASES + PLAIN];
	size_t n = 0;
	size_t i;

	for (i = 0; i < FAR_CASES; i++)
		tests[n++] =
			(struct CMUnitTest)ROW_CASE(check_far, &far_cases[i]);
	memcpy(tests + n, plain, sizeof(plain));

	return cmocka_run_group_tests_name("rw", tests, NULL, NULL);
}
