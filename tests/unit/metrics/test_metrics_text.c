/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The log's line.  test_publish.c has the file. */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "metrics_text.h"
#include "publish.h"
#include "stub_log.h"

#define NS_PER_US 1000

/* Only the file that cannot be written has one. */
void stub_log_line(log_levels_t level, const char *text)
{
	fail();
}

static struct casync_metrics metrics;
static struct casync_view view;
static char line[CASYNC_METRICS_TEXT_LINE_BYTES];

static int up(void **state)
{
	memset(&metrics, 0, sizeof(metrics));
	memset(&view, 0, sizeof(view));
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

CASE(what_is_0_is_not_told)
{
	view.numbers[CASYNC_PM_BUILD_INFO] = 1;
	view.numbers[CASYNC_PM_LAST_RELOAD] = 1;
	assert_string_equal(
		casync_metrics_text_line(&view, 10, line, sizeof(line)),
		"10 s:");
	view.numbers[CASYNC_SM_SESSION] = CASYNC_SESSION_SERVES;
	assert_string_equal(
		casync_metrics_text_line(&view, 10, line, sizeof(line)),
		"10 s: session_state 1");
}

CASE(rows_of_a_family_stand_together)
{
	casync_metrics_count_answer(here(), CASYNC_METRIC_READ,
				    fsalstat(ERR_FSAL_NO_ERROR, 0));
	casync_metrics_count(here(), CASYNC_C_BYTES + CASYNC_METRIC_READ, 4096);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_QUEUED, 2);
	observe(CASYNC_METRIC_READ, CASYNC_STAGE_LIBCEPHFS, 300);
	casync_metrics_count_answer(here(), CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_NOSPC, 28));
	casync_metrics_count_answer(here(), CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_DELAY, 11));
	casync_metrics_count_answer(here(), CASYNC_METRIC_COMMIT,
				    fsalstat(ERR_FSAL_IO, 5));
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 1000 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 3000 * NS_PER_US);
	casync_metrics_count(here(), CASYNC_C_SLOW, 6);
	casync_metrics_add_up(&metrics, &view);
	view.numbers[CASYNC_SM_IN_FLIGHT] = 3;
	view.numbers[CASYNC_SM_SESSION] = CASYNC_SESSION_LOST;
	/* The same number twice would be one too many. */
	view.numbers[CASYNC_SM_RECONNECTS] = 13;
	view.numbers[CASYNC_SM_RECONNECTS_TOTAL] = 13;
	view.numbers[CASYNC_PM_HITS] = 21;
	view.numbers[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_OWN] = 25;
	view.numbers[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_RELEASED] = 27;
	view.numbers[CASYNC_PM_BUDGET_BYTES] = 29;
	assert_string_equal(
		casync_metrics_text_line(&view, 60, line, sizeof(line)),
		"60 s: requests_total read 1, write 2, commit 1; "
		"bytes_total read 4096; "
		"errors_total write delay 1, write space 1, commit io 1; "
		"slow_requests_total 6; in_flight 3; session_state 2; "
		"reconnects_total 13; "
		"latency_us read queued 1 mean 2 p99 8, "
		"read libcephfs 1 mean 300 p99 512; "
		"flush_us 2 mean 2000 p99 4096; "
		"read_cache_budget_bytes 29; read_cache_hits_total 21; "
		"read_cache_invalidations_total own 25, released 27");
}

/* Whatever the numbers, a line is within its room. */
CASE(what_has_no_room_is_cut_off)
{
	char small[40];

	memset(&view, 0xff, sizeof(view));
	casync_metrics_text_line(&view, UINT64_MAX, line, sizeof(line));
	assert_int_equal(strlen(line), sizeof(line) - 1);
	casync_metrics_text_line(&view, 10, small, sizeof(small));
	assert_string_equal(small, "10 s: requests_total read 1844674407370");
}

/* A log's line of Ganesha has as much room. */
CASE(small_numbers_of_all_rows_have_room)
{
	unsigned int i;

	for (i = 0; i < CASYNC_NUMBERS; i++)
		view.numbers[i] = 1;
	for (i = 0; i < CASYNC_HISTOGRAMS; i++)
		view.histograms[i].count[0] = 1;
	casync_metrics_text_line(&view, 1, line, sizeof(line));
	assert_non_null(strstr(line, "; throttle_us 1 mean 0 p99 8; "));
	assert_string_equal(strrchr(line, ';'),
			    "; read_cache_bypasses_total foreign 1, costly 1");
}
