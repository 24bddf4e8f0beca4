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

unsigned int casync_metrics_bucket(uint64_t us)
{
	unsigned int bucket;

	if (us <= casync_metrics_bucket_us(0))
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

void casync_metrics_observe(struct casync_metrics_shard *shard,
			    unsigned int histogram, uint64_t ns)
{
	struct casync_histogram_shard *to = &shard->histograms[histogram];
	uint64_t us = (ns + CASYNC_NS_PER_US / 2) / CASYNC_NS_PER_US;
	unsigned int bucket = casync_metrics_bucket(us);

	if (!CASYNC_METRICS_ON)
		return;
	/* The count last: a reader that sees the count sees the sum too. */
	__atomic_fetch_add(&to->sum_us[bucket], us, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->count[bucket], 1, __ATOMIC_RELEASE);
	metrics_raise_to(&to->max_us, us);
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

void casync_metrics_count_answer(struct casync_metrics_shard *shard,
				 enum casync_metric_op op, fsal_status_t status)
{
	casync_metrics_count(shard, CASYNC_C_REQUESTS + op, 1);
	if (FSAL_IS_ERROR(status))
		casync_metrics_count(shard,
				     CASYNC_C_ERRORS +
					     op * CASYNC_ERROR_CLASSES +
					     metrics_class_of(status),
				     1);
}

static void metrics_add_histogram(struct casync_histogram_shard *to,
				  const struct casync_histogram_shard *from)
{
	uint64_t most = __atomic_load_n(&from->max_us, __ATOMIC_RELAXED);
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++) {
		to->count[i] +=
			__atomic_load_n(&from->count[i], __ATOMIC_ACQUIRE);
		to->sum_us[i] +=
			__atomic_load_n(&from->sum_us[i], __ATOMIC_RELAXED);
	}
	if (to->max_us < most)
		to->max_us = most;
}

void casync_metrics_add_up(struct casync_metrics *metrics,
			   struct casync_view *view)
{
	unsigned int s, i;

	memset(view, 0, sizeof(*view));
	for (s = 0; s < CASYNC_METRICS_SHARDS; s++) {
		struct casync_metrics_shard *shard = &metrics->shards[s];

		for (i = 0; i < CASYNC_COUNTERS; i++)
			view->numbers[CASYNC_C_REQUESTS + i] += __atomic_load_n(
				&shard->counters[i], __ATOMIC_RELAXED);
		for (i = 0; i < CASYNC_HISTOGRAMS; i++)
			metrics_add_histogram(&view->histograms[i],
					      &shard->histograms[i]);
	}
}

void casync_metrics_subtract(struct casync_view *view,
			     const struct casync_view *before)
{
	unsigned int h, i;

	for (i = 0; i < CASYNC_NUMBERS; i++) {
		if (casync_metrics_rows[i].kind == CASYNC_METRIC_COUNTER)
			view->numbers[i] -= before->numbers[i];
	}
	for (h = 0; h < CASYNC_HISTOGRAMS; h++) {
		for (i = 0; i < CASYNC_BUCKETS; i++) {
			view->histograms[h].count[i] -=
				before->histograms[h].count[i];
			view->histograms[h].sum_us[i] -=
				before->histograms[h].sum_us[i];
		}
	}
}

uint64_t casync_metrics_histogram_count(const struct casync_histogram_shard *of)
{
	uint64_t count = 0;
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++)
		count += of->count[i];
	return count;
}

uint64_t
casync_metrics_histogram_sum_us(const struct casync_histogram_shard *of)
{
	uint64_t sum_us = 0;
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS; i++)
		sum_us += of->sum_us[i];
	return sum_us;
}

uint64_t
casync_metrics_histogram_percentile_us(const struct casync_histogram_shard *of,
				       unsigned int percent)
{
	uint64_t count = casync_metrics_histogram_count(of);
	uint64_t below = 0;
	unsigned int i;

	if (count == 0)
		return 0;
	for (i = 0; i < CASYNC_BUCKETS - 1; i++) {
		below += of->count[i];
		if (below * 100 >= count * percent)
			return casync_metrics_bucket_us(i);
	}
	return of->max_us;
}

/* --- the rows of all outputs */

/* clang-format off */
#define PLAIN(name, help)                                                  \
	{name, help, {NULL}, {NULL}, CASYNC_METRIC_COUNTER}
#define LABEL(name, help, label, value)                                    \
	{name, help, {label}, {value}, CASYNC_METRIC_COUNTER}
#define GAUGE(name, help) {name, help, {NULL}, {NULL}, CASYNC_METRIC_GAUGE}
#define OF_CLIENT(name, help, kind)                                        \
	{name, help, {"client"}, {NULL}, CASYNC_METRIC_##kind}
#define REQUESTS(op)                                                       \
	LABEL("requests_total", "Requests answered, errors included.",     \
	      "op", op)
#define BYTES(op)                                                          \
	LABEL("bytes_total",                                               \
	      "Bytes transferred by requests without an error.", "op", op)
#define ERROR(op, class)                                                   \
	{"errors_total", "Requests answered with an error.",               \
	 {"op", "class"}, {op, class}, CASYNC_METRIC_COUNTER}
#define ERRORS(op)                                                         \
	ERROR(op, "delay"), ERROR(op, "io"), ERROR(op, "space"),           \
		ERROR(op, "session"), ERROR(op, "other")
#define STABLE(mode)                                                       \
	LABEL("stable_writes_total",                                       \
	      "WRITEs answered as stable, by Stable_Write "                \
	      "(promoted: the client asked for unstable).", "mode", mode)
#define STAGE(op, stage)                                                   \
	{"latency_us", "Time of requests in each stage.",                  \
	 {"op", "stage"}, {op, stage}, CASYNC_METRIC_HISTOGRAM}
#define ALL_STAGES(op)                                                     \
	STAGE(op, "queued"), STAGE(op, "libcephfs"),                       \
		STAGE(op, "handover"), STAGE(op, "finish"), STAGE(op, "total")
#define TIMES(name, help)                                                  \
	{name, help, {NULL}, {NULL}, CASYNC_METRIC_HISTOGRAM}
#define CACHE(name, help) PLAIN("read_cache_" name, help)
#define DROP(cause)                                                        \
	LABEL("read_cache_fills_dropped_total",                            \
	      "READs whose data the read cache did not take.",             \
	      "cause", cause)
#define LOSS(cause)                                                        \
	LABEL("read_cache_invalidations_total",                            \
	      "Files that lost all of their pages in the read cache at "   \
	      "once.", "cause", cause)
#define BYPASS(cause)                                                      \
	LABEL("read_cache_bypasses_total",                                 \
	      "How often the READs of a file began to do without the "     \
	      "read cache for a while.", "cause", cause)

const struct casync_metric_row casync_metrics_rows[CASYNC_METRICS] = {
	[CASYNC_PM_BUILD_INFO] =
		{"build_info", "Always 1; the labels have the versions.",
		 {"version", "libcephfs"}, {CASYNC_VERSION, NULL},
		 CASYNC_METRIC_GAUGE},
	[CASYNC_PM_LAST_RELOAD] =
		GAUGE("last_reload_successful",
		      "1 if the last reload was taken over, or none came; 0 "
		      "if it was refused."),
	[CASYNC_PM_DUPLICATES] =
		PLAIN("duplicate_completions_total",
		      "Calls that libcephfs completed twice; the second "
		      "completion is ignored."),
	[CASYNC_PM_BUDGET_BYTES] =
		GAUGE("read_cache_budget_bytes",
		      "Bytes that the read cache may have (Cache_Bytes)."),
	[CASYNC_PM_USED_BYTES] =
		GAUGE("read_cache_used_bytes",
		      "Bytes that the read cache has, with all that belongs "
		      "to it."),
	[CASYNC_PM_DATA_BYTES] =
		GAUGE("read_cache_data_bytes",
		      "Bytes of the buffers in which the read cache has data."),
	[CASYNC_PM_HITS] =
		CACHE("hits_total", "READs answered from the read cache."),
	[CASYNC_PM_MISSES] =
		CACHE("misses_total",
		      "READs that the read cache was asked for in vain."),
	[CASYNC_PM_HIT_BYTES] =
		CACHE("hit_bytes_total",
		      "Bytes of READs answered from the read cache."),
	[CASYNC_PM_FILLS] =
		CACHE("fills_total",
		      "READs whose data the read cache has taken."),
	[CASYNC_PM_EVICTIONS] =
		CACHE("evictions_total",
		      "Buffers of data given up for others."),
	[CASYNC_PM_EVICTED_BYTES] =
		CACHE("evicted_bytes_total",
		      "Bytes of memory of evicted buffers."),
	[CASYNC_PM_NO_REVALIDATION] =
		CACHE("revalidations_refused_total",
		      "READs that did without the read cache because too "
		      "many wait for attributes."),
	[CASYNC_PM_READAHEAD_BYTES] =
		CACHE("readahead_bytes_total",
		      "Bytes that READs fetched for READs to come."),
	[CASYNC_PM_READAHEAD_USED_BYTES] =
		CACHE("readahead_used_bytes_total",
		      "Bytes that were read ahead, and asked for later."),
	[CASYNC_PM_READAHEAD_WASTED_BYTES] =
		CACHE("readahead_wasted_bytes_total",
		      "Bytes that were read ahead, and given up before "
		      "anybody asked for them."),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_OFF] = DROP("off"),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_WRITE] = DROP("write"),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_TAG] = DROP("tag"),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_KNOWN] = DROP("known"),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_REFUSED] = DROP("refused"),
	[CASYNC_PM_DROPS + CASYNC_CACHE_DROP_MEMORY] = DROP("memory"),
	[CASYNC_PM_NO_BUFFER] = DROP("no_buffer"),
	[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_OWN] = LOSS("own"),
	[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_FOREIGN] = LOSS("foreign"),
	[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_RELEASED] = LOSS("released"),
	[CASYNC_PM_BYPASSES + CASYNC_CACHE_BYPASS_FOREIGN] = BYPASS("foreign"),
	[CASYNC_PM_BYPASSES + CASYNC_CACHE_BYPASS_COSTLY] = BYPASS("costly"),
	[CASYNC_C_REQUESTS] =
	REQUESTS("read"),
	REQUESTS("write"),
	REQUESTS("commit"),
	BYTES("read"),
	BYTES("write"),
	ERRORS("read"),
	ERRORS("write"),
	ERRORS("commit"),
	STABLE("data"),
	STABLE("fdatasync"),
	STABLE("full"),
	STABLE("promoted"),
	PLAIN("flushes_avoided_total",
	      "Stable WRITEs answered without a metadata flush."),
	PLAIN("commits_without_flush_total",
	      "COMMITs answered without a metadata flush."),
	PLAIN("flush_requests_total",
	      "Requests that waited for a metadata flush; several can share "
	      "one flush."),
	PLAIN("flush_errors_total", "Metadata flushes that failed."),
	PLAIN("new_file_writes_delayed_total",
	      "First WRITEs of new files, which wait for a metadata flush."),
	PLAIN("file_queue_waits_total",
	      "Requests queued in their file, behind other "
	      "requests of it."),
	PLAIN("gathered_writes_total",
	      "WRITEs that shared a call of libcephfs with other WRITEs."),
	PLAIN("gathered_calls_total", "Calls of libcephfs that several WRITEs shared."),
	PLAIN("blocking_reads_total",
	      "READs past the known end of a file, done with a blocking "
	      "call."),
	PLAIN("short_reads_total",
	      "READs that came back short: a hole, the end of the file, or "
	      "a truncation."),
	PLAIN("size_checks_total",
	      "READs up to the known end that asked for the file size."),
	PLAIN("slow_requests_total", "Requests older than Slow_Op_Warn."),
	PLAIN("eof_reads_total", "READs answered with end of file."),
	PLAIN("completed_inline_total",
	      "READs and WRITEs whose callbacks all came before libcephfs' "
	      "call returned."),
	PLAIN("deferred_closes_total",
	      "READs and WRITEs whose temporary fd was closed by a worker "
	      "thread."),
	PLAIN("caps_released_total",
	      "Inodes that the cache released because the MDS asked."),
	PLAIN("caps_kept_total",
	      "Inodes that the MDS asked for, but that were in use."),
	PLAIN("invalidations_total",
	      "Cache invalidations because another client changed a file."),
	PLAIN("handles_refused_total",
	      "File handles that were refused because no gateway of ours had "
	      "signed them (Sign_Handles)."),
	GAUGE("in_flight", "Requests in flight."),
	GAUGE("in_flight_bytes", "Bytes of the requests in flight."),
	GAUGE("in_flight_peak",
	      "Most requests in flight at once since the export was added."),
	GAUGE("waiting",
	      "Requests that wait because an in-flight limit is reached."),
	GAUGE("oldest_in_flight_ms", "Age of the oldest request in flight."),
	GAUGE("oldest_call_ms",
	      "Age of the oldest call of libcephfs that keeps one of Ganesha's "
	      "workers: names, attributes, COMMIT."),
	OF_CLIENT("session_state",
		  "State of the CephFS session: 1 serves, 2 lost, 0 export "
		  "removed.", GAUGE),
	OF_CLIENT("reconnect_ms",
		  "Time from the last loss of the CephFS session to the first "
		  "request served after it.", GAUGE),
	OF_CLIENT("reconnects", "reconnects_total, also while it is 0.", TWIN),
	OF_CLIENT("locks_lost", "locks_lost_total, also while it is 0.", TWIN),
	OF_CLIENT("reconnects_total",
		  "New CephFS clients that took the place of a client whose "
		  "session was lost.", COUNTER),
	OF_CLIENT("locks_lost_total",
		  "Byte-range locks that could not be taken again after a "
		  "reconnect.", COUNTER),
	ALL_STAGES("read"),
	ALL_STAGES("write"),
	STAGE("commit", "total"),
	TIMES("flush_us", "Time of metadata flushes (ceph_ll_sync_inode)."),
	TIMES("throttle_us",
	      "Time that requests waited because an in-flight limit was "
	      "reached."),
};
/* clang-format on */
