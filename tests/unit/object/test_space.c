/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* DEALLOCATE is acknowledged only if the hole is there, and the size is in the
 * MDS' journal before the objects go that tell it. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "module.h"
#include "obj_ops.h"
#include "operations_rig.h"

#define SIZE (RIG_OBJECTS * OBJ)
#define NEVER UINT32_MAX

/* What libcephfs and Ceph do. */
static struct {
	unsigned int full_from; /* This look finds the pool full. */
	unsigned int looks;
	unsigned int punches;
	unsigned int flushes_before; /* ... the first punch. */
	bool drops;		     /* The OSDs refuse, libcephfs says 0. */
	int getattr_then;	     /* After the punch: the session is lost. */
	int read_then;		     /* After it: the OSD refuses. */
} ceph;

int ceph_ll_fallocate(struct ceph_mount_info *cmount, struct Fh *fh, int mode,
		      int64_t offset, int64_t length)
{
	(void)cmount;
	(void)fh;
	if (!(mode & FALLOC_FL_PUNCH_HOLE))
		return ceph.looks++ >= ceph.full_from ? -ENOSPC : 0;
	if (ceph.punches++ == 0)
		ceph.flushes_before = fake_blocking_count(FAKE_SYNC_INODE);
	if (!ceph.drops)
		fake_zero((uint64_t)offset, (uint64_t)length);
	fake.blocking_result[FAKE_GETATTR] = ceph.getattr_then;
	fake.blocking_result[FAKE_READ] = ceph.read_then;
	return 0;
}

static const struct space_case {
	const char *name;
	uint64_t offset;
	uint64_t length;
	unsigned int full_from;
	bool drops;
	int getattr_then;
	int read_then;
	fsal_errors_t status;
	unsigned int punches;
	unsigned int flushes;
} cases[] = {
	{"inside", OBJ, OBJ, NEVER, false, 0, 0, ERR_FSAL_NO_ERROR, 1, 0},
	{"to_the_end", 3 * OBJ, OBJ, NEVER, false, 0, 0, ERR_FSAL_NO_ERROR, 1,
	 1},
	{"past_the_end", 10, 9 * OBJ, NEVER, false, 0, 0, ERR_FSAL_NO_ERROR, 1,
	 1},
	{"behind_the_end", SIZE, OBJ, NEVER, false, 0, 0, ERR_FSAL_NO_ERROR, 0,
	 0},
	{"full", OBJ, OBJ, 0, false, 0, 0, ERR_FSAL_NOSPC, 0, 0},
	{"full_meanwhile", OBJ, OBJ, 1, true, 0, 0, ERR_FSAL_NOSPC, 1, 0},
	{"lost_meanwhile", OBJ, OBJ, NEVER, true, -EPERM, 0, ERR_FSAL_DELAY, 1,
	 0},
	{"removed_meanwhile", OBJ, OBJ, NEVER, false, -ENOENT, 0,
	 ERR_FSAL_NO_ERROR, 1, 0},
	{"dropped", OBJ + 1, 1, NEVER, true, 0, 0, ERR_FSAL_DELAY, 1, 0},
	{"dropped_in_the_second_object", OBJ - 1, 2 * OBJ, NEVER, true, 0, 0,
	 ERR_FSAL_DELAY, 1, 0},
	{"refused_by_the_osd", OBJ, OBJ, NEVER, false, 0, -EIO, ERR_FSAL_IO, 1,
	 0},
};

TEST_ROWS(check_space, cases, operations_up, operations_down)
{
	const struct space_case *c = *state;
	fsal_status_t status;

	memset(&ceph, 0, sizeof(ceph));
	use_objects();
	ceph.full_from = c->full_from;
	ceph.drops = c->drops;
	ceph.getattr_then = c->getattr_then;
	ceph.read_then = c->read_then;
	status = casync_fallocate(FILE_HDL, NULL, c->offset, c->length, false);
	assert_int_equal(status.major, c->status);
	assert_int_equal(ceph.punches, c->punches);
	assert_int_equal(ceph.flushes_before, c->flushes);
	fake.blocking_result[FAKE_GETATTR] = 0;
	fake.blocking_result[FAKE_READ] = 0;
	check_nothing_held();
}

/* Each object of a hole is looked at, and the whole of small ones. */
OPERATION_CASE(each_object_is_read)
{
	memset(&ceph, 0, sizeof(ceph));
	ceph.full_from = NEVER;
	use_objects();
	assert_int_equal(
		casync_fallocate(FILE_HDL, NULL, 1, SIZE - 2, false).major,
		ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_READ), RIG_OBJECTS);
}
