/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the read cache asks the MDS for tells the file's size, too. */
#include "config.h"

#include <errno.h>

#include "unit.h"

#include "cache_rig.h"
#include "read_cache.h"
#include "request.h"

static int up(void **state)
{
	int rc = request_up(state);

	fake.version = 100;
	casync_cache_set_budget(64 * MIB);
	/* The fake's READs are as quick as its revalidations. */
	rig.obj->cached->read_ns = UINT64_MAX / 4;
	/* Another gateway has appended the second half. */
	casync_file_size_set(&rig.obj->size, 2 * OBJ);
	return rc;
}

static int down(void **state)
{
	int rc = request_down(state);

	return rc + rig_end(state);
}

static void read_a_byte(void)
{
	struct io *io = new_io(0, 1);

	start_read(io);
	assert_true(rig_wait(&io->came));
	check_ok(io, 1);
	free_io(io);
}

/* Or each READ of what was appended would be one that blocks. */
TEST_WITH(size_that_has_grown_is_learned, up, down)
{
	read_a_byte();
	assert_true(fake_blocking_count(FAKE_GETATTR) > 0);
	assert_int_equal(casync_file_size_hint(&rig.obj->size), 4 * OBJ);
}

TEST_WITH(size_that_is_not_told_stays, up, down)
{
	fake.blocking_result[FAKE_GETATTR] = -EIO;
	read_a_byte();
	assert_true(fake_blocking_count(FAKE_GETATTR) > 0);
	assert_int_equal(casync_file_size_hint(&rig.obj->size), 2 * OBJ);
}
