/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>

#include <cephfs/libcephfs.h>

#include "ganesha.h"

#include "clock.h"
#include "metrics.h"
#include "prometheus.h"
#include "publish.h"
#include "submit.h"

#define MAX_LABELS 3

/* clang-format off */
#define PLAIN(name, help) {name, help, {NULL}, {NULL}}
#define OF_CLIENT(name, help) \
	&(const struct casync_metric_name){name, help, {"client"}, {client}}
/* clang-format on */

enum gauge {
	IN_FLIGHT,
	IN_FLIGHT_BYTES,
	IN_FLIGHT_PEAK,
	WAITING,
	OLDEST_MS,
	GAUGES,
};

static const struct casync_metric_name gauge_names[GAUGES] = {
	[IN_FLIGHT] = PLAIN("in_flight", "Requests in flight."),
	[IN_FLIGHT_BYTES] =
		PLAIN("in_flight_bytes", "Bytes of the requests in flight."),
	[IN_FLIGHT_PEAK] = PLAIN("in_flight_peak",
				 "Most requests in flight at once since "
				 "the export was added."),
	[WAITING] = PLAIN("waiting", "Requests that wait because an in-flight "
				     "limit is reached."),
	[OLDEST_MS] = PLAIN("oldest_in_flight_ms",
			    "Age of the oldest request in flight."),
};

struct casync_prometheus {
	struct casync_prometheus *next;
	uint16_t export_id;
	bool in_use;
	counter_metric_handle_t counters[CASYNC_COUNTERS];
	histogram_metric_handle_t histograms[CASYNC_HISTOGRAMS];
	gauge_metric_handle_t gauges[GAUGES];
	gauge_metric_handle_t session;
	gauge_metric_handle_t reconnect_ms;
	counter_metric_handle_t reconnects;
	counter_metric_handle_t locks_lost;
	/* The same as gauges, for alerts: Ganesha leaves counters that are 0
	 * out of the scrape (compact_family of prometheus_exposer.cc, 9.14),
	 * and so their first step. */
	gauge_metric_handle_t reconnects_shown;
	gauge_metric_handle_t locks_lost_shown;
	/** Counts of the current export that were already added. */
	struct casync_totals shown;
	struct casync_session_counts shown_of_session;
};

static struct casync_prometheus *all;

/* Ganesha's functions; NULL if it has no monitoring. */
static struct {
	__typeof__(&monitoring__register_counter) register_counter;
	__typeof__(&monitoring__register_gauge) register_gauge;
	__typeof__(&monitoring__register_histogram) register_histogram;
	__typeof__(&monitoring__counter_inc) counter_inc;
	__typeof__(&monitoring__gauge_set) gauge_set;
	__typeof__(&monitoring__histogram_observe) histogram_observe;
} registry;

static bool looked_up;
static counter_metric_handle_t duplicates;
static uint64_t duplicates_shown;
static gauge_metric_handle_t last_reload;
/* Atomic: reloads come from other threads than updates. */
static bool reload_is_good = true;
static gauge_metric_handle_t cache_gauges[CASYNC_CM_GAUGES];
/* Those of the gauges stay unused. */
static counter_metric_handle_t cache_counters[CASYNC_CACHE_METRICS];
static struct casync_cache_numbers cache_shown;

static bool prometheus_find(void *to, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	memcpy(to, &found, sizeof(found));
	return found != NULL;
}

static bool prometheus_find_all(void)
{
	return prometheus_find(&registry.register_counter,
			       "monitoring__register_counter") &&
	       prometheus_find(&registry.register_gauge,
			       "monitoring__register_gauge") &&
	       prometheus_find(&registry.register_histogram,
			       "monitoring__register_histogram") &&
	       prometheus_find(&registry.counter_inc,
			       "monitoring__counter_inc") &&
	       prometheus_find(&registry.gauge_set, "monitoring__gauge_set") &&
	       prometheus_find(&registry.histogram_observe,
			       "monitoring__histogram_observe");
}

static const char *prometheus_prefixed(const char *name)
{
	static char whole[64];

	(void)snprintf(whole, sizeof(whole), "ceph_async__%s", name);
	return whole;
}

/* The label "export" comes first, unless @p id is NULL. */
static uint16_t prometheus_fill_labels(metric_label_t *labels, const char *id,
				       const struct casync_metric_name *name)
{
	uint16_t count = 0;
	unsigned int i;

	if (id != NULL)
		labels[count++] = METRIC_LABEL("export", id);
	for (i = 0; i < 2 && name->label[i] != NULL; i++)
		labels[count++] = METRIC_LABEL(name->label[i], name->value[i]);
	return count;
}

static counter_metric_handle_t
prometheus_counter(const char *id, const struct casync_metric_name *name)
{
	metric_label_t labels[MAX_LABELS];
	uint16_t count = prometheus_fill_labels(labels, id, name);

	return registry.register_counter(
		prometheus_prefixed(name->name),
		METRIC_METADATA(name->help, METRIC_UNIT_NONE), labels, count);
}

static gauge_metric_handle_t
prometheus_gauge(const char *id, const struct casync_metric_name *name)
{
	metric_label_t labels[MAX_LABELS];
	uint16_t count = prometheus_fill_labels(labels, id, name);

	return registry.register_gauge(
		prometheus_prefixed(name->name),
		METRIC_METADATA(name->help, METRIC_UNIT_NONE), labels, count);
}

/* Metrics without the label "export". */
static void prometheus_register_module(void)
{
	char libcephfs[32];
	int major, minor, patch;
	const struct casync_metric_name build_info = {
		"build_info",
		"Always 1; the labels have the versions.",
		{"version", "libcephfs"},
		{CASYNC_VERSION, libcephfs},
	};
	const struct casync_metric_name duplicates_name =
		PLAIN("duplicate_completions_total",
		      "Calls that libcephfs completed twice; the second "
		      "completion is ignored.");
	const struct casync_metric_name reload_name =
		PLAIN("last_reload_successful",
		      "1 if the last reload was taken over, or none came; 0 "
		      "if it was refused.");
	unsigned int i;

	(void)ceph_version(&major, &minor, &patch);
	(void)snprintf(libcephfs, sizeof(libcephfs), "%d.%d.%d", major, minor,
		       patch);
	registry.gauge_set(prometheus_gauge(NULL, &build_info), 1);
	duplicates = prometheus_counter(NULL, &duplicates_name);
	last_reload = prometheus_gauge(NULL, &reload_name);
	for (i = 0; i < CASYNC_CM_GAUGES; i++)
		cache_gauges[i] =
			prometheus_gauge(NULL, &casync_cache_metric_names[i]);
	for (; i < CASYNC_CACHE_METRICS; i++)
		cache_counters[i] =
			prometheus_counter(NULL, &casync_cache_metric_names[i]);
}

static bool prometheus_available(void)
{
	if (!looked_up) {
		looked_up = true;
		if (prometheus_find_all()) {
			prometheus_register_module();
		} else {
			registry.register_counter = NULL;
			LogInfo(COMPONENT_FSAL,
				"this Ganesha has no monitoring; there are no metrics for Prometheus");
		}
	}
	return registry.register_counter != NULL;
}

static void prometheus_register_histograms(struct casync_prometheus *of,
					   const char *id)
{
	metric_label_t labels[MAX_LABELS];
	int64_t bounds[CASYNC_BUCKETS - 1];
	histogram_buckets_t buckets = {bounds, CASYNC_BUCKETS - 1};
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS - 1; i++)
		bounds[i] = (int64_t)casync_metrics_bucket_us(i);
	for (i = 0; i < CASYNC_HISTOGRAMS; i++) {
		const struct casync_metric_name *name =
			&casync_histogram_names[i];
		uint16_t count = prometheus_fill_labels(labels, id, name);

		of->histograms[i] = registry.register_histogram(
			prometheus_prefixed(name->name),
			METRIC_METADATA(name->help, METRIC_UNIT_MICROSECOND),
			labels, count, buckets);
	}
}

static void prometheus_register_session(struct casync_prometheus *of,
					const char *id, const char *client)
{
	of->session = prometheus_gauge(
		id,
		OF_CLIENT("session_state",
			  "State of the CephFS session: 1 serves, 2 lost, 0 "
			  "export removed."));
	of->reconnect_ms = prometheus_gauge(
		id,
		OF_CLIENT(
			"reconnect_ms",
			"Time from the last loss of the CephFS session to the "
			"first request served after it."));
	of->reconnects = prometheus_counter(
		id,
		OF_CLIENT("reconnects_total",
			  "New CephFS clients that took the place of a client "
			  "whose session was lost."));
	of->locks_lost = prometheus_counter(
		id,
		OF_CLIENT(
			"locks_lost_total",
			"Byte-range locks that could not be taken again after "
			"a reconnect."));
	of->reconnects_shown = prometheus_gauge(
		id, OF_CLIENT("reconnects",
			      "reconnects_total, also while it is 0."));
	of->locks_lost_shown = prometheus_gauge(
		id, OF_CLIENT("locks_lost",
			      "locks_lost_total, also while it is 0."));
}

static struct casync_prometheus *prometheus_register_export(uint16_t export_id,
							    const char *id)
{
	struct casync_prometheus *of = gsh_calloc(1, sizeof(*of));
	unsigned int i;

	of->export_id = export_id;
	for (i = 0; i < CASYNC_COUNTERS; i++)
		of->counters[i] =
			prometheus_counter(id, &casync_counter_names[i]);
	prometheus_register_histograms(of, id);
	for (i = 0; i < GAUGES; i++)
		of->gauges[i] = prometheus_gauge(id, &gauge_names[i]);
	of->next = all;
	all = of;
	return of;
}

struct casync_prometheus *casync_prometheus_get(uint16_t export_id,
						const char *client)
{
	struct casync_prometheus *of;
	char id[8];

	if (!prometheus_available())
		return NULL;
	for (of = all; of != NULL && of->export_id != export_id; of = of->next)
		;
	if (of != NULL && of->in_use)
		return NULL;
	(void)snprintf(id, sizeof(id), "%" PRIu16, export_id);
	if (of == NULL)
		of = prometheus_register_export(export_id, id);
	prometheus_register_session(of, id, client);
	of->in_use = true;
	memset(&of->shown, 0, sizeof(of->shown));
	memset(&of->shown_of_session, 0, sizeof(of->shown_of_session));
	return of;
}

void casync_prometheus_put(struct casync_prometheus *of)
{
	if (of != NULL)
		of->in_use = false;
}

static uint64_t prometheus_clamp(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

/*
 * The registry takes one observation at a time.  So each sample of a bucket is
 * observed with the bucket's mean: counts and sums are then the same as here.
 * A sum that is changing may not fit its bucket; the rest is added later.
 */
static void prometheus_show_bucket(struct casync_prometheus *of, unsigned int h,
				   unsigned int b, uint64_t count,
				   uint64_t sum_us)
{
	uint64_t *shown_us = &of->shown.histograms[h].sum_us[b];
	uint64_t least = b == 0 ? 0 : casync_metrics_bucket_us(b - 1) + 1;
	uint64_t most = b == CASYNC_BUCKETS - 1 ? INT64_MAX
						: casync_metrics_bucket_us(b);

	for (; count != 0; count--) {
		uint64_t left_us = sum_us > *shown_us ? sum_us - *shown_us : 0;
		uint64_t us = prometheus_clamp(left_us / count, least, most);

		registry.histogram_observe(of->histograms[h], (int64_t)us);
		*shown_us += us;
	}
}

static void prometheus_show_histogram(struct casync_prometheus *of,
				      unsigned int h,
				      const struct casync_histogram_shard *now)
{
	unsigned int b;

	for (b = 0; b < CASYNC_BUCKETS; b++) {
		uint64_t *shown = &of->shown.histograms[h].count[b];

		prometheus_show_bucket(of, h, b, now->count[b] - *shown,
				       now->sum_us[b]);
		*shown = now->count[b];
	}
}

static void prometheus_show_gauges(struct casync_prometheus *of,
				   const struct casync_inflight_sample *look)
{
	const uint64_t values[GAUGES] = {
		[IN_FLIGHT] = look->ops,
		[IN_FLIGHT_BYTES] = look->bytes,
		[IN_FLIGHT_PEAK] = look->peak_ops,
		[WAITING] = look->waiting,
		[OLDEST_MS] = look->oldest_ns / CASYNC_NS_PER_MS,
	};
	unsigned int i;

	for (i = 0; i < GAUGES; i++)
		registry.gauge_set(of->gauges[i], (int64_t)values[i]);
}

static void prometheus_show_count(counter_metric_handle_t counter, uint64_t now,
				  uint64_t *shown)
{
	registry.counter_inc(counter, (int64_t)(now - *shown));
	*shown = now;
}

static void prometheus_show_session(struct casync_prometheus *of,
				    const struct casync_view *view)
{
	registry.gauge_set(of->session, view->session);
	registry.gauge_set(of->reconnect_ms, (int64_t)view->reconnect_ms);
	prometheus_show_count(of->reconnects, view->session_counts.reconnects,
			      &of->shown_of_session.reconnects);
	prometheus_show_count(of->locks_lost, view->session_counts.locks_lost,
			      &of->shown_of_session.locks_lost);
	registry.gauge_set(of->reconnects_shown,
			   (int64_t)view->session_counts.reconnects);
	registry.gauge_set(of->locks_lost_shown,
			   (int64_t)view->session_counts.locks_lost);
}

void casync_prometheus_update(struct casync_prometheus *of,
			      const struct casync_view *view)
{
	unsigned int i;

	if (of == NULL)
		return;
	for (i = 0; i < CASYNC_COUNTERS; i++)
		prometheus_show_count(of->counters[i], view->totals.counters[i],
				      &of->shown.counters[i]);
	for (i = 0; i < CASYNC_HISTOGRAMS; i++)
		prometheus_show_histogram(of, i, &view->totals.histograms[i]);
	prometheus_show_gauges(of, &view->inflight);
	prometheus_show_session(of, view);
	prometheus_show_count(duplicates, casync_submit_duplicates(),
			      &duplicates_shown);
	registry.gauge_set(last_reload,
			   __atomic_load_n(&reload_is_good, __ATOMIC_RELAXED));
}

void casync_prometheus_reload(bool good)
{
	__atomic_store_n(&reload_is_good, good, __ATOMIC_RELAXED);
}

void casync_prometheus_update_cache(const struct casync_cache_numbers *now)
{
	unsigned int i;

	if (!looked_up || registry.register_counter == NULL)
		return;
	for (i = 0; i < CASYNC_CM_GAUGES; i++)
		registry.gauge_set(cache_gauges[i], (int64_t)now->of[i]);
	for (; i < CASYNC_CACHE_METRICS; i++)
		prometheus_show_count(cache_counters[i], now->of[i],
				      &cache_shown.of[i]);
}

void casync_prometheus_free(void)
{
	struct casync_prometheus *of;

	while ((of = all) != NULL) {
		all = of->next;
		gsh_free(of);
	}
	looked_up = false;
	duplicates_shown = 0;
	memset(&cache_shown, 0, sizeof(cache_shown));
}
