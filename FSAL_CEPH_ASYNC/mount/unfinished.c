/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "unfinished.h"

/* Of all mounts: it is taken after lost sessions only, for a moment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct casync_unfinished_file *
unfinished_find_locked(struct casync_unfinished *unfinished, uint64_t ino,
		       const char *verifier)
{
	struct casync_unfinished_file *one;
	unsigned int i;

	for (i = 0; i < CASYNC_UNFINISHED_MAX; i++) {
		one = &unfinished->files[i];
		if (one->ino == ino &&
		    memcmp(one->verifier, verifier, CASYNC_VERIFIER_BYTES) == 0)
			return one;
	}
	return NULL;
}

void casync_unfinished_add(struct casync_unfinished *unfinished, uint64_t ino,
			   const char *verifier)
{
	struct casync_unfinished_file *one;

	pthread_mutex_lock(&lock);
	if (unfinished_find_locked(unfinished, ino, verifier) == NULL) {
		one = &unfinished->files[unfinished->next];
		one->ino = ino;
		memcpy(one->verifier, verifier, CASYNC_VERIFIER_BYTES);
		unfinished->next =
			(unfinished->next + 1) % CASYNC_UNFINISHED_MAX;
		__atomic_store_n(&unfinished->any, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

bool casync_unfinished_has(struct casync_unfinished *unfinished, uint64_t ino,
			   const char *verifier)
{
	bool has;

	if (!__atomic_load_n(&unfinished->any, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&lock);
	has = unfinished_find_locked(unfinished, ino, verifier) != NULL;
	pthread_mutex_unlock(&lock);
	return has;
}

void casync_unfinished_remove(struct casync_unfinished *unfinished,
			      uint64_t ino, const char *verifier)
{
	struct casync_unfinished_file *one;

	pthread_mutex_lock(&lock);
	one = unfinished_find_locked(unfinished, ino, verifier);
	if (one != NULL)
		one->ino = 0;
	pthread_mutex_unlock(&lock);
}
