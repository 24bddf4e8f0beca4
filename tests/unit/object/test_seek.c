/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* SEEK: the whole file is data, and the hole is at its end.  What else this file
 * of the plugin refuses, without a question to Ceph. */
#include "config.h"

#include <errno.h>

#include "unit.h"

#include "fsal.h"

#include "obj_ops.h"
#include "operations_rig.h"

#define SIZE (RIG_OBJECTS * OBJ)

static const struct seek_case {
	const char *name;
	data_content4 what;
	uint64_t offset;
	fsal_errors_t answer;
	uint64_t found;
	bool eof;
} cases[] = {
	{"data", NFS4_CONTENT_DATA, 5, ERR_FSAL_NO_ERROR, 5, false},
	{"data_at_the_last_byte", NFS4_CONTENT_DATA, SIZE - 1,
	 ERR_FSAL_NO_ERROR, SIZE - 1, false},
	{"data_at_the_end", NFS4_CONTENT_DATA, SIZE, ERR_FSAL_NXIO, SIZE,
	 false},
	{"hole", NFS4_CONTENT_HOLE, 5, ERR_FSAL_NO_ERROR, SIZE, true},
	{"hole_at_the_end", NFS4_CONTENT_HOLE, SIZE, ERR_FSAL_NXIO, SIZE,
	 false},
	{"something_else", (data_content4)7, 5, ERR_FSAL_UNION_NOTSUPP, 5,
	 false},
};

TEST_ROWS(check_seek, cases, operations_up, operations_down)
{
	const struct seek_case *c = *state;
	struct io_info info = {.io_content.what = c->what};

	info.io_content.hole.di_offset = c->offset;
	use_objects();
	forget_seen();
	assert_int_equal(casync_seek2(FILE_HDL, NULL, &info).major, c->answer);
	assert_true(info.io_content.hole.di_offset == c->found);
	assert_int_equal(info.io_eof, c->eof);
	assert_int_equal(seen.calls, c->answer != ERR_FSAL_UNION_NOTSUPP);
	check_nothing_held();
}

OPERATION_CASE(allocate_is_not_supported)
{
	assert_int_equal(casync_fallocate(FILE_HDL, NULL, 0, 1, true).major,
			 ERR_FSAL_NOTSUPP);
	assert_int_equal(seen.calls, 0);
}

static fsal_status_t deallocate(uint64_t offset, uint64_t length)
{
	return casync_fallocate(FILE_HDL, NULL, offset, length, false);
}

/* libcephfs has signed offsets. */
OPERATION_CASE(hole_past_the_last_offset_is_too_big)
{
	use_objects();
	forget_seen();
	assert_int_equal(deallocate((uint64_t)INT64_MAX + 1, 0).major,
			 ERR_FSAL_FBIG);
	assert_int_equal(deallocate(1, INT64_MAX).major, ERR_FSAL_FBIG);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(deallocate(INT64_MAX, 0).major, ERR_FSAL_NO_ERROR);
	assert_int_equal(deallocate(SIZE, INT64_MAX - SIZE).major,
			 ERR_FSAL_NO_ERROR);
}

OPERATION_CASE(hints_are_not_supported)
{
	struct io_hints hints = {0};

	assert_int_equal(casync_io_advise(FILE_HDL, &hints).major,
			 ERR_FSAL_NOTSUPP);
}
