/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>

#include "ganesha.h"

#include "metrics.h"
#include "prometheus.h"
#include "publish.h"
#include "text.h"

#define MAX_LABELS 3

/* A registered gauge or counter. */
struct prometheus_number {
	union {
		gauge_metric_handle_t gauge;
		counter_metric_handle_t counter;
	};
	uint64_t shown; /* The counter has it already. */
};

struct casync_prometheus {
	struct casync_prometheus *next;
	uint16_t export_id;
	bool in_use;
	struct prometheus_number counters[CASYNC_COUNTERS];
	struct prometheus_number state[CASYNC_STATE_METRICS];
	histogram_metric_handle_t histograms[CASYNC_HISTOGRAMS];
	/** Of the current export, what was observed already. */
	struct casync_histogram_shard shown[CASYNC_HISTOGRAMS];
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

static bool looked_up, process_is_registered;
static struct prometheus_number process[CASYNC_PROCESS_METRICS];

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

/* The label "export" comes first, unless @p id is NULL.  @p known is the value
 * that the table does not have. */
static uint16_t prometheus_fill_labels(metric_label_t *labels, const char *id,
				       const char *known,
				       const struct casync_metric_name *name)
{
	uint16_t count = 0;
	unsigned int i;

	if (id != NULL)
		labels[count++] = METRIC_LABEL("export", id);
	for (i = 0; i < 2 && name->label[i] != NULL; i++)
		labels[count++] = METRIC_LABEL(
			name->label[i], casync_text_or(name->value[i], known));
	return count;
}

/* Those before @p gauges are gauges, the others counters.  Ganesha gives what
 * is registered already. */
static void prometheus_register(struct prometheus_number *numbers,
				const struct casync_metric_name *names,
				unsigned int gauges, unsigned int count,
				const char *id, const char *known)
{
	metric_label_t labels[MAX_LABELS];
	unsigned int i;

	for (i = 0; i < count; i++) {
		const metric_metadata_t metadata =
			METRIC_METADATA(names[i].help, METRIC_UNIT_NONE);
		uint16_t label_count =
			prometheus_fill_labels(labels, id, known, &names[i]);
		const char *name = prometheus_prefixed(names[i].name);

		if (i < gauges)
			numbers[i].gauge = registry.register_gauge(
				name, metadata, labels, label_count);
		else
			numbers[i].counter = registry.register_counter(
				name, metadata, labels, label_count);
		numbers[i].shown = 0;
	}
}

static void prometheus_show(struct prometheus_number *numbers,
			    unsigned int gauges, unsigned int count,
			    const uint64_t *now)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (i < gauges)
			registry.gauge_set(numbers[i].gauge, (int64_t)now[i]);
		else
			registry.counter_inc(
				numbers[i].counter,
				(int64_t)(now[i] - numbers[i].shown));
		numbers[i].shown = now[i];
	}
}

static bool prometheus_available(void)
{
	if (!looked_up) {
		looked_up = true;
		if (!prometheus_find_all()) {
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
		uint16_t count = prometheus_fill_labels(labels, id, NULL, name);

		of->histograms[i] = registry.register_histogram(
			prometheus_prefixed(name->name),
			METRIC_METADATA(name->help, METRIC_UNIT_MICROSECOND),
			labels, count, buckets);
	}
}

static struct casync_prometheus *prometheus_new(uint16_t export_id,
						const char *id)
{
	struct casync_prometheus *of = gsh_calloc(1, sizeof(*of));

	of->export_id = export_id;
	prometheus_register_histograms(of, id);
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
		of = prometheus_new(export_id, id);
	prometheus_register(of->counters, casync_counter_names, 0,
			    CASYNC_COUNTERS, id, client);
	prometheus_register(of->state, casync_state_metric_names,
			    CASYNC_SM_GAUGES, CASYNC_STATE_METRICS, id, client);
	memset(of->shown, 0, sizeof(of->shown));
	of->in_use = true;
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

/* The registry takes one observation at a time.  So each sample of a bucket is
 * observed with the bucket's mean: counts and sums are then the same as here.
 * A sum that is changing may not fit its bucket; the rest is added later. */
static void prometheus_show_bucket(struct casync_prometheus *of, unsigned int h,
				   unsigned int b, uint64_t count,
				   uint64_t sum_us)
{
	uint64_t *shown_us = &of->shown[h].sum_us[b];
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
		uint64_t *shown = &of->shown[h].count[b];

		prometheus_show_bucket(of, h, b, now->count[b] - *shown,
				       now->sum_us[b]);
		*shown = now->count[b];
	}
}

void casync_prometheus_update(struct casync_prometheus *of,
			      const struct casync_view *view)
{
	unsigned int i;

	if (of == NULL)
		return;
	prometheus_show(of->counters, 0, CASYNC_COUNTERS,
			view->totals.counters);
	prometheus_show(of->state, CASYNC_SM_GAUGES, CASYNC_STATE_METRICS,
			view->state);
	for (i = 0; i < CASYNC_HISTOGRAMS; i++)
		prometheus_show_histogram(of, i, &view->totals.histograms[i]);
}

void casync_prometheus_update_process(const struct casync_process_numbers *now,
				      const char *libcephfs)
{
	if (!looked_up || registry.register_counter == NULL)
		return;
	if (!process_is_registered)
		prometheus_register(process, casync_process_metric_names,
				    CASYNC_PM_GAUGES, CASYNC_PROCESS_METRICS,
				    NULL, libcephfs);
	process_is_registered = true;
	prometheus_show(process, CASYNC_PM_GAUGES, CASYNC_PROCESS_METRICS,
			now->of);
}

void casync_prometheus_free(void)
{
	struct casync_prometheus *of;

	while ((of = all) != NULL) {
		all = of->next;
		gsh_free(of);
	}
	looked_up = false;
	process_is_registered = false;
}
