/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "fsal.h"

#include "cache.h"
#include "clock.h"
#include "prometheus.h"
#include "publish.h"
#include "tuning.h"

/* It is taken before an export's in-flight lock.  No function of libcephfs or
 * of the data path is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(published);
static uint64_t next_look_ns; /* used by the watchdog only */

/* Under the lock; static, because it has 5 KiB. */
static struct casync_view view;

static struct casync_session_counts
publish_counts_of(const struct casync_session *session)
{
	return (struct casync_session_counts){
		.reconnects =
			__atomic_load_n(&session->reconnects, __ATOMIC_RELAXED),
		.locks_lost =
			__atomic_load_n(&session->locks_lost, __ATOMIC_RELAXED),
	};
}

static struct casync_session_counts
publish_counts_since(struct casync_session_counts now,
		     struct casync_session_counts before)
{
	now.reconnects -= before.reconnects;
	now.locks_lost -= before.locks_lost;
	return now;
}

static struct casync_session_counts
publish_counts_since_add(const struct casync_published *entry)
{
	return publish_counts_since(publish_counts_of(entry->of.session),
				    entry->session_at_add);
}

static void publish_update_locked(const struct casync_published *entry)
{
	const struct casync_publish_source *of = &entry->of;

	view.export_id = of->export_id;
	casync_metrics_add_up(of->metrics, &view.totals);
	casync_inflight_sample(of->inflight, &view.inflight);
	view.session = casync_session_state(of->session);
	view.session_counts = publish_counts_since_add(entry);
	view.reconnect_ms =
		__atomic_load_n(&of->session->reconnect_ms, __ATOMIC_RELAXED);
}

/* It reads some 16 KiB that READs write to: not for each request. */
static void publish_read_cache(struct casync_cache_numbers *now)
{
	struct casync_cache_stats stats;
	uint64_t *of = now->of;

	casync_cache_get_stats(&stats);
	of[CASYNC_CM_BUDGET_BYTES] = stats.budget_bytes;
	of[CASYNC_CM_USED_BYTES] = stats.used_bytes;
	of[CASYNC_CM_DATA_BYTES] = stats.cached_bytes;
	of[CASYNC_CM_HITS] = stats.hits;
	of[CASYNC_CM_MISSES] = stats.misses;
	of[CASYNC_CM_HIT_BYTES] = stats.hit_bytes;
	of[CASYNC_CM_FILLS] = stats.counts.puts;
	of[CASYNC_CM_EVICTIONS] = stats.counts.evictions;
	of[CASYNC_CM_EVICTED_BYTES] = stats.counts.evicted_bytes;
	of[CASYNC_CM_NO_REVALIDATION] = stats.counts.no_revalidation;
	of[CASYNC_CM_READAHEAD_BYTES] = stats.counts.ahead_bytes;
	of[CASYNC_CM_READAHEAD_USED_BYTES] = stats.counts.ahead_used_bytes;
	of[CASYNC_CM_READAHEAD_WASTED_BYTES] = stats.counts.ahead_wasted_bytes;
	of[CASYNC_CM_NO_BUFFER] = stats.counts.no_buffer;
	memcpy(&of[CASYNC_CM_DROPS], stats.counts.drops,
	       sizeof(stats.counts.drops));
	memcpy(&of[CASYNC_CM_LOSSES], stats.counts.losses,
	       sizeof(stats.counts.losses));
	memcpy(&of[CASYNC_CM_BYPASSES], stats.counts.bypasses,
	       sizeof(stats.counts.bypasses));
}

/* Subtract earlier numbers; gauges stay. */
static void publish_cache_since(struct casync_cache_numbers *now,
				const struct casync_cache_numbers *before)
{
	unsigned int i;

	for (i = CASYNC_CM_GAUGES; i < CASYNC_CACHE_METRICS; i++)
		now->of[i] -= before->of[i];
}

static void publish_get_prometheus_locked(struct casync_published *entry)
{
	entry->prometheus = casync_prometheus_get(entry->of.export_id,
						  entry->of.session->client);
}

struct casync_published *
casync_publish_add(const struct casync_publish_source *source)
{
	struct casync_published *entry = gsh_calloc(1, sizeof(*entry));

	entry->of = *source;
	pthread_mutex_lock(&lock);
	publish_get_prometheus_locked(entry);
	entry->session_at_add = publish_counts_of(source->session);
	publish_read_cache(&entry->cache_at_line);
	glist_add_tail(&published, &entry->link);
	entry->line_ns = casync_clock_ns();
	pthread_mutex_unlock(&lock);
	return entry;
}

void casync_publish_remove(struct casync_published *entry)
{
	if (entry == NULL)
		return;
	pthread_mutex_lock(&lock);
	glist_del(&entry->link);
	publish_update_locked(entry);
	/* Requests that did not end are no longer counted: the gauges would
	 * stay. */
	memset(&view.inflight, 0, sizeof(view.inflight));
	view.session = CASYNC_SESSION_NONE;
	view.reconnect_ms = 0;
	casync_prometheus_update(entry->prometheus, &view);
	casync_prometheus_put(entry->prometheus);
	pthread_mutex_unlock(&lock);
	gsh_free(entry);
}

static void publish_cache_since_line(struct casync_published *entry)
{
	struct casync_cache_numbers now;

	publish_read_cache(&now);
	view.cache = now;
	publish_cache_since(&view.cache, &entry->cache_at_line);
	entry->cache_at_line = now;
}

/* Log the counts since the last line, if a line is due. */
static void publish_log_line_locked(struct casync_published *entry,
				    uint64_t now_ns)
{
	uint32_t interval_s =
		casync_tuning_read(&entry->of.tuning->stats_interval);
	static struct casync_totals totals;
	struct casync_session_counts counts = view.session_counts;
	char line[CASYNC_STATS_LOG_BYTES];
	uint64_t seconds = (now_ns - entry->line_ns) / CASYNC_NS_PER_S;

	if (interval_s == 0 || seconds < interval_s)
		return;
	totals = view.totals;
	casync_metrics_subtract(&view.totals, &entry->before_line);
	entry->before_line = totals;
	view.session_counts =
		publish_counts_since(counts, entry->session_at_line);
	entry->session_at_line = counts;
	publish_cache_since_line(entry);
	entry->line_ns = now_ns;
	LogEvent(COMPONENT_FSAL, "export %" PRIu16 ": %s", view.export_id,
		 casync_stats_log_format(&view, seconds, line, sizeof(line)));
}

static void publish_show_locked(struct casync_published *entry, uint64_t now_ns)
{
	/* A predecessor with the same id may still be registered at first. */
	if (entry->prometheus == NULL)
		publish_get_prometheus_locked(entry);
	publish_update_locked(entry);
	casync_prometheus_update(entry->prometheus, &view);
	publish_log_line_locked(entry, now_ns);
}

void casync_publish_tick(void)
{
	uint64_t now_ns = casync_clock_ns();
	struct casync_cache_numbers cache;
	struct glist_head *node;

	if (now_ns < next_look_ns)
		return;
	next_look_ns = now_ns + CASYNC_NS_PER_S;

	pthread_mutex_lock(&lock);
	glist_for_each(node, &published)
		publish_show_locked(
			glist_entry(node, struct casync_published, link),
			now_ns);
	publish_read_cache(&cache);
	casync_prometheus_update_cache(&cache);
	pthread_mutex_unlock(&lock);
}
