/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <semaphore.h>

#include "export.h"
#include "object.h"

void casync_flush_init(struct casync_flush *flush)
{
	pthread_mutex_init(&flush->lock, NULL);
	glist_init(&flush->waiters);
	flush->running = false;
	flush->flushed_size = CASYNC_FLUSHED_UNKNOWN;
}

void casync_flush_destroy(struct casync_flush *flush)
{
	pthread_mutex_destroy(&flush->lock);
}

static int sync_inode(struct casync_object *obj)
{
	/* Read before the flush: what grows meanwhile is not covered. */
	uint64_t size = casync_object_size_hint(obj);
	int rc = ceph_ll_sync_inode(obj->exp->ceph, obj->inode, 0);

	if (rc == 0)
		__atomic_store_n(&obj->flush.flushed_size, size,
				 __ATOMIC_RELEASE);
	return rc;
}

static void answer(struct glist_head *waiters, int rc)
{
	struct casync_flush_waiter *waiter;

	while ((waiter = glist_first_entry(waiters, struct casync_flush_waiter,
					   link)) != NULL) {
		glist_del(&waiter->link);
		waiter->done(waiter, rc);
	}
}

/*
 * The leader.  Once the last waiter has been answered the object may be gone,
 * so whether there is more to do is settled before anybody is answered; if
 * there is, those who wait for it keep the object.
 */
static void flush_run(struct casync_work *work)
{
	struct casync_object *obj =
		container_of(work, struct casync_object, flush.work);
	struct casync_flush *flush = &obj->flush;
	struct glist_head covered;
	bool more = true;
	int rc;

	while (more) {
		glist_init(&covered);
		pthread_mutex_lock(&flush->lock);
		glist_splice_tail(&covered, &flush->waiters);
		pthread_mutex_unlock(&flush->lock);

		rc = sync_inode(obj);

		pthread_mutex_lock(&flush->lock);
		more = !glist_empty(&flush->waiters);
		flush->running = more;
		pthread_mutex_unlock(&flush->lock);

		answer(&covered, rc);
	}
}

void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter)
{
	struct casync_flush *flush = &obj->flush;
	bool lead;

	pthread_mutex_lock(&flush->lock);
	glist_add_tail(&flush->waiters, &waiter->link);
	lead = !flush->running;
	flush->running = true;
	pthread_mutex_unlock(&flush->lock);

	if (lead) {
		flush->work.run = flush_run;
		casync_work_submit(&flush->work);
	}
}

struct blocked_waiter {
	struct casync_flush_waiter waiter;
	sem_t answered;
	int rc;
};

static void wake_blocked(struct casync_flush_waiter *waiter, int rc)
{
	struct blocked_waiter *blocked =
		container_of(waiter, struct blocked_waiter, waiter);

	blocked->rc = rc;
	sem_post(&blocked->answered);
}

int casync_flush_wait(struct casync_object *obj)
{
	struct blocked_waiter blocked = {.waiter.done = wake_blocked};

	sem_init(&blocked.answered, 0, 0);
	casync_flush_request(obj, &blocked.waiter);
	while (sem_wait(&blocked.answered) != 0)
		; /* EINTR */
	sem_destroy(&blocked.answered);
	return blocked.rc;
}

bool casync_flush_grown(struct casync_object *obj, uint64_t end_bytes)
{
	return end_bytes >
	       __atomic_load_n(&obj->flush.flushed_size, __ATOMIC_ACQUIRE);
}

void casync_flush_truncated(struct casync_object *obj, uint64_t size_bytes)
{
	uint64_t *flushed = &obj->flush.flushed_size;
	uint64_t seen = __atomic_load_n(flushed, __ATOMIC_RELAXED);

	while (seen > size_bytes &&
	       !__atomic_compare_exchange_n(flushed, &seen, size_bytes, true,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		; /* seen is fresh */
}
