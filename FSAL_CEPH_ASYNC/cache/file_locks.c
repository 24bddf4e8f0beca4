/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "file_locks.h"
#include "spread.h"

/* One line of the CPU's cache each: what a hit counts costs no other. */
struct file_lock {
	_Alignas(64) pthread_mutex_t mutex;
	uint64_t hits;
	uint64_t misses;
	uint64_t bytes;
};

static struct file_lock file_locks[CASYNC_CACHE_LOCKS] = {
	[0 ... CASYNC_CACHE_LOCKS - 1] =
		{
			.mutex = PTHREAD_MUTEX_INITIALIZER,
		},
};

uint32_t casync_cache_lock_of(const struct casync_cache_file *file)
{
	return (uint32_t)(casync_spread((uintptr_t)file) >> 56);
}

_Static_assert(CASYNC_CACHE_LOCKS == 1 << (64 - 56), "casync_cache_lock_of()");

void casync_cache_lock(uint32_t lock)
{
	pthread_mutex_lock(&file_locks[lock].mutex);
}

void casync_cache_unlock(uint32_t lock)
{
	pthread_mutex_unlock(&file_locks[lock].mutex);
}

/* The only writer is who holds the lock: no locked instruction is needed. */
static void file_lock_add(uint64_t *counter, uint64_t amount)
{
	__atomic_store_n(counter,
			 __atomic_load_n(counter, __ATOMIC_RELAXED) + amount,
			 __ATOMIC_RELAXED);
}

void casync_cache_count_hit(uint32_t lock, uint64_t bytes)
{
	file_lock_add(&file_locks[lock].hits, 1);
	file_lock_add(&file_locks[lock].bytes, bytes);
}

void casync_cache_count_miss(uint32_t lock)
{
	__atomic_fetch_add(&file_locks[lock].misses, 1, __ATOMIC_RELAXED);
}

void casync_cache_sum_hits(uint64_t *hits, uint64_t *misses, uint64_t *bytes)
{
	const struct file_lock *lock;

	*hits = 0;
	*misses = 0;
	*bytes = 0;
	for (lock = file_locks; lock < file_locks + CASYNC_CACHE_LOCKS;
	     lock++) {
		*hits += __atomic_load_n(&lock->hits, __ATOMIC_RELAXED);
		*misses += __atomic_load_n(&lock->misses, __ATOMIC_RELAXED);
		*bytes += __atomic_load_n(&lock->bytes, __ATOMIC_RELAXED);
	}
}
