/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "fsal.h"

#include "object.h"
#include "object_table.h"
#include "hash.h"

static size_t object_table_bucket_of(const struct casync_fileid *id)
{
	return casync_hash_u64(id->ino + id->snapid) >> 49;
}

_Static_assert(CASYNC_OBJECT_TABLE_BUCKETS == 1 << (64 - 49),
	       "object_table_bucket_of()");

static pthread_mutex_t *object_table_lock_of(struct casync_object_table *table,
					     size_t bucket)
{
	return &table->locks[bucket % CASYNC_OBJECT_TABLE_LOCKS];
}

void casync_object_table_init(struct casync_object_table *table)
{
	size_t i;

	for (i = 0; i < CASYNC_OBJECT_TABLE_LOCKS; i++)
		pthread_mutex_init(&table->locks[i], NULL);
	table->buckets = gsh_calloc(CASYNC_OBJECT_TABLE_BUCKETS,
				    sizeof(*table->buckets));
}

void casync_object_table_destroy(struct casync_object_table *table)
{
	size_t i;

	for (i = 0; i < CASYNC_OBJECT_TABLE_LOCKS; i++)
		pthread_mutex_destroy(&table->locks[i]);
	gsh_free(table->buckets);
}

/* Is an Inode of that client in the table?  Another client's may have had the
 * same address. */
static bool object_table_has_inode_locked(const struct casync_object *list,
					  const struct Inode *inode,
					  uint32_t generation)
{
	for (; list != NULL; list = list->next_in_table) {
		if (list->inode == inode && list->generation == generation)
			return true;
	}
	return false;
}

/* The part that the objects of a file in the table share; NULL: nothing. */
static struct casync_cached_file *
object_table_cached_locked(const struct casync_object *list,
			   const struct casync_fileid *id)
{
	for (; list != NULL; list = list->next_in_table) {
		if (list->cached != NULL && list->id.ino == id->ino &&
		    list->id.snapid == id->snapid)
			return list->cached;
	}
	return NULL;
}

bool casync_object_table_enter(struct casync_object_table *table,
			       struct casync_object *obj)
{
	size_t bucket = object_table_bucket_of(&obj->id);
	struct casync_object **head = &table->buckets[bucket];
	struct casync_cached_file *cached = NULL, *spare = NULL;
	bool shared;

	pthread_mutex_lock(object_table_lock_of(table, bucket));
	shared = object_table_has_inode_locked(*head, obj->inode,
					       obj->generation);
	if (obj->cached != NULL)
		cached = object_table_cached_locked(*head, &obj->id);
	if (cached != NULL) {
		spare = obj->cached;
		obj->cached = cached;
	}
	obj->next_in_table = *head;
	*head = obj;
	pthread_mutex_unlock(object_table_lock_of(table, bucket));
	gsh_free(spare);
	return shared;
}

/* How many objects a file has, and how many delegations they have. */
static void object_table_count(struct casync_object_table *table,
			       const struct casync_fileid *id,
			       unsigned int *objects, unsigned int *delegations)
{
	size_t bucket = object_table_bucket_of(id);
	const struct casync_object *obj;

	*objects = *delegations = 0;
	pthread_mutex_lock(object_table_lock_of(table, bucket));
	for (obj = table->buckets[bucket]; obj != NULL;
	     obj = obj->next_in_table) {
		if (obj->id.ino != id->ino || obj->id.snapid != id->snapid)
			continue;
		*objects += 1;
		*delegations += __atomic_load_n(&obj->delegations.count,
						__ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(object_table_lock_of(table, bucket));
}

bool casync_object_table_is_alone(struct casync_object_table *table,
				  const struct casync_fileid *id)
{
	unsigned int objects, delegations;

	object_table_count(table, id, &objects, &delegations);
	return objects == 1;
}

bool casync_object_table_is_delegated(struct casync_object_table *table,
				      const struct casync_fileid *id)
{
	unsigned int objects, delegations;

	object_table_count(table, id, &objects, &delegations);
	return delegations != 0;
}

bool casync_object_table_renew(struct casync_object_table *table,
			       struct casync_object *obj, struct Inode *inode,
			       uint32_t generation)
{
	size_t bucket = object_table_bucket_of(&obj->id);
	bool shared;

	pthread_mutex_lock(object_table_lock_of(table, bucket));
	shared = object_table_has_inode_locked(table->buckets[bucket], inode,
					       generation);
	if (obj->generation != generation) {
		obj->inode = inode;
		__atomic_store_n(&obj->generation, generation,
				 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(object_table_lock_of(table, bucket));
	return shared;
}

bool casync_object_table_leave(struct casync_object_table *table,
			       struct casync_object *obj)
{
	size_t bucket = object_table_bucket_of(&obj->id);
	struct casync_object **at = &table->buckets[bucket];
	bool last;

	pthread_mutex_lock(object_table_lock_of(table, bucket));
	while (*at != obj)
		at = &(*at)->next_in_table;
	*at = obj->next_in_table;
	last = !object_table_has_inode_locked(table->buckets[bucket],
					      obj->inode, obj->generation);
	if (object_table_cached_locked(table->buckets[bucket], &obj->id) !=
	    NULL)
		obj->cached = NULL;
	pthread_mutex_unlock(object_table_lock_of(table, bucket));
	return last;
}

/* The keys of an export's objects in one bucket; freed with gsh_free(). */
static size_t object_table_copy_keys(struct casync_object_table *table,
				     size_t bucket,
				     const struct casync_export *exp,
				     uint8_t (**keys)[CASYNC_KEY_BYTES])
{
	const struct casync_object *obj;
	size_t count = 0, room = 0;

	*keys = NULL;
	pthread_mutex_lock(object_table_lock_of(table, bucket));
	for (obj = table->buckets[bucket]; obj != NULL;
	     obj = obj->next_in_table) {
		if (obj->exp != exp)
			continue;
		if (count == room) {
			room += 32;
			*keys = gsh_realloc(*keys, room * sizeof(**keys));
		}
		memcpy((*keys)[count++], obj->key, sizeof(**keys));
	}
	pthread_mutex_unlock(object_table_lock_of(table, bucket));
	return count;
}

void casync_object_table_visit(struct casync_object_table *table,
			       const struct casync_export *exp,
			       void (*visit)(void *arg, const void *key),
			       void *arg)
{
	uint8_t (*keys)[CASYNC_KEY_BYTES];
	size_t bucket, count, i;

	for (bucket = 0; bucket < CASYNC_OBJECT_TABLE_BUCKETS; bucket++) {
		count = object_table_copy_keys(table, bucket, exp, &keys);
		for (i = 0; i < count; i++)
			visit(arg, keys[i]);
		gsh_free(keys);
	}
}
