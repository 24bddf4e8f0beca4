/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "log.h"
#include "workers.h"

/* Everything below is under `lock`, a leaf: no job runs with it held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_queued = PTHREAD_COND_INITIALIZER;
static struct casync_work *head;
static struct casync_work **tail = &head;
static unsigned int queued;
/* All are joined: their text must not be unmapped under them. */
static pthread_t threads[CASYNC_WORKERS_MAX];
static unsigned int thread_count; /* not joined */
static unsigned int alive;	  /* threads that have not ended */
static unsigned int busy;	  /* of these: run a job */
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

static void *worker(void *unused);

static int add_thread_locked(void)
{
	int rc = pthread_create(&threads[thread_count], NULL, worker, NULL);

	if (rc == 0) {
		thread_count++;
		alive++;
	}
	return -rc;
}

/*
 * One thread for each job that waits, and one for the next that comes: who
 * queues it may be a thread of libcephfs', and starts none.  One that cannot
 * be had is no error: another one is there.
 */
static void keep_one_spare_locked(void)
{
	if (alive - busy <= queued && thread_count < CASYNC_WORKERS_MAX)
		(void)add_thread_locked();
}

static void *worker(void *unused)
{
	struct casync_work *work;

	(void)unused;
	SetNameFunction("casync_work");

	pthread_mutex_lock(&lock);
	for (;;) {
		while ((work = dequeue_locked()) != NULL) {
			busy++;
			keep_one_spare_locked();
			pthread_mutex_unlock(&lock);
			work->run(work);
			pthread_mutex_lock(&lock);
			busy--;
		}
		if (stopping)
			break;
		pthread_cond_wait(&work_queued, &lock);
	}
	alive--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

void casync_work_submit(struct casync_work *work)
{
	pthread_mutex_lock(&lock);
	work->next = NULL;
	*tail = work;
	tail = &work->next;
	queued++;
	pthread_cond_signal(&work_queued);
	pthread_mutex_unlock(&lock);
}

int casync_workers_start(void)
{
	int rc;

	pthread_mutex_lock(&lock);
	stopping = false;
	rc = thread_count == 0 ? add_thread_locked() : 0;
	pthread_mutex_unlock(&lock);
	return rc;
}

void casync_workers_stop(void)
{
	pthread_t ended;

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&work_queued);
	/* A job may add a thread while we wait for another. */
	while (thread_count != 0) {
		ended = threads[--thread_count];
		pthread_mutex_unlock(&lock);
		pthread_join(ended, NULL);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}
