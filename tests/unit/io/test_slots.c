/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A worker of Ganesha's that waits for the MDS has a slot of the mount. */
#include "config.h"

#include "unit.h"

#include "request.h"
#include "stub_mount.h"

static int asked, asked_without_slot;

static uint32_t inside(void)
{
	return __atomic_load_n(&stub_mount.callers.room.inside,
			       __ATOMIC_ACQUIRE);
}

static void look(enum fake_blocking which)
{
	if (which != FAKE_GETATTR)
		return;
	asked++;
	asked_without_slot += inside() == 0;
}

static bool size_is_asked(struct io *io)
{
	in_blocking = look;
	asked = asked_without_slot = 0;
	fake.plan.when = FAKE_ON_THREAD;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	if (!io->in_caller)
		return false;
	assert_true(asked > 0);
	assert_int_equal(asked_without_slot, 0);
	return true;
}

/* READ up to the end of the file: the worker asks for the size itself. */
CASE(size_at_the_end_is_asked_with_a_slot)
{
	request_until_in_time(size_is_asked, RIG_OBJECT * RIG_OBJECTS - 100,
			      state);
}

static int dropped_with;

int casync_privileges_drop(struct casync_object *obj)
{
	dropped_with = (int)inside();
	obj->privileged = 0;
	return 0;
}

/* WRITE to a setuid file: the worker has the bit cleared by the MDS. */
CASE(privileges_are_cleared_with_a_slot)
{
	struct io *io = new_io(0, 100);
	gid_t groups[GROUPS];

	dropped_with = -1;
	rig.obj->privileged = true;
	set_creds(groups, 1);
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(dropped_with, 1);
	free_io(io);
}
