/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Every way in which an answer arrives, with every outcome, for each kind of
 * request, in every situation: one done_cb each, the right status and count,
 * nothing left over (the sanitizers see what leaks), and no Fh closed that
 * libcephfs still uses.
 *
 * Beside the request in question another one is under way, so that "the last
 * to end" is the one in some cells and the other in others.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "clock.h"
#include "inflight.h"
#include "pool_look.h"
#include "request.h"
#include "submit.h"
#include "watchdog.h"

enum arrival {
	BEFORE_RETURN,
	LATER, /* oldest call first, hence the other request's too */
	OTHER_THREAD,
	REVERSED,
	TWICE_AT_ONCE,	  /* while the request is under way */
	TWICE_AFTERWARDS, /* when it has been answered */
	NEVER,		  /* until nobody waits any more */
	ARRIVALS
};

enum outcome {
	IN_FULL,
	CUT_SHORT,
	NOTHING,
	ERROR_CALLED_BACK,
	ERROR_RETURNED,
	COUNT_RETURNED,
	OUTCOMES
};

enum kind { READ, STABLE_WRITE, UNSTABLE_WRITE, KINDS };

enum situation {
	PLAIN,
	TEMPORARY_FD,  /* each request closes its own Fh */
	CLOSE_PENDING, /* somebody waits to close the Fh of both */
	UNEXPORT,      /* somebody waits for both to end */
	SITUATIONS
};

static const char *const arrival_names[] = {
	"before_return",    "later", "on_thread", "reversed", "twice_at_once",
	"twice_afterwards", "never",
};
static const char *const outcome_names[] = {
	"full",		  "short",	    "nothing", "error_called_back",
	"error_returned", "count_returned",
};
static const char *const kind_names[] = {"read", "stable_write",
					 "unstable_write"};
static const char *const situation_names[] = {"plain", "temporary_fd",
					      "close_pending", "unexport"};

struct cell {
	char name[100];
	enum arrival arrival;
	enum outcome outcome;
	enum kind kind;
	enum situation situation;
};

#define CELLS (ARRIVALS * OUTCOMES * KINDS * SITUATIONS)
static struct cell cells[CELLS];

#define SHORT_BYTES 100
#define MATRIX_BYTES (3 * RIG_OBJECT)
#define OTHER_BYTES 500
#define DRAIN_MS 20
#define PATIENCE_MS (RIG_TIMEOUT_S * 1000)

/* The calls of libcephfs, in their order: the other request's, then ours. */
#define OTHER_CALL 0
#define FIRST_CALL 1

static bool returned(const struct cell *cell)
{
	return cell->outcome == ERROR_RETURNED ||
	       cell->outcome == COUNT_RETURNED;
}

/* Of a read's three parts the one in the middle is special; a write has one. */
static unsigned int special_call(const struct cell *cell)
{
	return cell->kind == READ ? FIRST_CALL + 1 : FIRST_CALL;
}

/* Why a cell cannot be; NULL when it can. */
static const char *impossible(const struct cell *cell)
{
#ifdef CASYNC_DEBUG
	if (cell->arrival == TWICE_AT_ONCE || cell->arrival == TWICE_AFTERWARDS)
		return "a debug build aborts on it (test_submit.c)";
#endif
	if (cell->kind == READ || !returned(cell))
		return NULL;
	switch (cell->arrival) {
	case LATER:
	case OTHER_THREAD:
	case REVERSED:
	case NEVER:
		return "a write is one call, and its return is the answer: it does not arrive in any other way";
	case TWICE_AT_ONCE:
		return "a write is one call: when it has returned its answer nothing holds the request, so a second answer comes afterwards";
	case BEFORE_RETURN:
	case TWICE_AFTERWARDS:
	case ARRIVALS:
		break;
	}
	return NULL;
}

/* ------------------------------------------------------------- situations */

/* Whoever waits for the requests to end. */
static struct {
	const struct cell *cell;
	bool begun;
	pthread_t thread;
	int waits;     /* atomic */
	int through;   /* atomic */
	uint64_t left; /* unexport's: not ended in time */
} waiter;

static int io_work(void)
{
	return (int)(__atomic_load_n(&rig.obj->read_fd.fsal_fd.io_work,
				     __ATOMIC_ACQUIRE) +
		     __atomic_load_n(&rig.obj->write_fd.fsal_fd.io_work,
				     __ATOMIC_ACQUIRE));
}

static void close_now(struct casync_fd *fd)
{
	if (fd->fh != NULL)
		(void)ceph_ll_close(NULL, fd->fh);
	fd->fh = NULL;
}

/* As Ganesha's close_fsal_fd(): when no I/O is on it. */
static void close_when_idle(void)
{
	(void)RIG_COMES(io_work() == 0);
	close_now(&rig.obj->read_fd);
	close_now(&rig.obj->write_fd);
}

/* As export_prepare_unexport() in export.c. */
static void drain(uint32_t timeout_ms)
{
	waiter.left = casync_inflight_drain(&rig.exp.inflight, timeout_ms);
	if (waiter.left != 0)
		casync_watchdog_list(&rig.exp.inflight, 1, "did not end");
}

static void *wait_for_end(void *unused)
{
	__atomic_store_n(&waiter.waits, 1, __ATOMIC_RELEASE);
	if (waiter.cell->situation == CLOSE_PENDING)
		close_when_idle();
	else
		drain(waiter.cell->arrival == NEVER ? DRAIN_MS : PATIENCE_MS);
	__atomic_store_n(&waiter.through, 1, __ATOMIC_RELEASE);
	return unused;
}

static bool closed_to_new(void)
{
	bool closed;

	pthread_mutex_lock(&rig.exp.inflight.lock);
	closed = rig.exp.inflight.closed;
	pthread_mutex_unlock(&rig.exp.inflight.lock);
	return closed;
}

/* In our request's first submission: it is under way, and not answered. */
static void begin_situation(void)
{
	if (waiter.begun)
		return;
	waiter.begun = true;
	assert_int_equal(
		pthread_create(&waiter.thread, NULL, wait_for_end, NULL), 0);
	RIG_UNTIL(NOW(waiter.waits) >= 1);
	if (waiter.cell->situation == UNEXPORT)
		RIG_UNTIL(closed_to_new());
}

static bool has_waiter(const struct cell *cell)
{
	return cell->situation == CLOSE_PENDING || cell->situation == UNEXPORT;
}

static void prepare(const struct cell *cell)
{
	memset(&waiter, 0, sizeof(waiter));
	waiter.cell = cell;
	stub.global_fd_busy = cell->situation == TEMPORARY_FD;
}

/* One request at least is under way: who waits for all goes on waiting. */
static void check_still_waiting(const struct cell *cell)
{
	if (!has_waiter(cell))
		return;
	if (cell->situation == UNEXPORT && cell->arrival == NEVER)
		return; /* has given up */
	assert_int_equal(__atomic_load_n(&waiter.through, __ATOMIC_ACQUIRE), 0);
	if (cell->situation == CLOSE_PENDING)
		assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

static int global_fds_open(void)
{
	return (rig.obj->read_fd.fh != NULL) + (rig.obj->write_fd.fh != NULL);
}

static void check_situation_ended(const struct cell *cell)
{
	switch (cell->situation) {
	case PLAIN:
		assert_int_equal(fake.open_fhs, global_fds_open());
		break;
	case TEMPORARY_FD:
		assert_int_equal(fake_blocking_count(FAKE_CLOSE), 2);
		assert_int_equal(fake.open_fhs, 0);
		break;
	case CLOSE_PENDING:
		RIG_JOIN(waiter.thread, NULL);
		/* The one beside it is a read: it has an fd of its own. */
		assert_in_range(fake_blocking_count(FAKE_CLOSE), 1, 2);
		assert_int_equal(fake.open_fhs, 0);
		break;
	case UNEXPORT:
		RIG_JOIN(waiter.thread, NULL);
		assert_int_equal(waiter.left, cell->arrival == NEVER ? 2 : 0);
		/* As release() looks. */
		assert_int_equal(casync_inflight_drain(&rig.exp.inflight, 0),
				 0);
		break;
	case SITUATIONS:
		break;
	}
}

/* --------------------------------------------------------------- arrivals */

static void plan(const struct cell *cell)
{
	static const enum fake_when whens[] = {
		FAKE_BEFORE_RETURN, FAKE_LATER, FAKE_ON_THREAD, FAKE_LATER,
		FAKE_LATER,	    FAKE_LATER, FAKE_LATER,
	};
	static const int64_t results[] = {
		FAKE_TRUE_RESULT, SHORT_BYTES,	   0, -EIO,
		-EDQUOT,	  FAKE_TRUE_RESULT};
	struct fake_plan special = {.when = whens[cell->arrival],
				    .result = results[cell->outcome]};

	fake.plan.when = whens[cell->arrival];
	if (returned(cell))
		special.when = FAKE_RETURNED;
	else if (cell->arrival == TWICE_AT_ONCE)
		special.twice = true;
	/* What nobody may take for the answer. */
	special.second_result = cell->outcome == ERROR_CALLED_BACK
					? (int64_t)RIG_OBJECT
					: -ESTALE;
	fake_special(special_call(cell), special);
}

static void await(struct io *io)
{
	assert_true(rig_wait(&io->came));
	sem_post(&io->came); /* for settle() */
}

static int calls(struct io *io)
{
	return __atomic_load_n(&io->calls, __ATOMIC_ACQUIRE);
}

static uint64_t new_duplicates(void)
{
	return casync_submit_duplicates() - duplicates_before;
}

/* Answered twice, the one part, while the others are not answered at all. */
static void arrive_twice_at_once(const struct cell *cell, struct io *io)
{
	if (returned(cell))
		fake_complete_again(special_call(cell), -ESTALE);
	else
		fake_complete(special_call(cell));
	assert_int_equal(new_duplicates(), 1);
	if (cell->kind == READ)
		assert_int_equal(calls(io), 0);
	fake_complete(FIRST_CALL);
	fake_complete(FIRST_CALL + 2);
}

static void arrive_twice_afterwards(const struct cell *cell, struct io *io)
{
	fake_complete_in_order();
	await(io);
	fake_complete_again(special_call(cell), -ESTALE);
	assert_int_equal(new_duplicates(), 1);
}

/* Nobody answers for as long as anybody waits; then it comes after all. */
static void arrive_late(const struct cell *cell, struct io *io)
{
	if (cell->situation == UNEXPORT)
		RIG_UNTIL(NOW(waiter.through) >= 1);
	else
		drain(DRAIN_MS);
	assert_int_equal(waiter.left, 2);
	assert_true(stub_warned("did not end: "));
	assert_true(stub_warned(cell->kind == READ
					? "READ inode 0x10000000001"
					: "WRITE inode 0x10000000001"));
	assert_int_equal(calls(io), 0);
	assert_int_equal(pool_in_use(rig.exp.pool), 2);
	assert_int_equal(fake.closed_in_use, 0);
	fake_complete_in_order();
}

static void arrive(const struct cell *cell, struct io *io, struct io *other)
{
	unsigned int i;

	switch (cell->arrival) {
	case BEFORE_RETURN:
	case OTHER_THREAD:
	case ARRIVALS:
		break;
	case LATER:
		fake_complete(OTHER_CALL);
		await(other);
		check_still_waiting(cell);
		fake_complete_in_order();
		break;
	case REVERSED:
		for (i = fake.call_count - 1; i != OTHER_CALL; i--)
			fake_complete(i);
		break;
	case TWICE_AT_ONCE:
		arrive_twice_at_once(cell, io);
		break;
	case TWICE_AFTERWARDS:
		arrive_twice_afterwards(cell, io);
		break;
	case NEVER:
		arrive_late(cell, io);
		break;
	}
	await(io);
	if (fake.calls[OTHER_CALL].pending)
		check_still_waiting(cell);
	fake_complete(OTHER_CALL);
	await(other);
}

/* ---------------------------------------------------------------- outcomes */

static void check_read_outcome(const struct cell *cell, const struct io *io)
{
	assert_int_equal(fake.call_count, FIRST_CALL + 3);
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

static void check_write_outcome(const struct cell *cell, const struct io *io)
{
	const struct fake_call *call = &fake.calls[FIRST_CALL];

	assert_int_equal(fake.call_count, FIRST_CALL + 1);
	assert_int_equal(call->length_bytes, MATRIX_BYTES);
	assert_false(call->asked.fsync);
	assert_true(call->asked.syncdataonly);

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

static void check_outcome(const struct cell *cell, const struct io *io)
{
	bool twice = cell->arrival == TWICE_AT_ONCE ||
		     cell->arrival == TWICE_AFTERWARDS;

	if (cell->kind == READ)
		check_read_outcome(cell, io);
	else
		check_write_outcome(cell, io);
	check_answer_context(io, GROUPS, 1);
	assert_int_equal(new_duplicates(), twice);
	assert_int_equal(stub.reservation_changes, 4);
}

static struct io *start_other(void)
{
	struct io *other = new_io(3 * OBJ, OTHER_BYTES);

	fake.plan.when = FAKE_LATER;
	start_read(other);
	return other;
}

static struct io *start_ours(const struct cell *cell)
{
	gid_t *groups = calloc(GROUPS, sizeof(*groups));
	struct io *io = new_io(0, MATRIX_BYTES);

	set_creds(groups, GROUPS);
	plan(cell);
	if (has_waiter(cell))
		fake.submission = begin_situation;
	if (cell->kind == READ)
		start_read(io);
	else
		start_write(io, cell->kind == STABLE_WRITE);

	/* The request is suspended: its credentials may go. */
	memset(groups, 0x5a, GROUPS * sizeof(*groups));
	memset(&rig.request.creds, 0x5a, sizeof(rig.request.creds));
	free(groups);
	return io;
}

static void check_cell(void **state)
{
	const struct cell *cell = *state;
	struct io *other;
	struct io *io;

	prepare(cell);
	other = start_other();
	io = start_ours(cell);
	arrive(cell, io, other);
	settle(other);
	settle(io);

	check_situation_ended(cell);
	check_ok(other, OTHER_BYTES);
	check_bytes_read(other, OTHER_BYTES);
	check_outcome(cell, io);
	free_io(io);
	free_io(other);
}

static void fill_cell(unsigned int i)
{
	struct cell *cell = &cells[i];

	cell->arrival = i % ARRIVALS;
	cell->outcome = i / ARRIVALS % OUTCOMES;
	cell->kind = i / ARRIVALS / OUTCOMES % KINDS;
	cell->situation = i / ARRIVALS / OUTCOMES / KINDS;
	snprintf(cell->name, sizeof(cell->name), "%s_answered_%s_%s_%s",
		 kind_names[cell->kind], outcome_names[cell->outcome],
		 arrival_names[cell->arrival],
		 situation_names[cell->situation]);
}

UNIT_BEFORE_MAIN(cells)
{
	const char *why;
	size_t i;

	for (i = 0; i < CELLS; i++) {
		fill_cell((unsigned int)i);
		why = impossible(&cells[i]);
		if (why == NULL)
			unit_add(__LINE__,
				 &(struct CMUnitTest){cells[i].name, check_cell,
						      request_up, request_down,
						      &cells[i]});
		else
			printf("no such cell: %s: %s\n", cells[i].name, why);
	}
}
