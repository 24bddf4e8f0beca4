/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fsal.h"
#include "nfs_core.h"

#include "clock.h"
#include "complete.h"
#include "guard.h"
#include "object.h"
#include "op.h"
#include "publish.h"
#include "keeper.h"
#include "submit.h"
#include "tuning.h"
#include "watchdog.h"

#define TICK_MS 100

/* The outermost lock.  Under it an export's in-flight lock and a lane's lock
 * (casync_inflight_expire() -> called() -> casync_lane_submit()) are taken,
 * and lines are logged.  No function of libcephfs is called. */
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(watched);

struct casync_watched {
	struct glist_head link;
	struct casync_watchdog_source of;
};

static pthread_mutex_t run_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop_running; /* CLOCK_MONOTONIC */
static pthread_t thread;
static bool running;

static struct casync_ending process_ending;

/* The second completions at the last look, and its time.  After the start only
 * the watchdog's thread uses them. */
static struct {
	uint64_t count;
	uint64_t now_ns;
} duplicates_seen;

/* The result of a visit of the in-flight set. */
struct harvest {
	struct casync_dump dumps[CASYNC_WATCHDOG_LINES];
	unsigned int taken;
	uint64_t seen;
};

static bool watchdog_gather(const struct casync_inflight_entry *entry,
			    struct harvest *harvest)
{
	harvest->seen++;
	if (harvest->taken == CASYNC_WATCHDOG_LINES)
		return false;
	casync_op_dump_take(container_of(entry, const struct casync_op, entry),
			    &harvest->dumps[harvest->taken++]);
	return true;
}

static void watchdog_gather_slow(struct casync_inflight_entry *entry, void *arg)
{
	/* An op that is not listed now is not logged when it ends. */
	entry->reported = watchdog_gather(entry, arg);
}

static void watchdog_gather_any(struct casync_inflight_entry *entry, void *arg)
{
	(void)watchdog_gather(entry, arg);
}

static void watchdog_log_slow_ops(const struct casync_watchdog_source *of)
{
	uint32_t limit_ms = casync_tuning_read(&of->tuning->slow_op_warn);
	struct harvest harvest = {.taken = 0};
	char line[CASYNC_DUMP_LINE];
	unsigned int i;

	if (limit_ms == 0)
		return;
	casync_inflight_visit_overdue(
		of->inflight, casync_clock_age_ns(limit_ms * CASYNC_NS_PER_MS),
		watchdog_gather_slow, &harvest);
	if (harvest.seen != 0)
		casync_metrics_count(casync_metrics_shard(of->metrics),
				     CASYNC_C_SLOW, harvest.seen);
	for (i = 0; i < harvest.taken; i++)
		LogWarn(COMPONENT_FSAL, "export %" PRIu16 ": slow request: %s",
			of->export_id,
			casync_op_dump_format(&harvest.dumps[i], line,
					      sizeof(line)));
	if (harvest.seen > harvest.taken)
		LogWarn(COMPONENT_FSAL,
			"export %" PRIu16 ": and %" PRIu64
			" more requests are slow (Slow_Op_Warn = %" PRIu32
			" ms)",
			of->export_id, harvest.seen - harvest.taken, limit_ms);
}

void casync_watchdog_list(struct casync_inflight *inflight, uint16_t export_id,
			  const char *why)
{
	struct harvest harvest = {.taken = 0};
	char line[CASYNC_DUMP_LINE];
	unsigned int i;

	casync_inflight_visit_all(inflight, watchdog_gather_any, &harvest);
	for (i = 0; i < harvest.taken; i++)
		LogCrit(COMPONENT_FSAL, "export %" PRIu16 ": %s: %s", export_id,
			why,
			casync_op_dump_format(&harvest.dumps[i], line,
					      sizeof(line)));
}

static void watchdog_log_duplicates(void)
{
	uint64_t count = casync_submit_duplicates();
	uint64_t now_ns = casync_clock_ns();
	uint64_t more = count - duplicates_seen.count;

	if (more != 0)
		LogCrit(COMPONENT_FSAL,
			"libcephfs: a second completion is ignored: %" PRIu64
			" in the last %" PRIu64 " ms, %" PRIu64
			" since the start of Ganesha",
			more,
			(uint64_t)((now_ns - duplicates_seen.now_ns) /
				   CASYNC_NS_PER_MS),
			count);
	duplicates_seen.count = count;
	duplicates_seen.now_ns = now_ns;
}

void casync_watchdog_visit(const struct casync_guard *guard,
			   casync_inflight_visitor *visit, void *arg)
{
	const struct casync_watchdog_source *of;
	struct glist_head *node;

	pthread_mutex_lock(&watched_lock);
	glist_for_each(node, &watched) {
		of = &glist_entry(node, struct casync_watched, link)->of;
		if (of->guard == guard)
			casync_inflight_visit_all(of->inflight, visit, arg);
	}
	pthread_mutex_unlock(&watched_lock);
}

/* libcephfs has the READ, somebody has truncated the file since it came, and
 * the file may end within it: libcephfs may be asking for the size. */
static void watchdog_visit_hang(struct casync_inflight_entry *entry, void *ino)
{
	const struct casync_op *op =
		container_of(entry, const struct casync_op, entry);
	int left = __atomic_load_n(&op->parts_left, __ATOMIC_ACQUIRE);

	if (op->kind == CASYNC_OP_READ && left > 0 &&
	    left < CASYNC_OP_SUBMITTING &&
	    casync_file_size_told_since(&op->obj->size, op->truncations) &&
	    casync_submit_is_beyond_the_end(op))
		*(uint64_t *)ino = op->ino;
}

static void watchdog_look_for_hangs(const struct casync_watchdog_source *of)
{
	uint64_t ino = 0;

	casync_inflight_visit_older(
		of->inflight,
		casync_clock_age_ns(CASYNC_WATCHDOG_HANG_MS * CASYNC_NS_PER_MS),
		watchdog_visit_hang, &ino);
	if (ino != 0 && of->mount != NULL)
		casync_keeper_end_session(of->mount, ino);
}

static void watchdog_check_exports(void)
{
	const struct casync_watchdog_source *of;
	struct glist_head *node;

	pthread_mutex_lock(&watched_lock);
	glist_for_each(node, &watched) {
		of = &glist_entry(node, struct casync_watched, link)->of;
		casync_inflight_expire(of->inflight);
		watchdog_log_slow_ops(of);
		watchdog_look_for_hangs(of);
	}
	pthread_mutex_unlock(&watched_lock);
}

/* Is a request in Ceph, and how long may Ganesha's end wait for that? */
static bool watchdog_is_busy(uint32_t *limit_s)
{
	const struct casync_watchdog_source *of;
	struct glist_head *node;
	bool busy = false;

	*limit_s = 0;
	pthread_mutex_lock(&watched_lock);
	glist_for_each(node, &watched) {
		of = &glist_entry(node, struct casync_watched, link)->of;
		if (of->guard == NULL || casync_guard_is_empty(of->guard))
			continue;
		busy = true;
		if (casync_tuning_read(&of->tuning->drain_timeout) > *limit_s)
			*limit_s =
				casync_tuning_read(&of->tuning->drain_timeout);
	}
	pthread_mutex_unlock(&watched_lock);
	return busy;
}

void casync_watchdog_ending_exports_removed(struct casync_ending *ending)
{
	__atomic_store_n(&ending->exports_go, true, __ATOMIC_RELEASE);
}

bool casync_watchdog_ending_hangs(struct casync_ending *ending, bool busy,
				  uint32_t limit_s, uint64_t now_ns)
{
	if (!busy || __atomic_load_n(&ending->exports_go, __ATOMIC_ACQUIRE)) {
		ending->busy_since_ns = 0;
		return false;
	}
	if (ending->busy_since_ns == 0)
		ending->busy_since_ns = now_ns;
	return now_ns - ending->busy_since_ns >= limit_s * CASYNC_NS_PER_S;
}

/* Ganesha was told to end: is it kept from that? */
static void watchdog_check_the_end(void)
{
	uint32_t limit_s;
	bool busy;

	if (!__atomic_load_n(&admin_shutdown, __ATOMIC_RELAXED))
		return;
	busy = watchdog_is_busy(&limit_s);
	if (!casync_watchdog_ending_hangs(&process_ending, busy, limit_s,
					  casync_clock_ns()))
		return;
	LogCrit(COMPONENT_FSAL,
		"the end of Ganesha has waited %" PRIu32
		" s (Drain_Timeout) for requests that Ceph does not answer; ending the process without them",
		limit_s);
	_exit(EXIT_FAILURE);
}

void casync_watchdog_exports_removed(void)
{
	if (__atomic_load_n(&admin_shutdown, __ATOMIC_RELAXED))
		casync_watchdog_ending_exports_removed(&process_ending);
}

static void watchdog_wait_a_tick_locked(void)
{
	struct timespec deadline = casync_clock_deadline(TICK_MS);

	(void)pthread_cond_timedwait(&stop_running, &run_lock, &deadline);
}

static void *watchdog_watch(void *unused)
{
	(void)unused;
	SetNameFunction("casync_watch");

	pthread_mutex_lock(&run_lock);
	while (running) {
		watchdog_wait_a_tick_locked();
		pthread_mutex_unlock(&run_lock);
		/* These come first: logging may wait for a disk. */
		casync_complete_unblock();
		casync_lane_unblock_all();
		casync_flush_tick();
		watchdog_log_duplicates();
		watchdog_check_exports();
		casync_publish_tick();
		watchdog_check_the_end();
		pthread_mutex_lock(&run_lock);
	}
	pthread_mutex_unlock(&run_lock);
	return NULL;
}

int casync_watchdog_start(void)
{
	int rc = 0;

	pthread_mutex_lock(&run_lock);
	if (!running) {
		casync_clock_cond_init(&stop_running);
		duplicates_seen.count = casync_submit_duplicates();
		duplicates_seen.now_ns = casync_clock_ns();
		rc = -pthread_create(&thread, NULL, watchdog_watch, NULL);
		running = rc == 0;
	}
	pthread_mutex_unlock(&run_lock);
	return rc;
}

void casync_watchdog_stop(void)
{
	bool was_running;

	pthread_mutex_lock(&run_lock);
	was_running = running;
	running = false;
	if (was_running)
		pthread_cond_signal(&stop_running);
	pthread_mutex_unlock(&run_lock);
	if (!was_running)
		return;
	pthread_join(thread, NULL);
	pthread_cond_destroy(&stop_running);
}

struct casync_watched *
casync_watchdog_add(const struct casync_watchdog_source *source)
{
	struct casync_watched *entry = gsh_calloc(1, sizeof(*entry));

	entry->of = *source;
	pthread_mutex_lock(&watched_lock);
	glist_add_tail(&watched, &entry->link);
	pthread_mutex_unlock(&watched_lock);
	return entry;
}

void casync_watchdog_remove(struct casync_watched *entry)
{
	if (entry == NULL)
		return;
	pthread_mutex_lock(&watched_lock);
	glist_del(&entry->link);
	pthread_mutex_unlock(&watched_lock);
	gsh_free(entry);
}
