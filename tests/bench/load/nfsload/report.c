/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>

#include <hdr/hdr_histogram.h>
#include <json-c/json.h>

#include "report.h"

static const char *const op_names[KINDS] = {"read", "write", "getattr",
					    "create"};

static void put(struct json_object *to, const char *key,
		struct json_object *value)
{
	(void)json_object_object_add(to, key, value);
}

static struct json_object *number(double value)
{
	char text[32];

	/* Three digits behind the point will do, and read well. */
	(void)snprintf(text, sizeof(text), "%.3f", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *count(uint64_t value)
{
	return json_object_new_int64((int64_t)value);
}

static struct json_object *latency(const struct hdr_histogram *histogram)
{
	static const struct {
		const char *name;
		double percentile;
	} wanted[] = {{"p50", 50},
		      {"p90", 90},
		      {"p99", 99},
		      {"p99.9", 99.9},
		      {"max", 100}};
	struct json_object *out = json_object_new_object();
	size_t i;

	if (histogram->total_count == 0)
		return out;
	put(out, "min", json_object_new_int64(hdr_min(histogram)));
	put(out, "mean", number(hdr_mean(histogram)));
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		put(out, wanted[i].name,
		    json_object_new_int64(hdr_value_at_percentile(
			    histogram, wanted[i].percentile)));
	return out;
}

static struct json_object *errors(const struct tally *tally)
{
	struct json_object *out = json_object_new_object();
	int i;

	for (i = 0; i < MOST_ERROR_NAMES && tally->errors[i].name != NULL; i++)
		put(out, tally->errors[i].name, count(tally->errors[i].count));
	return out;
}

static struct json_object *outcome(const struct tally *tally, double seconds)
{
	struct json_object *out = json_object_new_object();
	uint64_t answers = (uint64_t)tally->latency_us->total_count;

	put(out, "answered", count(answers));
	put(out, "failed", count(tally->failed));
	put(out, "lost", count(tally->lost));
	put(out, "errors", errors(tally));
	if (seconds > 0) {
		put(out, "per_s", number((double)answers / seconds));
		put(out, "mib_per_s",
		    number((double)tally->bytes / seconds / (1 << 20)));
	}
	put(out, "latency_us", latency(tally->latency_us));
	return out;
}

static void say(const char *name, const struct tally *tally, double seconds)
{
	const struct hdr_histogram *latency_us = tally->latency_us;

	fprintf(stderr,
		"nfsload: %s: %.0f/s, %.1f MiB/s, ms p50 %.2f p90 %.2f "
		"p99 %.2f max %.2f, failed %llu, lost %llu\n",
		name, (double)latency_us->total_count / seconds,
		(double)tally->bytes / seconds / (1 << 20),
		(double)hdr_value_at_percentile(latency_us, 50) / 1000,
		(double)hdr_value_at_percentile(latency_us, 90) / 1000,
		(double)hdr_value_at_percentile(latency_us, 99) / 1000,
		(double)hdr_max(latency_us) / 1000,
		(unsigned long long)tally->failed,
		(unsigned long long)tally->lost);
}

static struct json_object *probed(const struct probe *probe, double seconds)
{
	struct json_object *out = outcome(&probe->tally, 0);

	put(out, "interval_ms", number(probe->options->probe_ms));
	put(out, "corrected_latency_us", latency(probe->corrected.latency_us));
	say("probe", &probe->tally, seconds);
	return out;
}

static bool write_out(struct json_object *out)
{
	bool good = printf("%s\n", json_object_to_json_string_ext(
					   out, JSON_C_TO_STRING_PRETTY)) > 0 &&
		    fflush(stdout) == 0;

	if (!good)
		perror("nfsload: writing the result");
	return good;
}

bool report_write(const struct load *load, const struct probe *probe)
{
	const struct options *options = load->options;
	struct json_object *out = json_object_new_object();
	struct json_object *ops = json_object_new_object();
	bool good;
	int kind;

	put(out, "seconds", number(load->measured_s));
	put(out, "sent", count(load->sent));
	for (kind = 0; kind < KINDS; kind++) {
		if (options->percent[kind] == 0)
			continue;
		put(ops, op_names[kind],
		    outcome(&load->tally[kind], load->measured_s));
		say(op_names[kind], &load->tally[kind], load->measured_s);
	}
	put(out, "ops", ops);
	if (probe != NULL)
		put(out, "probe", probed(probe, load->measured_s));

	good = write_out(out);
	json_object_put(out);
	return good;
}
