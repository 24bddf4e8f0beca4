/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "fsal.h"

#include "object.h"
#include "object_table.h"

/* Of 2^64, by the golden ratio: neighbours go far apart. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

static size_t bucket_of(const struct casync_object *obj)
{
	return (uint64_t)(uintptr_t)obj->inode * SPREAD >> 49;
}

_Static_assert(CASYNC_ROLL_BUCKETS == 1 << (64 - 49), "bucket_of()");

static pthread_mutex_t *lock_of(struct casync_roll *roll, size_t bucket)
{
	return &roll->locks[bucket % CASYNC_ROLL_LOCKS];
}

void casync_roll_init(struct casync_roll *roll)
{
	size_t i;

	for (i = 0; i < CASYNC_ROLL_LOCKS; i++)
		pthread_mutex_init(&roll->locks[i], NULL);
	roll->buckets = gsh_calloc(CASYNC_ROLL_BUCKETS, sizeof(*roll->buckets));
}

void casync_roll_destroy(struct casync_roll *roll)
{
	size_t i;

	for (i = 0; i < CASYNC_ROLL_LOCKS; i++)
		pthread_mutex_destroy(&roll->locks[i]);
	gsh_free(roll->buckets);
}

static bool there_locked(const struct casync_object *list,
			 const struct Inode *inode)
{
	for (; list != NULL; list = list->next_on_roll) {
		if (list->inode == inode)
			return true;
	}
	return false;
}

bool casync_roll_enter(struct casync_roll *roll, struct casync_object *obj)
{
	size_t bucket = bucket_of(obj);
	struct casync_object **head = &roll->buckets[bucket];
	bool shared;

	pthread_mutex_lock(lock_of(roll, bucket));
	shared = there_locked(*head, obj->inode);
	obj->next_on_roll = *head;
	*head = obj;
	pthread_mutex_unlock(lock_of(roll, bucket));
	return shared;
}

bool casync_roll_leave(struct casync_roll *roll, struct casync_object *obj)
{
	size_t bucket = bucket_of(obj);
	struct casync_object **at = &roll->buckets[bucket];
	bool last;

	pthread_mutex_lock(lock_of(roll, bucket));
	while (*at != obj)
		at = &(*at)->next_on_roll;
	*at = obj->next_on_roll;
	last = !there_locked(roll->buckets[bucket], obj->inode);
	pthread_mutex_unlock(lock_of(roll, bucket));
	return last;
}

/* The keys of an export's objects in one bucket; freed with gsh_free(). */
static size_t copy_keys(struct casync_roll *roll, size_t bucket,
			const struct casync_export *exp,
			uint8_t (**keys)[CASYNC_KEY_BYTES])
{
	const struct casync_object *obj;
	size_t count = 0, room = 0;

	*keys = NULL;
	pthread_mutex_lock(lock_of(roll, bucket));
	for (obj = roll->buckets[bucket]; obj != NULL;
	     obj = obj->next_on_roll) {
		if (obj->exp != exp)
			continue;
		if (count == room) {
			room += 32;
			*keys = gsh_realloc(*keys, room * sizeof(**keys));
		}
		memcpy((*keys)[count++], obj->key, sizeof(**keys));
	}
	pthread_mutex_unlock(lock_of(roll, bucket));
	return count;
}

void casync_roll_visit(struct casync_roll *roll,
		       const struct casync_export *exp,
		       void (*visit)(void *arg, const void *key), void *arg)
{
	uint8_t (*keys)[CASYNC_KEY_BYTES];
	size_t bucket, count, i;

	for (bucket = 0; bucket < CASYNC_ROLL_BUCKETS; bucket++) {
		count = copy_keys(roll, bucket, exp, &keys);
		for (i = 0; i < count; i++)
			visit(arg, keys[i]);
		gsh_free(keys);
	}
}
