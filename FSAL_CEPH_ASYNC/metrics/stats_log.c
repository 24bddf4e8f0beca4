/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "publish.h"

/* A line that grows; it is cut off at its size. */
struct text {
	char *line;
	size_t size;
	size_t used;
};

static void stats_log_append(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void stats_log_append(struct text *text, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text->line + text->used, text->size - text->used,
			   format, args);
	va_end(args);
	if (length < 0)
		return;
	text->used += (size_t)length;
	if (text->used >= text->size)
		text->used = text->size - 1;
}

static uint64_t stats_log_mean_us(const struct casync_histogram_shard *of)
{
	uint64_t count = casync_metrics_histogram_count(of);

	return count == 0 ? 0 : casync_metrics_histogram_sum_us(of) / count;
}

static uint64_t stats_log_errors_of(const struct casync_totals *totals,
				    enum casync_metric_op op)
{
	const uint64_t *classes =
		&totals->counters[CASYNC_C_ERRORS + op * CASYNC_ERROR_CLASSES];
	uint64_t errors = 0;
	unsigned int i;

	/* A request to retry is no error; the line counts it elsewhere. */
	for (i = CASYNC_ERROR_DELAY + 1; i < CASYNC_ERROR_CLASSES; i++)
		errors += classes[i];
	return errors;
}

static uint64_t stats_log_delays(const struct casync_totals *totals)
{
	uint64_t count = 0;
	unsigned int op;

	for (op = 0; op < CASYNC_METRIC_OPS; op++)
		count += totals->counters[CASYNC_C_ERRORS +
					  op * CASYNC_ERROR_CLASSES +
					  CASYNC_ERROR_DELAY];
	return count;
}

static void stats_log_append_transfers(struct text *text, const char *name,
				       const struct casync_totals *totals,
				       enum casync_metric_op op)
{
	const struct casync_histogram_shard *stages =
		&totals->histograms[CASYNC_H_STAGES + op * CASYNC_STAGES];

	stats_log_append(text, "%s %" PRIu64 " of %" PRIu64 " bytes", name,
			 totals->counters[CASYNC_C_REQUESTS + op],
			 totals->counters[CASYNC_C_BYTES + op]);
	stats_log_append(text,
			 ", mean us queued %" PRIu64 " libcephfs %" PRIu64
			 " handover %" PRIu64 " finish %" PRIu64
			 ", total p99 <= %" PRIu64,
			 stats_log_mean_us(&stages[CASYNC_STAGE_QUEUED]),
			 stats_log_mean_us(&stages[CASYNC_STAGE_LIBCEPHFS]),
			 stats_log_mean_us(&stages[CASYNC_STAGE_HANDOVER]),
			 stats_log_mean_us(&stages[CASYNC_STAGE_FINISH]),
			 casync_metrics_histogram_percentile_us(
				 &stages[CASYNC_STAGE_TOTAL], 99));
	stats_log_append(text, ", errors %" PRIu64 "; ",
			 stats_log_errors_of(totals, op));
}

/* Of the process, but since this export's last line. */
static void
stats_log_append_read_cache(struct text *text,
			    const struct casync_process_numbers *cache)
{
	stats_log_append(
		text,
		"; read cache of all exports: hits %" PRIu64 " of %" PRIu64
		" bytes, misses %" PRIu64 ", evictions %" PRIu64
		", invalidated own %" PRIu64 " foreign %" PRIu64
		", used %" PRIu64 " of %" PRIu64 " bytes",
		cache->of[CASYNC_PM_HITS], cache->of[CASYNC_PM_HIT_BYTES],
		cache->of[CASYNC_PM_MISSES], cache->of[CASYNC_PM_EVICTIONS],
		cache->of[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_OWN],
		cache->of[CASYNC_PM_LOSSES + CASYNC_CACHE_LOSS_FOREIGN],
		cache->of[CASYNC_PM_USED_BYTES],
		cache->of[CASYNC_PM_BUDGET_BYTES]);
}

/* Cache events that Ceph caused, and requests with an unusual end. */
static void stats_log_append_cache(struct text *text,
				   const struct casync_totals *totals)
{
	stats_log_append(text,
			 "; completed inline %" PRIu64
			 ", deferred closes %" PRIu64 ", ends of file %" PRIu64
			 ", caps released %" PRIu64 " kept %" PRIu64
			 ", invalidates %" PRIu64,
			 totals->counters[CASYNC_C_INLINE],
			 totals->counters[CASYNC_C_DEFERRED_CLOSES],
			 totals->counters[CASYNC_C_EOF_READS],
			 totals->counters[CASYNC_C_CAPS_RELEASED],
			 totals->counters[CASYNC_C_CAPS_KEPT],
			 totals->counters[CASYNC_C_INVALIDATIONS]);
}

const char *casync_stats_log_format(const struct casync_view *view,
				    uint64_t seconds, char *line, size_t size)
{
	const struct casync_totals *totals = &view->totals;
	const struct casync_histogram_shard *flush =
		&totals->histograms[CASYNC_H_FLUSH];
	struct text text = {.line = line, .size = size};

	stats_log_append(&text, "%" PRIu64 " s: ", seconds);
	stats_log_append_transfers(&text, "READ", totals, CASYNC_METRIC_READ);
	stats_log_append_transfers(&text, "WRITE", totals, CASYNC_METRIC_WRITE);
	stats_log_append(
		&text, "COMMIT %" PRIu64 ", errors %" PRIu64,
		totals->counters[CASYNC_C_REQUESTS + CASYNC_METRIC_COMMIT],
		stats_log_errors_of(totals, CASYNC_METRIC_COMMIT));
	stats_log_append(&text, "; flushes %" PRIu64 ", mean us %" PRIu64,
			 casync_metrics_histogram_count(flush),
			 stats_log_mean_us(flush));
	stats_log_append(
		&text,
		"; in flight %" PRIu64 " (peak %" PRIu64 "), waiting %" PRIu64
		", asked to retry %" PRIu64 ", slow %" PRIu64,
		view->state[CASYNC_SM_IN_FLIGHT],
		view->state[CASYNC_SM_IN_FLIGHT_PEAK],
		view->state[CASYNC_SM_WAITING], stats_log_delays(totals),
		totals->counters[CASYNC_C_SLOW]);
	stats_log_append_cache(&text, totals);
	stats_log_append_read_cache(&text, &view->process);
	stats_log_append(&text,
			 "; reconnects %" PRIu64 ", locks lost %" PRIu64
			 "; session %s",
			 view->state[CASYNC_SM_RECONNECTS],
			 view->state[CASYNC_SM_LOCKS_LOST],
			 view->state[CASYNC_SM_SESSION] == CASYNC_SESSION_LOST
				 ? "lost"
				 : "serves");
	return line;
}
