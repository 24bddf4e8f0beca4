/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file metrics.h
 * @brief Counters and histograms of an export; numbers of the process.
 *
 * They are sharded by CPU.  A request costs a few atomic additions to cache
 * lines that no other CPU writes to, and four clock reads.  It takes no lock
 * and allocates nothing.  A reader adds up the shards.
 *
 * The stages of a request, from the call to the answer:
 *
 *	queued		from the call of read2 or write2 to the call of
 *			libcephfs
 *	libcephfs	until libcephfs has answered
 *	handover	until a thread of ours takes the answer
 *	finish		until done_cb: repair, flush, close of a file
 *
 * The names and help texts that all outputs (publish.h) show are here too.
 */
#ifndef CASYNC_METRICS_H
#define CASYNC_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "fsal_types.h"

/** Built without metrics to see what they cost, and by test_call_times.c. */
#ifdef CASYNC_NO_METRICS
#define CASYNC_METRICS_ON false
#else
#define CASYNC_METRICS_ON true
#endif

enum casync_stage {
	CASYNC_STAGE_QUEUED,
	CASYNC_STAGE_LIBCEPHFS,
	CASYNC_STAGE_HANDOVER,
	CASYNC_STAGE_FINISH,
	CASYNC_STAGE_TOTAL, /**< All stages; of every request let in. */
	CASYNC_STAGES,
};

/** The label "op"; the first two equal enum casync_op_kind. */
enum casync_metric_op {
	CASYNC_METRIC_READ,
	CASYNC_METRIC_WRITE,
	CASYNC_METRIC_COMMIT,
	CASYNC_METRIC_OPS,
};

enum casync_histogram {
	/** The stages of READ, then the stages of WRITE. */
	CASYNC_H_STAGES,
	CASYNC_H_COMMIT = CASYNC_H_STAGES + 2 * CASYNC_STAGES,
	CASYNC_H_FLUSH,
	CASYNC_H_THROTTLE,
	CASYNC_HISTOGRAMS,
};

/** Classes of errors. */
enum casync_error_class {
	CASYNC_ERROR_DELAY, /**< Asked to retry. */
	CASYNC_ERROR_IO,
	CASYNC_ERROR_SPACE,   /**< File system or quota is full. */
	CASYNC_ERROR_SESSION, /**< Blocklisted or not connected. */
	CASYNC_ERROR_OTHER,
	CASYNC_ERROR_CLASSES,
};

/**
 * All numbers, in the order in which they are shown.  The histograms follow
 * them.
 *
 * The first ones are the process': mostly of the read cache, which counts by
 * itself (cache.h) and has no export.  The others are an export's.
 */
enum casync_metric {
	CASYNC_PM_BUILD_INFO,
	CASYNC_PM_LAST_RELOAD,
	CASYNC_PM_BUDGET_BYTES,
	CASYNC_PM_USED_BYTES,
	CASYNC_PM_DATA_BYTES,
	CASYNC_PM_DUPLICATES,
	CASYNC_PM_HITS,
	CASYNC_PM_MISSES,
	CASYNC_PM_HIT_BYTES,
	CASYNC_PM_FILLS,
	CASYNC_PM_EVICTIONS,
	CASYNC_PM_EVICTED_BYTES,
	CASYNC_PM_NO_REVALIDATION,
	CASYNC_PM_READAHEAD_BYTES,
	CASYNC_PM_READAHEAD_USED_BYTES,
	CASYNC_PM_READAHEAD_WASTED_BYTES,
	/** One for each enum casync_cache_drop, and one for fills that had no
	 * buffer. */
	CASYNC_PM_DROPS,
	CASYNC_PM_NO_BUFFER = CASYNC_PM_DROPS + CASYNC_CACHE_DROPS,
	/** One for each enum casync_cache_loss. */
	CASYNC_PM_LOSSES,
	/** One for each enum casync_cache_bypass. */
	CASYNC_PM_BYPASSES = CASYNC_PM_LOSSES + CASYNC_CACHE_LOSSES,
	CASYNC_PROCESS_METRICS = CASYNC_PM_BYPASSES + CASYNC_CACHE_BYPASSES,

	/** An export counts these.  One for each enum casync_metric_op. */
	CASYNC_C_REQUESTS = CASYNC_PROCESS_METRICS,
	CASYNC_C_BYTES = CASYNC_C_REQUESTS + CASYNC_METRIC_OPS,
	/** Error classes of READ, then WRITE, then COMMIT. */
	CASYNC_C_ERRORS = CASYNC_C_BYTES + 2,
	/** One for each enum casync_stable_write. */
	CASYNC_C_STABLE =
		CASYNC_C_ERRORS + CASYNC_METRIC_OPS * CASYNC_ERROR_CLASSES,
	CASYNC_C_PROMOTED = CASYNC_C_STABLE + 3,
	CASYNC_C_FLUSHES_AVOIDED,
	CASYNC_C_COMMIT_NO_FLUSH,
	CASYNC_C_FLUSH_REQUESTS,
	CASYNC_C_FLUSH_ERRORS,
	CASYNC_C_NEW_FILE_DELAYED,
	CASYNC_C_FILE_QUEUE_WAITS,
	CASYNC_C_GATHERED_WRITES,
	CASYNC_C_GATHERED_CALLS,
	CASYNC_C_BLOCKING_READS,
	CASYNC_C_SHORT_READS,
	CASYNC_C_SIZE_CHECKS,
	CASYNC_C_SLOW,
	CASYNC_C_EOF_READS,
	CASYNC_C_INLINE,
	CASYNC_C_DEFERRED_CLOSES,
	CASYNC_C_CAPS_RELEASED,
	CASYNC_C_CAPS_KEPT,
	CASYNC_C_INVALIDATIONS,
	CASYNC_C_HANDLES_REFUSED,

	/** The state of an export and of its session. */
	CASYNC_SM_IN_FLIGHT,
	CASYNC_SM_IN_FLIGHT_BYTES,
	CASYNC_SM_IN_FLIGHT_PEAK,
	CASYNC_SM_WAITING,
	CASYNC_SM_OLDEST_MS,
	CASYNC_SM_OLDEST_CALL_MS,
	CASYNC_SM_SESSION,
	CASYNC_SM_RECONNECT_MS,
	/** The counters below as gauges, for alerts: Ganesha leaves counters
	 * that are 0 out of the scrape (compact_family of
	 * prometheus_exposer.cc, 9.14), and so their first step. */
	CASYNC_SM_RECONNECTS,
	CASYNC_SM_LOCKS_LOST,
	CASYNC_SM_RECONNECTS_TOTAL,
	CASYNC_SM_LOCKS_LOST_TOTAL,
	CASYNC_NUMBERS,
	CASYNC_METRICS = CASYNC_NUMBERS + CASYNC_HISTOGRAMS,

	CASYNC_COUNTERS = CASYNC_SM_IN_FLIGHT - CASYNC_C_REQUESTS,
};

/**
 * Bucket i counts times up to 2^(i + CASYNC_FIRST_BUCKET) µs: 8 µs to 16.8 s.
 * The last bucket counts all longer times.
 */
#define CASYNC_FIRST_BUCKET 3
#define CASYNC_BUCKETS 23

struct casync_histogram_shard {
	uint64_t count[CASYNC_BUCKETS];
	uint64_t sum_us[CASYNC_BUCKETS];
	uint64_t max_us;
};

/** All members are atomic.  It is padded, not aligned: calloc allocates an
 * export. */
struct casync_metrics_shard {
	uint64_t counters[CASYNC_COUNTERS];
	struct casync_histogram_shard histograms[CASYNC_HISTOGRAMS];
	char pad[64];
};

/** All shards of an export take 41 KiB (42,368 bytes). */
#define CASYNC_METRICS_SHARDS 8

/** The metrics of an export; zero at first. */
struct casync_metrics {
	struct casync_metrics_shard shards[CASYNC_METRICS_SHARDS];
};

/** The shard that the calling thread counts in. */
struct casync_metrics_shard *casync_metrics_shard(struct casync_metrics *of);

static inline void casync_metrics_count(struct casync_metrics_shard *shard,
					unsigned int counter, uint64_t by)
{
	if (CASYNC_METRICS_ON)
		__atomic_fetch_add(
			&shard->counters[counter - CASYNC_C_REQUESTS], by,
			__ATOMIC_RELAXED);
}

/** Add a time to a histogram. */
void casync_metrics_observe(struct casync_metrics_shard *shard,
			    unsigned int histogram, uint64_t ns);

/** Count one answered request by its status. */
void casync_metrics_count_answer(struct casync_metrics_shard *shard,
				 enum casync_metric_op op,
				 fsal_status_t status);

/** The bucket of a latency. */
unsigned int casync_metrics_bucket(uint64_t us);

/** Upper bound of a bucket; the last one has none. */
static inline uint64_t casync_metrics_bucket_us(unsigned int bucket)
{
	return UINT64_C(1) << (bucket + CASYNC_FIRST_BUCKET);
}

/** All metrics at one moment, or what came between two. */
struct casync_view {
	uint64_t numbers[CASYNC_NUMBERS];
	struct casync_histogram_shard histograms[CASYNC_HISTOGRAMS];
};

/** A row's histogram; NULL: the row is a number. */
static inline const struct casync_histogram_shard *
casync_metrics_histogram(const struct casync_view *view, unsigned int row)
{
	return row < CASYNC_NUMBERS ? NULL
				    : &view->histograms[row - CASYNC_NUMBERS];
}

/** The sum of all shards of an export; its other numbers become 0. */
void casync_metrics_add_up(struct casync_metrics *metrics,
			   struct casync_view *view);

/** Subtract what was before; gauges and maxima stay. */
void casync_metrics_subtract(struct casync_view *view,
			     const struct casync_view *before);

uint64_t
casync_metrics_histogram_count(const struct casync_histogram_shard *of);
uint64_t
casync_metrics_histogram_sum_us(const struct casync_histogram_shard *of);

/** Smallest bucket bound that at least @p percent % of the samples do not
 * exceed; 0 without samples. */
uint64_t
casync_metrics_histogram_percentile_us(const struct casync_histogram_shard *of,
				       unsigned int percent);

enum casync_metric_kind {
	CASYNC_METRIC_COUNTER, /**< Only grows. */
	CASYNC_METRIC_GAUGE,
	CASYNC_METRIC_TWIN, /**< A gauge that repeats a counter. */
	CASYNC_METRIC_HISTOGRAM,
};

/** A row of all outputs. */
struct casync_metric_row {
	const char *name; /**< Without "ceph_async__". */
	const char *help;
	const char *label[2]; /**< "op", "mode", …; NULL: no more. */
	/** NULL: the output knows it, the session's client or the version of
	 * libcephfs. */
	const char *value[2];
	enum casync_metric_kind kind;
};

/** By enum casync_metric; rows of one name stand together. */
extern const struct casync_metric_row casync_metrics_rows[CASYNC_METRICS];

#endif /* CASYNC_METRICS_H */
