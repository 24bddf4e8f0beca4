/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "check.h"
#include "clock.h"
#include "lane.h"
#include "log.h"

/* The watchdog walks over the list.  A lane's lock is taken under it. */
static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(running);

static struct casync_lane of_process[CASYNC_PROCESS_LANES];

static __thread bool on_completion_thread;
static __thread bool on_lane_thread;

static void lane_append_locked(struct casync_lane *lane,
			       struct casync_work *work)
{
	CASYNC_CHECK_HELD(&lane->lock);
	work->next = NULL;
	if (lane->head != NULL)
		lane->last->next = work;
	else
		lane->head = work;
	lane->last = work;
	lane->queued++;
	pthread_cond_signal(&lane->changed);
}

static void lane_append_timed_locked(struct casync_lane *lane)
{
	struct casync_work *work = lane->timed;

	lane->timed = NULL;
	lane_append_locked(lane, work);
}

static void lane_look_at_time_locked(struct casync_lane *lane)
{
	if (lane->timed != NULL &&
	    (lane->stopping || casync_clock_ns() >= lane->timed_ns))
		lane_append_timed_locked(lane);
}

static struct casync_work *lane_dequeue_locked(struct casync_lane *lane)
{
	struct casync_work *work;

	CASYNC_CHECK_HELD(&lane->lock);
	lane_look_at_time_locked(lane);
	work = lane->head;
	if (work == NULL)
		return NULL;
	lane->head = work->next;
	CASYNC_CHECK(lane->queued != 0);
	lane->queued--;
	lane->begun++;
	/* Somebody else has to wait for its time now. */
	if (lane->timed != NULL)
		pthread_cond_signal(&lane->changed);
	return work;
}

static void *lane_run(void *arg);

static int lane_add_thread_locked(struct casync_lane *lane)
{
	int rc = pthread_create(&lane->threads[lane->thread_count], NULL,
				lane_run, lane);

	CASYNC_CHECK_HELD(&lane->lock);
	if (rc == 0) {
		lane->thread_count++;
		lane->alive++;
	}
	return -rc;
}

/*
 * Keep one thread for each waiting job, and one for the next job.  A thread of
 * libcephfs may queue that job, and must not start a thread.  It is no error if
 * a thread cannot be started: the lane has another one.
 */
static void lane_keep_one_spare_locked(struct casync_lane *lane)
{
	if (lane->alive - lane->busy <= lane->queued &&
	    lane->thread_count < CASYNC_LANE_THREADS)
		(void)lane_add_thread_locked(lane);
}

static void lane_wait_locked(struct casync_lane *lane)
{
	const struct timespec at = {
		.tv_sec = (time_t)(lane->timed_ns / CASYNC_NS_PER_S),
		.tv_nsec = (long)(lane->timed_ns % CASYNC_NS_PER_S),
	};

	if (lane->timed != NULL)
		(void)pthread_cond_timedwait(&lane->changed, &lane->lock, &at);
	else
		pthread_cond_wait(&lane->changed, &lane->lock);
}

static void *lane_run(void *arg)
{
	struct casync_lane *lane = arg;
	struct casync_work *work;

	SetNameFunction(lane->name);
	on_lane_thread = true;

	pthread_mutex_lock(&lane->lock);
	for (;;) {
		while ((work = lane_dequeue_locked(lane)) != NULL) {
			lane->busy++;
			lane_keep_one_spare_locked(lane);
			pthread_mutex_unlock(&lane->lock);
			work->run(work);
			pthread_mutex_lock(&lane->lock);
			CASYNC_CHECK(lane->busy != 0);
			lane->busy--;
		}
		if (lane->stopping)
			break;
		lane_wait_locked(lane);
	}
	CASYNC_CHECK(lane->alive != 0);
	lane->alive--;
	pthread_cond_signal(&lane->ended);
	pthread_mutex_unlock(&lane->lock);
	return NULL;
}

void casync_lane_submit(struct casync_lane *lane, struct casync_work *work)
{
	pthread_mutex_lock(&lane->lock);
	lane_append_locked(lane, work);
	pthread_mutex_unlock(&lane->lock);
}

void casync_lane_submit_in(struct casync_lane *lane, struct casync_work *work,
			   uint32_t delay_ms)
{
	pthread_mutex_lock(&lane->lock);
	lane->timed = work;
	lane->timed_ns = casync_clock_ns() + delay_ms * CASYNC_NS_PER_MS;
	/* One thread waits no longer than that. */
	pthread_cond_signal(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

void casync_lane_hasten(struct casync_lane *lane,
			const struct casync_work *work)
{
	pthread_mutex_lock(&lane->lock);
	if (lane->timed == work)
		lane_append_timed_locked(lane);
	pthread_mutex_unlock(&lane->lock);
}

static unsigned int lane_most_of(const struct casync_lane_share *share)
{
	return share->most != 0 ? share->most : CASYNC_LANE_SHARE;
}

bool casync_lane_enter_share(struct casync_lane_share *share)
{
	unsigned int users = __atomic_load_n(&share->users, __ATOMIC_RELAXED);

	while (users < lane_most_of(share)) {
		if (__atomic_compare_exchange_n(
			    &share->users, &users, users + 1, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void casync_lane_submit_shared(struct casync_lane *lane,
			       struct casync_lane_share *share,
			       struct casync_work *work)
{
	pthread_mutex_lock(&lane->lock);
	/* Under the lock: who leaves after it finds the job. */
	if (__atomic_fetch_add(&share->users, 1, __ATOMIC_ACQ_REL) <
	    lane_most_of(share)) {
		lane_append_locked(lane, work);
	} else {
		work->next = NULL;
		if (share->waiting != NULL)
			share->last->next = work;
		else
			share->waiting = work;
		share->last = work;
	}
	pthread_mutex_unlock(&lane->lock);
}

bool casync_lane_try_shared(struct casync_lane *lane,
			    struct casync_lane_share *share,
			    struct casync_work *work)
{
	bool taken;

	pthread_mutex_lock(&lane->lock);
	taken = lane->busy + lane->queued < CASYNC_LANE_THREADS &&
		casync_lane_enter_share(share);
	if (taken)
		lane_append_locked(lane, work);
	pthread_mutex_unlock(&lane->lock);
	return taken;
}

void casync_lane_release_share(struct casync_lane *lane,
			       struct casync_lane_share *share)
{
	struct casync_work *next;

	if (CASYNC_CHECK_DOWN(&share->users, __ATOMIC_ACQ_REL) <
	    lane_most_of(share))
		return;
	/* More than may be at work: one that waits gets the place. */
	pthread_mutex_lock(&lane->lock);
	CASYNC_CHECK(share->waiting != NULL);
	next = share->waiting;
	share->waiting = next->next;
	lane_append_locked(lane, next);
	pthread_mutex_unlock(&lane->lock);
}

/* --- start and stop */

int casync_lane_start(struct casync_lane *lane, const char *name,
		      unsigned int threads)
{
	int rc = 0;

	lane->name = name;
	lane->stopping = false;
	pthread_mutex_init(&lane->lock, NULL);
	casync_clock_cond_init(&lane->changed);
	casync_clock_cond_init(&lane->ended);
	pthread_mutex_lock(&running_lock);
	glist_add_tail(&running, &lane->link);
	pthread_mutex_unlock(&running_lock);

	pthread_mutex_lock(&lane->lock);
	while (rc == 0 && lane->thread_count < threads)
		rc = lane_add_thread_locked(lane);
	pthread_mutex_unlock(&lane->lock);
	if (rc != 0)
		(void)casync_lane_stop(lane, UINT32_MAX);
	return rc;
}

static bool lane_await_end_locked(struct casync_lane *lane, uint32_t timeout_s)
{
	const struct timespec deadline =
		casync_clock_deadline(timeout_s * UINT64_C(1000));
	int rc = 0;

	while (lane->alive != 0 && rc == 0)
		rc = timeout_s == UINT32_MAX
			     ? pthread_cond_wait(&lane->ended, &lane->lock)
			     : pthread_cond_timedwait(&lane->ended, &lane->lock,
						      &deadline);
	return lane->alive == 0;
}

/* Nobody joins them; and no further one is started. */
static void lane_leave_threads_locked(struct casync_lane *lane)
{
	unsigned int i;

	for (i = 0; i < lane->thread_count; i++)
		pthread_detach(lane->threads[i]);
	lane->thread_count = CASYNC_LANE_STUCK_THREADS;
}

bool casync_lane_stop(struct casync_lane *lane, uint32_t timeout_s)
{
	bool ended;

	if (lane->name == NULL)
		return true;
	/* From here on the watchdog adds no thread. */
	pthread_mutex_lock(&running_lock);
	glist_del(&lane->link);
	pthread_mutex_unlock(&running_lock);

	pthread_mutex_lock(&lane->lock);
	lane->stopping = true;
	pthread_cond_broadcast(&lane->changed);
	ended = lane_await_end_locked(lane, timeout_s);
	if (!ended)
		lane_leave_threads_locked(lane);
	pthread_mutex_unlock(&lane->lock);
	if (!ended)
		return false;
	while (lane->thread_count != 0)
		pthread_join(lane->threads[--lane->thread_count], NULL);
	pthread_cond_destroy(&lane->ended);
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->lock);
	lane->name = NULL;
	return true;
}

bool casync_lane_is_stopping(struct casync_lane *lane)
{
	bool stopping;

	pthread_mutex_lock(&lane->lock);
	stopping = lane->stopping;
	pthread_mutex_unlock(&lane->lock);
	return stopping;
}

static void lane_unblock_locked(struct casync_lane *lane)
{
	unsigned int idle = lane->alive - lane->busy;
	unsigned int missing = 0;

	lane_look_at_time_locked(lane);
	if (lane->begun == lane->begun_before && lane->queued > idle)
		missing = lane->queued - idle;
	lane->begun_before = lane->begun;
	while (missing-- != 0 && lane->thread_count < CASYNC_LANE_STUCK_THREADS)
		if (lane_add_thread_locked(lane) != 0)
			break;
}

void casync_lane_unblock_all(void)
{
	struct casync_lane *lane;
	struct glist_head *node;

	pthread_mutex_lock(&running_lock);
	glist_for_each(node, &running) {
		lane = glist_entry(node, struct casync_lane, link);
		pthread_mutex_lock(&lane->lock);
		lane_unblock_locked(lane);
		pthread_mutex_unlock(&lane->lock);
	}
	pthread_mutex_unlock(&running_lock);
}

/* Start all lanes, or none.  One of them is that of recalls. */
static int lane_start_all(struct casync_lane *lanes, const char *const *names,
			  unsigned int count, unsigned int recall)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < count && rc == 0; i++)
		rc = casync_lane_start(&lanes[i], names[i],
				       i == recall ? CASYNC_LANE_RECALLERS : 1);
	if (rc != 0)
		for (i = 0; i < count; i++)
			(void)casync_lane_stop(&lanes[i], UINT32_MAX);
	return rc;
}

int casync_lane_start_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES])
{
	static const char *const names[CASYNC_MOUNT_LANES] = {
		[CASYNC_LANE_METADATA] = "casync_meta",
		[CASYNC_LANE_LOOK] = "casync_look",
		[CASYNC_LANE_DATA] = "casync_data",
		[CASYNC_LANE_SUBMIT] = "casync_submit",
	};

	return lane_start_all(lanes, names, CASYNC_MOUNT_LANES,
			      CASYNC_MOUNT_LANES);
}

bool casync_lane_stop_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES],
			    uint32_t timeout_s)
{
	bool ended = true;
	unsigned int i;

	/* After one that hangs the others end once their own jobs return. */
	for (i = 0; i < CASYNC_MOUNT_LANES; i++)
		ended &= casync_lane_stop(&lanes[i], ended ? timeout_s : 0);
	return ended;
}

struct casync_lane *casync_lane_of_process(enum casync_process_lane which)
{
	return &of_process[which];
}

int casync_lane_start_process(void)
{
	static const char *const names[CASYNC_PROCESS_LANES] = {
		[CASYNC_LANE_UPCALL] = "casync_upcall",
		[CASYNC_LANE_RECALL] = "casync_recall",
		[CASYNC_LANE_TEARDOWN] = "casync_teardown",
		[CASYNC_LANE_DISK] = "casync_disk",
	};

	if (of_process[0].name != NULL)
		return 0;
	return lane_start_all(of_process, names, CASYNC_PROCESS_LANES,
			      CASYNC_LANE_RECALL);
}

/* Has no lane a job?  @p begun: how many they have begun, as a mark. */
static bool lane_all_idle(uint64_t *begun)
{
	struct casync_lane *lane;
	struct glist_head *node;
	bool idle = true;

	*begun = 0;
	pthread_mutex_lock(&running_lock);
	glist_for_each(node, &running) {
		lane = glist_entry(node, struct casync_lane, link);
		pthread_mutex_lock(&lane->lock);
		idle &= lane->busy == 0 && lane->queued == 0;
		*begun += lane->begun;
		pthread_mutex_unlock(&lane->lock);
	}
	pthread_mutex_unlock(&running_lock);
	return idle;
}

/* A job may queue another one in a lane that was looked at before: so nothing
 * may have begun between two looks. */
static void lane_await_all_idle(void)
{
	const struct timespec pause = {.tv_nsec = CASYNC_NS_PER_MS};
	uint64_t before = 0, now;

	while (!lane_all_idle(&now) || now != before) {
		before = now;
		nanosleep(&pause, NULL);
	}
}

void casync_lane_stop_process(void)
{
	unsigned int i;

	lane_await_all_idle();
	for (i = 0; i < CASYNC_PROCESS_LANES; i++)
		(void)casync_lane_stop(&of_process[i], UINT32_MAX);
}

/* --- kinds of threads */

void casync_lane_mark_completion_thread(void)
{
	on_completion_thread = true;
}

bool casync_lane_on_completion_thread(void)
{
	return on_completion_thread;
}

bool casync_lane_on_own_thread(void)
{
	return on_completion_thread || on_lane_thread;
}
