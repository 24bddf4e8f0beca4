/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * READ, WRITE and COMMIT from the call to the answer: everything of ours on
 * that way is linked for real, with a libcephfs and a Ganesha of our own
 * around it.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "complete.h"
#include "op.h"
#include "ops.h"
#include "rig.h"
#include "submit.h"
#include "watchdog.h"

#define UNTOUCHED 0xEE
#define BUFFER_BYTES (RIG_OBJECT * RIG_OBJECTS)
#define GROUPS 20 /* more than an op has room for */

/* One request, as a protocol layer would keep it, and what it was answered. */
struct io {
	struct fsal_io_arg arg;
	struct iovec iov[3];
	uint8_t buffer[BUFFER_BYTES];

	/* Set before: what done does. */
	sem_t *hold; /* wait for it */
	bool frees_object; /* as the last request on it may */

	/* Set in done. */
	sem_t came;
	int calls; /* atomic */
	fsal_status_t status;
	bool own_export;
	struct user_cred creds;
	gid_t groups[GROUPS];
	uint64_t inflight_ops;
	int ios_completed;
	bool on_completer;
	bool in_caller;
};

static pthread_t test_thread;
static uint64_t duplicates_before;
/* Calls that may wait for Ceph, made where nothing may; atomic. */
static int blocking_on_completer;
static void (*in_blocking)(enum fake_blocking which);

static void hook(enum fake_blocking which)
{
	if (casync_complete_on_thread())
		__atomic_add_fetch(&blocking_on_completer, 1,
				   __ATOMIC_ACQ_REL);
	if (in_blocking != NULL)
		in_blocking(which);
}

static void set_creds(gid_t *groups, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		groups[i] = 5000 + i;
	rig.request.creds.caller_uid = 1001;
	rig.request.creds.caller_gid = 1002;
	rig.request.creds.caller_glen = count;
	rig.request.creds.caller_garray = groups;
}

static int up(void **state)
{
	rig_up(state);
	test_thread = pthread_self();
	duplicates_before = casync_submit_duplicates();
	blocking_on_completer = 0;
	in_blocking = NULL;
	fake.hook = hook;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_DATA;
	if (casync_workers_start() != 0)
		return -1;
	return casync_complete_start() != 0 || casync_watchdog_start() != 0;
}

static void stop_threads(void)
{
	fake_join();
	casync_watchdog_stop();
	casync_complete_stop();
	casync_workers_stop();
}

static int down(void **state)
{
	stop_threads();
	return rig_down(state);
}

static void free_object(void)
{
	struct casync_object *obj = rig.obj;

	rig.obj = NULL;
	if (obj->global_fd.fh != NULL)
		(void)ceph_ll_close(NULL, obj->global_fd.fh);
	casync_flush_destroy(&obj->flush);
	destroy_fsal_fd(&obj->global_fd.fsal_fd);
	pthread_rwlock_destroy(&obj->handle.obj_lock);
	memset(obj, 0xa5, sizeof(*obj));
	free(obj);
}

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	struct io *io = caller_data;

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
	io->on_completer = casync_complete_on_thread();
	io->in_caller = pthread_equal(pthread_self(), test_thread);
	if (io->frees_object)
		free_object();
	__atomic_add_fetch(&io->calls, 1, __ATOMIC_ACQ_REL);
	sem_post(&io->came);
	if (io->hold != NULL)
		(void)rig_wait(io->hold);
}

static struct io *new_io(uint64_t offset, size_t length)
{
	/* On the heap, and exactly so large: an overrun is seen. */
	struct io *io = calloc(1, sizeof(*io));
	size_t third = length / 3;

	assert_non_null(io);
	sem_init(&io->came, 0, 0);
	memset(io->buffer, UNTOUCHED, sizeof(io->buffer));
	io->iov[0] = (struct iovec){ io->buffer, third };
	io->iov[1] = (struct iovec){ io->buffer + third, third };
	io->iov[2] = (struct iovec){ io->buffer + 2 * third,
				     length - 2 * third };
	io->arg.iov = io->iov;
	io->arg.iov_count = 3;
	io->arg.offset = offset;
	io->arg.io_request = length;
	io->arg.io_amount = 12345; /* to be set in any case */
	/* 9P hands in what was on its stack. */
	io->arg.fsal_resume = 0x5a5a5a5a;
	return io;
}

static void free_io(struct io *io)
{
	sem_destroy(&io->came);
	free(io);
}

static void start_read(struct io *io)
{
	casync_read2(&rig.obj->handle, false, done, &io->arg, io);
}

static uint8_t written_byte(size_t i)
{
	return (uint8_t)(i * 13 % 240 + 3);
}

static void start_write(struct io *io, bool stable)
{
	size_t i;

	for (i = 0; i < io->arg.io_request && i < sizeof(io->buffer); i++)
		io->buffer[i] = written_byte(i);
	io->arg.fsal_stable = stable;
	casync_write2(&rig.obj->handle, false, done, &io->arg, io);
}

/* Wait for the answer, stop all threads, and see that nothing is left. */
static void settle(struct io *io)
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
	assert_int_equal(fake.calls_in_callback, 0);
	assert_int_equal(blocking_on_completer, 0);
	assert_int_equal(io->arg.fsal_resume, FSAL_NORESUME);
}

static void check_ok(const struct io *io, size_t amount)
{
	assert_int_equal(io->status.major, ERR_FSAL_NO_ERROR);
	assert_int_equal(io->arg.io_amount, amount);
}

static void check_error(const struct io *io, fsal_errors_t major)
{
	assert_int_equal(io->status.major, major);
	assert_int_equal(io->arg.io_amount, 0);
}

static void check_bytes_read(const struct io *io, size_t amount)
{
	size_t i;

	for (i = 0; i < amount; i++)
		assert_int_equal(io->buffer[i],
				 fake_content(io->arg.offset + i));
	/* What was not asked for is not written to. */
	for (i = io->arg.io_request; i < sizeof(io->buffer); i++)
		assert_int_equal(io->buffer[i], UNTOUCHED);
}

static void check_bytes_written(const struct io *io, size_t amount)
{
	size_t i;

	for (i = 0; i < amount; i++)
		assert_int_equal(fake_content(io->arg.offset + i),
				 written_byte(i));
}

/* What every answer from a thread of ours has to have. */
static void check_answer_context(const struct io *io, unsigned int groups)
{
	unsigned int i;

	assert_true(io->own_export);
	assert_false(io->in_caller);
	assert_int_equal(io->inflight_ops, 0);
	assert_int_equal(io->ios_completed, 1);
	assert_int_equal(io->creds.caller_uid, 1001);
	assert_int_equal(io->creds.caller_gid, 1002);
	assert_int_equal(io->creds.caller_glen, groups);
	for (i = 0; i < groups; i++)
		assert_int_equal(io->groups[i], 5000 + i);
}

static void check_nothing_asked(const struct io *io)
{
	assert_int_equal(fake.call_count, 0);
	assert_int_equal(stub.ios_started, 0);
	assert_true(io->in_caller);
}

/* ------------------------------------------------------------ the matrix */

enum arrival { BEFORE_RETURN, LATER, OTHER_THREAD, REVERSED, ARRIVALS };
enum outcome {
	IN_FULL,
	CUT_SHORT,
	NOTHING,
	ERROR_CALLED_BACK,
	ERROR_RETURNED,
	COUNT_RETURNED,
	OUTCOMES,
};
enum kind { READ, STABLE_WRITE, UNSTABLE_WRITE, KINDS };

static const char *const arrival_names[] = { "before_return", "later",
					     "on_thread", "reversed" };
static const char *const outcome_names[] = {
	"full", "short", "nothing", "error_called_back", "error_returned",
	"count_returned",
};
static const char *const kind_names[] = { "read", "stable_write",
					  "unstable_write" };

struct cell {
	char name[80];
	enum arrival arrival;
	enum outcome outcome;
	enum kind kind;
};

#define CELLS (ARRIVALS * OUTCOMES * KINDS)
static struct cell cells[CELLS];

#define SHORT_BYTES 100
#define MATRIX_BYTES (3 * RIG_OBJECT)

static void plan_cell(const struct cell *cell)
{
	static const enum fake_when whens[] = { FAKE_BEFORE_RETURN, FAKE_LATER,
						FAKE_ON_THREAD, FAKE_LATER };
	static const int64_t results[] = { FAKE_TRUE_RESULT, SHORT_BYTES, 0,
					   -EIO, -EDQUOT, FAKE_TRUE_RESULT };
	struct fake_plan special = { .when = whens[cell->arrival],
				     .result = results[cell->outcome] };

	fake.plan.when = whens[cell->arrival];
	if (cell->outcome == ERROR_RETURNED || cell->outcome == COUNT_RETURNED)
		special.when = FAKE_RETURNED;
	/* Of a read's three parts the one in the middle. */
	fake_special(cell->kind == READ ? 1 : 0, special);
}

static void check_cell_read(const struct cell *cell, const struct io *io)
{
	assert_int_equal(fake.call_count, 3);
	if (cell->outcome == ERROR_CALLED_BACK) {
		check_error(io, ERR_FSAL_IO);
	} else if (cell->outcome == ERROR_RETURNED) {
		check_error(io, ERR_FSAL_DQUOT);
	} else {
		check_ok(io, MATRIX_BYTES);
		check_bytes_read(io, MATRIX_BYTES);
		assert_false(io->arg.end_of_file);
	}
	/* Ceph is asked again only for what was short. */
	assert_int_equal(fake_blocking_count(FAKE_READ) != 0,
			 cell->outcome == CUT_SHORT ||
				 cell->outcome == NOTHING);
}

static void check_cell_write(const struct cell *cell, const struct io *io)
{
	assert_int_equal(fake.call_count, 1);
	assert_int_equal(fake.calls[0].length_bytes, MATRIX_BYTES);
	assert_false(fake.calls[0].asked.fsync);
	assert_true(fake.calls[0].asked.syncdataonly);

	switch (cell->outcome) {
	case IN_FULL:
	case COUNT_RETURNED:
		check_ok(io, MATRIX_BYTES);
		check_bytes_written(io, MATRIX_BYTES);
		break;
	case CUT_SHORT:
		check_ok(io, SHORT_BYTES);
		check_bytes_written(io, SHORT_BYTES);
		break;
	case NOTHING:
	case ERROR_CALLED_BACK:
		check_error(io, ERR_FSAL_IO);
		return;
	case ERROR_RETURNED:
		check_error(io, ERR_FSAL_DQUOT);
		return;
	case OUTCOMES:
		break;
	}
	assert_int_equal(io->arg.fsal_stable, cell->kind == STABLE_WRITE);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
}

static void check_cell(void **state)
{
	const struct cell *cell = *state;
	gid_t *groups = calloc(GROUPS, sizeof(*groups));
	struct io *io = new_io(0, MATRIX_BYTES);

	set_creds(groups, GROUPS);
	plan_cell(cell);
	if (cell->kind == READ)
		start_read(io);
	else
		start_write(io, cell->kind == STABLE_WRITE);

	/* The request is suspended: its credentials may go. */
	memset(groups, 0x5a, GROUPS * sizeof(*groups));
	memset(&rig.request.creds, 0x5a, sizeof(rig.request.creds));
	free(groups);

	if (cell->arrival == REVERSED)
		fake_complete_reversed();
	else
		fake_complete_in_order();

	settle(io);
	check_answer_context(io, GROUPS);
	assert_int_equal(stub.reservation_changes, 2);
	if (cell->kind == READ)
		check_cell_read(cell, io);
	else
		check_cell_write(cell, io);
	free_io(io);
}

static void fill_cell(unsigned int i)
{
	struct cell *cell = &cells[i];

	cell->arrival = i % ARRIVALS;
	cell->outcome = i / ARRIVALS % OUTCOMES;
	cell->kind = i / ARRIVALS / OUTCOMES;
	snprintf(cell->name, sizeof(cell->name), "%s_answered_%s_%s",
		 kind_names[cell->kind], outcome_names[cell->outcome],
		 arrival_names[cell->arrival]);
}

/* ----------------------------------------------------- never asked of Ceph */

static void read_plus_is_not_supported(void **state)
{
	struct io_info info = { 0 };
	struct io *io = new_io(0, 100);

	(void)state;
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

	(void)state;
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

	(void)state;
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
	{ "read_past_last_offset_is_eof", UINT64_C(1) << 63, 100, false },
	{ "read_at_largest_offset_is_eof", UINT64_MAX, 100, false },
	{ "read_across_last_offset_is_eof", INT64_MAX - 50, 100, false },
	{ "write_past_last_offset_is_fbig", UINT64_C(1) << 63, 100, true },
	{ "write_at_largest_offset_is_fbig", UINT64_MAX, 100, true },
	{ "write_across_last_offset_is_fbig", INT64_MAX - 50, 100, true },
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

	(void)state;
	start_read(io);
	settle(io);
	check_ok(io, 0);
	assert_true(io->arg.end_of_file);
	assert_true(fake.call_count != 0);
	free_io(io);
}

static void write_to_snapshot_is_rofs(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
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

	(void)state;
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

	(void)state;
	stub.start_status = fsalstat(ERR_FSAL_SHARE_DENIED, 0);
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_SHARE_DENIED);
	check_nothing_asked(io);
	assert_int_equal(stub.reservation_changes, 0);
	free_io(io);
}

static void closed_export_is_delay(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0), 0);
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_DELAY);
	check_nothing_asked(io);
	free_io(io);
}

/* -------------------------------------------- what a short read may mean */

struct read_case {
	const char *name;
	uint64_t size_bytes; /* 0: as set up */
	unsigned int holes; /* bit n: object n is missing */
	uint64_t offset;
	size_t length;
	size_t amount;
	bool end_of_file;
};

#define OBJ ((uint64_t)RIG_OBJECT)

static const struct read_case read_cases[] = {
	{ "read_inside_file_is_not_eof", 0, 0, 10, 100, 100, false },
	{ "read_of_last_byte_is_eof", 0, 0, 4 * OBJ - 1, 1, 1, true },
	{ "read_to_the_end_is_eof", 0, 0, 3 * OBJ, OBJ, OBJ, true },
	{ "read_of_whole_file_is_eof", 0, 0, 0, 4 * OBJ, 4 * OBJ, true },
	{ "read_up_to_last_byte_is_not_eof", 0, 0, 3 * OBJ, OBJ - 1, OBJ - 1,
	  false },
	{ "read_across_the_end_is_short_and_eof", 0, 0, 4 * OBJ - 100, OBJ,
	  100, true },
	{ "read_at_the_end_is_empty_and_eof", 0, 0, 4 * OBJ, 100, 0, true },
	{ "read_far_past_the_end_is_empty_and_eof", 0, 0, 40 * OBJ, 100, 0,
	  true },
	{ "read_ending_inside_first_part_is_eof", OBJ / 2, 0, 0, 3 * OBJ,
	  OBJ / 2, true },
	{ "read_ending_inside_middle_part_is_eof", OBJ + 7, 0, 0, 3 * OBJ,
	  OBJ + 7, true },
	{ "read_ending_between_parts_is_eof", 2 * OBJ, 0, 0, 3 * OBJ, 2 * OBJ,
	  true },
	{ "hole_alone_is_zeros", 0, 1 << 1, OBJ, OBJ, OBJ, false },
	{ "hole_inside_object_is_zeros", 0, 1 << 1, OBJ + 5, 50, 50, false },
	{ "hole_in_front_is_zeros", 0, 1 << 0, 0, 3 * OBJ, 3 * OBJ, false },
	{ "hole_in_the_middle_is_zeros", 0, 1 << 1, 0, 3 * OBJ, 3 * OBJ,
	  false },
	{ "holes_all_over_are_zeros", 0, 0xf, 0, 3 * OBJ, 3 * OBJ, false },
	{ "hole_at_the_end_is_zeros_and_eof", 0, 1 << 3, 2 * OBJ, 2 * OBJ,
	  2 * OBJ, true },
	{ "hole_across_the_end_is_short_and_eof", 0, 1 << 3, 2 * OBJ + 1,
	  2 * OBJ, 2 * OBJ - 1, true },
	{ "hole_before_short_end_is_zeros_and_eof", 2 * OBJ + 9, 1 << 1, 0,
	  3 * OBJ, 2 * OBJ + 9, true },
	{ "hole_ending_inside_part_is_eof", 2 * OBJ + 9, 1 << 2, 0, 3 * OBJ,
	  2 * OBJ + 9, true },
};

#define READ_CASES (sizeof(read_cases) / sizeof(read_cases[0]))

static void check_read(void **state)
{
	const struct read_case *c = *state;
	struct io *io;
	unsigned int i;

	if (c->size_bytes != 0) {
		fake.size_bytes = c->size_bytes;
		rig.obj->size_hint = c->size_bytes;
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

static void full_read_inside_file_asks_nothing_more(void **state)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	(void)state;
	start_read(io);
	settle(io);
	check_ok(io, 2 * RIG_OBJECT);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	assert_true(io->on_completer);
	free_io(io);
}

static void stale_size_does_not_make_a_short_read_complete(void **state)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	(void)state;
	/* Another client has truncated; we think the file is longer. */
	fake.size_bytes = 100;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_true(io->arg.end_of_file);
	free_io(io);
}

static void unknown_size_is_looked_up(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.obj->size_hint = 0;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_false(io->arg.end_of_file);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	assert_int_equal(rig.obj->size_hint, 4 * OBJ);
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

static void reader_of_growing_file_sees_no_zeros(void **state)
{
	struct io *io = new_io(2 * OBJ, OBJ);
	size_t i;

	(void)state;
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

static void hole_beside_failing_part_is_error(void **state)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	(void)state;
	fake_punch(0);
	fake_special(2, (struct fake_plan){ .when = FAKE_BEFORE_RETURN,
					    .result = -ETIMEDOUT });
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_SERVERFAULT);
	assert_int_equal(fake_blocking_count(FAKE_READ), 0);
	free_io(io);
}

static void first_failing_part_in_file_order_is_the_answer(void **state)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	(void)state;
	fake.plan.when = FAKE_LATER;
	fake_special(1, (struct fake_plan){ FAKE_LATER, -EDQUOT, 0, 0 });
	fake_special(2, (struct fake_plan){ FAKE_LATER, -EROFS, 0, 0 });
	start_read(io);
	fake_complete_reversed();
	settle(io);
	check_error(io, ERR_FSAL_DQUOT);
	free_io(io);
}

static void failing_repair_is_error(void **state)
{
	struct io *io = new_io(0, OBJ);

	(void)state;
	fake_punch(0);
	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

/* All bytes are there: not knowing whether more follow is no error. */
static void failing_size_lookup_leaves_a_full_read(void **state)
{
	struct io *io = new_io(3 * OBJ, OBJ);

	(void)state;
	fake.blocking_result[FAKE_GETATTR] = -ESTALE;
	start_read(io);
	settle(io);
	check_ok(io, OBJ);
	assert_false(io->arg.end_of_file);
	free_io(io);
}

/* --------------------------------------------- fds, shares, states, groups */

static void temporary_fd_of_read_is_closed_on_worker(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
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

static void temporary_fd_of_write_is_closed_on_worker(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	stub.global_fd_busy = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_false(io->on_completer);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

static void temporary_fd_of_failed_io_is_closed(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	stub.global_fd_busy = true;
	fake.plan.result = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

static void failing_close_is_logged_and_io_stands(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	stub.global_fd_busy = true;
	stub.complete_status = fsalstat(ERR_FSAL_IO, EIO);
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(stub.warnings, 1);
	free_io(io);
}

static void stateless_io_releases_its_reservation_once(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	fake.plan.when = FAKE_LATER;
	start_write(io, true);
	assert_int_equal(stub.reservations, 1);
	fake_complete_in_order();
	settle(io);
	assert_int_equal(stub.reservation_changes, 2);
	free_io(io);
}

static void io_with_state_takes_no_reservation(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
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
	{ "requester_without_groups_keeps_none", 0 },
	{ "requester_with_one_group_keeps_it", 1 },
	{ "requester_with_16_groups_keeps_them", 16 },
	{ "requester_with_17_groups_keeps_them", 17 },
	{ "requester_with_20_groups_keeps_them", 20 },
};

#define GROUPS_CASES (sizeof(groups_cases) / sizeof(groups_cases[0]))

static void check_groups(void **state)
{
	const struct groups_case *c = *state;
	gid_t groups[GROUPS] = { 0 };
	struct io *io = new_io(0, 100);

	set_creds(groups, c->count);
	if (c->count == 0)
		rig.request.creds.caller_garray = NULL;
	fake.plan.when = FAKE_LATER;
	start_read(io);
	memset(groups, 0, sizeof(groups));
	fake_complete_in_order();
	settle(io);
	check_answer_context(io, c->count);
	free_io(io);
}

/* -------------------------------------------------- trimmed and limited */

static void trimmed_write_writes_only_what_was_asked(void **state)
{
	struct io *io = new_io(0, 3000);

	(void)state;
	io->arg.io_request = 1500; /* the buffers hold 3000 */
	start_write(io, true);
	settle(io);
	check_ok(io, 1500);
	check_bytes_written(io, 1500);
	assert_int_equal(fake_content(1500), fake_byte(1500));
	free_io(io);
}

static void reads_are_counted_while_they_are_in_flight(void **state)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	(void)state;
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

/* ------------------------------------------------------------- durability */

static void full_mode_flushes_before_the_answer(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_true(io->arg.fsal_stable);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_false(io->on_completer);
	assert_false(fake.calls[0].asked.fsync);
	free_io(io);
}

static void failing_flush_is_not_acknowledged(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.blocking_result[FAKE_SYNC_INODE] = -ENOSPC;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_NOSPC);
	free_io(io);
}

static void failed_write_is_not_flushed(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.plan.result = -EDQUOT;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_DQUOT);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
	free_io(io);
}

static void full_mode_closes_temporary_fd_after_flush(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	stub.global_fd_busy = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(fake.open_fhs, 0);
	free_io(io);
}

static void write_and_settle(uint64_t offset, bool stable, bool says_stable)
{
	struct io *io = new_io(offset, 100);

	start_write(io, stable);
	settle(io);
	check_ok(io, 100);
	assert_int_equal(io->arg.fsal_stable, says_stable);
	free_io(io);
	assert_int_equal(casync_workers_start(), 0);
	assert_int_equal(casync_complete_start(), 0);
}

static void fdatasync_mode_flushes_growth_only(void **state)
{
	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	write_and_settle(0, true, true); /* nothing known: flushes all */
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(200, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(4 * OBJ, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	write_and_settle(4 * OBJ, true, true);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
}

static void unstable_write_is_promoted_where_that_is_free(void **state)
{
	(void)state;
	rig.exp.keys.tuning.promote_unstable = true;
	write_and_settle(0, false, true);
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	write_and_settle(0, false, false);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);
}

static void commit(fsal_errors_t major)
{
	assert_int_equal(casync_commit2(&rig.obj->handle, 0, 0).major, major);
}

static void commit_flushes_as_the_mode_says(void **state)
{
	(void)state;
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 0);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);

	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	write_and_settle(4 * OBJ, false, false);
	commit(ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
}

static void commit_reports_failing_flush(void **state)
{
	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake.blocking_result[FAKE_SYNC_INODE] = -EDQUOT;
	commit(ERR_FSAL_DQUOT);
	fake.blocking_result[FAKE_SYNC_INODE] = 0;
	commit(ERR_FSAL_NO_ERROR);
}

/* ------------------------------------------------------------ exactly once */

static void answer_twice(void)
{
	fake_special(0, (struct fake_plan){ .when = FAKE_BEFORE_RETURN,
					    .result = FAKE_TRUE_RESULT,
					    .twice = true,
					    .second_result = RIG_OBJECT });
}

#ifdef CASYNC_DEBUG
static void second_completion_aborts_debug_build(void **state)
{
	int status;
	pid_t child;

	(void)state;
	answer_twice();
	child = fork();
	if (child == 0) {
		start_read(new_io(0, RIG_OBJECT));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#else
static void second_completion_is_counted_and_ignored(void **state)
{
	struct io *io = new_io(0, RIG_OBJECT);

	(void)state;
	answer_twice();
	start_read(io);
	settle(io);
	check_ok(io, RIG_OBJECT);
	check_bytes_read(io, RIG_OBJECT);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
	free_io(io);
}

static void second_completion_of_part_does_not_stand_for_other(void **state)
{
	struct io *io = new_io(0, 2 * RIG_OBJECT);

	(void)state;
	fake.plan.when = FAKE_LATER;
	answer_twice();
	start_read(io);
	assert_int_equal(casync_submit_duplicates(), duplicates_before + 1);
	assert_int_equal(rig.exp.inflight.ops, 1);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 2 * RIG_OBJECT);
	check_bytes_read(io, 2 * RIG_OBJECT);
	free_io(io);
}

/*
 * libcephfs stores io->result before it calls back, and that is the field
 * the result is kept in: the guard drops the second completion, but its
 * result has replaced the first one's.
 */
static void second_completion_leaves_first_result(void **state)
{
	struct io *io;

	(void)state;
	io = new_io(0, 2 * RIG_OBJECT);
	fake.plan.when = FAKE_LATER;
	fake_special(0, (struct fake_plan){ .when = FAKE_BEFORE_RETURN,
					    .result = -EIO,
					    .twice = true,
					    .second_result = RIG_OBJECT });
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}
#endif

static void completion_and_return_both_are_one_answer(void **state)
{
	struct io *io = new_io(0, 3 * RIG_OBJECT);

	(void)state;
	/* All five ways of answering in one request. */
	fake_special(0, (struct fake_plan){ FAKE_RETURNED, FAKE_TRUE_RESULT,
					    0, 0 });
	fake_special(1, (struct fake_plan){ FAKE_ON_THREAD, FAKE_TRUE_RESULT,
					    0, 0 });
	fake_special(2, (struct fake_plan){ FAKE_LATER, FAKE_TRUE_RESULT, 0,
					    0 });
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 3 * RIG_OBJECT);
	check_bytes_read(io, 3 * RIG_OBJECT);
	free_io(io);
}

/* The last reference on the object may go in done. */
static void object_may_go_in_done(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	fake.plan.when = FAKE_LATER;
	/* Closing it waits for Ceph; here it is the test that does. */
	fake.hook = NULL;
	io->frees_object = true;
	start_read(io);
	fake_complete_in_order();
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

static void object_may_go_in_done_after_flush(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	io->frees_object = true;
	start_write(io, true);
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

static void object_may_go_in_done_with_temporary_fd(void **state)
{
	struct io *io = new_io(0, 100);

	(void)state;
	stub.global_fd_busy = true;
	io->frees_object = true;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	assert_null(rig.obj);
	free_io(io);
}

#define CROWD 60

static void crowd_is_answered_once_each(void **state)
{
	struct io *ios[CROWD];
	unsigned int i;

	(void)state;
	fake.plan.when = FAKE_ON_THREAD;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	fake_punch(1);
	for (i = 0; i < CROWD; i++) {
		/* Writes and reads of the same bytes would be a race. */
		ios[i] = new_io(i % 3 == 0 ? 3 * OBJ : 0,
				i % 3 == 0 ? 500 : 3 * RIG_OBJECT);
		if (i % 3 == 0)
			start_write(ios[i], i % 2 == 0);
		else
			start_read(ios[i]);
	}
	for (i = 0; i < CROWD; i++)
		assert_true(rig_wait(&ios[i]->came));
	sem_post(&ios[0]->came);
	settle(ios[0]);
	for (i = 0; i < CROWD; i++) {
		assert_int_equal(ios[i]->calls, 1);
		check_ok(ios[i], ios[i]->arg.io_request);
		if (i % 3 != 0)
			check_bytes_read(ios[i], 3 * RIG_OBJECT);
		free_io(ios[i]);
	}
	assert_int_equal(casync_submit_duplicates(), duplicates_before);
}

/* ---------------------------------------------------- defects that were */

/*
 * A settled read that only has to close its temporary fd goes through
 * read_repair() all the same: a getattr that nothing needs, and if it fails,
 * complete data are answered with an error.
 */
static void settled_read_with_temporary_fd_asks_nothing_more(void **state)
{
	struct io *io;

	(void)state;
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
static void failing_repair_of_later_part_counts_no_bytes(void **state)
{
	struct io *io;

	(void)state;
	io = new_io(0, 2 * RIG_OBJECT);
	fake_punch(1);
	fake.blocking_result[FAKE_READ] = -EIO;
	start_read(io);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	free_io(io);
}

static struct io *grower;

static void grow_during_getattr(enum fake_blocking which)
{
	if (which != FAKE_GETATTR || grower == NULL)
		return;
	/* The getattr has the old size; the write is answered before it. */
	fake_complete_in_order();
	(void)rig_wait(&grower->came);
}

/*
 * A size that getattr brings may be older than a write that was answered
 * while it was under way; storing it lowers the hint below that write, and
 * COMMIT (fdatasync) then finds nothing grown and flushes nothing.
 */
static void commit_after_racing_getattr_still_flushes(void **state)
{
	struct io *reader;
	unsigned int flushes;

	(void)state;
	reader = new_io(3 * OBJ, OBJ);
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR); /* the MDS knows all there is */
	flushes = fake_blocking_count(FAKE_SYNC_INODE);
	assert_int_equal(flushes, 1);

	grower = new_io(4 * OBJ, 100);
	fake_special(0, (struct fake_plan){ FAKE_LATER, FAKE_TRUE_RESULT, 0,
					    0 });
	start_write(grower, false);
	in_blocking = grow_during_getattr;
	start_read(reader);
	assert_true(rig_wait(&reader->came));
	commit(ERR_FSAL_NO_ERROR);
	stop_threads();
	assert_int_equal(grower->calls, 1);
	free_io(grower);
	grower = NULL;
	free_io(reader);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), flushes + 1);
}

/*
 * Unexport waits for the end of I/O under locks that done_cb takes (op.h).
 * With as many answers held up as there are completion threads, no further
 * fsal_complete_io() comes, and both wait for ever.
 */
static void answers_held_up_leave_io_of_others_to_end(void **state)
{
	struct io *ios[CASYNC_COMPLETERS + 1];
	const unsigned int last = CASYNC_COMPLETERS;
	sem_t hold;
	unsigned int i;
	bool ended = false;

	(void)state;
	sem_init(&hold, 0, 0);
	for (i = 0; i <= last; i++) {
		ios[i] = new_io(0, 100);
		if (i != last)
			ios[i]->hold = &hold;
		start_read(ios[i]);
		if (i != last)
			assert_true(rig_wait(&ios[i]->came));
	}
	for (i = 0; i < 1000 && !ended; i++) {
		ended = stub_ios_completed() == (int)last + 1;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	for (i = 0; i < last; i++)
		sem_post(&hold);
	assert_true(rig_wait(&ios[last]->came));
	stop_threads();
	for (i = 0; i <= last; i++)
		free_io(ios[i]);
	sem_destroy(&hold);
	assert_true(ended);
}

static struct io *second_grower;

static void grow_flush_and_grow(enum fake_blocking which)
{
	if (which != FAKE_GETATTR || grower == NULL)
		return;
	fake_complete(0);
	(void)rig_wait(&grower->came);
	(void)casync_flush_wait(rig.obj);
	fake_complete(1);
	(void)rig_wait(&second_grower->came);
}

/* The size that getattr brings is older than a flush, too: the write after
 * the flush still has to be covered by COMMIT. */
static void commit_after_getattr_older_than_flush_still_flushes(void **state)
{
	const struct fake_plan later = { FAKE_LATER, FAKE_TRUE_RESULT, 0, 0 };
	struct io *reader = new_io(3 * OBJ, OBJ);
	unsigned int flushes;

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	commit(ERR_FSAL_NO_ERROR); /* the MDS knows all there is */
	grower = new_io(4 * OBJ, 100);
	second_grower = new_io(5 * OBJ, 100);
	fake_special(0, later);
	fake_special(1, later);
	start_write(grower, false);
	start_write(second_grower, false);
	in_blocking = grow_flush_and_grow;
	start_read(reader);
	assert_true(rig_wait(&reader->came));
	flushes = fake_blocking_count(FAKE_SYNC_INODE);
	commit(ERR_FSAL_NO_ERROR);
	stop_threads();
	free_io(grower);
	grower = NULL;
	free_io(second_grower);
	free_io(reader);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), flushes + 1);
}

/* Another client truncates and a getattr tells us: what we had written does
 * not count as journaled by the next flush. */
static void flush_after_foreign_truncate_forgets_old_end(void **state)
{
	struct io *reader;

	(void)state;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FDATASYNC;
	write_and_settle(4 * OBJ, false, false);
	fake.size_bytes = 100;
	rig.obj->size_hint = 0; /* so that the read asks */
	reader = new_io(0, 50);
	start_read(reader);
	settle(reader);
	free_io(reader);
	assert_int_equal(casync_workers_start(), 0);
	assert_int_equal(casync_complete_start(), 0);
	commit(ERR_FSAL_NO_ERROR);
	assert_true(casync_flush_grown(rig.obj, 500));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

static const struct CMUnitTest plain[] = {
	CASE(read_plus_is_not_supported),
	CASE(empty_read_is_answered_at_once),
	CASE(empty_write_is_answered_at_once),
	CASE(read_up_to_last_offset_is_asked_for),
	CASE(write_to_snapshot_is_rofs),
	CASE(read_of_snapshot_works),
	CASE(failing_start_of_io_is_the_answer),
	CASE(closed_export_is_delay),
	CASE(full_read_inside_file_asks_nothing_more),
	CASE(stale_size_does_not_make_a_short_read_complete),
	CASE(unknown_size_is_looked_up),
	CASE(reader_of_growing_file_sees_no_zeros),
	CASE(hole_beside_failing_part_is_error),
	CASE(first_failing_part_in_file_order_is_the_answer),
	CASE(failing_repair_is_error),
	CASE(failing_size_lookup_leaves_a_full_read),
	CASE(temporary_fd_of_read_is_closed_on_worker),
	CASE(temporary_fd_of_write_is_closed_on_worker),
	CASE(temporary_fd_of_failed_io_is_closed),
	CASE(failing_close_is_logged_and_io_stands),
	CASE(stateless_io_releases_its_reservation_once),
	CASE(io_with_state_takes_no_reservation),
	CASE(trimmed_write_writes_only_what_was_asked),
	CASE(reads_are_counted_while_they_are_in_flight),
	CASE(full_mode_flushes_before_the_answer),
	CASE(failing_flush_is_not_acknowledged),
	CASE(failed_write_is_not_flushed),
	CASE(full_mode_closes_temporary_fd_after_flush),
	CASE(fdatasync_mode_flushes_growth_only),
	CASE(unstable_write_is_promoted_where_that_is_free),
	CASE(commit_flushes_as_the_mode_says),
	CASE(commit_reports_failing_flush),
#ifdef CASYNC_DEBUG
	CASE(second_completion_aborts_debug_build),
#else
	CASE(second_completion_is_counted_and_ignored),
	CASE(second_completion_of_part_does_not_stand_for_other),
	CASE(second_completion_leaves_first_result),
#endif
	CASE(completion_and_return_both_are_one_answer),
	CASE(object_may_go_in_done),
	CASE(object_may_go_in_done_after_flush),
	CASE(object_may_go_in_done_with_temporary_fd),
	CASE(crowd_is_answered_once_each),
	CASE(settled_read_with_temporary_fd_asks_nothing_more),
	CASE(failing_repair_of_later_part_counts_no_bytes),
	CASE(commit_after_racing_getattr_still_flushes),
	CASE(answers_held_up_leave_io_of_others_to_end),
	CASE(commit_after_getattr_older_than_flush_still_flushes),
	CASE(flush_after_foreign_truncate_forgets_old_end),
};

#define PLAIN (sizeof(plain) / sizeof(plain[0]))

static struct CMUnitTest table_test(const char *name, CMUnitTestFunction check,
				    const void *row)
{
	return (struct CMUnitTest){ .name = name,
				    .test_func = check,
				    .setup_func = up,
				    .teardown_func = down,
				    .initial_state = (void *)row };
}

int main(void)
{
	static struct CMUnitTest tests[CELLS + FAR_CASES + READ_CASES +
				       GROUPS_CASES + PLAIN];
	size_t n = 0;
	size_t i;

	for (i = 0; i < CELLS; i++) {
		fill_cell((unsigned int)i);
		tests[n++] = table_test(cells[i].name, check_cell, &cells[i]);
	}
	for (i = 0; i < FAR_CASES; i++)
		tests[n++] = table_test(far_cases[i].name, check_far,
					&far_cases[i]);
	for (i = 0; i < READ_CASES; i++)
		tests[n++] = table_test(read_cases[i].name, check_read,
					&read_cases[i]);
	for (i = 0; i < GROUPS_CASES; i++)
		tests[n++] = table_test(groups_cases[i].name, check_groups,
					&groups_cases[i]);
	memcpy(tests + n, plain, sizeof(plain));

	return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
