/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "check.h"
#include "clock.h"
#include "inflight.h"

/* In flight and queued, in all sets; atomic.  The limits change only while
 * there are no sets. */
static uint64_t all_ops, all_bytes;
static uint64_t all_max_ops = UINT64_MAX;
static uint64_t all_max_bytes = UINT64_MAX;

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes)
{
	pthread_mutex_init(&set->lock, NULL);
	casync_clock_cond_init(&set->emptied);
	glist_init(&set->entries);
	glist_init(&set->overdue);
	glist_init(&set->queue);
	set->ops = 0;
	set->bytes = 0;
	set->queue_bytes = 0;
	set->refused = 0;
	set->peak_ops = 0;
	set->max_ops = max_ops;
	set->max_bytes = max_bytes;
	set->waiting = 0;
	set->closed = false;
}

void casync_inflight_destroy(struct casync_inflight *set)
{
	/* The thread that let the last entry out may still hold the lock. */
	pthread_mutex_lock(&set->lock);
	pthread_mutex_unlock(&set->lock);
	pthread_cond_destroy(&set->emptied);
	pthread_mutex_destroy(&set->lock);
}

static bool inflight_has_room_locked(const struct casync_inflight *set,
				     uint64_t bytes)
{
	return set->ops == 0 || (set->ops < set->max_ops &&
				 set->bytes + bytes <= set->max_bytes);
}

static void inflight_add_locked(struct casync_inflight *set,
				struct casync_inflight_entry *entry)
{
	CASYNC_CHECK_HELD(&set->lock);
	entry->since_ns = casync_clock_ns();
	glist_add_tail(&set->entries, &entry->link);
	entry->alone = set->ops == 0;
	set->ops++;
	if (set->peak_ops < set->ops)
		set->peak_ops = set->ops;
	set->bytes += entry->bytes;
}

/* --- all sets together */

void casync_inflight_limit_all(uint64_t max_ops, uint64_t max_bytes)
{
	__atomic_store_n(&all_max_ops, max_ops, __ATOMIC_RELAXED);
	__atomic_store_n(&all_max_bytes, max_bytes, __ATOMIC_RELAXED);
}

static void inflight_release_of_all(uint64_t bytes)
{
	CASYNC_CHECK_DOWN(&all_ops, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&all_bytes, bytes, __ATOMIC_RELAXED);
}

static bool inflight_is_assured_locked(const struct casync_inflight *set,
				       uint64_t bytes)
{
	uint64_t ops = set->ops + set->waiting;

	return ops == 0 ||
	       (ops < CASYNC_ASSURED_OPS &&
		set->bytes + set->queue_bytes + bytes <= CASYNC_ASSURED_BYTES);
}

static bool inflight_take_of_all_locked(const struct casync_inflight *set,
					uint64_t bytes)
{
	uint64_t ops = __atomic_add_fetch(&all_ops, 1, __ATOMIC_RELAXED);
	uint64_t sum = __atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED);

	if ((ops <= __atomic_load_n(&all_max_ops, __ATOMIC_RELAXED) &&
	     sum <= __atomic_load_n(&all_max_bytes, __ATOMIC_RELAXED)) ||
	    inflight_is_assured_locked(set, bytes))
		return true;
	inflight_release_of_all(bytes);
	return false;
}

/* --- the queue */

static void inflight_dequeue_locked(struct casync_inflight *set,
				    struct casync_inflight_entry *entry,
				    int refused)
{
	CASYNC_CHECK_HELD(&set->lock);
	glist_del(&entry->link);
	CASYNC_CHECK(set->waiting != 0);
	set->waiting--;
	set->queue_bytes -= entry->bytes;
	entry->refused = refused;
	entry->waited_ns = casync_clock_age_ns(entry->queued_ns);
	if (refused != 0) {
		inflight_release_of_all(entry->bytes);
		set->refused++;
	} else {
		inflight_add_locked(set, entry);
	}
}

/*
 * Let queued entries in while there is room, oldest first.  They are linked by
 * next_called.  The caller calls them without the lock.
 */
static void inflight_serve_queue_locked(struct casync_inflight *set,
					struct casync_inflight_entry **called)
{
	struct casync_inflight_entry *first;

	CASYNC_CHECK_HELD(&set->lock);
	while ((first = glist_first_entry(&set->queue,
					  struct casync_inflight_entry,
					  link)) != NULL) {
		if (!set->closed &&
		    !inflight_has_room_locked(set, first->bytes))
			return;
		inflight_dequeue_locked(set, first,
					set->closed ? -ECANCELED : 0);
		*called = first;
		called = &first->next_called;
	}
}

/* The set may be freed already.  An entry may be freed once it was called. */
static void inflight_call_all(struct casync_inflight_entry *entry)
{
	struct casync_inflight_entry *next;

	for (; entry != NULL; entry = next) {
		next = entry->next_called;
		entry->called(entry);
	}
}

void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes)
{
	struct casync_inflight_entry *called = NULL;

	pthread_mutex_lock(&set->lock);
	set->max_ops = max_ops;
	set->max_bytes = max_bytes;
	inflight_serve_queue_locked(set, &called);
	pthread_mutex_unlock(&set->lock);
	inflight_call_all(called);
}

static void inflight_enqueue_locked(struct casync_inflight *set,
				    struct casync_inflight_entry *entry)
{
	entry->queued_ns = casync_clock_ns();
	glist_add_tail(&set->queue, &entry->link);
	set->waiting++;
	set->queue_bytes += entry->bytes;
}

static int inflight_enter_locked(struct casync_inflight *set,
				 struct casync_inflight_entry *entry)
{
	bool room = set->waiting == 0 &&
		    inflight_has_room_locked(set, entry->bytes);

	if (set->closed)
		return -ECANCELED;
	if ((!room && set->waiting >= CASYNC_MAX_WAITING) ||
	    !inflight_take_of_all_locked(set, entry->bytes))
		return -EAGAIN;
	if (room) {
		inflight_add_locked(set, entry);
		return 0;
	}
	inflight_enqueue_locked(set, entry);
	return -EINPROGRESS;
}

int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes)
{
	int rc;

	entry->bytes = bytes;
	entry->queued_ns = 0;
	entry->waited_ns = 0;
	entry->next_called = NULL;
	entry->refused = 0;
	entry->reported = false;

	pthread_mutex_lock(&set->lock);
	rc = inflight_enter_locked(set, entry);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

bool casync_inflight_grow(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes)
{
	bool room;

	pthread_mutex_lock(&set->lock);
	room = !set->closed && set->waiting == 0 &&
	       set->bytes + bytes <= set->max_bytes / 2 &&
	       __atomic_load_n(&all_bytes, __ATOMIC_RELAXED) + bytes <=
		       __atomic_load_n(&all_max_bytes, __ATOMIC_RELAXED) / 2;
	if (room) {
		__atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED);
		set->bytes += bytes;
		entry->bytes += bytes;
	}
	pthread_mutex_unlock(&set->lock);
	return room;
}

void casync_inflight_leave(struct casync_inflight *set,
			   struct casync_inflight_entry *entry)
{
	struct casync_inflight_entry *called = NULL;

	pthread_mutex_lock(&set->lock);
	if (entry->refused != 0) {
		CASYNC_CHECK(set->refused != 0);
		set->refused--;
	} else {
		glist_del(&entry->link);
		CASYNC_CHECK(set->ops != 0);
		set->ops--;
		set->bytes -= entry->bytes;
		inflight_release_of_all(entry->bytes);
		inflight_serve_queue_locked(set, &called);
	}
	if (set->closed && set->ops + set->refused == 0)
		pthread_cond_broadcast(&set->emptied);
	pthread_mutex_unlock(&set->lock);
	inflight_call_all(called);
}

void casync_inflight_expire(struct casync_inflight *set)
{
	struct casync_inflight_entry *called = NULL;
	struct casync_inflight_entry **end = &called;
	struct casync_inflight_entry *first;
	uint64_t now_ns;

	pthread_mutex_lock(&set->lock);
	/* Before the oldest entry in the queue. */
	now_ns = casync_clock_ns();
	while ((first = glist_first_entry(&set->queue,
					  struct casync_inflight_entry,
					  link)) != NULL &&
	       now_ns - first->queued_ns >=
		       CASYNC_MAX_WAIT_MS * CASYNC_NS_PER_MS) {
		inflight_dequeue_locked(set, first, -EAGAIN);
		*end = first;
		end = &first->next_called;
	}
	/* The next one may need less room. */
	inflight_serve_queue_locked(set, end);
	pthread_mutex_unlock(&set->lock);
	inflight_call_all(called);
}

uint64_t casync_inflight_drain(struct casync_inflight *set, uint32_t timeout_ms)
{
	struct timespec deadline = casync_clock_deadline(timeout_ms);
	struct casync_inflight_entry *called = NULL;
	uint64_t left;
	int rc = 0;

	pthread_mutex_lock(&set->lock);
	set->closed = true;
	inflight_serve_queue_locked(set, &called);
	pthread_mutex_unlock(&set->lock);
	inflight_call_all(called);

	pthread_mutex_lock(&set->lock);
	while (set->ops + set->refused != 0 && rc == 0)
		rc = pthread_cond_timedwait(&set->emptied, &set->lock,
					    &deadline);
	left = set->ops + set->refused;
	pthread_mutex_unlock(&set->lock);
	return left;
}

void casync_inflight_visit_overdue(struct casync_inflight *set,
				   uint64_t before_ns,
				   casync_inflight_visitor *visit, void *arg)
{
	struct casync_inflight_entry *entry;

	pthread_mutex_lock(&set->lock);
	while ((entry = glist_first_entry(&set->entries,
					  struct casync_inflight_entry,
					  link)) != NULL &&
	       entry->since_ns < before_ns) {
		glist_del(&entry->link);
		glist_add_tail(&set->overdue, &entry->link);
		visit(entry, arg);
	}
	pthread_mutex_unlock(&set->lock);
}

static uint64_t inflight_oldest_since_locked(struct casync_inflight *set)
{
	const struct casync_inflight_entry *entry = glist_first_entry(
		glist_empty(&set->overdue) ? &set->entries : &set->overdue,
		struct casync_inflight_entry, link);

	return entry != NULL ? entry->since_ns : 0;
}

void casync_inflight_sample(struct casync_inflight *set,
			    struct casync_inflight_sample *look)
{
	uint64_t since_ns;

	pthread_mutex_lock(&set->lock);
	look->ops = set->ops;
	look->bytes = set->bytes;
	look->peak_ops = set->peak_ops;
	look->waiting = set->waiting;
	since_ns = inflight_oldest_since_locked(set);
	pthread_mutex_unlock(&set->lock);
	look->oldest_ns = since_ns != 0 ? casync_clock_age_ns(since_ns) : 0;
}

/* Both lists begin with the oldest. */
static void inflight_visit_list(struct glist_head *list, uint64_t before_ns,
				casync_inflight_visitor *visit, void *arg)
{
	struct casync_inflight_entry *entry;
	struct glist_head *node;

	glist_for_each(node, list) {
		entry = glist_entry(node, struct casync_inflight_entry, link);
		if (entry->since_ns >= before_ns)
			break;
		visit(entry, arg);
	}
}

void casync_inflight_visit_older(struct casync_inflight *set,
				 uint64_t before_ns,
				 casync_inflight_visitor *visit, void *arg)
{
	pthread_mutex_lock(&set->lock);
	inflight_visit_list(&set->overdue, before_ns, visit, arg);
	inflight_visit_list(&set->entries, before_ns, visit, arg);
	pthread_mutex_unlock(&set->lock);
}

void casync_inflight_sync(struct casync_inflight *set)
{
	pthread_mutex_lock(&set->lock);
	pthread_mutex_unlock(&set->lock);
}

void casync_inflight_visit_all(struct casync_inflight *set,
			       casync_inflight_visitor *visit, void *arg)
{
	casync_inflight_visit_older(set, UINT64_MAX, visit, arg);
}
