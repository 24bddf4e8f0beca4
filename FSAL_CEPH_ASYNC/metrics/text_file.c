/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "fsal.h"

#include "publish.h"
#include "text.h"

/* The values of labels: of an export's metrics, or without id of the
 * process'. */
struct owner {
	const char *id;
	const char *known; /* The value that the table does not have. */
};

static void text_file_label(FILE *out, bool *first, const char *name,
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
static void text_file_sample(FILE *out, const struct casync_metric_name *name,
			     const char *suffix, const struct owner *owner,
			     const char *le, uint64_t value)
{
	bool first = true;
	unsigned int i;

	(void)fprintf(out, "ceph_async__%s%s", name->name, suffix);
	if (owner->id != NULL)
		text_file_label(out, &first, "export", owner->id);
	for (i = 0; i < 2 && name->label[i] != NULL; i++)
		text_file_label(out, &first, name->label[i],
				casync_text_or(name->value[i], owner->known));
	if (le != NULL)
		text_file_label(out, &first, "le", le);
	(void)fprintf(out, "%s %" PRIu64 "\n", first ? "" : "}", value);
}

static void text_file_histogram(FILE *out,
				const struct casync_metric_name *name,
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
		text_file_sample(out, name, "_bucket", owner,
				 i == CASYNC_BUCKETS - 1 ? "+Inf" : le, count);
	}
	text_file_sample(out, name, "_sum", owner, NULL,
			 casync_metrics_histogram_sum_us(of));
	text_file_sample(out, name, "_count", owner, NULL, count);
}

/* The head of a family, and the end of its rows: they have one name. */
static unsigned int text_file_family(FILE *out, const char *type,
				     const struct casync_metric_name *names,
				     unsigned int row, unsigned int count)
{
	const char *name = names[row].name;

	(void)fprintf(out,
		      "# HELP ceph_async__%s %s\n# TYPE ceph_async__%s %s\n",
		      name, names[row].help, name, type);
	do {
		row++;
	} while (row < count && strcmp(names[row].name, name) == 0);
	return row;
}

/* Is there an older export with this id, which ends? */
static bool text_file_is_hidden(const struct glist_head *exports,
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

/* Write the samples of an export's rows from @p row to @p end. */
typedef void rows_t(FILE *out, const struct owner *owner,
		    const struct casync_view *now, unsigned int row,
		    unsigned int end);

static void text_file_counters(FILE *out, const struct owner *owner,
			       const struct casync_view *now, unsigned int row,
			       unsigned int end)
{
	for (; row < end; row++)
		text_file_sample(out, &casync_counter_names[row], "", owner,
				 NULL, now->totals.counters[row]);
}

static void text_file_state(FILE *out, const struct owner *owner,
			    const struct casync_view *now, unsigned int row,
			    unsigned int end)
{
	for (; row < end; row++)
		text_file_sample(out, &casync_state_metric_names[row], "",
				 owner, NULL, now->state[row]);
}

static void text_file_histograms(FILE *out, const struct owner *owner,
				 const struct casync_view *now,
				 unsigned int row, unsigned int end)
{
	for (; row < end; row++)
		text_file_histogram(out, &casync_histogram_names[row], owner,
				    &now->totals.histograms[row]);
}

/* One export after the other: a family's samples stand together. */
static void text_file_of_exports(FILE *out, const struct glist_head *exports,
				 rows_t *rows, unsigned int row,
				 unsigned int end)
{
	const struct casync_published *entry;
	struct glist_head *node;
	struct owner owner;
	char id[8];

	glist_for_each(node, exports) {
		entry = glist_entry(node, struct casync_published, link);
		if (text_file_is_hidden(exports, entry))
			continue;
		(void)snprintf(id, sizeof(id), "%" PRIu16, entry->of.export_id);
		owner = (struct owner){id, entry->of.session->client};
		rows(out, &owner, &entry->now, row, end);
	}
}

static void text_file_all_exports(FILE *out, const struct glist_head *exports)
{
	unsigned int row, end;

	for (row = 0; row < CASYNC_COUNTERS; row = end) {
		end = text_file_family(out, "counter", casync_counter_names,
				       row, CASYNC_COUNTERS);
		text_file_of_exports(out, exports, text_file_counters, row,
				     end);
	}
	for (row = 0; row < CASYNC_STATE_METRICS; row = end) {
		end = text_file_family(
			out, row < CASYNC_SM_GAUGES ? "gauge" : "counter",
			casync_state_metric_names, row, CASYNC_STATE_METRICS);
		text_file_of_exports(out, exports, text_file_state, row, end);
	}
	for (row = 0; row < CASYNC_HISTOGRAMS; row = end) {
		end = text_file_family(out, "histogram", casync_histogram_names,
				       row, CASYNC_HISTOGRAMS);
		text_file_of_exports(out, exports, text_file_histograms, row,
				     end);
	}
}

char *casync_text_file_format(const struct glist_head *exports,
			      const struct casync_process_numbers *process,
			      const char *libcephfs, size_t *bytes)
{
	const struct owner owner = {NULL, libcephfs};
	unsigned int row, end;
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (out == NULL)
		return NULL;
	for (row = 0; row < CASYNC_PROCESS_METRICS;) {
		end = text_file_family(
			out, row < CASYNC_PM_GAUGES ? "gauge" : "counter",
			casync_process_metric_names, row,
			CASYNC_PROCESS_METRICS);
		for (; row < end; row++)
			text_file_sample(out, &casync_process_metric_names[row],
					 "", &owner, NULL, process->of[row]);
	}
	text_file_all_exports(out, exports);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int text_file_fill(int fd, const char *text, size_t bytes)
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
static int text_file_replace(const char *path, const char *text, size_t bytes)
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
	rc = text_file_fill(fd, text, bytes);
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(next, path) != 0)
		rc = -errno;
	if (rc != 0)
		(void)unlink(next);
	return rc;
}

void casync_text_file_write(const char *path, const char *text, size_t bytes)
{
	static int last; /* one writer at a time */
	int rc = text_file_replace(path, text, bytes);

	if (rc != 0 && rc != last)
		LogWarn(COMPONENT_FSAL,
			"Metrics_File = %s: cannot be written: %s; it has old numbers, or is not there, until that is repaired",
			path, strerror(-rc));
	else if (rc == 0 && last != 0)
		LogEvent(COMPONENT_FSAL, "Metrics_File = %s: is written again",
			 path);
	last = rc;
}
