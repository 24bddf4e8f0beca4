/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * In a Ganesha without monitoring, as this program is one: no symbol is
 * missing, nothing is shown, everything else goes on.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "prometheus.h"
#include "publish.h"
#include "pin.h"
#include "stub_log.h"
#include "submit.h"
#include "tuning.h"
#include "lane.h"

nfs_parameter_t nfs_param;

static unsigned int lines, lines_of_stats;

void stub_log_line(log_levels_t level, const char *text)
{
	lines += strstr(text, "no monitoring") != NULL;
	lines_of_stats += strstr(text, "export 1: ") != NULL &&
			  strstr(text, " slow_requests_total 9; ") != NULL;
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

#define FILE_NAME "no_monitoring.prom"

static void the_file_is_written(void)
{
	char line[256];
	bool found = false;
	FILE *file = fopen(FILE_NAME, "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		found |= strcmp(line, "ceph_async__slow_requests_total{"
				      "export=\"1\"} 9\n") == 0;
	assert_true(found);
	assert_int_equal(fclose(file), 0);
	casync_publish_set_file(NULL);
	assert_int_equal(access(FILE_NAME, F_OK), -1);
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

TEST(the_log_s_line_is_written)
{
	static struct casync_metrics metrics;
	struct casync_session session = {.client = "admin@fs:/"};
	struct casync_guard guard = {0};
	struct casync_tuning tuning = {.stats_interval = 0};
	struct casync_inflight inflight;
	struct casync_budget_age age = {0};
	const struct casync_publish_source source = {
		.export_id = 1,
		.metrics = &metrics,
		.inflight = &inflight,
		.guard = &guard,
		.session = &session,
		.callers_age = &age,
		.tuning = &tuning,
	};
	struct casync_published *entry;

	component_log_level[COMPONENT_FSAL] = NIV_INFO;
	casync_inflight_init(&inflight, 100, 1U << 30);
	assert_null(casync_prometheus_get(1, session.client));
	entry = casync_publish_add(&source);
	casync_metrics_count(casync_metrics_shard(&metrics), CASYNC_C_SLOW, 9);
	tuning.stats_interval = 1;
	casync_publish_set_file(FILE_NAME);
	entry->line_ns -= 2 * CASYNC_NS_PER_S;
	casync_publish_tick();
	assert_int_equal(lines_of_stats, 1);
	the_file_is_written();
	casync_publish_remove(entry);
	casync_prometheus_put(NULL);
	casync_prometheus_free();
	assert_int_equal(lines, 1);
	casync_inflight_destroy(&inflight);
}
