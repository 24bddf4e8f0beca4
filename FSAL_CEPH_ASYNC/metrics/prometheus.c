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

/* The registered metrics of an export id, or of the process. */
struct casync_prometheus {
	struct casync_prometheus *next;
	uint16_t export_id;
	bool in_use;
	union {
		gauge_metric_handle_t gauge;
		counter_metric_handle_t counter;
		histogram_metric_handle_t histogram;
	} handles[CASYNC_METRICS];
	/* The registry has these already, of the current export. */
	struct casync_view shown;
};

static struct casync_prometheus *all;
static struct casync_prometheus process;

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

static bool prometheus_find(void *to, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	memcpy(to, &found, sizeof(found));
	return found != NULL;
}

#define FIND(name) prometheus_find(&registry.name, "monitoring__" #name)

static bool prometheus_find_all(void)
{
	return FIND(register_counter) && FIND(register_gauge) &&
	       FIND(register_histogram) && FIND(counter_inc) &&
	       FIND(gauge_set) && FIND(histogram_observe);
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
				       const struct casync_metric_row *row)
{
	uint16_t count = 0;
	unsigned int i;

	if (id != NULL)
		labels[count++] = METRIC_LABEL("export", id);
	for (i = 0; i < 2 && row->label[i] != NULL; i++)
		labels[count++] = METRIC_LABEL(
			row->label[i], casync_text_or(row->value[i], known));
	return count;
}

static histogram_metric_handle_t
prometheus_register_histogram(const char *name, const char *help,
			      const metric_label_t *labels, uint16_t count)
{
	int64_t bounds[CASYNC_BUCKETS - 1];
	histogram_buckets_t buckets = {bounds, CASYNC_BUCKETS - 1};
	unsigned int i;

	for (i = 0; i < CASYNC_BUCKETS - 1; i++)
		bounds[i] = (int64_t)casync_metrics_bucket_us(i);
	return registry.register_histogram(
		name, METRIC_METADATA(help, METRIC_UNIT_MICROSECOND), labels,
		count, buckets);
}

static void prometheus_register_row(struct casync_prometheus *of,
				    unsigned int i, const char *id,
				    const char *known)
{
	const struct casync_metric_row *row = &casync_metrics_rows[i];
	const metric_metadata_t metadata =
		METRIC_METADATA(row->help, METRIC_UNIT_NONE);
	const char *name = prometheus_prefixed(row->name);
	metric_label_t labels[MAX_LABELS];
	uint16_t count = prometheus_fill_labels(labels, id, known, row);

	if (row->kind == CASYNC_METRIC_HISTOGRAM)
		of->handles[i].histogram = prometheus_register_histogram(
			name, row->help, labels, count);
	else if (row->kind == CASYNC_METRIC_COUNTER)
		of->handles[i].counter = registry.register_counter(
			name, metadata, labels, count);
	else
		of->handles[i].gauge =
			registry.register_gauge(name, metadata, labels, count);
}

/* Ganesha gives what is registered already. */
static void prometheus_register(struct casync_prometheus *of, unsigned int row,
				unsigned int end, const char *id,
				const char *known)
{
	for (; row < end; row++)
		prometheus_register_row(of, row, id, known);
	memset(&of->shown, 0, sizeof(of->shown));
	of->in_use = true;
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

struct casync_prometheus *casync_prometheus_get(uint16_t export_id,
						const char *client)
{
	struct casync_prometheus *of;
	char id[8];

	if (!prometheus_available())
		return NULL;
	for (of = all; of != NULL && of->export_id != export_id; of = of->next)
		;
	if (of == NULL) {
		of = gsh_calloc(1, sizeof(*of));
		of->export_id = export_id;
		of->next = all;
		all = of;
	}
	if (of->in_use)
		return NULL;
	(void)snprintf(id, sizeof(id), "%" PRIu16, export_id);
	prometheus_register(of, CASYNC_PROCESS_METRICS, CASYNC_METRICS, id,
			    client);
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
	uint64_t *shown_us = &of->shown.histograms[h].sum_us[b];
	uint64_t least = b == 0 ? 0 : casync_metrics_bucket_us(b - 1) + 1;
	uint64_t most = b == CASYNC_BUCKETS - 1 ? INT64_MAX
						: casync_metrics_bucket_us(b);

	for (; count != 0; count--) {
		uint64_t left_us = sum_us > *shown_us ? sum_us - *shown_us : 0;
		uint64_t us = prometheus_clamp(left_us / count, least, most);

		registry.histogram_observe(
			of->handles[CASYNC_NUMBERS + h].histogram, (int64_t)us);
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

static void prometheus_show(struct casync_prometheus *of,
			    const struct casync_view *view, unsigned int row,
			    unsigned int end)
{
	for (; row < end; row++) {
		if (casync_metrics_rows[row].kind == CASYNC_METRIC_COUNTER)
			registry.counter_inc(of->handles[row].counter,
					     (int64_t)(view->numbers[row] -
						       of->shown.numbers[row]));
		else
			registry.gauge_set(of->handles[row].gauge,
					   (int64_t)view->numbers[row]);
		of->shown.numbers[row] = view->numbers[row];
	}
}

void casync_prometheus_update(struct casync_prometheus *of,
			      const struct casync_view *view)
{
	unsigned int i;

	if (of == NULL)
		return;
	prometheus_show(of, view, CASYNC_PROCESS_METRICS, CASYNC_NUMBERS);
	for (i = 0; i < CASYNC_HISTOGRAMS; i++)
		prometheus_show_histogram(of, i, &view->histograms[i]);
}

void casync_prometheus_update_process(const struct casync_view *view,
				      const char *libcephfs)
{
	if (!looked_up || registry.register_counter == NULL)
		return;
	if (!process.in_use)
		prometheus_register(&process, 0, CASYNC_PROCESS_METRICS, NULL,
				    libcephfs);
	prometheus_show(&process, view, 0, CASYNC_PROCESS_METRICS);
}

void casync_prometheus_free(void)
{
	struct casync_prometheus *of;

	while ((of = all) != NULL) {
		all = of->next;
		gsh_free(of);
	}
	looked_up = false;
	process.in_use = false;
}
