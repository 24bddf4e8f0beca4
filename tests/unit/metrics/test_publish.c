/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What the outputs show.  The registry of Ganesha's monitoring is here, in
 * the test program, which exports it as libntirpcmonitoring does.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "nfs_core.h"

#include "ganesha.h"

#include "cache_rig.h"
#include "clock.h"
#include "metrics_text.h"
#include "prometheus.h"
#include "publish.h"
#include "pin.h"
#include "stub_log.h"
#include "submit.h"
#include "tuning.h"
#include "lane.h"

#define NS_PER_US 1000
#define INTERVAL_S 10
#define SERIES 512
#define NAME_BYTES 160

/* --- Ganesha */

nfs_parameter_t nfs_param;

/* The last line. */
static char logged[CASYNC_METRICS_TEXT_LINE_BYTES];

void stub_log_line(log_levels_t level, const char *text)
{
	(void)snprintf(logged, sizeof(logged), "%s", text);
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	*major = 20;
	*minor = 2;
	*patch = 4;
	return "20.2.4";
}

static uint64_t duplicates;

uint64_t casync_submit_duplicates(void)
{
	return duplicates;
}

/* Only a disk that hangs has it called. */
void casync_pin_module(void)
{
	fail();
}

/* The job of the file runs at once. */
static struct casync_lane disk;

struct casync_lane *casync_lane_of_process(enum casync_process_lane which)
{
	assert_int_equal(which, CASYNC_LANE_DISK);
	return &disk;
}

void casync_lane_submit(struct casync_lane *lane, struct casync_work *work)
{
	assert_ptr_equal(lane, &disk);
	work->run(work);
}

/* --- its monitoring */

struct series {
	char name[NAME_BYTES]; /* name{label=value,…} */
	char kind;
	int64_t value; /* of a histogram: the sum */
	int64_t count;
	int64_t bounds[CASYNC_BUCKETS];
	uint16_t bound_count;
	int64_t buckets[CASYNC_BUCKETS];
};

static struct series series[SERIES];
static unsigned int series_count;

static struct series *add(char kind, const char *name,
			  const metric_label_t *labels, uint16_t label_count)
{
	struct series *found = &series[series_count];
	int used = snprintf(found->name, NAME_BYTES, "%s{", name);
	unsigned int i;

	for (i = 0; i < label_count; i++)
		used += snprintf(found->name + used,
				 (size_t)(NAME_BYTES - used), "%s%s=%s",
				 i == 0 ? "" : ",", labels[i].key,
				 labels[i].value);
	(void)snprintf(found->name + used, (size_t)(NAME_BYTES - used), "}");
	/* As the real one: what is there already is returned. */
	for (i = 0; i < series_count; i++) {
		if (strcmp(series[i].name, found->name) == 0)
			return &series[i];
	}
	series_count++;
	assert_true(series_count < SERIES);
	found->kind = kind;
	return found;
}

counter_metric_handle_t
monitoring__register_counter(const char *name, metric_metadata_t metadata,
			     const metric_label_t *labels, uint16_t num_labels)
{
	counter_metric_handle_t handle = {add('c', name, labels, num_labels)};

	assert_non_null(metadata.description);
	return handle;
}

gauge_metric_handle_t monitoring__register_gauge(const char *name,
						 metric_metadata_t metadata,
						 const metric_label_t *labels,
						 uint16_t num_labels)
{
	gauge_metric_handle_t handle = {add('g', name, labels, num_labels)};

	assert_non_null(metadata.description);
	return handle;
}

histogram_metric_handle_t
monitoring__register_histogram(const char *name, metric_metadata_t metadata,
			       const metric_label_t *labels,
			       uint16_t num_labels, histogram_buckets_t buckets)
{
	histogram_metric_handle_t handle = {add('h', name, labels, num_labels)};
	struct series *new = handle.metric;

	assert_string_equal(metadata.unit, "us");
	assert_int_equal(buckets.count, CASYNC_BUCKETS - 1);
	memcpy(new->bounds, buckets.buckets,
	       buckets.count * sizeof(buckets.buckets[0]));
	new->bound_count = buckets.count;
	return handle;
}

void monitoring__counter_inc(counter_metric_handle_t handle, int64_t val)
{
	struct series *to = handle.metric;

	assert_int_equal(to->kind, 'c');
	assert_true(val >= 0);
	to->value += val;
}

void monitoring__gauge_set(gauge_metric_handle_t handle, int64_t val)
{
	struct series *to = handle.metric;

	assert_int_equal(to->kind, 'g');
	to->value = val;
}

void monitoring__histogram_observe(histogram_metric_handle_t handle,
				   int64_t val)
{
	struct series *to = handle.metric;
	unsigned int i;

	assert_int_equal(to->kind, 'h');
	for (i = 0; i < to->bound_count && to->bounds[i] < val; i++)
		;
	to->buckets[i]++;
	to->count++;
	to->value += val;
}

static struct series *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < series_count; i++) {
		if (strcmp(series[i].name, name) == 0)
			return &series[i];
	}
	fail_msg("no series %s", name);
	return NULL;
}

static int64_t value_of(const char *name)
{
	return find(name)->value;
}

/* --- exports */

/* What is shown of an export. */
struct shown {
	uint16_t id;
	struct casync_metrics metrics;
	struct casync_inflight inflight;
	struct casync_guard *guard;
	struct casync_session *session;
	struct casync_tuning tuning;
	struct casync_published *entry;
};

static struct shown *exp;
static struct casync_guard guard;
static struct casync_session session;
static struct casync_budget_mount callers;

static struct shown *new_export(uint16_t id)
{
	struct shown *new = calloc(1, sizeof(*new));

	assert_non_null(new);
	new->id = id;
	new->guard = &guard;
	new->session = &session;
	casync_inflight_init(&new->inflight, 100, 1U << 30);
	return new;
}

static void publish(struct shown *shown)
{
	const struct casync_publish_source source = {
		.export_id = shown->id,
		.metrics = &shown->metrics,
		.inflight = &shown->inflight,
		.guard = shown->guard,
		.session = shown->session,
		.callers_age = &callers.age,
		.tuning = &shown->tuning,
	};

	shown->entry = casync_publish_add(&source);
}

static void unpublish(struct shown *shown)
{
	casync_publish_remove(shown->entry);
	shown->entry = NULL;
}

static void free_export(struct shown *old)
{
	unpublish(old);
	casync_inflight_destroy(&old->inflight);
	free(old);
}

static int up(void **state)
{
	memset(series, 0, sizeof(series));
	series_count = 0;
	duplicates = 0;
	guard = (struct casync_guard){0};
	session = (struct casync_session){.client = "admin@fs:/"};
	exp = new_export(7);
	publish(exp);
	return 0;
}

static int down(void **state)
{
	free_export(exp);
	casync_prometheus_free();
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static struct casync_metrics_shard *here(void)
{
	return casync_metrics_shard(&exp->metrics);
}

/* What the clock has been set forward by, instead of waiting. */
static uint64_t forward_ns;

/* A second after the last one at the latest a tick is due. */
static void tick(void)
{
	unsigned int i;

	for (i = 0; i < 11; i++) {
		casync_publish_tick();
		forward_ns += 110 * CASYNC_NS_PER_MS;
	}
}

static const char read_total[] =
	"ceph_async__latency_us{export=7,op=read,stage=total}";

CASE(counters_are_added)
{
	casync_metrics_count(here(), CASYNC_C_BYTES + CASYNC_METRIC_WRITE,
			     4096);
	casync_metrics_count_answer(here(), CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_DELAY, 0));
	duplicates = 2;
	unpublish(exp);
	assert_int_equal(value_of("ceph_async__bytes_total{export=7,op=write}"),
			 4096);
	assert_int_equal(
		value_of("ceph_async__requests_total{export=7,op=write}"), 1);
	assert_int_equal(value_of("ceph_async__errors_total{export=7,op=write,"
				  "class=delay}"),
			 1);
	assert_int_equal(value_of("ceph_async__bytes_total{export=7,op=read}"),
			 0);
	assert_int_equal(value_of("ceph_async__duplicate_completions_total{}"),
			 2);
	assert_int_equal(
		value_of("ceph_async__build_info{version=" CASYNC_VERSION
			 ",libcephfs=20.2.4}"),
		1);
}

/* Counts and sums as they are, each in its bucket. */
CASE(histograms_are_exact)
{
	static const uint64_t us[] = {1,  3,   8,   9,	 15,	16,
				      17, 100, 127, 128, 20000, 30000000};
	const struct series *shown;
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
		casync_metrics_observe(here(),
				       CASYNC_H_STAGES + CASYNC_STAGE_TOTAL,
				       us[i] * NS_PER_US);
		sum += (int64_t)us[i];
	}
	unpublish(exp);
	shown = find(read_total);
	assert_int_equal(shown->count, sizeof(us) / sizeof(us[0]));
	assert_int_equal(shown->value, sum);
	assert_int_equal(shown->buckets[0], 3);
	assert_int_equal(shown->buckets[1], 3);
	assert_int_equal(shown->buckets[2], 1);
	assert_int_equal(shown->buckets[casync_metrics_bucket(128)], 3);
	assert_int_equal(shown->buckets[casync_metrics_bucket(20000)], 1);
	assert_int_equal(shown->buckets[CASYNC_BUCKETS - 1], 1);
}

/* An export that goes and comes back continues its series. */
CASE(counters_never_go_down)
{
	casync_metrics_count(here(), CASYNC_C_SLOW, 5);
	free_export(exp);
	exp = new_export(7);
	publish(exp);
	casync_metrics_count(here(), CASYNC_C_SLOW, 1);
	unpublish(exp);
	assert_int_equal(value_of("ceph_async__slow_requests_total{export=7}"),
			 6);
}

/* As when an update of the configuration puts one in another's place. */
CASE(successor_waits_for_its_predecessor)
{
	struct shown *next = new_export(7);

	publish(next);
	casync_metrics_count(casync_metrics_shard(&next->metrics),
			     CASYNC_C_SLOW, 3);
	assert_null(next->entry->prometheus);
	unpublish(exp);
	tick();
	assert_non_null(next->entry->prometheus);
	assert_int_equal(value_of("ceph_async__slow_requests_total{export=7}"),
			 3);
	free_export(next);
}

CASE(gauges_are_those_of_the_moment)
{
	struct casync_inflight_entry entries[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(casync_inflight_enter(&exp->inflight,
						       &entries[i], 1000),
				 0);
	casync_inflight_leave(&exp->inflight, &entries[0]);
	tick();
	assert_int_equal(value_of("ceph_async__in_flight{export=7}"), 2);
	assert_int_equal(value_of("ceph_async__in_flight_bytes{export=7}"),
			 2000);
	assert_int_equal(value_of("ceph_async__in_flight_peak{export=7}"), 3);
	unpublish(exp);
	assert_int_equal(value_of("ceph_async__in_flight{export=7}"), 0);
	for (i = 1; i < 3; i++)
		casync_inflight_leave(&exp->inflight, &entries[i]);
}

/* By the phase of its mount; 0 once the export is gone. */
CASE(session_is_lost_until_another_one_serves)
{
	static const char name[] =
		"ceph_async__session_state{export=7,client=admin@fs:/}";
	uint32_t phase;

	tick();
	assert_int_equal(value_of(name), CASYNC_SESSION_SERVES);
	for (phase = CASYNC_GUARD_LOST; phase <= CASYNC_GUARD_LEFT; phase++) {
		guard.phase = phase;
		tick();
		assert_int_equal(value_of(name), CASYNC_SESSION_LOST);
	}
	guard.phase = CASYNC_GUARD_SERVES;
	tick();
	assert_int_equal(value_of(name), CASYNC_SESSION_SERVES);
	guard.phase = CASYNC_GUARD_LEAVES;
	tick();
	assert_int_equal(value_of(name), CASYNC_SESSION_LOST);
	unpublish(exp);
	assert_int_equal(value_of(name), CASYNC_SESSION_NONE);
}

/* An export that comes back with another user has another session. */
CASE(session_is_the_client_s)
{
	struct casync_session other = {.client = "other@fs:/a"};
	struct casync_guard its = {0};

	free_export(exp);
	exp = new_export(7);
	exp->session = &other;
	exp->guard = &its;
	publish(exp);
	tick();
	assert_int_equal(
		value_of("ceph_async__session_state{export=7,client=other@fs:/"
			 "a}"),
		CASYNC_SESSION_SERVES);
	assert_int_equal(
		value_of("ceph_async__session_state{export=7,client=admin@fs:/"
			 "}"),
		CASYNC_SESSION_NONE);
	unpublish(exp);
	exp->session = &session;
	exp->guard = &guard;
}

CASE(oldest_call_is_the_mount_s)
{
	static const char oldest[] = "ceph_async__oldest_call_ms{export=7}";
	struct casync_budget_slot slot = {.mount = &callers};

	assert_true(casync_budget_enter(&slot, CASYNC_BUDGET_ALWAYS, false));
	tick();
	tick();
	assert_true(value_of(oldest) >= 1000);
	casync_budget_leave(&slot, 1);
	tick();
	assert_int_equal(value_of(oldest), 0);
}

static const char reconnects[] =
	"ceph_async__reconnects_total{export=7,client=admin@fs:/}";
static const char locks_lost[] =
	"ceph_async__locks_lost_total{export=7,client=admin@fs:/}";
static const char reconnect_ms[] =
	"ceph_async__reconnect_ms{export=7,client=admin@fs:/}";

CASE(reconnects_and_lost_locks_are_the_session_s)
{
	tick();
	assert_int_equal(value_of(reconnects), 0);
	assert_int_equal(value_of(locks_lost), 0);
	assert_int_equal(value_of(reconnect_ms), 0);
	session.reconnects = 1;
	session.locks_lost = 5;
	session.reconnect_ms = 2500;
	tick();
	assert_int_equal(value_of(reconnects), 1);
	assert_int_equal(value_of(locks_lost), 5);
	assert_int_equal(value_of(reconnect_ms), 2500);
	session.reconnects = 3;
	session.locks_lost = 6;
	session.reconnect_ms = 700;
	unpublish(exp);
	assert_int_equal(value_of(reconnects), 3);
	assert_int_equal(value_of(locks_lost), 6);
	assert_int_equal(value_of(reconnect_ms), 0);
}

/* Others of the mount have seen what came before. */
CASE(an_added_export_counts_reconnects_from_then_on)
{
	struct shown *other = new_export(8);

	session.reconnects = 2;
	session.locks_lost = 4;
	publish(other);
	free_export(exp);
	exp = new_export(7);
	publish(exp);
	session.reconnects = 3;
	session.locks_lost = 9;
	tick();
	/* Two before it came back, one since. */
	assert_int_equal(value_of(reconnects), 3);
	assert_int_equal(value_of(locks_lost), 9);
	assert_int_equal(
		value_of("ceph_async__reconnects_total{export=8,client=admin@"
			 "fs:/}"),
		1);
	assert_int_equal(
		value_of("ceph_async__locks_lost_total{export=8,client=admin@"
			 "fs:/}"),
		5);
	free_export(other);
}

/* --- Metrics_File */

#define FILE_NAME "publish.prom"

static char text[1 << 20];

static void read_text(void)
{
	FILE *file = fopen(FILE_NAME, "r");
	size_t bytes;

	assert_non_null(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	assert_int_equal(fclose(file), 0);
}

/* Write it now; what is in it. */
static const char *written(void)
{
	casync_publish_set_file(NULL);
	casync_publish_set_file(FILE_NAME);
	tick();
	read_text();
	casync_publish_set_file(NULL);
	assert_int_equal(access(FILE_NAME, F_OK), -1);
	assert_int_equal(access(FILE_NAME ".new", F_OK), -1);
	return text;
}

static unsigned int times_in(const char *all, const char *part)
{
	unsigned int count = 0;

	for (; (all = strstr(all, part)) != NULL; all++)
		count++;
	return count;
}

CASE(file_has_the_metrics_in_families)
{
	struct shown *other = new_export(8);
	const char *all;

	publish(other);
	casync_metrics_count(here(), CASYNC_C_BYTES + CASYNC_METRIC_WRITE, 5);
	casync_metrics_count(casync_metrics_shard(&other->metrics),
			     CASYNC_C_SLOW, 3);
	session.reconnects = 2;
	all = written();
	assert_non_null(strstr(
		all, "# HELP ceph_async__build_info Always 1; the labels have "
		     "the versions.\n"
		     "# TYPE ceph_async__build_info gauge\n"
		     "ceph_async__build_info{version=\"" CASYNC_VERSION
		     "\",libcephfs=\"20.2.4\"} 1\n"));
	assert_non_null(strstr(
		all, "# TYPE ceph_async__bytes_total counter\n"
		     "ceph_async__bytes_total{export=\"7\",op=\"read\"} "
		     "0\n"
		     "ceph_async__bytes_total{export=\"7\",op=\"write\"} "
		     "5\n"
		     "ceph_async__bytes_total{export=\"8\",op=\"read\"} "
		     "0\n"));
	assert_non_null(strstr(
		all, "\nceph_async__slow_requests_total{export=\"8\"} 3\n"));
	assert_non_null(strstr(all, "# TYPE ceph_async__reconnects gauge\n"));
	assert_non_null(strstr(all,
			       "# TYPE ceph_async__reconnects_total counter\n"
			       "ceph_async__reconnects_total{export=\"7\","
			       "client=\"admin@fs:/\"} 2\n"));
	assert_int_equal(times_in(all, "# TYPE ceph_async__latency_us "), 1);
	assert_int_equal(times_in(all, "# TYPE ceph_async__errors_total "), 1);
	free_export(other);
}

CASE(file_has_cumulative_buckets)
{
	const unsigned int total = CASYNC_H_STAGES + CASYNC_STAGE_TOTAL;
	const char *all;

	casync_metrics_observe(here(), total, 5 * NS_PER_US);
	casync_metrics_observe(here(), total, 12 * NS_PER_US);
	casync_metrics_observe(here(), total, UINT64_C(30000000) * NS_PER_US);
	all = written();
#define BUCKET(le, count)                                                    \
	assert_non_null(strstr(all,                                          \
			       "latency_us_bucket{export=\"7\",op=\"read\"," \
			       "stage=\"total\",le=\"" le "\"} " count "\n"))
	BUCKET("8", "1");
	BUCKET("16", "2");
	BUCKET("16777216", "2");
	BUCKET("+Inf", "3");
	assert_non_null(strstr(all, "latency_us_sum{export=\"7\",op=\"read\","
				    "stage=\"total\"} 30000017\n"));
	assert_non_null(strstr(all, "latency_us_count{export=\"7\","
				    "op=\"read\",stage=\"total\"} 3\n"));
}

/* A line of its own cannot be made by a path. */
CASE(file_escapes_what_labels_have)
{
	session.client = "a\"b@f\\s:/c\nd";
	assert_non_null(
		strstr(written(), ",client=\"a\\\"b@f\\\\s:/c\\nd\"} "));
}

/* Two series of one name would cost the reader the whole file. */
CASE(file_has_one_export_of_an_id)
{
	struct shown *next = new_export(7);

	publish(next);
	casync_metrics_count(here(), CASYNC_C_SLOW, 4);
	casync_metrics_count(casync_metrics_shard(&next->metrics),
			     CASYNC_C_SLOW, 5);
	assert_int_equal(times_in(written(), "slow_requests_total{"), 1);
	assert_non_null(strstr(text, "slow_requests_total{export=\"7\"} 4\n"));
	unpublish(exp);
	assert_int_equal(times_in(written(), "slow_requests_total{"), 1);
	assert_non_null(strstr(text, "slow_requests_total{export=\"7\"} 5\n"));
	free_export(next);
}

/* Seconds of CPU time that each look at the thread's clock adds. */
static unsigned int cpu_s; /* atomic */

int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static unsigned int used_s; /* atomic */
	int rc = __real_clock_gettime(clock, now);
	uint64_t ns = (uint64_t)now->tv_nsec + forward_ns;

	if (clock == CLOCK_MONOTONIC) {
		now->tv_sec += (time_t)(ns / CASYNC_NS_PER_S);
		now->tv_nsec = (long)(ns % CASYNC_NS_PER_S);
	}
	if (clock == CLOCK_THREAD_CPUTIME_ID)
		now->tv_sec += __atomic_add_fetch(
			&used_s, __atomic_load_n(&cpu_s, __ATOMIC_RELAXED),
			__ATOMIC_RELAXED);
	return rc;
}

/* However long the pause is that a costly write is followed by. */
CASE(file_has_an_added_export_at_once)
{
	struct shown *other = new_export(8);

	casync_publish_set_file(FILE_NAME);
	__atomic_store_n(&cpu_s, 60, __ATOMIC_RELAXED);
	tick();
	publish(other);
	tick();
	read_text();
	assert_non_null(strstr(text, "session_state{export=\"8\""));
	unpublish(other);
	tick();
	read_text();
	assert_non_null(strstr(text, "session_state{export=\"8\""));
	__atomic_store_n(&cpu_s, 0, __ATOMIC_RELAXED);
	casync_publish_set_file(NULL);
	free_export(other);
}

CASE(file_that_cannot_be_written_is_told_once)
{
	component_log_level[COMPONENT_FSAL] = NIV_EVENT;
	casync_publish_set_file("no_folder/publish.prom");
	tick();
	assert_non_null(strstr(logged, "Metrics_File = no_folder/publish.prom: "
				       "cannot be written: No such file"));
	logged[0] = '\0';
	tick();
	assert_string_equal(logged, "");
	(void)written();
	assert_string_equal(logged,
			    "Metrics_File = " FILE_NAME ": is written again");
	component_log_level[COMPONENT_FSAL] = NIV_NULL;
}

/* --- the log */

/* The next look at the counts logs a line. */
static void line(void)
{
	/* The host may have been up for a minute only. */
	exp->entry->line_ns = 0;
	tick();
}

/* The log's line tells what came since the one before. */
CASE(a_line_has_what_came_since_the_last_one)
{
	component_log_level[COMPONENT_FSAL] = NIV_EVENT;
	exp->tuning.stats_interval = INTERVAL_S;
	session.reconnects = 2;
	session.locks_lost = 7;
	line();
	assert_non_null(
		strstr(logged, "; reconnects_total 2; locks_lost_total 7"));
	session.locks_lost = 8;
	line();
	assert_null(strstr(logged, "reconnects"));
	assert_non_null(strstr(logged, "; locks_lost_total 1"));
	component_log_level[COMPONENT_FSAL] = NIV_NULL;
}

/* A hit, three misses, an own and a foreign change, and a fill too late. */
static void use_the_cache(struct casync_cache_file *file)
{
	struct casync_cache_tag tag = rig_tag(1);
	struct casync_cache_buffer *buf;

	assert_false(rig_read(file, 1, 7, 0, (uint32_t)PAGE));
	assert_true(rig_read(file, 1, 7, 0, (uint32_t)PAGE));
	assert_false(rig_read(file, 2, 7, 0, (uint32_t)PAGE));
	buf = casync_evict_new_buffer(7, (uint32_t)PAGE);
	casync_cache_begin_write(file);
	assert_false(casync_cache_put(file, &tag, 0, 0, (uint32_t)PAGE, buf));
	casync_cache_end_write(file);
	casync_buffer_release(buf);
	assert_false(rig_read(file, 1, 7, 0, (uint32_t)PAGE));
}

#define CACHE "ceph_async__read_cache_"
#define RELEASED CACHE "invalidations_total{cause=released}"

CASE(read_cache_is_the_process_s)
{
	struct casync_cache_file file = {0};
	struct casync_cache_stats stats;

	tick();
	assert_int_equal(value_of(CACHE "budget_bytes{}"), 0);
	assert_int_equal(find(CACHE "hits_total{}")->kind, 'c');
	assert_int_equal(find(CACHE "used_bytes{}")->kind, 'g');
	casync_cache_set_budget(MIB);
	use_the_cache(&file);
	stats = rig_stats();
	tick();
	assert_int_equal(value_of(CACHE "budget_bytes{}"), MIB);
	assert_int_equal(value_of(CACHE "used_bytes{}"), stats.used_bytes);
	assert_int_equal(value_of(CACHE "data_bytes{}"), PAGE);
	assert_int_equal(value_of(CACHE "hits_total{}"), 1);
	assert_int_equal(value_of(CACHE "misses_total{}"), 3);
	assert_int_equal(value_of(CACHE "hit_bytes_total{}"), PAGE);
	assert_int_equal(value_of(CACHE "fills_total{}"), 3);
	assert_int_equal(value_of(CACHE "fills_dropped_total{cause=write}"), 1);
	assert_int_equal(value_of(CACHE "fills_dropped_total{cause=tag}"), 0);
	assert_int_equal(value_of(CACHE "invalidations_total{cause=own}"), 1);
	assert_int_equal(value_of(CACHE "invalidations_total{cause=foreign}"),
			 1);
	assert_int_equal(value_of(CACHE "evictions_total{}"), 0);
	/* Off: what is there is evicted, and the counters stay. */
	casync_cache_set_budget(0);
	tick();
	assert_int_equal(value_of(CACHE "budget_bytes{}"), 0);
	assert_int_equal(value_of(CACHE "used_bytes{}"), 0);
	assert_int_equal(value_of(CACHE "evictions_total{}"), 1);
	assert_int_equal(value_of(CACHE "evicted_bytes_total{}"), PAGE);
	assert_int_equal(value_of(CACHE "hits_total{}"), 1);
	(void)rig_end(state);
}

/* A look has read the clock, and then an export is added. */
CASE(export_of_a_moment_ago_gets_no_line)
{
	component_log_level[COMPONENT_FSAL] = NIV_EVENT;
	exp->tuning.stats_interval = INTERVAL_S;
	logged[0] = '\0';
	exp->entry->line_ns += INTERVAL_S * CASYNC_NS_PER_S;
	tick();
	assert_string_equal(logged, "");
	exp->entry->line_ns -= INTERVAL_S * CASYNC_NS_PER_S;
	component_log_level[COMPONENT_FSAL] = NIV_NULL;
}

/* The read cache in the log's line, since this export's last one. */
CASE(read_cache_is_counted_anew)
{
	struct casync_cache_file file = {0};
	int64_t released;

	component_log_level[COMPONENT_FSAL] = NIV_EVENT;
	exp->tuning.stats_interval = INTERVAL_S;
	casync_cache_set_budget(MIB);
	use_the_cache(&file);
	line();
	assert_non_null(strstr(logged, "; read_cache_budget_bytes 1048576; "));
	assert_non_null(strstr(logged, "; read_cache_hits_total 1; "
				       "read_cache_misses_total 3; "
				       "read_cache_hit_bytes_total 4096; "));
	assert_non_null(strstr(logged, "; read_cache_invalidations_total "
				       "own 1, foreign 1"));
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 1);
	line();
	assert_non_null(strstr(logged, "; read_cache_hits_total 1; "
				       "read_cache_hit_bytes_total 4096"));
	component_log_level[COMPONENT_FSAL] = NIV_NULL;
	released = value_of(RELEASED);
	casync_cache_forget(&file);
	tick();
	assert_int_equal(value_of(RELEASED), released + 1);
	(void)rig_end(state);
}
