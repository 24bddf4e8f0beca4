/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "fsal_types.h"

#include "errors.h"
#include "metrics.h"

#define NS_PER_US 1000
#define LAST (CASYNC_BUCKETS - 1)
#define THREADS 8
#define EACH 20000

static struct casync_metrics metrics;
static struct casync_view totals;

static int up(void **state)
{
	memset(&metrics, 0, sizeof(metrics));
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static struct casync_metrics_shard *here(void)
{
	return casync_metrics_shard(&metrics);
}

static void add_up(void)
{
	casync_metrics_add_up(&metrics, &totals);
}

/* A bound belongs to its bucket, as Prometheus' "le" has it. */
CASE(each_bucket_ends_at_its_bound)
{
	unsigned int i;

	assert_int_equal(casync_metrics_bucket(0), 0);
	assert_int_equal(casync_metrics_bucket_us(0), 8);
	assert_int_equal(casync_metrics_bucket_us(LAST - 1), 16777216);
	for (i = 0; i < LAST; i++) {
		assert_int_equal(
			casync_metrics_bucket(casync_metrics_bucket_us(i)), i);
		assert_int_equal(
			casync_metrics_bucket(casync_metrics_bucket_us(i) + 1),
			i + 1);
	}
	assert_int_equal(casync_metrics_bucket(UINT64_MAX / NS_PER_US), LAST);
}

CASE(observation_is_counted_summed_and_bounded)
{
	const struct casync_histogram_shard *flush =
		&totals.histograms[CASYNC_H_FLUSH];

	casync_metrics_observe(here(), CASYNC_H_FLUSH, 3 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 100 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 120 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 20000000ULL * NS_PER_US);
	add_up();
	assert_int_equal(casync_metrics_histogram_count(flush), 4);
	assert_int_equal(casync_metrics_histogram_sum_us(flush), 20000223);
	assert_int_equal(flush->count[0], 1);
	assert_int_equal(flush->count[casync_metrics_bucket(128)], 2);
	assert_int_equal(flush->sum_us[casync_metrics_bucket(128)], 220);
	assert_int_equal(flush->count[LAST], 1);
	assert_int_equal(flush->max_us, 20000000);
	assert_int_equal(casync_metrics_histogram_count(
				 &totals.histograms[CASYNC_H_THROTTLE]),
			 0);
}

/* To the nearest, so that sums of short stages are not too low. */
CASE(nanoseconds_are_rounded)
{
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 499);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 500);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 1499);
	add_up();
	assert_int_equal(casync_metrics_histogram_sum_us(
				 &totals.histograms[CASYNC_H_FLUSH]),
			 2);
}

CASE(percentile_is_the_bound_that_so_many_keep)
{
	const struct casync_histogram_shard *flush =
		&totals.histograms[CASYNC_H_FLUSH];
	unsigned int i;

	add_up();
	assert_int_equal(casync_metrics_histogram_percentile_us(flush, 99), 0);
	for (i = 0; i < 99; i++)
		casync_metrics_observe(here(), CASYNC_H_FLUSH, 20 * NS_PER_US);
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 70000 * NS_PER_US);
	add_up();
	assert_int_equal(casync_metrics_histogram_percentile_us(flush, 50), 32);
	assert_int_equal(casync_metrics_histogram_percentile_us(flush, 99), 32);
	assert_int_equal(casync_metrics_histogram_percentile_us(flush, 100),
			 131072);
	/* Above the last bound, the longest there was. */
	casync_metrics_observe(here(), CASYNC_H_FLUSH, 30000000ULL * NS_PER_US);
	add_up();
	assert_int_equal(casync_metrics_histogram_percentile_us(flush, 100),
			 30000000);
}

struct answer {
	fsal_errors_t major;
	int minor;
	enum casync_error_class class;
};

CASE(errors_have_their_class)
{
	static const struct answer answers[] = {
		{ERR_FSAL_DELAY, EAGAIN, CASYNC_ERROR_DELAY},
		{ERR_FSAL_IO, EIO, CASYNC_ERROR_IO},
		{ERR_FSAL_NOSPC, ENOSPC, CASYNC_ERROR_SPACE},
		{ERR_FSAL_DQUOT, EDQUOT, CASYNC_ERROR_SPACE},
		{ERR_FSAL_IO, CASYNC_EBLOCKLISTED, CASYNC_ERROR_SESSION},
		{ERR_FSAL_IO, ENOTCONN, CASYNC_ERROR_SESSION},
		{ERR_FSAL_ROFS, EROFS, CASYNC_ERROR_OTHER},
	};
	static const uint64_t wanted[CASYNC_ERROR_CLASSES] = {1, 1, 2, 2, 1};
	unsigned int op, i;

	for (op = 0; op < CASYNC_METRIC_OPS; op++) {
		for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
			casync_metrics_count_answer(
				here(), op,
				fsalstat(answers[i].major, answers[i].minor));
		casync_metrics_count_answer(here(), op,
					    fsalstat(ERR_FSAL_NO_ERROR, 0));
	}
	add_up();
	for (op = 0; op < CASYNC_METRIC_OPS; op++) {
		assert_int_equal(totals.numbers[CASYNC_C_REQUESTS + op], 8);
		for (i = 0; i < CASYNC_ERROR_CLASSES; i++)
			assert_int_equal(
				totals.numbers[CASYNC_C_ERRORS +
					       op * CASYNC_ERROR_CLASSES + i],
				wanted[i]);
	}
}

CASE(difference_is_what_came_since)
{
	struct casync_view before;

	casync_metrics_count(here(), CASYNC_C_BYTES, 4096);
	casync_metrics_observe(here(), CASYNC_H_COMMIT, 5 * NS_PER_US);
	casync_metrics_add_up(&metrics, &before);
	casync_metrics_count(here(), CASYNC_C_BYTES, 10);
	casync_metrics_observe(here(), CASYNC_H_COMMIT, 900 * NS_PER_US);
	add_up();
	casync_metrics_subtract(&totals, &before);
	assert_int_equal(totals.numbers[CASYNC_C_BYTES], 10);
	assert_int_equal(casync_metrics_histogram_count(
				 &totals.histograms[CASYNC_H_COMMIT]),
			 1);
	assert_int_equal(casync_metrics_histogram_sum_us(
				 &totals.histograms[CASYNC_H_COMMIT]),
			 900);
}

static void *load(void *unused)
{
	unsigned int i;

	for (i = 1; i <= EACH; i++) {
		casync_metrics_count(here(), CASYNC_C_BYTES, 3);
		casync_metrics_observe(here(), CASYNC_H_FLUSH, i * NS_PER_US);
	}
	return NULL;
}

/* While threads count, what is added up only grows; in the end all is there. */
CASE(nothing_is_lost_among_threads)
{
	const struct casync_histogram_shard *flush =
		&totals.histograms[CASYNC_H_FLUSH];
	pthread_t threads[THREADS];
	uint64_t before = 0;
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, load, NULL),
				 0);
	while (before < (uint64_t)THREADS * EACH) {
		add_up();
		assert_true(casync_metrics_histogram_count(flush) >= before);
		assert_true(casync_metrics_histogram_sum_us(flush) >=
			    casync_metrics_histogram_count(flush));
		before = casync_metrics_histogram_count(flush);
	}
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	add_up();
	assert_int_equal(totals.numbers[CASYNC_C_BYTES], 3ULL * THREADS * EACH);
	assert_int_equal(casync_metrics_histogram_count(flush), THREADS * EACH);
	assert_int_equal(casync_metrics_histogram_sum_us(flush),
			 (uint64_t)THREADS * EACH * (EACH + 1) / 2);
	assert_int_equal(flush->max_us, EACH);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The rows of a family stand together: the file has them so. */
CASE(everything_has_a_name_of_its_own)
{
	const struct casync_metric_row *rows = casync_metrics_rows;
	unsigned int i, j;

	for (i = 0; i < CASYNC_METRICS; i++) {
		assert_non_null(rows[i].name);
		assert_non_null(rows[i].help);
		assert_int_equal(rows[i].kind == CASYNC_METRIC_HISTOGRAM,
				 i >= CASYNC_NUMBERS);
		for (j = 0; j < i; j++) {
			if (strcmp(rows[i].name, rows[j].name) != 0)
				continue;
			/* One family: same text, same labels, other values. */
			assert_string_equal(rows[i].name, rows[i - 1].name);
			assert_string_equal(rows[i].help, rows[j].help);
			assert_int_equal(rows[i].kind, rows[j].kind);
			assert_true(same(rows[i].label[0], rows[j].label[0]));
			assert_true(!same(rows[i].value[0], rows[j].value[0]) ||
				    !same(rows[i].value[1], rows[j].value[1]));
		}
	}
}

static void check_name(unsigned int row, const char *name, const char *value,
		       const char *second)
{
	const struct casync_metric_row *its = &casync_metrics_rows[row];

	assert_string_equal(its->name, name);
	assert_true(same(its->value[0], value));
	assert_true(same(its->value[1], second));
}

CASE(each_number_has_its_row)
{
	check_name(CASYNC_C_BYTES + CASYNC_METRIC_WRITE, "bytes_total", "write",
		   NULL);
	check_name(CASYNC_C_ERRORS +
			   CASYNC_METRIC_COMMIT * CASYNC_ERROR_CLASSES,
		   "errors_total", "commit", "delay");
	check_name(CASYNC_C_PROMOTED, "stable_writes_total", "promoted", NULL);
	check_name(CASYNC_C_SLOW, "slow_requests_total", NULL, NULL);
	check_name(CASYNC_C_HANDLES_REFUSED, "handles_refused_total", NULL,
		   NULL);
	check_name(CASYNC_SM_IN_FLIGHT, "in_flight", NULL, NULL);
	check_name(CASYNC_SM_LOCKS_LOST_TOTAL, "locks_lost_total", NULL, NULL);
	check_name(CASYNC_PM_BYPASSES + CASYNC_CACHE_BYPASS_COSTLY,
		   "read_cache_bypasses_total", "costly", NULL);
	check_name(CASYNC_NUMBERS + CASYNC_H_STAGES + CASYNC_STAGES +
			   CASYNC_STAGE_HANDOVER,
		   "latency_us", "write", "handover");
	check_name(CASYNC_NUMBERS + CASYNC_H_COMMIT, "latency_us", "commit",
		   "total");
	check_name(CASYNC_NUMBERS + CASYNC_H_THROTTLE, "throttle_us", NULL,
		   NULL);
}
