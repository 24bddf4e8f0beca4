/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "publish.h"

#define NS_PER_US 1000

static struct casync_metrics metrics;
static struct casync_view view;
static char line[CASYNC_STATS_LOG_BYTES];

static int up(void **state)
{
	memset(&metrics, 0, sizeof(metrics));
	memset(&view, 0, sizeof(view));
	view.state[CASYNC_SM_SESSION] = CASYNC_SESSION_SERVES;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static struct casync_metrics_shard *here(void)
{
	return casync_metrics_shard(&metrics);
}

static void observe(enum casync_metric_op op, enum casync_stage stage,
		    uint64_t us)
{
	casync_metrics_observe(here(),
			       CASYNC_H_STAGES + op * CASYNC_STAGES + stage,
			       us * NS_PER_US);
}

CASE(idle_export_has_zeros)
{
	assert_string_equal(
		casync_stats_log_format(&view, 10, line, sizeof(line)),
		"10 s: READ 0 of 0 bytes, mean us queued 0 libcephfs 0 "
		"handover 0 finish 0, total p99 <= 0, errors 0; "
		"WRITE 0 of 0 bytes, mean us queued 0 libcephfs 0 "
		"handover 0 finish 0, total p99 <= 0, errors 0; "
		"COMMIT 0, errors 0; flushes 0, mean us 0; "
		"in flight 0 (peak 0), waiting 0, asked to retry 0, "
		"slow 0; completed inline 0, deferred closes 0, ends of file 0, "
		"caps released 0 kept 0, invalidates 0; "
		"read cache of all exports: hits 0 of 0 bytes, misses 0, "
		"evictions 0, invalidated own 0 foreign 0, "
		"used 0 of 0 bytes; "
		"reconnects 0, locks lost 0; session serves");
}

CASE(everything_is_in_its_place)
{
	casync_metrics_count_answer(here(), CASYNC_METRIC_READ,
				    fsalstat(ERR_FSAL_NO_ERROR, 0));
	casync_metrics_count(here(), CASYNC_C_BYTES + CASYNC_METRIC_READ, 4096);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_QUEUED, 2);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_LIBCEPHFS, 300);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_HANDOVER, 20);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_FINISH, 5);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_TOTAL, 327);
	casync_metrics_count_answer(here(), CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_NOSPC, 28));
	casync_metrics_count_answer(here(), CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_DELAY, 11));
	casync_metrics_count_answer(here(), CASYNC_METRIC_COMMIT,
				    fsalstat(ERR_FSAL_IO, 5));
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 1000 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 3000 * NS_PER_US);
	casync_metrics_count(here(), CASYNC_C_SLOW, 6);
	casync_metrics_count(here(), CASYNC_C_INLINE, 7);
	casync_metrics_count(here(), CASYNC_C_DEFERRED_CLOSES, 8);
	casync_metrics_count(here(), CASYNC_C_EOF_READS, 9);
	casync_metrics_count(here(), CASYNC_C_CAPS_RELEASED, 10);
	casync_metrics_count(here(), CASYNC_C_CAPS_KEPT, 11);
	casync_metrics_count(here(), CASYNC_C_INVALIDATIONS, 12);
	view.state[CASYNC_SM_SESSION] = CASYNC_SESSION_LOST;
	view.state[CASYNC_SM_RECONNECTS] = 13;
	view.state[CASYNC_SM_LOCKS_LOST] = 14;
	casync_metrics_add_up(&metrics, &view.totals);
	view.process.of[CASYNC_PM_HITS] = 21;
	view.process.of[CASYNC_PM_HIT_BYTES] = 22;
	view.process.of[CASYNC_PM_MISSES] = 23;
	view.process.of[CASYNC_PM_EVICTIONS] = 24;
	view.process.of[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_OWN] = 25;
	view.process.of[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_FOREIGN] = 26;
	view.process.of[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_RELEASED] = 27;
	view.process.of[CASYNC_PM_USED_BYTES] = 28;
	view.process.of[CASYNC_PM_BUDGET_BYTES] = 29;
	view.state[CASYNC_SM_IN_FLIGHT] = 3;
	view.state[CASYNC_SM_IN_FLIGHT_PEAK] = 9;
	view.state[CASYNC_SM_WAITING] = 4;
	assert_string_equal(
		casync_stats_log_format(&view, 60, line, sizeof(line)),
		"60 s: READ 1 of 4096 bytes, mean us queued 2 libcephfs 300 "
		"handover 20 finish 5, total p99 <= 512, errors 0; "
		"WRITE 2 of 0 bytes, mean us queued 0 libcephfs 0 "
		"handover 0 finish 0, total p99 <= 0, errors 1; "
		"COMMIT 1, errors 1; flushes 2, mean us 2000; "
		"in flight 3 (peak 9), waiting 4, asked to retry 1, "
		"slow 6; completed inline 7, deferred closes 8, ends of file 9, "
		"caps released 10 kept 11, invalidates 12; "
		"read cache of all exports: hits 21 of 22 bytes, misses 23, "
		"evictions 24, invalidated own 25 foreign 26, "
		"used 28 of 29 bytes; "
		"reconnects 13, locks lost 14; session lost");
}

/* Whatever the numbers, a line is within its room, and may be cut. */
CASE(largest_numbers_fit)
{
	char small[40];

	memset(&view, 0xff, sizeof(view));
	casync_stats_log_format(&view, UINT64_MAX, line, sizeof(line));
	assert_true(strlen(line) < sizeof(line) - 1);
	assert_non_null(strstr(line, "locks lost 18446744073709551615"));
	casync_stats_log_format(&view, 10, small, sizeof(small));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}
