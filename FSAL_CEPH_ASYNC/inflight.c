/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "inflight.h"

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL

/* A caller in line, on its own stack; all of it under the set's lock. */
struct waiter {
	struct glist_head link;
	struct casync_inflight_entry *entry;
	pthread_cond_t called;
	bool let_in;
};

uint64_t casync_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct timespec deadline_after(uint32_t timeout_ms)
{
	uint64_t then = casync_now_ns() + timeout_ms * NS_PER_MS;
	struct timespec ts = {.tv_sec = (time_t)(then / NS_PER_S),
			      .tv_nsec = (long)(then % NS_PER_S)};

	return ts;
}

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes)
{
	pthread_mutex_init(&set->lock, NULL);
	init_cond(&set->emptied);
	glist_init(&set->entries);
	glist_init(&set->overdue);
	glist_init(&set->line);
	set->ops = 0;
	set->bytes = 0;
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

static bool has_room_locked(const struct casync_inflight *set, uint64_t bytes)
{
	return set->ops == 0 || (set->ops < set->max_ops &&
				 set->bytes + bytes <= set->max_bytes);
}

static void add_locked(struct casync_inflight *set,
		       struct casync_inflight_entry *entry)
{
	entry->since_ns = casync_now_ns();
	glist_add_tail(&set->entries, &entry->link);
	entry->alone = set->ops == 0;
	set->ops++;
	if (set->peak_ops < set->ops)
		set->peak_ops = set->ops;
	set->bytes += entry->bytes;
}

static void leave_line_locked(struct casync_inflight *set,
			      struct waiter *waiter)
{
	glist_del(&waiter->link);
	set->waiting--;
}

/* Give the room there is to those who wait, in the order they came. */
static void serve_line_locked(struct casync_inflight *set)
{
	struct waiter *first;

	while ((first = glist_first_entry(&set->line, struct waiter, link)) !=
	       NULL) {
		if (!set->closed && !has_room_locked(set, first->entry->bytes))
			return;
		leave_line_locked(set, first);
		first->let_in = !set->closed;
		if (first->let_in)
			add_locked(set, first->entry);
		pthread_cond_signal(&first->called);
	}
}

void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes)
{
	pthread_mutex_lock(&set->lock);
	set->max_ops = max_ops;
	set->max_bytes = max_bytes;
	serve_line_locked(set);
	pthread_mutex_unlock(&set->lock);
}

/* 0, -EAGAIN or -ESHUTDOWN. */
static int wait_in_line_locked(struct casync_inflight *set,
			       struct casync_inflight_entry *entry)
{
	struct timespec deadline = deadline_after(CASYNC_MAX_WAIT_MS);
	struct waiter self = {.entry = entry};
	uint64_t began_ns = casync_now_ns();
	int rc = 0;

	init_cond(&self.called);
	glist_add_tail(&set->line, &self.link);
	set->waiting++;
	while (!self.let_in && !set->closed && rc == 0)
		rc = pthread_cond_timedwait(&self.called, &set->lock,
					    &deadline);
	/* Whoever let us in, or closed the set, has taken us out of line. */
	if (!self.let_in && !set->closed) {
		leave_line_locked(set, &self);
		/* The one behind may need less room. */
		serve_line_locked(set);
	}
	pthread_cond_destroy(&self.called);
	entry->waited_ns = casync_now_ns() - began_ns;

	if (self.let_in)
		return 0;
	return set->closed ? -ESHUTDOWN : -EAGAIN;
}

static int enter_locked(struct casync_inflight *set,
			struct casync_inflight_entry *entry)
{
	if (set->closed)
		return -ESHUTDOWN;
	if (set->waiting == 0 && has_room_locked(set, entry->bytes)) {
		add_locked(set, entry);
		return 0;
	}
	if (set->waiting >= CASYNC_MAX_WAITING)
		return -EAGAIN;
	return wait_in_line_locked(set, entry);
}

int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes)
{
	int rc;

	entry->bytes = bytes;
	entry->waited_ns = 0;
	entry->reported = false;

	pthread_mutex_lock(&set->lock);
	rc = enter_locked(set, entry);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

void casync_inflight_leave(struct casync_inflight *set,
			   struct casync_inflight_entry *entry)
{
	pthread_mutex_lock(&set->lock);
	glist_del(&entry->link);
	set->ops--;
	set->bytes -= entry->bytes;
	serve_line_locked(set);
	if (set->closed && set->ops == 0)
		pthread_cond_broadcast(&set->emptied);
	pthread_mutex_unlock(&set->lock);
}

uint64_t casync_inflight_drain(struct casync_inflight *set, uint32_t timeout_ms)
{
	struct timespec deadline = deadline_after(timeout_ms);
	uint64_t left;
	int rc = 0;

	pthread_mutex_lock(&set->lock);
	set->closed = true;
	serve_line_locked(set);
	while (set->ops != 0 && rc == 0)
		rc = pthread_cond_timedwait(&set->emptied, &set->lock,
					    &deadline);
	left = set->ops;
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

static uint64_t oldest_since_locked(struct casync_inflight *set)
{
	struct casync_inflight_entry *entry = glist_first_entry(
		glist_empty(&set->overdue) ? &set->entries : &set->overdue,
		struct casync_inflight_entry, link);

	return entry != NULL ? entry->since_ns : 0;
}

void casync_inflight_look(struct casync_inflight *set,
			  struct casync_inflight_look *look)
{
	uint64_t since_ns;

	pthread_mutex_lock(&set->lock);
	look->ops = set->ops;
	look->bytes = set->bytes;
	look->peak_ops = set->peak_ops;
	look->waiting = set->waiting;
	since_ns = oldest_since_locked(set);
	pthread_mutex_unlock(&set->lock);
	look->oldest_ns = since_ns != 0 ? casync_now_ns() - since_ns : 0;
}

static void visit_list(struct glist_head *list, casync_inflight_visitor *visit,
		       void *arg)
{
	struct glist_head *node;

	glist_for_each(node, list)
		visit(glist_entry(node, struct casync_inflight_entry, link),
		      arg);
}

void casync_inflight_visit_all(struct casync_inflight *set,
			       casync_inflight_visitor *visit, void *arg)
{
	pthread_mutex_lock(&set->lock);
	visit_list(&set->overdue, visit, arg);
	visit_list(&set->entries, visit, arg);
	pthread_mutex_unlock(&set->lock);
}
