/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "inflight.h"

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL

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

void casync_inflight_init(struct casync_inflight *set, uint64_t max_ops,
			  uint64_t max_bytes)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&set->lock, NULL);
	pthread_cond_init(&set->changed, &attr);
	pthread_condattr_destroy(&attr);

	glist_init(&set->entries);
	set->ops = 0;
	set->bytes = 0;
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
	pthread_cond_destroy(&set->changed);
	pthread_mutex_destroy(&set->lock);
}

static bool has_room_locked(const struct casync_inflight *set, uint64_t bytes)
{
	return set->ops == 0 || (set->ops < set->max_ops &&
				 set->bytes + bytes <= set->max_bytes);
}

/* 0, -EAGAIN or -ESHUTDOWN. */
static int wait_for_room_locked(struct casync_inflight *set, uint64_t bytes)
{
	struct timespec deadline;
	int rc = 0;

	if (has_room_locked(set, bytes) && !set->closed)
		return 0;

	if (set->waiting >= CASYNC_MAX_WAITING)
		return -EAGAIN;

	deadline = deadline_after(CASYNC_MAX_WAIT_MS);
	set->waiting++;
	while (!set->closed && !has_room_locked(set, bytes) && rc == 0)
		rc = pthread_cond_timedwait(&set->changed, &set->lock,
					    &deadline);
	set->waiting--;

	if (set->closed)
		return -ESHUTDOWN;
	return has_room_locked(set, bytes) ? 0 : -EAGAIN;
}

int casync_inflight_enter(struct casync_inflight *set,
			  struct casync_inflight_entry *entry, uint64_t bytes)
{
	int rc;

	entry->bytes = bytes;
	entry->since_ns = casync_now_ns();
	entry->reported = false;

	pthread_mutex_lock(&set->lock);
	rc = wait_for_room_locked(set, bytes);
	if (rc == 0) {
		glist_add_tail(&set->entries, &entry->link);
		set->ops++;
		set->bytes += bytes;
	}
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
	if (set->waiting != 0 || (set->closed && set->ops == 0))
		pthread_cond_broadcast(&set->changed);
	pthread_mutex_unlock(&set->lock);
}

uint64_t casync_inflight_drain(struct casync_inflight *set, uint32_t timeout_ms)
{
	struct timespec deadline = deadline_after(timeout_ms);
	uint64_t left;
	int rc = 0;

	pthread_mutex_lock(&set->lock);
	set->closed = true;
	pthread_cond_broadcast(&set->changed);
	while (set->ops != 0 && rc == 0)
		rc = pthread_cond_timedwait(&set->changed, &set->lock,
					    &deadline);
	left = set->ops;
	pthread_mutex_unlock(&set->lock);
	return left;
}
