/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <cephfs/libcephfs.h>

#include "fsal.h"

#include "cache.h"
#include "clock.h"
#include "metrics_text.h"
#include "prometheus.h"
#include "publish.h"
#include "pin.h"
#include "submit.h"
#include "text.h"
#include "tuning.h"
#include "lane.h"

/* It is taken before an export's in-flight lock.  No function of the data
 * path is called under it, and of libcephfs ceph_version() alone: it takes no
 * lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(published);
/* Has the numbers of the process alone. */
static struct casync_view process;
static uint64_t next_look_ns; /* used by the watchdog only */
/* Atomic: reloads come from other threads than updates. */
static bool reload_is_good = true;

/* How long a disk may take before a line says so, and before a reload goes on
 * without it. */
#define DISK_PATIENCE_MS 10000
#define RELOAD_PATIENCE_MS 2000

/* Taken before the lock above, and held while the file is written: its job
 * waits for a disk, a reload for RELOAD_PATIENCE_MS. */
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static char *file_path;
static uint64_t file_due_ns = UINT64_MAX; /* atomic; UINT64_MAX: never */
static uint64_t file_since_ns; /* atomic: of the job under way; 0: none is */
static bool file_lacks_export; /* atomic: one was added, so it is due */

void casync_publish_reload(bool good)
{
	__atomic_store_n(&reload_is_good, good, __ATOMIC_RELAXED);
}

static void publish_read_session(const struct casync_published *entry,
				 uint64_t *of)
{
	const struct casync_session *session = entry->of.session;

	of[CASYNC_SM_SESSION] = casync_session_state(entry->of.guard);
	of[CASYNC_SM_RECONNECT_MS] =
		__atomic_load_n(&session->reconnect_ms, __ATOMIC_RELAXED);
	of[CASYNC_SM_RECONNECTS] =
		__atomic_load_n(&session->reconnects, __ATOMIC_RELAXED) -
		entry->reconnects_at_add;
	of[CASYNC_SM_LOCKS_LOST] =
		__atomic_load_n(&session->locks_lost, __ATOMIC_RELAXED) -
		entry->locks_lost_at_add;
	of[CASYNC_SM_RECONNECTS_TOTAL] = of[CASYNC_SM_RECONNECTS];
	of[CASYNC_SM_LOCKS_LOST_TOTAL] = of[CASYNC_SM_LOCKS_LOST];
}

static void publish_update_locked(struct casync_published *entry)
{
	uint64_t *of = entry->now.numbers;
	struct casync_inflight_sample look;

	casync_metrics_add_up(entry->of.metrics, &entry->now);
	memcpy(of, process.numbers, CASYNC_PROCESS_METRICS * sizeof(*of));
	casync_inflight_sample(entry->of.inflight, &look);
	of[CASYNC_SM_IN_FLIGHT] = look.ops;
	of[CASYNC_SM_IN_FLIGHT_BYTES] = look.bytes;
	of[CASYNC_SM_IN_FLIGHT_PEAK] = look.peak_ops;
	of[CASYNC_SM_WAITING] = look.waiting;
	of[CASYNC_SM_OLDEST_MS] = look.oldest_ns / CASYNC_NS_PER_MS;
	of[CASYNC_SM_OLDEST_CALL_MS] =
		casync_budget_look_at_age(entry->of.callers_age,
					  casync_clock_ns()) /
		CASYNC_NS_PER_MS;
	publish_read_session(entry, of);
}

/* It reads some 16 KiB that READs write to: not for each request. */
static void publish_read_process_locked(void)
{
	struct casync_cache_stats stats;
	uint64_t *of = process.numbers;

	casync_cache_get_stats(&stats);
	of[CASYNC_PM_BUILD_INFO] = 1;
	of[CASYNC_PM_LAST_RELOAD] =
		__atomic_load_n(&reload_is_good, __ATOMIC_RELAXED);
	of[CASYNC_PM_DUPLICATES] = casync_submit_duplicates();
	of[CASYNC_PM_BUDGET_BYTES] = stats.budget_bytes;
	of[CASYNC_PM_USED_BYTES] = stats.used_bytes;
	of[CASYNC_PM_DATA_BYTES] = stats.cached_bytes;
	of[CASYNC_PM_HITS] = stats.hits;
	of[CASYNC_PM_MISSES] = stats.misses;
	of[CASYNC_PM_HIT_BYTES] = stats.hit_bytes;
	of[CASYNC_PM_FILLS] = stats.counts.puts;
	of[CASYNC_PM_EVICTIONS] = stats.counts.evictions;
	of[CASYNC_PM_EVICTED_BYTES] = stats.counts.evicted_bytes;
	of[CASYNC_PM_NO_REVALIDATION] = stats.counts.no_revalidation;
	of[CASYNC_PM_READAHEAD_BYTES] = stats.counts.ahead_bytes;
	of[CASYNC_PM_READAHEAD_USED_BYTES] = stats.counts.ahead_used_bytes;
	of[CASYNC_PM_READAHEAD_WASTED_BYTES] = stats.counts.ahead_wasted_bytes;
	of[CASYNC_PM_NO_BUFFER] = stats.counts.no_buffer;
	memcpy(&of[CASYNC_PM_DROPS], stats.counts.drops,
	       sizeof(stats.counts.drops));
	memcpy(&of[CASYNC_PM_LOSSES], stats.counts.losses,
	       sizeof(stats.counts.losses));
	memcpy(&of[CASYNC_PM_BYPASSES], stats.counts.bypasses,
	       sizeof(stats.counts.bypasses));
}

static const char *publish_libcephfs(char *version, size_t size)
{
	int major, minor, patch;

	(void)ceph_version(&major, &minor, &patch);
	(void)snprintf(version, size, "%d.%d.%d", major, minor, patch);
	return version;
}

static void publish_show_process_locked(void)
{
	char version[32];

	casync_prometheus_update_process(
		&process, publish_libcephfs(version, sizeof(version)));
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
	publish_read_process_locked();
	publish_update_locked(entry);
	entry->reconnects_at_add = entry->now.numbers[CASYNC_SM_RECONNECTS];
	entry->locks_lost_at_add = entry->now.numbers[CASYNC_SM_LOCKS_LOST];
	publish_update_locked(entry);
	entry->before_line = entry->now;
	glist_add_tail(&published, &entry->link);
	entry->line_ns = casync_clock_ns();
	pthread_mutex_unlock(&lock);
	__atomic_store_n(&file_lacks_export, true, __ATOMIC_RELEASE);
	return entry;
}

void casync_publish_remove(struct casync_published *entry)
{
	if (entry == NULL)
		return;
	pthread_mutex_lock(&lock);
	glist_del(&entry->link);
	publish_read_process_locked();
	publish_update_locked(entry);
	/* Requests that did not end are taken out of the gauges. */
	memset(&entry->now.numbers[CASYNC_SM_IN_FLIGHT], 0,
	       (CASYNC_SM_RECONNECTS - CASYNC_SM_IN_FLIGHT) * sizeof(uint64_t));
	casync_prometheus_update(entry->prometheus, &entry->now);
	casync_prometheus_put(entry->prometheus);
	publish_show_process_locked();
	pthread_mutex_unlock(&lock);
	gsh_free(entry);
}

/* Log the counts since the last line, if a line is due. */
static void publish_log_line_locked(struct casync_published *entry,
				    uint64_t now_ns)
{
	/* Static, because it has 5 KiB. */
	static struct casync_view view;
	uint32_t interval_s =
		casync_tuning_read(&entry->of.tuning->stats_interval);
	char line[CASYNC_METRICS_TEXT_LINE_BYTES];
	uint64_t seconds =
		casync_clock_since_ns(now_ns, entry->line_ns) / CASYNC_NS_PER_S;

	if (interval_s == 0 || seconds < interval_s)
		return;
	view = entry->now;
	casync_metrics_subtract(&view, &entry->before_line);
	entry->before_line = entry->now;
	entry->line_ns = now_ns;
	LogEvent(COMPONENT_FSAL, "export %" PRIu16 ": %s", entry->of.export_id,
		 casync_metrics_text_line(&view, seconds, line, sizeof(line)));
}

static void publish_show_locked(struct casync_published *entry, uint64_t now_ns)
{
	/* A predecessor with the same id may still be registered at first. */
	if (entry->prometheus == NULL)
		publish_get_prometheus_locked(entry);
	publish_update_locked(entry);
	casync_prometheus_update(entry->prometheus, &entry->now);
	publish_log_line_locked(entry, now_ns);
}

static uint64_t publish_thread_cpu_ns(void)
{
	struct timespec used;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return casync_clock_timespec_ns(&used);
}

/* Once a second, but for at most a hundredth of a CPU. */
static void publish_write_file_locked(void)
{
	uint64_t began_ns = casync_clock_ns();
	uint64_t cpu_ns = publish_thread_cpu_ns();
	char version[32];
	size_t bytes;
	char *text;

	pthread_mutex_lock(&lock);
	publish_read_process_locked();
	text = casync_metrics_text_file(
		&published, &process,
		publish_libcephfs(version, sizeof(version)), &bytes);
	pthread_mutex_unlock(&lock);
	casync_metrics_text_write(file_path, text, bytes);
	free(text);
	cpu_ns = publish_thread_cpu_ns() - cpu_ns;
	__atomic_store_n(&file_due_ns,
			 began_ns + MAX(CASYNC_NS_PER_S, 100 * cpu_ns),
			 __ATOMIC_RELAXED);
}

static void publish_run_file_job(struct casync_work *work
				 __attribute__((unused)))
{
	pthread_mutex_lock(&file_lock);
	if (file_path != NULL)
		publish_write_file_locked();
	pthread_mutex_unlock(&file_lock);
	__atomic_store_n(&file_since_ns, 0, __ATOMIC_RELEASE);
}

static bool publish_has_suffix(const char *path, const char *suffix)
{
	size_t length = strlen(path), end = strlen(suffix);

	return length >= end && strcmp(path + length - end, suffix) == 0;
}

void casync_publish_set_file(const char *path)
{
	const struct timespec deadline =
		casync_clock_deadline(RELOAD_PATIENCE_MS);

	if (path != NULL && !publish_has_suffix(path, ".prom"))
		LogWarn(COMPONENT_CONFIG,
			"Metrics_File = %s: node_exporter reads files whose names end in .prom",
			path);
	if (pthread_mutex_clocklock(&file_lock, CLOCK_MONOTONIC, &deadline) !=
	    0) {
		LogWarn(COMPONENT_CONFIG,
			"Metrics_File: the disk does not answer, so the file stays as it was; reload again once it answers");
		return;
	}
	if (!casync_text_same(path, file_path)) {
		if (file_path != NULL)
			(void)unlink(file_path);
		gsh_free(file_path);
		file_path = casync_text_copy(path);
		__atomic_store_n(&file_due_ns, path != NULL ? 0 : UINT64_MAX,
				 __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&file_lock);
}

/* Start the job, or say that it does not end.  At its end Ganesha would wait
 * for such a job: so the plugin stays mapped, and no thread is joined. */
static void publish_look_at_file(uint64_t now_ns)
{
	static struct casync_work work = {.run = publish_run_file_job};
	static bool told;
	uint64_t since_ns = __atomic_load_n(&file_since_ns, __ATOMIC_ACQUIRE);

	if (since_ns == 0) {
		told = false;
		if (!__atomic_exchange_n(&file_lacks_export, false,
					 __ATOMIC_ACQUIRE) &&
		    now_ns < __atomic_load_n(&file_due_ns, __ATOMIC_RELAXED))
			return;
		__atomic_store_n(&file_since_ns, now_ns, __ATOMIC_RELAXED);
		casync_lane_submit(casync_lane_of_process(CASYNC_LANE_DISK),
				   &work);
	} else if (!told &&
		   now_ns - since_ns > DISK_PATIENCE_MS * CASYNC_NS_PER_MS) {
		told = true;
		casync_pin_module();
		LogWarn(COMPONENT_FSAL,
			"Metrics_File: the disk has not answered for %d s; the file has old numbers until it does",
			DISK_PATIENCE_MS / 1000);
	}
}

void casync_publish_tick(void)
{
	uint64_t now_ns = casync_clock_ns();
	struct glist_head *node;

	if (now_ns < next_look_ns)
		return;
	next_look_ns = now_ns + CASYNC_NS_PER_S;

	pthread_mutex_lock(&lock);
	publish_read_process_locked();
	glist_for_each(node, &published)
		publish_show_locked(
			glist_entry(node, struct casync_published, link),
			now_ns);
	publish_show_process_locked();
	pthread_mutex_unlock(&lock);
	publish_look_at_file(now_ns);
}
