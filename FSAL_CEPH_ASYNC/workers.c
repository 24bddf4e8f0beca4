/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "log.h"
#include "workers.h"

/* Seconds after which a worker with nothing to do ends (not the last one). */
#define IDLE_S 30

/* Everything below is under `lock`, a leaf: no job runs with it held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t thread_ended = PTHREAD_COND_INITIALIZER;
static struct casync_work *head;
static struct casync_work **tail = &head;
static unsigned int queued;
static unsigned int threads;
static unsigned int idle; /* waiting, woken or not */
static bool stopping;

static struct casync_work *dequeue_locked(void)
{
	struct casync_work *work = head;

	if (work == NULL)
		return NULL;
	head = work->next;
	if (head == NULL)
		tail = &head;
	queued--;
	return work;
}

/* Wait for a job; false when this thread is to end. */
static bool wait_for_work_locked(void)
{
	struct timespec deadline;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += IDLE_S;

	idle++;
	while (head == NULL && !stopping && rc == 0)
		rc = pthread_cond_timedwait(&work_queued, &lock, &deadline);
	idle--;

	if (head != NULL)
		return true;
	return !stopping && threads == 1;
}

static void *worker(void *unused)
{
	struct casync_work *work;

	(void)unused;
	SetNameFunction("casync_work");

	pthread_mutex_lock(&lock);
	while (wait_for_work_locked()) {
		while ((work = dequeue_locked()) != NULL) {
			pthread_mutex_unlock(&lock);
			work->run(work);
			pthread_mutex_lock(&lock);
		}
	}
	threads--;
	pthread_cond_signal(&thread_ended);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int add_thread_locked(void)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, worker, NULL);

	if (rc != 0)
		return -rc;
	pthread_detach(thread);
	threads++;
	return 0;
}

void casync_work_submit(struct casync_work *work)
{
	pthread_mutex_lock(&lock);
	work->next = NULL;
	*tail = work;
	tail = &work->next;
	queued++;
	/* One thread for each job that waits.  One that cannot be had is no
	 * error: another one is there. */
	if (queued > idle && threads < CASYNC_WORKERS_MAX)
		(void)add_thread_locked();
	pthread_cond_signal(&work_queued);
	pthread_mutex_unlock(&lock);
}

int casync_workers_start(void)
{
	int rc;

	pthread_mutex_lock(&lock);
	stopping = false;
	rc = threads == 0 ? add_thread_locked() : 0;
	pthread_mutex_unlock(&lock);
	return rc;
}

void casync_workers_stop(void)
{
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&work_queued);
	while (threads != 0)
		pthread_cond_wait(&thread_ended, &lock);
	pthread_mutex_unlock(&lock);
}
