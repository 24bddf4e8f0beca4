/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fsal.h"

#include "metrics_text.h"
#include "publish.h"
#include "text.h"

/* --- the line of the log */

/* A row that is not 0, behind the name of its family. */
static void metrics_text_say(FILE *out, const struct casync_view *view,
			     unsigned int i, const char **family)
{
	const struct casync_metric_row *row = &casync_metrics_rows[i];
	const struct casync_histogram_shard *times =
		casync_metrics_histogram(view, i);
	uint64_t number = times == NULL ? view->numbers[i]
					: casync_metrics_histogram_count(times);
	unsigned int l;

	if (number == 0 || row->kind == CASYNC_METRIC_TWIN)
		return;
	if (casync_text_same(row->name, *family))
		(void)fputc(',', out);
	else
		(void)fprintf(out, "%s %s", *family == NULL ? "" : ";",
			      row->name);
	*family = row->name;
	for (l = 0; l < 2 && row->value[l] != NULL; l++)
		(void)fprintf(out, " %s", row->value[l]);
	(void)fprintf(out, " %" PRIu64, number);
	if (times != NULL)
		(void)fprintf(
			out, " mean %" PRIu64 " p99 %" PRIu64,
			casync_metrics_histogram_sum_us(times) / number,
			casync_metrics_histogram_percentile_us(times, 99));
}

const char *casync_metrics_text_line(const struct casync_view *view,
				     uint64_t seconds, char *line, size_t size)
{
	const char *family = NULL;
	unsigned int i;
	FILE *out;

	line[0] = '\0';
	out = fmemopen(line, size, "w");
	if (out == NULL)
		return line;
	(void)fprintf(out, "%" PRIu64 " s:", seconds);
	for (i = CASYNC_PROCESS_METRICS; i < CASYNC_METRICS; i++)
		metrics_text_say(out, view, i, &family);
	/* Without what is always 1. */
	for (i = CASYNC_PM_BUDGET_BYTES; i < CASYNC_PROCESS_METRICS; i++)
		metrics_text_say(out, view, i, &family);
	(void)fclose(out);
	/* A line that is cut off may end without it. */
	line[size - 1] = '\0';
	return line;
}

/* --- the file */

/* An export, or without id the process. */
struct owner {
	const char *id;
	const char *known; /* The value that the table does not have. */
	const struct casync_view *now;
};

static void metrics_text_label(FILE *out, bool *first, const char *name,
			       const char *value)
{
	(void)fprintf(out, "%c%s=\"", *first ? '{' : ',', name);
	*first = false;
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			(void)fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			(void)fprintf(out, "\\%c", *value);
		else
			(void)fputc(*value, out);
	}
	(void)fputc('"', out);
}

/* One line: the name with @p suffix, the labels with "le" last, the value. */
static void metrics_text_sample(FILE *out, const struct casync_metric_row *row,
				const char *suffix, const struct owner *owner,
				const char *le, uint64_t value)
{
	bool first = true;
	unsigned int i;

	(void)fprintf(out, "ceph_async__%s%s", row->name, suffix);
	if (owner->id != NULL)
		metrics_text_label(out, &first, "export", owner->id);
	for (i = 0; i < 2 && row->label[i] != NULL; i++)
		metrics_text_label(out, &first, row->label[i],
				   casync_text_or(row->value[i], owner->known));
	if (le != NULL)
		metrics_text_label(out, &first, "le", le);
	(void)fprintf(out, "%s %" PRIu64 "\n", first ? "" : "}", value);
}

static void metrics_text_histogram(FILE *out,
				   const struct casync_metric_row *row,
				   const struct owner *owner,
				   const struct casync_histogram_shard *of)
{
	uint64_t count = 0;
	unsigned int i;
	char le[24];

	for (i = 0; i < CASYNC_BUCKETS; i++) {
		count += of->count[i];
		(void)snprintf(le, sizeof(le), "%" PRIu64,
			       casync_metrics_bucket_us(i));
		metrics_text_sample(out, row, "_bucket", owner,
				    i == CASYNC_BUCKETS - 1 ? "+Inf" : le,
				    count);
	}
	metrics_text_sample(out, row, "_sum", owner, NULL,
			    casync_metrics_histogram_sum_us(of));
	metrics_text_sample(out, row, "_count", owner, NULL, count);
}

/* The head of a family, and the end of its rows: they have one name. */
static unsigned int metrics_text_family(FILE *out, unsigned int row)
{
	static const char *const types[] = {
		[CASYNC_METRIC_COUNTER] = "counter",
		[CASYNC_METRIC_GAUGE] = "gauge",
		[CASYNC_METRIC_TWIN] = "gauge",
		[CASYNC_METRIC_HISTOGRAM] = "histogram",
	};
	const struct casync_metric_row *first = &casync_metrics_rows[row];

	(void)fprintf(
		out, "# HELP ceph_async__%s %s\n# TYPE ceph_async__%s %s\n",
		first->name, first->help, first->name, types[first->kind]);
	do {
		row++;
	} while (row < CASYNC_METRICS &&
		 strcmp(casync_metrics_rows[row].name, first->name) == 0);
	return row;
}

static void metrics_text_samples(FILE *out, const struct owner *owner,
				 unsigned int row, unsigned int end)
{
	const struct casync_histogram_shard *times;

	for (; row < end; row++) {
		times = casync_metrics_histogram(owner->now, row);
		if (times != NULL)
			metrics_text_histogram(out, &casync_metrics_rows[row],
					       owner, times);
		else
			metrics_text_sample(out, &casync_metrics_rows[row], "",
					    owner, NULL,
					    owner->now->numbers[row]);
	}
}

/* Is there an older export with this id, which ends? */
static bool metrics_text_is_hidden(const struct glist_head *exports,
				   const struct casync_published *entry)
{
	const struct casync_published *other;
	struct glist_head *node;

	glist_for_each(node, exports) {
		other = glist_entry(node, struct casync_published, link);
		if (other == entry)
			return false;
		if (other->of.export_id == entry->of.export_id)
			return true;
	}
	return false;
}

/* One export after the other: a family's samples stand together. */
static void metrics_text_of_exports(FILE *out, const struct glist_head *exports,
				    unsigned int row, unsigned int end)
{
	const struct casync_published *entry;
	struct glist_head *node;
	struct owner owner;
	char id[8];

	glist_for_each(node, exports) {
		entry = glist_entry(node, struct casync_published, link);
		if (metrics_text_is_hidden(exports, entry))
			continue;
		(void)snprintf(id, sizeof(id), "%" PRIu16, entry->of.export_id);
		owner = (struct owner){id, entry->of.session->client,
				       &entry->now};
		metrics_text_samples(out, &owner, row, end);
	}
}

char *casync_metrics_text_file(const struct glist_head *exports,
			       const struct casync_view *process,
			       const char *libcephfs, size_t *bytes)
{
	const struct owner owner = {NULL, libcephfs, process};
	unsigned int row, end;
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (out == NULL)
		return NULL;
	for (row = 0; row < CASYNC_METRICS; row = end) {
		end = metrics_text_family(out, row);
		if (row < CASYNC_PROCESS_METRICS)
			metrics_text_samples(out, &owner, row, end);
		else
			metrics_text_of_exports(out, exports, row, end);
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int metrics_text_fill(int fd, const char *text, size_t bytes)
{
	ssize_t done;

	while (bytes > 0) {
		done = write(fd, text, bytes);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			text += done;
			bytes -= (size_t)done;
		}
	}
	return 0;
}

/* A reader sees the old file or the new one.  Without fsync: after a crash of
 * the host the next second writes it anew. */
static int metrics_text_replace(const char *path, const char *text,
				size_t bytes)
{
	char next[PATH_MAX];
	int fd, rc;

	if (text == NULL)
		return -ENOMEM;
	if (snprintf(next, sizeof(next), "%s.new", path) >= (int)sizeof(next))
		return -ENAMETOOLONG;
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		  0644);
	if (fd < 0)
		return -errno;
	rc = metrics_text_fill(fd, text, bytes);
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(next, path) != 0)
		rc = -errno;
	if (rc != 0)
		(void)unlink(next);
	return rc;
}

void casync_metrics_text_write(const char *path, const char *text, size_t bytes)
{
	static int last; /* one writer at a time */
	int rc = metrics_text_replace(path, text, bytes);

	if (rc != 0 && rc != last)
		LogWarn(COMPONENT_FSAL,
			"Metrics_File = %s: cannot be written: %s; it has old numbers, or is not there, until that is repaired",
			path, strerror(-rc));
	else if (rc == 0 && last != 0)
		LogEvent(COMPONENT_FSAL, "Metrics_File = %s: is written again",
			 path);
	last = rc;
}
