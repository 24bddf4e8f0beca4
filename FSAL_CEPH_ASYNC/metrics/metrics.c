/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sched.h>

#include "clock.h"
#include "metrics.h"
#include "session.h"

struct casync_metrics_shard *casync_metrics_shard(struct casync_metrics *of)
{
	int cpu = sched_getcpu();

	return &of->shards[cpu < 0 ? 0 : cpu % CASYNC_METRICS_SHARDS];
}

unsigned int casync_bucket(uint64_t us)
{
	unsigned int bucket;

	if (us <= casync_bucket_us(0))
		return 0;
	bucket = 64 - (unsigned int)__builtin_clzll(us - 1) -
		 CASYNC_FIRST_BUCKET;
	return bucket < CASYNC_BUCKETS - 1 ? bucket : CASYNC_BUCKETS - 1;
}

/* Read first: a new maximum is rare. */
static void metrics_raise_to(uint64_t *most, uint64_t value)
{
	uint64_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (seen < value &&
	       !__atomic_compare_exchange_n(most, &seen, value, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		; /* seen is fresh */
}

static void metrics_lower_to(uint64_t *least, uint64_t value)
{
	uint64_t seen = __atomic_load_n(least, __ATOMIC_RELAXED);

	while ((seen == 0 || seen > value) &&
	       !__atomic_compare_exchange_n(least, &seen, value, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		; /* seen is fresh */
}

void casync_observe(struct casync_metrics_shard *shard, unsigned int histogram,
		    uint64_t ns)
{
	struct casync_histogram_shard *to = &shard->histograms[histogram];
	uint64_t us = (ns + CASYNC_NS_PER_US / 2) / CASYNC_NS_PER_US;
	unsigned int bucket = casync_bucket(us);

	if (!CASYNC_METRICS_ON)
		return;
	/* The count last: a reader that sees the count sees the sum too. */
	__atomic_fetch_add(&to->sum_us[bucket], us, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->count[bucket], 1, __ATOMIC_RELEASE);
	metrics_raise_to(&to->max_us, us);
	metrics_lower_to(&to->min_us_and_1, us + 1);
}

static enum casync_error_class metrics_class_of(fsal_status_t status)
{
	switch (status.major) {
	case ERR_FSAL_DELAY:
		return CASYNC_ERROR_DELAY;
	case ERR_FSAL_NOSPC:
	case ERR_FSAL_DQUOT:
		return CASYNC_ERROR_SPACE;
	case ERR_FSAL_IO:
		return casync_session_error(status.minor) ? CASYNC_ERROR_SESSION
							  : CASYNC_ERROR_IO;
	default:
		return CASYNC_ERROR_OTHER;
	}
}

void casync_count_answer(struct casync_metrics_shard *shard,
			 enum casync_metric_op op, fsal_status_t status)
{
	casync_count(shard, CASYNC_C_REQUESTS + op, 1);
	if (FSAL_IS_ERROR(status))
		casync_count(shard,
			     CASYNC_C_ERRORS + op * CASYNC_ERROR_CLASSES +
				     metrics_class_of(status),
			     1);
}

static void metrics_add_histogram(struct casync_histogram_shard *to,
				  const struct casync_histogram_shard *from)
{
	uint64_t most = __atomic_load_n(&from->max_us, __ATOMIC_RELAXED);
	uint64_t least = __atomic_load_n(&from->min_us_and_1, __ATOMIC_RELAXED);
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++) {
		to->count[i] +=
			__atomic_load_n(&from->count[i], __ATOMIC_ACQUIRE);
		to->sum_us[i] +=
			__atomic_load_n(&from->sum_us[i], __ATOMIC_RELAXED);
	}
	if (to->max_us < most)
		to->max_us = most;
	if (least != 0 && (to->min_us_and_1 == 0 || to->min_us_and_1 > least))
		to->min_us_and_1 = least;
}

void casync_metrics_add_up(struct casync_metrics *metrics,
			   struct casync_totals *totals)
{
	unsigned int s, i;

	memset(totals, 0, sizeof(*totals));
	for (s = 0; s < CASYNC_METRICS_SHARDS; s++) {
		struct casync_metrics_shard *shard = &metrics->shards[s];

		for (i = 0; i < CASYNC_COUNTERS; i++)
			totals->counters[i] += __atomic_load_n(
				&shard->counters[i], __ATOMIC_RELAXED);
		for (i = 0; i < CASYNC_HISTOGRAMS; i++)
			metrics_add_histogram(&totals->histograms[i],
					      &shard->histograms[i]);
	}
}

void casync_totals_since(struct casync_totals *totals,
			 const struct casync_totals *before)
{
	unsigned int h, i;

	for (i = 0; i < CASYNC_COUNTERS; i++)
		totals->counters[i] -= before->counters[i];
	for (h = 0; h < CASYNC_HISTOGRAMS; h++) {
		for (i = 0; i < CASYNC_BUCKETS; i++) {
			totals->histograms[h].count[i] -=
				before->histograms[h].count[i];
			totals->histograms[h].sum_us[i] -=
				before->histograms[h].sum_us[i];
		}
	}
}

void casync_metrics_forget_extremes(struct casync_metrics *metrics)
{
	unsigned int s, i;

	for (s = 0; s < CASYNC_METRICS_SHARDS; s++) {
		for (i = 0; i < CASYNC_HISTOGRAMS; i++) {
			struct casync_histogram_shard *of =
				&metrics->shards[s].histograms[i];

			__atomic_store_n(&of->max_us, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&of->min_us_and_1, 0,
					 __ATOMIC_RELAXED);
		}
	}
}

uint64_t casync_histogram_count(const struct casync_histogram_shard *of)
{
	uint64_t count = 0;
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++)
		count += of->count[i];
	return count;
}

uint64_t casync_histogram_sum_us(const struct casync_histogram_shard *of)
{
	uint64_t sum_us = 0;
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++)
		sum_us += of->sum_us[i];
	return sum_us;
}

uint64_t casync_histogram_percentile_us(const struct casync_histogram_shard *of,
					unsigned int percent)
{
	uint64_t count = casync_histogram_count(of);
	uint64_t below = 0;
	unsigned int i;

	if (count == 0)
		return 0;
	for (i = 0; i < CASYNC_BUCKETS - 1; i++) {
		below += of->count[i];
		if (below * 100 >= count * percent)
			return casync_bucket_us(i);
	}
	return of->max_us;
}

/* --- names */

#define REQUESTS(row, op)                                                \
	{                                                                \
		"requests_total", "Requests answered, errors included.", \
			row " requests", {"op"},                         \
		{                                                        \
			op                                               \
		}                                                        \
	}
#define BYTES(row, op)                                                     \
	{                                                                  \
		"bytes_total",                                             \
			"Bytes transferred by requests without an error.", \
			row " bytes", {"op"},                              \
		{                                                          \
			op                                                 \
		}                                                          \
	}
#define ERRORS_HELP "Requests answered with an error."
#define ERRORS(row, op)                                          \
	{"errors_total",                                         \
	 ERRORS_HELP,                                            \
	 row " delay",                                           \
	 {"op", "class"},                                        \
	 {op, "delay"}},                                         \
		{"errors_total",                                 \
		 ERRORS_HELP,                                    \
		 row " io error",                                \
		 {"op", "class"},                                \
		 {op, "io"}},                                    \
		{"errors_total",                                 \
		 ERRORS_HELP,                                    \
		 row " no space",                                \
		 {"op", "class"},                                \
		 {op, "space"}},                                 \
		{"errors_total",                                 \
		 ERRORS_HELP,                                    \
		 row " session lost",                            \
		 {"op", "class"},                                \
		 {op, "session"}},                               \
	{                                                        \
		"errors_total", ERRORS_HELP, row " other error", \
			{"op", "class"}, {op, "other"}           \
	}
#define STABLE(mode)                                                  \
	{                                                             \
		"stable_writes_total",                                \
			"WRITEs answered as stable, by Stable_Write " \
			"(promoted: the client asked for unstable).", \
			"WRITE stable " mode, {"mode"},               \
		{                                                     \
			mode                                          \
		}                                                     \
	}
#define PLAIN(name, help, row)           \
	{                                \
		name, help, row, {NULL}, \
		{                        \
			NULL             \
		}                        \
	}

/* clang-format off */
const struct casync_metric_name casync_counter_names[CASYNC_COUNTERS] = {
	REQUESTS("READ", "read"),
	REQUESTS("WRITE", "write"),
	REQUESTS("COMMIT", "commit"),
	BYTES("READ", "read"),
	BYTES("WRITE", "write"),
	ERRORS("READ", "read"),
	ERRORS("WRITE", "write"),
	ERRORS("COMMIT", "commit"),
	STABLE("data"),
	STABLE("fdatasync"),
	STABLE("full"),
	STABLE("promoted"),
	PLAIN("flushes_avoided_total",
	      "Stable WRITEs answered without a metadata flush.",
	      "WRITE without flush"),
	PLAIN("commits_free_total",
	      "COMMITs answered without a metadata flush.",
	      "COMMIT without flush"),
	PLAIN("flush_requests_total",
	      "Requests that waited for a metadata flush; several can share "
	      "one flush.",
	      "flush requests"),
	PLAIN("flush_errors_total", "Metadata flushes that failed.",
	      "flush errors"),
	PLAIN("journaled_first_total",
	      "First WRITEs of new files, which wait for a metadata flush.",
	      "WRITE journaled first"),
	PLAIN("held_total",
	      "Requests queued in the gate of their file, behind other "
	      "requests of it.", "held"),
	PLAIN("gathered_total",
	      "WRITEs that shared a call of libcephfs with other WRITEs.",
	      "WRITE gathered"),
	PLAIN("gathered_calls_total", "Calls of libcephfs that several WRITEs shared.",
	      "WRITE gathered calls"),
	PLAIN("blocking_reads_total",
	      "READs past the known end of a file, done with a blocking "
	      "call.",
	      "READ blocking"),
	PLAIN("repaired_reads_total",
	      "READs that came back short: a hole, the end of the file, or "
	      "a truncation.",
	      "READ repaired"),
	PLAIN("size_checks_total",
	      "READs up to the known end that asked for the file size.",
	      "READ size checks"),
	PLAIN("slow_requests_total", "Requests older than Slow_Op_Warn.",
	      "slow"),
	PLAIN("eof_reads_total", "READs answered with end of file.",
	      "READ end of file"),
	PLAIN("completed_inline_total",
	      "READs and WRITEs whose callbacks all came before libcephfs' "
	      "call returned.", "completed inline"),
	PLAIN("deferred_close_total",
	      "READs and WRITEs whose temporary fd was closed by a worker "
	      "thread.",
	      "deferred close"),
	PLAIN("caps_released_total",
	      "Inodes that the cache released because the MDS asked.",
	      "caps released"),
	PLAIN("caps_kept_total",
	      "Inodes that the MDS asked for, but that were in use.",
	      "caps kept"),
	PLAIN("invalidates_total",
	      "Cache invalidations because another client changed a file.",
	      "invalidates"),
	PLAIN("handles_refused_total",
	      "File handles that were refused because no gateway of ours had "
	      "signed them (Sign_Handles).", "handles refused"),
};

#define STAGE(row, op, stage)                                              \
	{"latency_us", "Time of requests in each stage.",          \
	 row " " stage, {"op", "stage"}, {op, stage}}
#define ALL_STAGES(row, op)                                                \
	STAGE(row, op, "queued"), STAGE(row, op, "libcephfs"),             \
		STAGE(row, op, "handover"), STAGE(row, op, "finish"),      \
		STAGE(row, op, "total")

const struct casync_metric_name casync_histogram_names[CASYNC_HISTOGRAMS] = {
	ALL_STAGES("READ", "read"),
	ALL_STAGES("WRITE", "write"),
	STAGE("COMMIT", "commit", "total"),
	PLAIN("flush_us", "Time of metadata flushes (ceph_ll_sync_inode).",
	      "flush"),
	PLAIN("throttle_us",
	      "Time that requests waited because an in-flight limit was "
	      "reached.",
	      "throttled"),
};
/* clang-format on */
