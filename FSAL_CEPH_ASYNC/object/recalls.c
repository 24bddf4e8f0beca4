/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "fsal.h"
#include "fsal_up.h"

#include "export.h"
#include "recalls.h"

/* `lock` guards everything below.  It is a leaf: it is taken under client_lock,
 * and never held across a call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t recall_queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t recall_ended = PTHREAD_COND_INITIALIZER;
static GLIST_HEAD(queue);
static pthread_t threads[CASYNC_RECALLS_THREADS];
static unsigned int thread_count;
static bool stopping;

/* A recall names the object by its handle, as a client does. */
static void recalls_tell(struct casync_export *exp,
			 const struct casync_fileid *id)
{
	const struct fsal_up_vector *up = exp->export.up_ops;
	uint8_t wire[CASYNC_WIRE_BYTES];
	struct gsh_buffdesc handle = {.addr = wire, .len = sizeof(wire)};

	casync_wire_encode(id, wire);
	up_ready_wait((struct fsal_up_vector *)up);
	casync_upcalls_enter();
	(void)up->delegrecall(up, &handle);
	casync_upcalls_exit();
}

/* A recall that is off the queue may be freed at any time; the export is kept
 * while it is busy. */
static void recalls_carry_locked(struct casync_recall *recall)
{
	struct casync_export *exp = recall->exp;
	struct casync_fileid id = recall->id;

	glist_del(&recall->link);
	recall->queued = false;
	if (!exp->recalls.joined)
		return;
	exp->recalls.busy++;
	pthread_mutex_unlock(&lock);
	recalls_tell(exp, &id);
	pthread_mutex_lock(&lock);
	exp->recalls.busy--;
	pthread_cond_broadcast(&recall_ended);
}

static void *recalls_recaller(void *unused)
{
	struct casync_recall *recall;

	(void)unused;
	SetNameFunction("casync_recall");

	pthread_mutex_lock(&lock);
	for (;;) {
		recall = glist_first_entry(&queue, struct casync_recall, link);
		if (recall != NULL)
			recalls_carry_locked(recall);
		else if (stopping)
			break;
		else
			pthread_cond_wait(&recall_queued, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int casync_recalls_start(void)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	stopping = false;
	while (rc == 0 && thread_count < CASYNC_RECALLS_THREADS) {
		rc = pthread_create(&threads[thread_count], NULL,
				    recalls_recaller, NULL);
		if (rc == 0)
			thread_count++;
	}
	pthread_mutex_unlock(&lock);
	return -rc;
}

void casync_recalls_stop(void)
{
	unsigned int i, count;

	pthread_mutex_lock(&lock);
	stopping = true;
	count = thread_count;
	thread_count = 0;
	pthread_cond_broadcast(&recall_queued);
	pthread_mutex_unlock(&lock);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

void casync_recalls_join(struct casync_export *exp)
{
	pthread_mutex_lock(&lock);
	exp->recalls.joined = true;
	pthread_mutex_unlock(&lock);
}

void casync_recalls_leave(struct casync_export *exp)
{
	pthread_mutex_lock(&lock);
	exp->recalls.joined = false;
	/* Not in an upcall: it would wait for itself. */
	while (exp->recalls.busy != 0 && !casync_upcalls_on_thread())
		pthread_cond_wait(&recall_ended, &lock);
	pthread_mutex_unlock(&lock);
}

void casync_recall(struct casync_recall *recall)
{
	pthread_mutex_lock(&lock);
	if (!recall->queued) {
		recall->queued = true;
		glist_add_tail(&queue, &recall->link);
		pthread_cond_signal(&recall_queued);
	}
	pthread_mutex_unlock(&lock);
}

void casync_recall_forget(struct casync_recall *recall)
{
	pthread_mutex_lock(&lock);
	if (recall->queued)
		glist_del(&recall->link);
	recall->queued = false;
	pthread_mutex_unlock(&lock);
}
