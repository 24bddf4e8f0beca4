/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What an op holds while it is under way: fd, share, groups, buffers.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "inflight.h"
#include "pool_look.h"
#include "request.h"
#include "watchdog.h"

CASE(temporary_fd_of_read_is_closed_on_worker)
{
	struct io *io = new_io(0, 100);

	stub.global_fd_busy = true;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_false(io->on_completer);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 1);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

CASE(temporary_fd_of_write_is_closed_on_worker)
{
	struct io *io = new_io(0, 100);

	stub.global_fd_busy = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_false(io->on_completer);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

CASE(temporary_fd_of_failed_io_is_closed)
{
	struct io *io = new_io(0, 100);

	stub.global_fd_busy = true;
	fake.plan.result = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

CASE(failing_close_is_logged_and_io_stands)
{
	struct io *io = new_io(0, 100);

	stub.global_fd_busy = true;
	stub.complete_status = fsalstat(ERR_FSAL_IO, EIO);
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(stub.warnings, 1);
	free_io(io);
}

CASE(stateless_io_releases_its_reservation_once)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_write(io, true);
	assert_int_equal(stub.reservations, 1);
	fake_complete_in_order();
	settle(io);
	assert_int_equal(stub.reservation_changes, 2);
	free_io(io);
}

CASE(io_with_state_takes_no_reservation)
{
	struct io *io = new_io(0, 100);

	io->arg.state = &rig.state.state;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(stub.reservation_changes, 0);
	assert_ptr_equal(fake.calls[0].asked.fh, rig.state.fd.fh);
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 0);
	free_io(io);
}

struct groups_case {
	const char *name;
	unsigned int count;
};

static const struct groups_case groups_cases[] = {
	{"requester_without_groups_keeps_none", 0},
	{"requester_with_one_group_keeps_it", 1},
	{"requester_with_16_groups_keeps_them", 16},
	{"requester_with_17_groups_keeps_them", 17},
	{"requester_with_20_groups_keeps_them", 20},
};

TEST_ROWS(check_groups, groups_cases, request_up, request_down)
{
	const struct groups_case *c = *state;
	gid_t groups[GROUPS] = {0};
	struct io *io = new_io(0, 100);

	set_creds(groups, c->count);
	if (c->count == 0)
		rig.request.creds.caller_garray = NULL;
	fake.plan.when = FAKE_LATER;
	start_read(io);
	memset(groups, 0, sizeof(groups));
	fake_complete_in_order();
	settle(io);
	check_answer_context(io, c->count, 0);
	free_io(io);
}

CASE(trimmed_write_writes_only_what_was_asked)
{
	struct io *io = new_io(0, 3000);

	if (!HAS_OWN_REPLY) {
		free_io(io);
		skip();
	}
	/* The buffers hold 3000. */
	set_buffers(&io->arg, io->iov, 1500);
	start_write(io, true);
	settle(io);
	check_ok(io, 1500);
	check_bytes_written(io, 1500);
	assert_int_equal(fake_content(1500), fake_byte(1500));
	free_io(io);
}

CASE(reads_are_counted_while_they_are_in_flight)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	assert_int_equal(rig.exp.inflight.ops, 1);
	assert_int_equal(rig.exp.inflight.bytes, 2 * RIG_OBJECT);
	fake_complete(0);
	assert_int_equal(rig.exp.inflight.ops, 1);
	fake_complete(1);
	settle(io);
	free_io(io);
}

CASE(fd_is_opened_for_what_is_done_on_it)
{
	struct io *io = new_io(0, 100);

	start_read(io);
	assert_int_equal(rig.obj->read_fd.fsal_fd.openflags, FSAL_O_READ);
	assert_true(rig_wait(&io->came));
	free_io(io);
	io = new_io(0, 100);
	start_write(io, true);
	assert_int_equal(rig.obj->write_fd.fsal_fd.openflags, FSAL_O_WRITE);
	settle(io);
	free_io(io);
}

static void nothing_of_the_export_is_in_use(void)
{
	assert_int_equal(pool_in_use(rig.exp.pool), 0);
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
}

/* The answer's op_ctx may hold the last reference. */
CASE(export_may_go_when_the_answer_is_out)
{
	struct io *io = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	start_read(io);
	stub.on_release = nothing_of_the_export_is_in_use;
	fake_complete_in_order();
	settle(io);
	free_io(io);
}

static void op_is_in_use(void)
{
	assert_int_equal(pool_in_use(rig.exp.pool), 1);
}

/* done and what is logged after it are of this request, not of the next. */
CASE(op_is_kept_until_it_is_answered)
{
	struct io *io = new_io(0, 100);

	io->in_done = op_is_in_use;
	start_read(io);
	settle(io);
	free_io(io);
}

/* Where nothing was asked of Ceph nobody keeps the export in done. */
CASE(failed_request_is_no_longer_the_exports)
{
	struct io *io = new_io(0, 100);

	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	io->in_done = nothing_of_the_export_is_in_use;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_DELAY);
	free_io(io);
}

CASE(slow_request_is_logged_and_so_is_its_end)
{
	struct io *io = new_io(0, 100);
	struct casync_watched *watched;

	rig.exp.keys.tuning.slow_op_warn = 1;
	watched = rig_watch();
	fake.plan.when = FAKE_LATER;
	start_read(io);
	RIG_UNTIL(stub_warned("slow request: READ inode 0x10000000001"));
	assert_true(stub_warned("state SUBMITTED"));
	fake_complete_in_order();
	settle(io);
	casync_watchdog_remove(watched);
	assert_true(stub_warned(
		"slow request completed: READ inode 0x10000000001"));
	free_io(io);
}
