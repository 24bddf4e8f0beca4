/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stddef.h>

#include "clock.h"
#include "unfinished.h"

/* Of all mounts: it is taken after lost sessions only, for a moment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void casync_unfinished_add(struct casync_unfinished *unfinished, uint64_t ino,
			   uint64_t now_ns)
{
	pthread_mutex_lock(&lock);
	unfinished->files[unfinished->next] =
		(struct casync_unfinished_file){.ino = ino, .made_ns = now_ns};
	unfinished->next = (unfinished->next + 1) % CASYNC_UNFINISHED_MAX;
	__atomic_store_n(&unfinished->any, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

static struct casync_unfinished_file *
unfinished_find_locked(struct casync_unfinished *unfinished, uint64_t ino,
		       uint64_t now_ns)
{
	const uint64_t age_ns = CASYNC_UNFINISHED_S * CASYNC_NS_PER_S;
	struct casync_unfinished_file *one;
	unsigned int i;

	for (i = 0; i < CASYNC_UNFINISHED_MAX; i++) {
		one = &unfinished->files[i];
		if (one->ino == ino && now_ns - one->made_ns <= age_ns)
			return one;
	}
	return NULL;
}

static bool unfinished_find(struct casync_unfinished *unfinished, uint64_t ino,
			    uint64_t now_ns, bool take)
{
	struct casync_unfinished_file *one;

	if (!__atomic_load_n(&unfinished->any, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&lock);
	one = unfinished_find_locked(unfinished, ino, now_ns);
	if (one != NULL && take)
		one->ino = 0;
	pthread_mutex_unlock(&lock);
	return one != NULL;
}

bool casync_unfinished_has(struct casync_unfinished *unfinished, uint64_t ino,
			   uint64_t now_ns)
{
	return unfinished_find(unfinished, ino, now_ns, false);
}

bool casync_unfinished_take(struct casync_unfinished *unfinished, uint64_t ino,
			    uint64_t now_ns)
{
	return unfinished_find(unfinished, ino, now_ns, true);
}
