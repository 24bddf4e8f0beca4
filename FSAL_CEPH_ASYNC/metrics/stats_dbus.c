/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdio.h>

#ifdef USE_DBUS
#include <dbus/dbus.h>
#endif

#include "fsal.h"

#include "cache_metrics.h"
#include "publish.h"
#include "stats_dbus.h"
#include "submit.h"

#ifdef USE_DBUS

#define US_PER_MS 1000.0
#define NAME_BYTES 64
#define ROW_TYPE "(stddd)"

struct row {
	const char *name;
	uint64_t count;
	double mean_ms, least_ms, most_ms;
};

static void stats_dbus_append(DBusMessageIter *rows, const struct row *row)
{
	DBusMessageIter to;

	dbus_message_iter_open_container(rows, DBUS_TYPE_STRUCT, NULL, &to);
	dbus_message_iter_append_basic(&to, DBUS_TYPE_STRING, &row->name);
	dbus_message_iter_append_basic(&to, DBUS_TYPE_UINT64, &row->count);
	dbus_message_iter_append_basic(&to, DBUS_TYPE_DOUBLE, &row->mean_ms);
	dbus_message_iter_append_basic(&to, DBUS_TYPE_DOUBLE, &row->least_ms);
	dbus_message_iter_append_basic(&to, DBUS_TYPE_DOUBLE, &row->most_ms);
	dbus_message_iter_close_container(rows, &to);
}

/* The name of an export's row: "export 1 READ total". */
static const char *stats_dbus_name_row(char *name, size_t size,
				       uint16_t export_id, const char *what)
{
	(void)snprintf(name, size, "export %" PRIu16 " %s", export_id, what);
	return name;
}

static void stats_dbus_append_count(DBusMessageIter *rows, uint16_t export_id,
				    const char *what, uint64_t count)
{
	char name[NAME_BYTES];
	const struct row row = {
		.name = stats_dbus_name_row(name, sizeof(name), export_id,
					    what),
		.count = count,
	};

	stats_dbus_append(rows, &row);
}

/* Counters that are 0 are left out, except the requests. */
static void stats_dbus_append_counters(DBusMessageIter *rows,
				       const struct casync_view *view)
{
	unsigned int i;

	for (i = 0; i < CASYNC_COUNTERS; i++) {
		uint64_t count = view->totals.counters[i];

		if (count != 0 || i < CASYNC_C_BYTES)
			stats_dbus_append_count(rows, view->export_id,
						casync_counter_names[i].row,
						count);
	}
}

static void stats_dbus_append_histograms(DBusMessageIter *rows,
					 const struct casync_view *view)
{
	unsigned int i;

	for (i = 0; i < CASYNC_HISTOGRAMS; i++) {
		const struct casync_histogram_shard *of =
			&view->totals.histograms[i];
		char name[NAME_BYTES];
		struct row row = {
			.name = stats_dbus_name_row(
				name, sizeof(name), view->export_id,
				casync_histogram_names[i].row),
			.count = casync_histogram_count(of),
		};

		if (row.count == 0)
			continue;
		row.mean_ms = (double)casync_histogram_sum_us(of) /
			      (double)row.count / US_PER_MS;
		if (of->min_us_and_1 != 0)
			row.least_ms =
				(double)(of->min_us_and_1 - 1) / US_PER_MS;
		row.most_ms = (double)of->max_us / US_PER_MS;
		stats_dbus_append(rows, &row);
	}
}

/* What is 0 is left out, except the state. */
static void stats_dbus_append_session(DBusMessageIter *rows,
				      const struct casync_view *view)
{
	const struct casync_session_counts *counts = &view->session_counts;

	stats_dbus_append_count(rows, view->export_id, "session state",
				view->session);
	if (counts->reconnects != 0)
		stats_dbus_append_count(rows, view->export_id, "reconnects",
					counts->reconnects);
	if (view->reconnect_ms != 0)
		stats_dbus_append_count(rows, view->export_id, "reconnect ms",
					view->reconnect_ms);
	if (counts->locks_lost != 0)
		stats_dbus_append_count(rows, view->export_id, "locks lost",
					counts->locks_lost);
}

static void stats_dbus_append_view(const struct casync_view *view, void *arg)
{
	stats_dbus_append_counters(arg, view);
	stats_dbus_append_histograms(arg, view);
	stats_dbus_append_count(arg, view->export_id, "in flight",
				view->inflight.ops);
	stats_dbus_append_count(arg, view->export_id, "in flight peak",
				view->inflight.peak_ops);
	stats_dbus_append_count(arg, view->export_id, "waiting",
				view->inflight.waiting);
	stats_dbus_append_session(arg, view);
}

/* All of it, what is 0 too. */
static void stats_dbus_append_cache(DBusMessageIter *rows)
{
	struct casync_cache_numbers numbers;
	unsigned int i;

	casync_publish_cache(&numbers);
	for (i = 0; i < CASYNC_CACHE_METRICS; i++) {
		const struct row row = {
			.name = casync_cache_metric_names[i].row,
			.count = numbers.of[i],
		};

		stats_dbus_append(rows, &row);
	}
}

static void stats_dbus_extract(struct fsal_module *const fsal, void *iter)
{
	const struct row duplicates = {
		.name = "duplicate completions",
		.count = casync_duplicates_count(),
	};
	DBusMessageIter rows;
	const char *text = fsal->name;

	dbus_message_iter_append_basic(iter, DBUS_TYPE_STRING, &text);
	dbus_message_iter_open_container(iter, DBUS_TYPE_ARRAY, ROW_TYPE,
					 &rows);
	stats_dbus_append(&rows, &duplicates);
	stats_dbus_append_cache(&rows);
	casync_publish_visit(stats_dbus_append_view, &rows);
	dbus_message_iter_close_container(iter, &rows);
	text = "OK";
	dbus_message_iter_append_basic(iter, DBUS_TYPE_STRING, &text);
}

static void stats_dbus_reset(struct fsal_module *const fsal)
{
	(void)fsal;
	casync_publish_reset();
}

void casync_stats_dbus_init(struct fsal_module *fsal)
{
	/* Ganesha asks only an FSAL whose `stats` is set; we write the rows. */
	static struct fsal_stats some;

	fsal->stats = &some;
	fsal->m_ops.fsal_extract_stats = stats_dbus_extract;
	fsal->m_ops.fsal_reset_stats = stats_dbus_reset;
}

#else

void casync_stats_dbus_init(struct fsal_module *fsal)
{
	(void)fsal;
}

#endif
