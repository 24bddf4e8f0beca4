/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the watchdog logs, and that it does so once.  Exports here have no op
 * in flight but those that the tests put there.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "complete.h"
#include "export.h"
#include "object.h"
#include "op.h"
#include "stub_mount.h"
#include "submit.h"
#include "watchdog.h"

#define LINES 32
#define LINE_BYTES 400

/* --- what the watchdog calls, in place of the data path's */

static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][LINE_BYTES];
static unsigned int line_count;
static int helped;	    /* atomic */
static uint64_t duplicates; /* atomic */

void __wrap_stub_log_line(log_levels_t level, const char *text);
const char *__wrap_msg_fsal_err(fsal_errors_t fsal_err);
void __wrap_casync_complete_unblock(void);
uint64_t __wrap_casync_submit_duplicates(void);

void __wrap_stub_log_line(log_levels_t level, const char *text)
{
	pthread_mutex_lock(&lines_lock);
	assert_true(line_count < LINES);
	/* NOLINTNEXTLINE(*.ArrayBound): a failed assert_true returns not. */
	(void)snprintf(lines[line_count++], LINE_BYTES, "%s", text);
	pthread_mutex_unlock(&lines_lock);
}

const char *__wrap_msg_fsal_err(fsal_errors_t fsal_err)
{
	return fsal_err == ERR_FSAL_IO ? "I/O error" : "No error";
}

void __wrap_casync_complete_unblock(void)
{
	__atomic_add_fetch(&helped, 1, __ATOMIC_ACQ_REL);
}

uint64_t __wrap_casync_submit_duplicates(void)
{
	return __atomic_load_n(&duplicates, __ATOMIC_ACQUIRE);
}

/* --- an export and its ops */

static struct casync_export exp;
static struct casync_watched *entry;
static struct casync_op ops[2 * CASYNC_WATCHDOG_LINES];

static int up(void **state)
{
	const struct casync_watchdog_source source = {
		.export_id = 7,
		.metrics = &exp.metrics,
		.inflight = &exp.inflight,
		.mount = &stub_mount,
		.tuning = &exp.keys.tuning,
	};

	memset(ops, 0, sizeof(ops));
	memset(&exp, 0, sizeof(exp));
	memset(lines, 0, sizeof(lines));
	/* The case before may have been looked at once more at its end. */
	stub_mount.keeper.unanswered_read_ino = 0;
	line_count = 0;
	helped = 0;
	duplicates = 4;
	component_log_level[COMPONENT_FSAL] = NIV_WARN;
	exp.export.export_id = 7;
	exp.keys.tuning.slow_op_warn = 1;
	casync_inflight_init(&exp.inflight, 1000, 1U << 30);
	entry = casync_watchdog_add(&source);
	return casync_watchdog_start();
}

static int down(void **state)
{
	casync_watchdog_remove(entry);
	casync_watchdog_stop();
	casync_inflight_destroy(&exp.inflight);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static void enter(unsigned int i)
{
	ops[i].kind = CASYNC_OP_WRITE;
	ops[i].state = CASYNC_OP_SUBMITTED;
	ops[i].exp = &exp;
	ops[i].ino = 0x1000 + i;
	ops[i].offset = 4096 * i;
	ops[i].length_bytes = 512;
	ops[i].parts_left = 1;
	assert_int_equal(
		casync_inflight_enter(&exp.inflight, &ops[i].entry, 512), 0);
}

static void leave(unsigned int i)
{
	casync_inflight_leave(&exp.inflight, &ops[i].entry);
}

/* Until the watchdog has looked at everything at least once from now on. */
static void two_looks(void)
{
	int seen = NOW(helped);

	RIG_UNTIL(NOW(helped) >= seen + 3);
}

static unsigned int lines_with(const char *text)
{
	unsigned int count = 0;
	unsigned int i;

	pthread_mutex_lock(&lines_lock);
	for (i = 0; i < line_count; i++)
		count += strstr(lines[i], text) != NULL;
	pthread_mutex_unlock(&lines_lock);
	return count;
}

static void set_limit(uint32_t limit_ms)
{
	__atomic_store_n(&exp.keys.tuning.slow_op_warn, limit_ms,
			 __ATOMIC_RELAXED);
}

CASE(slow_request_is_logged_once)
{
	enter(3);
	two_looks();
	two_looks();
	assert_int_equal(line_count, 1);
	assert_int_equal(
		lines_with("export 7: slow request: WRITE inode 0x1003 "
			   "offset 12288 length 512 age "),
		1);
	assert_int_equal(lines_with("SUBMITTED"), 1);
	assert_true(ops[3].entry.reported);
	leave(3);
}

CASE(its_end_is_logged_with_the_outcome)
{
	enter(0);
	two_looks();
	leave(0);
	ops[0].status.major = ERR_FSAL_IO;
	casync_op_log_ended(&ops[0]);
	assert_int_equal(
		lines_with("slow request completed: WRITE inode 0x1000"), 1);
	assert_int_equal(lines_with("I/O error"), 1);
}

CASE(fast_request_is_not_logged)
{
	set_limit(60000);
	enter(0);
	two_looks();
	assert_int_equal(line_count, 0);
	assert_false(ops[0].entry.reported);
	leave(0);
}

CASE(zero_turns_it_off)
{
	set_limit(0);
	enter(0);
	two_looks();
	assert_int_equal(line_count, 0);
	leave(0);
}

CASE(export_that_is_removed_is_not_looked_at)
{
	casync_watchdog_remove(entry);
	entry = NULL;
	enter(0);
	two_looks();
	assert_int_equal(line_count, 0);
	leave(0);
}

CASE(many_slow_requests_are_listed_in_part_and_counted)
{
	unsigned int i, reported = 0;

	/* One look finds all of them slow. */
	set_limit(60000);
	for (i = 0; i < 2 * CASYNC_WATCHDOG_LINES; i++)
		enter(i);
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	set_limit(1);
	two_looks();
	two_looks();
	assert_int_equal(lines_with("slow request: WRITE"),
			 CASYNC_WATCHDOG_LINES);
	assert_int_equal(lines_with("and 8 more requests are slow"), 1);
	for (i = 0; i < 2 * CASYNC_WATCHDOG_LINES; i++) {
		leave(i);
		reported += ops[i].entry.reported;
	}
	/* Only those have their end logged too. */
	assert_int_equal(reported, CASYNC_WATCHDOG_LINES);
}

CASE(list_names_what_did_not_end)
{
	unsigned int i;

	set_limit(0);
	for (i = 0; i < CASYNC_WATCHDOG_LINES + 2; i++)
		enter(i);
	casync_watchdog_list(&exp.inflight, 7, "did not end");
	assert_int_equal(lines_with("export 7: did not end: WRITE inode"),
			 CASYNC_WATCHDOG_LINES);
	assert_int_equal(lines_with("inode 0x1000 "), 1);
	for (i = 0; i < CASYNC_WATCHDOG_LINES + 2; i++)
		leave(i);
}

CASE(second_completions_are_logged_when_there_are_more)
{
	two_looks();
	assert_int_equal(line_count, 0);
	__atomic_add_fetch(&duplicates, 3, __ATOMIC_ACQ_REL);
	two_looks();
	two_looks();
	assert_int_equal(line_count, 1);
	assert_int_equal(
		lines_with("a second completion is ignored: 3 in the last "),
		1);
	assert_int_equal(lines_with(" ms, 7 since the start of Ganesha"), 1);
	__atomic_add_fetch(&duplicates, 1, __ATOMIC_ACQ_REL);
	two_looks();
	assert_int_equal(line_count, 2);
	assert_int_equal(lines_with(" ms, 8 since the start of Ganesha"), 1);
}

/* --- a READ that waits for itself */

static uint64_t truncations;
static struct casync_object object;

/* Its file is truncated when it has come, or not; it came so long ago.  So many
 * of its calls are not answered. */
static void enter_read(unsigned int i, bool truncated, uint64_t ago_ms,
		       int parts_left)
{
	casync_file_size_init(&object.size, &truncations);
	ops[i].kind = CASYNC_OP_READ;
	ops[i].obj = &object;
	ops[i].ino = 0x1000 + i;
	ops[i].parts_left = parts_left;
	ops[i].truncations = casync_file_size_truncations(&object.size);
	if (truncated)
		truncations += CASYNC_TRUNCATION_TOLD;
	assert_int_equal(
		casync_inflight_enter(&exp.inflight, &ops[i].entry, 512), 0);
	pthread_mutex_lock(&exp.inflight.lock);
	ops[i].entry.since_ns -= ago_ms * CASYNC_NS_PER_MS;
	pthread_mutex_unlock(&exp.inflight.lock);
}

static uint64_t session_ended_for(unsigned int i)
{
	uint64_t ino;

	two_looks();
	leave(i);
	casync_file_size_destroy(&object.size);
	ino = __atomic_load_n(&stub_mount.keeper.unanswered_read_ino,
			      __ATOMIC_ACQUIRE);
	return ino;
}

CASE(session_is_ended_for_a_read_of_a_truncated_file)
{
	enter_read(5, true, CASYNC_WATCHDOG_HANG_MS + 1, 1);
	assert_int_equal(session_ended_for(5), 0x1005);
}

CASE(slow_read_ends_no_session)
{
	enter_read(5, false, 10 * CASYNC_WATCHDOG_HANG_MS, 1);
	assert_int_equal(session_ended_for(5), 0);
}

CASE(young_read_ends_no_session)
{
	enter_read(5, true, CASYNC_WATCHDOG_HANG_MS - 4000, 1);
	assert_int_equal(session_ended_for(5), 0);
}

/* libcephfs does not have it: it is being submitted, or has been answered. */
CASE(read_elsewhere_ends_no_session)
{
	enter_read(5, true, 10 * CASYNC_WATCHDOG_HANG_MS,
		   CASYNC_OP_SUBMITTING + 1);
	assert_int_equal(session_ended_for(5), 0);
	enter_read(6, true, 10 * CASYNC_WATCHDOG_HANG_MS, 0);
	assert_int_equal(session_ended_for(6), 0);
}

CASE(answers_get_their_help)
{
	two_looks();
	assert_true(helped >= 3);
}

/* The clock of the day is an hour ahead of what the kernel has: as if it had
 * been set back just after it was asked for. */
static bool clock_set_back; /* atomic */

/* When the host was started, by the kernel's monotonic clock; 0: it is not
 * changed.  Atomic. */
static time_t host_started_s;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (clock == CLOCK_REALTIME &&
	    __atomic_load_n(&clock_set_back, __ATOMIC_ACQUIRE))
		now->tv_sec += 3600;
	if (clock == CLOCK_MONOTONIC)
		now->tv_sec -=
			__atomic_load_n(&host_started_s, __ATOMIC_ACQUIRE);
	return rc;
}

/* The host was started 2 s ago, and each limit is longer. */
CASE(nothing_is_slow_just_after_a_start)
{
	struct timespec now;
	uint64_t ended;

	(void)__real_clock_gettime(CLOCK_MONOTONIC, &now);
	__atomic_store_n(&host_started_s, now.tv_sec - 2, __ATOMIC_RELEASE);
	set_limit(3600000);
	enter_read(5, true, 0, 1);
	ended = session_ended_for(5);
	__atomic_store_n(&host_started_s, 0, __ATOMIC_RELEASE);
	assert_int_equal(ended, 0);
	assert_int_equal(line_count, 0);
}

CASE(clock_that_is_set_back_stops_nothing)
{
	__atomic_store_n(&clock_set_back, true, __ATOMIC_RELEASE);
	two_looks();
	two_looks();
	__atomic_store_n(&clock_set_back, false, __ATOMIC_RELEASE);
}
