/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "policy.h"

/* The small queue has a tenth. */
#define SMALL_PART 10

/* Buffers that are looked at for one victim; hits count for the first half. */
#define STEPS 1024

/* A ghost (8 bytes) for each 8 KiB of the budget, a thousandth of it. */
#define GHOST_BYTES 8192
#define GHOSTS_LEAST 4U
#define GHOSTS_MOST (1U << 24)

/* Ghosts of a set. */
#define GHOST_SET 4U

struct policy_queue {
	struct casync_cache_list list;
	uint64_t bytes; /* atomic: read without the lock */
};

struct policy_shard {
	_Alignas(64) pthread_mutex_t lock;
	struct casync_cache_ghosts ghosts;
	uint32_t count; /* of buffers */
	struct policy_queue queues[CASYNC_CACHE_OWNERS][CASYNC_CACHE_QUEUES];
};

static struct policy_shard policy_shards[CASYNC_CACHE_SHARDS] = {
	[0 ... CASYNC_CACHE_SHARDS - 1] =
		{
			.lock = PTHREAD_MUTEX_INITIALIZER,
		},
};

/* Of all shards; and whose turn it is. */
static uint64_t policy_bytes[CASYNC_CACHE_OWNERS][CASYNC_CACHE_QUEUES];
static uint32_t policy_turn;

/* The lowest bits of the key choose the set of a ghost, these the shard. */
static struct policy_shard *policy_shard_of(const struct casync_cache_buffer *b)
{
	return &policy_shards[b->key >> 28 & (CASYNC_CACHE_SHARDS - 1)];
}

/* A ghost: the key's upper half above, the clock below.  0 is none: the clock
 * begins with 1, and what comes 2^32 ghosts later may be forgotten. */
static uint64_t policy_ghost_make(uint64_t key, uint32_t clock)
{
	return (key & ~(uint64_t)UINT32_MAX) | clock;
}

static bool policy_ghost_is(uint64_t ghost, uint64_t key)
{
	return ghost != 0 && ghost >> 32 == key >> 32;
}

static uint64_t *policy_ghost_set(const struct casync_cache_ghosts *ghosts,
				  uint64_t key)
{
	return &ghosts->sets[key & (ghosts->count - 1) &
			     ~(uint64_t)(GHOST_SET - 1)];
}

static uint32_t policy_ghost_age(const struct casync_cache_ghosts *ghosts,
				 uint64_t ghost)
{
	return ghosts->clock - (uint32_t)ghost;
}

void casync_policy_ghosts_add(struct casync_cache_ghosts *ghosts, uint64_t key)
{
	uint64_t *set, *place;
	unsigned int i;

	if (ghosts->sets == NULL)
		return;
	set = policy_ghost_set(ghosts, key);
	place = set;
	for (i = 0; i < GHOST_SET; i++) {
		if (set[i] == 0 || policy_ghost_is(set[i], key)) {
			place = &set[i];
			break;
		}
		if (policy_ghost_age(ghosts, set[i]) >
		    policy_ghost_age(ghosts, *place))
			place = &set[i];
	}
	*place = policy_ghost_make(key, ++ghosts->clock);
}

bool casync_policy_ghosts_take(struct casync_cache_ghosts *ghosts, uint64_t key,
			       uint32_t age)
{
	uint64_t *set;
	unsigned int i;
	bool young;

	if (ghosts->sets == NULL)
		return false;
	set = policy_ghost_set(ghosts, key);
	for (i = 0; i < GHOST_SET; i++) {
		if (!policy_ghost_is(set[i], key))
			continue;
		young = policy_ghost_age(ghosts, set[i]) <= age;
		set[i] = 0;
		return young;
	}
	return false;
}

static void policy_add_locked(struct policy_shard *shard,
			      struct casync_cache_buffer *buf,
			      enum casync_cache_queue queue)
{
	struct policy_queue *to = &shard->queues[buf->share][queue];

	CASYNC_CHECK_HELD(&shard->lock);
	casync_buffer_list_add(&to->list, buf);
	casync_buffer_count(&to->bytes, buf->room);
	casync_buffer_count(&policy_bytes[buf->share][queue], buf->room);
	shard->count++;
	buf->queue = (uint8_t)queue;
}

static void policy_remove_locked(struct policy_shard *shard,
				 struct casync_cache_buffer *buf)
{
	struct policy_queue *from = &shard->queues[buf->share][buf->queue];

	CASYNC_CHECK_HELD(&shard->lock);
	casync_buffer_list_remove(&from->list, buf);
	casync_buffer_count(&from->bytes, -(uint64_t)buf->room);
	casync_buffer_count(&policy_bytes[buf->share][buf->queue],
			    -(uint64_t)buf->room);
	CASYNC_CHECK(shard->count != 0);
	shard->count--;
	buf->queue = CASYNC_CACHE_NO_QUEUE;
}

bool casync_policy_insert(struct casync_cache_buffer *buf)
{
	struct policy_shard *shard = policy_shard_of(buf);
	bool on, known = false;

	pthread_mutex_lock(&shard->lock);
	on = casync_buffer_budget() != 0;
	if (on) {
		casync_buffer_hold(buf);
		known = casync_policy_ghosts_take(&shard->ghosts, buf->key,
						  shard->count);
		policy_add_locked(shard, buf,
				  known ? CASYNC_CACHE_MAIN
					: CASYNC_CACHE_SMALL);
	}
	pthread_mutex_unlock(&shard->lock);
	if (known)
		casync_buffer_count(&casync_cache_counts.ghost_hits, 1);
	return on;
}

bool casync_policy_remove(struct casync_cache_buffer *buf)
{
	struct policy_shard *shard = policy_shard_of(buf);
	bool queued;

	pthread_mutex_lock(&shard->lock);
	queued = buf->queue != CASYNC_CACHE_NO_QUEUE;
	if (queued)
		policy_remove_locked(shard, buf);
	pthread_mutex_unlock(&shard->lock);
	return queued;
}

/* Decides what to do with the oldest buffer of a queue.  @return Whether it is
 * the victim: out of the queue, and a ghost if it never left the small one. */
static bool policy_step_locked(struct policy_shard *shard,
			       struct casync_cache_buffer *buf, bool all,
			       bool hits_count)
{
	enum casync_cache_queue queue = buf->queue;
	uint8_t hits = __atomic_load_n(&buf->hits, __ATOMIC_RELAXED);
	/* One reference is the queue's, one the index's. */
	bool pinned = __atomic_load_n(&buf->refs, __ATOMIC_RELAXED) > 2;

	policy_remove_locked(shard, buf);
	if (all)
		return true;
	if (hits_count && hits > 0) {
		hits = queue == CASYNC_CACHE_SMALL ? 0 : hits - 1;
		__atomic_store_n(&buf->hits, hits, __ATOMIC_RELAXED);
		policy_add_locked(shard, buf, CASYNC_CACHE_MAIN);
		return false;
	}
	if (pinned) {
		policy_add_locked(shard, buf, queue);
		return false;
	}
	if (queue == CASYNC_CACHE_SMALL)
		casync_policy_ghosts_add(&shard->ghosts, buf->key);
	return true;
}

/* The next shard that has such a queue; NULL: none. */
static struct policy_shard *policy_next(unsigned int share,
					enum casync_cache_queue queue)
{
	uint32_t turn = __atomic_fetch_add(&policy_turn, 1, __ATOMIC_RELAXED);
	struct policy_shard *shard;
	unsigned int i;

	for (i = 0; i < CASYNC_CACHE_SHARDS; i++) {
		shard = &policy_shards[(turn + i) % CASYNC_CACHE_SHARDS];
		if (casync_buffer_read_count(
			    &shard->queues[share][queue].bytes) > 0)
			return shard;
	}
	return NULL;
}

/* From which queue an owner loses a buffer. */
static enum casync_cache_queue policy_queue_of(unsigned int share)
{
	uint64_t small = casync_buffer_read_count(
		&policy_bytes[share][CASYNC_CACHE_SMALL]);
	uint64_t main = casync_buffer_read_count(
		&policy_bytes[share][CASYNC_CACHE_MAIN]);

	/* As much small as main, or more, is more than a tenth. */
	return small > 0 && small * SMALL_PART >= small + main
		       ? CASYNC_CACHE_SMALL
		       : CASYNC_CACHE_MAIN;
}

static struct casync_cache_buffer *policy_victim_of(unsigned int share,
						    bool all)
{
	enum casync_cache_queue queue;
	struct casync_cache_buffer *buf;
	struct policy_shard *shard;
	unsigned int step;
	bool found = false;

	for (step = 0; step < STEPS; step++) {
		queue = policy_queue_of(share);
		shard = policy_next(share, queue);
		if (shard == NULL && queue == CASYNC_CACHE_MAIN)
			shard = policy_next(share, queue = CASYNC_CACHE_SMALL);
		if (shard == NULL)
			break;
		pthread_mutex_lock(&shard->lock);
		buf = shard->queues[share][queue].list.oldest;
		if (buf != NULL)
			found = policy_step_locked(shard, buf, all,
						   step < STEPS / 2);
		pthread_mutex_unlock(&shard->lock);
		if (found)
			return buf;
	}
	return NULL;
}

uint64_t casync_policy_queued_bytes(unsigned int share)
{
	return casync_buffer_read_count(
		       &policy_bytes[share][CASYNC_CACHE_SMALL]) +
	       casync_buffer_read_count(
		       &policy_bytes[share][CASYNC_CACHE_MAIN]);
}

/* Of the owners that have something queued and are not in @p tried, the one
 * with the most bytes; -1: none. */
static int policy_largest(uint64_t tried)
{
	uint64_t bytes, most = 0;
	int largest = -1;
	int share;

	for (share = 0; share < CASYNC_CACHE_OWNERS; share++) {
		if (tried >> share & 1 ||
		    casync_policy_queued_bytes((unsigned int)share) == 0)
			continue;
		bytes = casync_buffer_share_bytes((unsigned int)share);
		if (largest < 0 || bytes > most) {
			largest = share;
			most = bytes;
		}
	}
	return largest;
}

_Static_assert(CASYNC_CACHE_OWNERS <= 64, "bits of tried");

struct casync_cache_buffer *casync_policy_take_victim(bool all)
{
	struct casync_cache_buffer *buf;
	uint64_t tried = 0;
	int share;

	while ((share = policy_largest(tried)) >= 0) {
		buf = policy_victim_of((unsigned int)share, all);
		if (buf != NULL)
			return buf;
		/* All of it is in replies. */
		tried |= UINT64_C(1) << share;
	}
	return NULL;
}

/* For one shard. */
static uint32_t policy_ghosts_wanted(void)
{
	uint64_t wanted =
		casync_buffer_budget() / GHOST_BYTES / CASYNC_CACHE_SHARDS;
	uint32_t count = GHOSTS_LEAST;

	while (count * 2ULL <= wanted && count < GHOSTS_MOST)
		count *= 2;
	return count;
}

uint64_t casync_policy_ghosts_wanted_bytes(void)
{
	return casync_policy_ghosts_bytes(policy_ghosts_wanted()) *
	       CASYNC_CACHE_SHARDS;
}

/* @return Those of before. */
static struct casync_cache_ghosts
policy_exchange_ghosts(struct policy_shard *shard,
		       struct casync_cache_ghosts ghosts)
{
	struct casync_cache_ghosts was;

	pthread_mutex_lock(&shard->lock);
	was = shard->ghosts;
	shard->ghosts = ghosts;
	pthread_mutex_unlock(&shard->lock);
	return was;
}

void casync_policy_free_ghosts(void)
{
	const struct casync_cache_ghosts none = {0};
	struct casync_cache_ghosts was;
	unsigned int i;

	for (i = 0; i < CASYNC_CACHE_SHARDS; i++) {
		was = policy_exchange_ghosts(&policy_shards[i], none);
		if (was.sets == NULL)
			continue;
		free(was.sets);
		casync_buffer_uncharge(casync_policy_ghosts_bytes(was.count));
	}
}

void casync_policy_make_ghosts(void)
{
	struct casync_cache_ghosts ghosts = {.count = policy_ghosts_wanted()};
	uint64_t bytes = casync_policy_ghosts_bytes(ghosts.count);
	unsigned int i;

	for (i = 0; i < CASYNC_CACHE_SHARDS; i++) {
		if (!casync_buffer_charge(bytes))
			return;
		ghosts.sets = calloc(ghosts.count, sizeof(*ghosts.sets));
		if (ghosts.sets == NULL) {
			casync_buffer_uncharge(bytes);
			return;
		}
		(void)policy_exchange_ghosts(&policy_shards[i], ghosts);
	}
}
