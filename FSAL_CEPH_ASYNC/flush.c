/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <semaphore.h>

#include "export.h"
#include "inflight.h"
#include "object.h"

#define NS_PER_MS 1000000ULL

/* How long a truncate by somebody else is taken for one of many. */
#define SHRUNK_MS 60000

void casync_flush_init(struct casync_flush *flush)
{
	pthread_mutex_init(&flush->lock, NULL);
	glist_init(&flush->waiters);
	flush->running = false;
	flush->truncated = false;
	flush->unjournaled = false;
	flush->flushed_size = CASYNC_FLUSHED_UNKNOWN;
	flush->written_end = 0;
	flush->generation = 0;
	flush->shrunk_ns = 0;
}

void casync_flush_destroy(struct casync_flush *flush)
{
	pthread_mutex_destroy(&flush->lock);
}

/* The end of the file as far as we know, and of what we have written. */
static uint64_t known_end_locked(struct casync_object *obj)
{
	uint64_t size = casync_object_size_hint(obj);

	return size > obj->flush.written_end ? size : obj->flush.written_end;
}

static void count_flush(struct casync_export *exp, int rc, uint64_t began_ns)
{
	struct casync_metrics_shard *shard =
		casync_metrics_shard(&exp->metrics);

	if (!CASYNC_METRICS_ON)
		return;
	casync_observe(shard, CASYNC_H_FLUSH, casync_now_ns() - began_ns);
	if (rc < 0)
		casync_count(shard, CASYNC_C_FLUSH_ERRORS, 1);
}

/*
 * What grows while the flush is in the air is not covered by it, and what is
 * cut off and grows again is not either.
 */
static int sync_inode(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	uint64_t began_ns = CASYNC_METRICS_ON ? casync_now_ns() : 0;
	uint64_t size;
	int rc;

	pthread_mutex_lock(&flush->lock);
	flush->truncated = false;
	size = known_end_locked(obj);
	pthread_mutex_unlock(&flush->lock);

	rc = ceph_ll_sync_inode(obj->exp->ceph, obj->inode, 0);
	count_flush(obj->exp, rc, began_ns);

	pthread_mutex_lock(&flush->lock);
	if (rc == 0)
		__atomic_store_n(&flush->unjournaled, false, __ATOMIC_RELEASE);
	if (rc == 0 && !flush->truncated && size > flush->flushed_size)
		__atomic_store_n(&flush->flushed_size, size, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&flush->lock);
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
 * The leader.  Who came meanwhile has a leader of his own before anybody is
 * answered: an answer may be held up, and once the last waiter has its answer
 * the object may be gone.
 */
static void flush_run(struct casync_work *work)
{
	struct casync_object *obj =
		container_of(work, struct casync_object, flush.work);
	struct casync_flush *flush = &obj->flush;
	struct glist_head covered;
	bool more;
	int rc;

	glist_init(&covered);
	pthread_mutex_lock(&flush->lock);
	glist_splice_tail(&covered, &flush->waiters);
	pthread_mutex_unlock(&flush->lock);

	rc = sync_inode(obj);

	pthread_mutex_lock(&flush->lock);
	more = !glist_empty(&flush->waiters);
	flush->running = more;
	pthread_mutex_unlock(&flush->lock);

	if (more)
		casync_work_submit(&flush->work);
	answer(&covered, rc);
}

void casync_flush_request(struct casync_object *obj,
			  struct casync_flush_waiter *waiter)
{
	struct casync_flush *flush = &obj->flush;
	bool lead;

	casync_count(casync_metrics_shard(&obj->exp->metrics),
		     CASYNC_C_FLUSH_REQUESTS, 1);
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

void casync_flush_born(struct casync_object *obj)
{
	__atomic_store_n(&obj->flush.unjournaled, true, __ATOMIC_RELEASE);
}

bool casync_flush_before_data(struct casync_object *obj)
{
	return __atomic_load_n(&obj->flush.unjournaled, __ATOMIC_ACQUIRE);
}

bool casync_flush_grown(struct casync_object *obj, uint64_t end_bytes)
{
	return end_bytes >
	       __atomic_load_n(&obj->flush.flushed_size, __ATOMIC_ACQUIRE);
}

static void lower_locked(struct casync_flush *flush, uint64_t size_bytes)
{
	if (flush->flushed_size > size_bytes)
		__atomic_store_n(&flush->flushed_size, size_bytes,
				 __ATOMIC_RELEASE);
	if (flush->written_end > size_bytes)
		flush->written_end = size_bytes;
}

void casync_flush_truncated(struct casync_object *obj, uint64_t size_bytes)
{
	struct casync_flush *flush = &obj->flush;

	pthread_mutex_lock(&flush->lock);
	flush->truncated = true;
	flush->generation++;
	casync_object_size_seen(obj, size_bytes);
	lower_locked(flush, size_bytes);
	pthread_mutex_unlock(&flush->lock);
}

uint64_t casync_flush_generation(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	uint64_t generation;

	pthread_mutex_lock(&flush->lock);
	generation = flush->generation;
	pthread_mutex_unlock(&flush->lock);
	return generation;
}

void casync_flush_size_seen(struct casync_object *obj, uint64_t size_bytes,
			    uint64_t generation)
{
	struct casync_flush *flush = &obj->flush;

	pthread_mutex_lock(&flush->lock);
	if (generation == flush->generation) {
		if (size_bytes < flush->flushed_size)
			flush->truncated = true;
		if (size_bytes < known_end_locked(obj))
			__atomic_store_n(&flush->shrunk_ns, casync_now_ns(),
					 __ATOMIC_RELAXED);
		casync_object_size_seen(obj, size_bytes);
		lower_locked(flush, size_bytes);
	}
	pthread_mutex_unlock(&flush->lock);
}

bool casync_flush_shrunk(struct casync_object *obj)
{
	uint64_t shrunk_ns =
		__atomic_load_n(&obj->flush.shrunk_ns, __ATOMIC_RELAXED);

	return shrunk_ns != 0 &&
	       casync_now_ns() - shrunk_ns < SHRUNK_MS * NS_PER_MS;
}

void casync_flush_written(struct casync_object *obj, uint64_t end_bytes)
{
	struct casync_flush *flush = &obj->flush;

	pthread_mutex_lock(&flush->lock);
	flush->generation++;
	if (flush->written_end < end_bytes)
		flush->written_end = end_bytes;
	casync_object_size_grown(obj, end_bytes);
	pthread_mutex_unlock(&flush->lock);
}

bool casync_flush_pending(struct casync_object *obj)
{
	struct casync_flush *flush = &obj->flush;
	uint64_t end;

	/* Also what was written before this object came into the cache. */
	pthread_mutex_lock(&flush->lock);
	end = known_end_locked(obj);
	pthread_mutex_unlock(&flush->lock);
	return casync_flush_grown(obj, end);
}
