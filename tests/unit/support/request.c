/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "complete.h"
#include "op.h"
#include "obj_ops.h"
#include "pool_look.h"
#include "request.h"
#include "rig_lanes.h"
#include "stub_mount.h"
#include "submit.h"
#include "watchdog.h"

static pthread_t test_thread;
uint64_t duplicates_before;
/* Calls that may wait for Ceph, made where nothing may; atomic. */
static int blocking_on_completer;
void (*in_blocking)(enum fake_blocking which);

static void hook(enum fake_blocking which)
{
	if (casync_lane_on_completion_thread())
		__atomic_add_fetch(&blocking_on_completer, 1, __ATOMIC_ACQ_REL);
	if (in_blocking != NULL)
		in_blocking(which);
}

void set_creds(gid_t *groups, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		groups[i] = 5000 + i;
	rig.request.creds.caller_uid = 1001;
	rig.request.creds.caller_gid = 1002;
	rig.request.creds.caller_glen = count;
	rig.request.creds.caller_garray = groups;
}

int request_up(void **state)
{
	rig_up(state);
	test_thread = pthread_self();
	duplicates_before = casync_submit_duplicates();
	blocking_on_completer = 0;
	in_blocking = NULL;
	fake.hook = hook;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_DATA;
	if (rig_lanes_up() != 0)
		return -1;
	return casync_complete_start(casync_finish) != 0 ||
	       casync_watchdog_start() != 0;
}

void stop_threads(void)
{
	fake_join();
	casync_watchdog_stop();
	casync_complete_stop();
	rig_lanes_down();
}

int request_down(void **state)
{
	stop_threads();
	return rig_down(state);
}

void request_until_in_time(bool (*request)(struct io *io), uint64_t offset,
			   void **state)
{
	unsigned int tries = 1;
	struct io *io;

	for (;;) {
		rig.exp.await_not_before_ns = 0;
		io = new_io(offset, 100);
		if (request(io))
			break;
		assert_true(tries++ < 20);
		free_io(io);
		request_down(state);
		request_up(state);
	}
	free_io(io);
}

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	struct io *io = caller_data;
	sem_t *hold = io->hold;

	(void)obj;
	(void)obj_data;
	io->status = status;
	io->own_export = op_ctx != NULL &&
			 op_ctx->fsal_export == &rig.exp.export &&
			 op_ctx->ctx_export == &rig.gsh_export;
	if (op_ctx != NULL) {
		io->creds = op_ctx->creds;
		if (io->creds.caller_glen <= GROUPS &&
		    io->creds.caller_glen != 0)
			memcpy(io->groups, io->creds.caller_garray,
			       io->creds.caller_glen * sizeof(gid_t));
	}
	pthread_mutex_lock(&rig.exp.inflight.lock);
	io->inflight_ops = rig.exp.inflight.ops;
	pthread_mutex_unlock(&rig.exp.inflight.lock);
	io->ios_completed = stub_ios_completed();
	io->on_completer = casync_lane_on_completion_thread();
	io->in_caller = pthread_equal(pthread_self(), test_thread);
	if (io->in_done != NULL)
		io->in_done();
	if (io->frees_object)
		rig_free_object();
	__atomic_add_fetch(&io->calls, 1, __ATOMIC_ACQ_REL);
	/* From here on the test may free it. */
	sem_post(&io->came);
	if (hold != NULL)
		(void)rig_wait(hold);
}

struct io *new_io(uint64_t offset, size_t length)
{
	/* On the heap, and exactly so large: an overrun is seen. */
	struct io *io = calloc(1, sizeof(*io));
	size_t third = length / 3;

	assert_non_null(io);
	sem_init(&io->came, 0, 0);
	memset(io->buffer, UNTOUCHED, sizeof(io->buffer));
	io->iov[0] = (struct iovec){io->buffer, third};
	io->iov[1] = (struct iovec){io->buffer + third, third};
	io->iov[2] = (struct iovec){io->buffer + 2 * third, length - 2 * third};
	io->arg.iov_count = 3;
	io->arg.offset = offset;
	set_buffers(&io->arg, io->iov, length);
	io->arg.io_amount = 12345; /* to be set in any case */
	/* 9P hands in what was on its stack. */
	io->arg.fsal_resume = 0x5a5a5a5a;
	return io;
}

void free_io(struct io *io)
{
	sem_destroy(&io->came);
	free(io);
}

void start_read(struct io *io)
{
	casync_read2(&rig.obj->handle, false, done, &io->arg, io);
}

static uint8_t written_byte(size_t i)
{
	return (uint8_t)(i * 13 % 240 + 3);
}

void start_write(struct io *io, bool stable)
{
	size_t i;

	for (i = 0; i < asked_bytes(&io->arg) && i < sizeof(io->buffer); i++)
		io->buffer[i] = written_byte(i);
	io->arg.fsal_stable = stable;
	casync_write2(&rig.obj->handle, false, done, &io->arg, io);
}

/* Wait for the answer, stop all threads, and see that nothing is left. */
void settle(struct io *io)
{
	assert_true(rig_wait(&io->came));
	stop_threads();
	assert_int_equal(io->calls, 1);
	assert_int_equal(stub.ios_started, stub.ios_completed);
	assert_int_equal(stub.ios_without_op_ctx, 0);
	assert_int_equal(stub.reservations, 0);
	assert_int_equal(stub.export_refs, 0);
	assert_int_equal(stub.op_contexts, 0);
	assert_int_equal(rig.exp.inflight.ops, 0);
	assert_int_equal(rig.exp.inflight.bytes, 0);
	assert_true(glist_empty(&rig.exp.inflight.entries));
	assert_int_equal(pool_in_use(rig.exp.pool), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(fake.calls_in_callback, 0);
	assert_int_equal(fake.closed_in_use, 0);
	assert_int_equal(blocking_on_completer, 0);
	assert_int_equal(io->arg.fsal_resume, FSAL_NORESUME);
}

void check_ok(const struct io *io, size_t amount)
{
	assert_int_equal(io->status.major, ERR_FSAL_NO_ERROR);
	assert_int_equal(io->arg.io_amount, amount);
}

void check_error(const struct io *io, fsal_errors_t major)
{
	assert_int_equal(io->status.major, major);
	assert_int_equal(io->arg.io_amount, 0);
}

void check_bytes_read(const struct io *io, size_t amount)
{
	size_t i;

	for (i = 0; i < amount; i++)
		assert_int_equal(io->buffer[i],
				 fake_content(io->arg.offset + i));
	/* What was not asked for is not written to. */
	for (i = asked_bytes(&io->arg); i < sizeof(io->buffer); i++)
		assert_int_equal(io->buffer[i], UNTOUCHED);
}

void check_bytes_written(const struct io *io, size_t amount)
{
	size_t i;

	for (i = 0; i < amount; i++)
		assert_int_equal(fake_content(io->arg.offset + i),
				 written_byte(i));
}

void check_answer_context(const struct io *io, unsigned int groups,
			  unsigned int others)
{
	unsigned int i;

	assert_true(io->own_export);
	assert_false(io->in_caller);
	assert_in_range(io->inflight_ops, 0, others);
	assert_in_range(io->ios_completed, 1, 1 + others);
	assert_int_equal(io->creds.caller_uid, 1001);
	assert_int_equal(io->creds.caller_gid, 1002);
	assert_int_equal(io->creds.caller_glen, groups);
	for (i = 0; i < groups; i++)
		assert_int_equal(io->groups[i], 5000 + i);
}

void check_nothing_asked(const struct io *io)
{
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(stub.ios_started, 0);
	assert_true(io->in_caller);
}
