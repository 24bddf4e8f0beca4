/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "log.h"
#include "workers.h"

/* All members are under `lock`, a leaf: no job runs with it held. */
struct lane {
	struct casync_work *head;
	struct casync_work *last;
	uint64_t begun, begun_before; /* jobs; at the last look */
	pthread_mutex_t lock;
	pthread_cond_t work_queued;
	/* All are joined: their text must not be unmapped under them. */
	pthread_t threads[CASYNC_WORKERS_STUCK_MAX];
	unsigned int queued;
	unsigned int thread_count; /* not joined */
	unsigned int alive;	   /* threads that have not ended */
	unsigned int busy;	   /* of these: run a job */
};

#define LANE                                             \
	{                                                \
		.lock = PTHREAD_MUTEX_INITIALIZER,       \
		.work_queued = PTHREAD_COND_INITIALIZER, \
	}

static struct lane lanes[CASYNC_WORK_LANES] = {LANE, LANE, LANE,
					       LANE, LANE, LANE};

static const char *const names[CASYNC_WORK_LANES] = {
	[CASYNC_WORK_METADATA] = "casync_meta",
	[CASYNC_WORK_LOOK] = "casync_look",
	[CASYNC_WORK_DATA] = "casync_data",
	[CASYNC_WORK_SUBMIT] = "casync_submit",
	[CASYNC_WORK_UPCALL] = "casync_upcall",
	[CASYNC_WORK_DISK] = "casync_disk",
};

/* Changed before a lane's lock is taken to tell its threads. */
static bool stopping; /* atomic */

static __thread bool on_completion_thread;

static struct casync_work *workers_dequeue_locked(struct lane *lane)
{
	struct casync_work *work = lane->head;

	if (work == NULL)
		return NULL;
	lane->head = work->next;
	lane->queued--;
	lane->begun++;
	return work;
}

static void *workers_worker(void *arg);

static int workers_add_thread_locked(struct lane *lane)
{
	int rc = pthread_create(&lane->threads[lane->thread_count], NULL,
				workers_worker, lane);

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
static void workers_keep_one_spare_locked(struct lane *lane)
{
	if (lane->alive - lane->busy <= lane->queued &&
	    lane->thread_count < CASYNC_WORKERS_MAX)
		(void)workers_add_thread_locked(lane);
}

static void *workers_worker(void *arg)
{
	struct lane *lane = arg;
	struct casync_work *work;

	SetNameFunction(names[lane - lanes]);

	pthread_mutex_lock(&lane->lock);
	for (;;) {
		while ((work = workers_dequeue_locked(lane)) != NULL) {
			lane->busy++;
			workers_keep_one_spare_locked(lane);
			pthread_mutex_unlock(&lane->lock);
			work->run(work);
			pthread_mutex_lock(&lane->lock);
			lane->busy--;
		}
		if (__atomic_load_n(&stopping, __ATOMIC_ACQUIRE))
			break;
		pthread_cond_wait(&lane->work_queued, &lane->lock);
	}
	lane->alive--;
	pthread_mutex_unlock(&lane->lock);
	return NULL;
}

static void workers_append_locked(struct lane *lane, struct casync_work *work)
{
	work->next = NULL;
	if (lane->head != NULL)
		lane->last->next = work;
	else
		lane->head = work;
	lane->last = work;
	lane->queued++;
	pthread_cond_signal(&lane->work_queued);
}

void casync_workers_submit(enum casync_work_lane number,
			   struct casync_work *work)
{
	struct lane *lane = &lanes[number];

	pthread_mutex_lock(&lane->lock);
	workers_append_locked(lane, work);
	pthread_mutex_unlock(&lane->lock);
}

void casync_workers_submit_shared(enum casync_work_lane number,
				  struct casync_work_share *share,
				  struct casync_work *work)
{
	struct lane *lane = &lanes[number];

	pthread_mutex_lock(&lane->lock);
	if (share->at_work < CASYNC_WORK_SHARE) {
		share->at_work++;
		workers_append_locked(lane, work);
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

bool casync_workers_try_shared(enum casync_work_lane number,
			       struct casync_work_share *share,
			       struct casync_work *work)
{
	struct lane *lane = &lanes[number];
	bool taken;

	pthread_mutex_lock(&lane->lock);
	taken = share->at_work < CASYNC_WORK_SHARE &&
		lane->busy + lane->queued < CASYNC_WORKERS_MAX;
	if (taken) {
		share->at_work++;
		workers_append_locked(lane, work);
	}
	pthread_mutex_unlock(&lane->lock);
	return taken;
}

void casync_workers_release_share(enum casync_work_lane number,
				  struct casync_work_share *share)
{
	struct lane *lane = &lanes[number];
	struct casync_work *next;

	pthread_mutex_lock(&lane->lock);
	next = share->waiting;
	if (next != NULL) {
		share->waiting = next->next;
		workers_append_locked(lane, next);
	} else {
		share->at_work--;
	}
	pthread_mutex_unlock(&lane->lock);
}

int casync_workers_start(void)
{
	unsigned int i;
	int rc = 0;

	__atomic_store_n(&stopping, false, __ATOMIC_RELEASE);
	for (i = 0; i < CASYNC_WORK_LANES && rc == 0; i++) {
		pthread_mutex_lock(&lanes[i].lock);
		if (lanes[i].thread_count == 0)
			rc = workers_add_thread_locked(&lanes[i]);
		pthread_mutex_unlock(&lanes[i].lock);
	}
	if (rc != 0)
		casync_workers_stop();
	return rc;
}

static void workers_unblock_locked(struct lane *lane)
{
	unsigned int idle = lane->alive - lane->busy;
	unsigned int missing = 0;

	/* Not while stopping: the joining thread counts them. */
	if (lane->begun == lane->begun_before && lane->thread_count != 0 &&
	    !__atomic_load_n(&stopping, __ATOMIC_ACQUIRE) &&
	    lane->queued > idle)
		missing = lane->queued - idle;
	lane->begun_before = lane->begun;
	while (missing-- != 0 && lane->thread_count < CASYNC_WORKERS_STUCK_MAX)
		if (workers_add_thread_locked(lane) != 0)
			break;
}

void casync_workers_unblock(void)
{
	unsigned int i;

	for (i = 0; i < CASYNC_WORK_LANES; i++) {
		pthread_mutex_lock(&lanes[i].lock);
		workers_unblock_locked(&lanes[i]);
		pthread_mutex_unlock(&lanes[i].lock);
	}
}

static void workers_join_all(struct lane *lane)
{
	pthread_t ended;

	pthread_mutex_lock(&lane->lock);
	pthread_cond_broadcast(&lane->work_queued);
	/* A job may add a thread while we wait for another. */
	while (lane->thread_count != 0) {
		ended = lane->threads[--lane->thread_count];
		pthread_mutex_unlock(&lane->lock);
		pthread_join(ended, NULL);
		pthread_mutex_lock(&lane->lock);
	}
	pthread_mutex_unlock(&lane->lock);
}

/* Run jobs that a lane's last job has queued in a lane without threads. */
static bool workers_run_remaining(struct lane *lane)
{
	struct casync_work *work;

	pthread_mutex_lock(&lane->lock);
	work = workers_dequeue_locked(lane);
	pthread_mutex_unlock(&lane->lock);
	if (work != NULL)
		work->run(work);
	return work != NULL;
}

void casync_workers_stop(void)
{
	unsigned int i;
	bool more;

	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	for (i = 0; i < CASYNC_WORK_LANES; i++)
		workers_join_all(&lanes[i]);
	do {
		more = false;
		for (i = 0; i < CASYNC_WORK_LANES; i++)
			more |= workers_run_remaining(&lanes[i]);
	} while (more);
}

void casync_workers_mark_completion_thread(void)
{
	on_completion_thread = true;
}

bool casync_workers_on_completion_thread(void)
{
	return on_completion_thread;
}
