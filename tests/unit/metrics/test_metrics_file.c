/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Metrics_File: which names node_exporter reads, and what becomes of the old
 * file. */
#include "config.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "publish.h"
#include "pin.h"
#include "stub_log.h"
#include "submit.h"
#include "lane.h"

nfs_parameter_t nfs_param;

static unsigned int warnings;

void stub_log_line(log_levels_t level, const char *text)
{
	warnings += strstr(text, "end in .prom") != NULL;
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	*major = *minor = *patch = 0;
	return "";
}

uint64_t casync_submit_duplicates(void)
{
	return 0;
}

/* Only a disk that hangs has it called. */
void casync_pin_module(void)
{
	fail();
}

/* The job runs at once. */
static struct casync_lane disk;

struct casync_lane *casync_lane_of_process(enum casync_process_lane which)
{
	assert_int_equal(which, CASYNC_LANE_DISK);
	return &disk;
}

void casync_lane_submit(struct casync_lane *lane, struct casync_work *work)
{
	assert_ptr_equal(lane, &disk);
	work->run(work);
}

static const struct name_case {
	const char *name;
	const char *path;
	unsigned int warnings;
} cases[] = {
	{"read", "metrics_a.prom", 0},
	{"suffix_alone", ".prom", 0},
	{"other_suffix", "metrics_b.text", 1},
	{"suffix_within", "metrics.prom.old", 1},
	{"shorter_than_the_suffix", "m", 1},
	{"end_of_the_suffix", "prom", 1},
};

static int up(void **state)
{
	warnings = 0;
	component_log_level[COMPONENT_CONFIG] = NIV_WARN;
	return 0;
}

TEST_ROWS(check_name, cases, up, NULL)
{
	const struct name_case *c = *state;

	casync_publish_set_file(c->path);
	assert_int_equal(warnings, c->warnings);
	casync_publish_set_file(NULL);
	assert_int_equal(warnings, c->warnings);
}

static void make(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

TEST_WITH(old_file_goes_and_the_same_one_stays, up, NULL)
{
	casync_publish_set_file("metrics_one.prom");
	make("metrics_one.prom");
	casync_publish_set_file("metrics_one.prom");
	assert_int_equal(access("metrics_one.prom", F_OK), 0);
	casync_publish_set_file("metrics_two.prom");
	assert_int_equal(access("metrics_one.prom", F_OK), -1);
	make("metrics_two.prom");
	casync_publish_set_file(NULL);
	assert_int_equal(access("metrics_two.prom", F_OK), -1);
}

/* Seconds of this test's own. */
static time_t seconds = 1000;

int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	if (clock == CLOCK_MONOTONIC)
		*now = (struct timespec){.tv_sec = seconds};
	return rc;
}

static size_t in_use_after(unsigned int ticks)
{
	while (ticks-- != 0) {
		seconds += 3600;
		casync_publish_tick();
	}
	return mallinfo2().uordblks;
}

/* It is written each second, for years. */
TEST_WITH(file_costs_no_memory_each_time, up, NULL)
{
	size_t before;

	casync_publish_set_file("metrics_memory.prom");
	before = in_use_after(10);
	assert_int_equal(access("metrics_memory.prom", F_OK), 0);
	assert_in_range(in_use_after(100), 0, before + 4096);
	casync_publish_set_file(NULL);
}

/* The lowest number that is free is 0, if Ganesha has closed its input. */
TEST_WITH(file_may_have_any_descriptor, up, NULL)
{
	(void)close(0);
	casync_publish_set_file("metrics_zero.prom");
	(void)in_use_after(2);
	assert_int_equal(access("metrics_zero.prom", F_OK), 0);
	/* And gives it back. */
	assert_int_equal(dup(1), 0);
	casync_publish_set_file(NULL);
}
