/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "check.h"
#include "op.h"
#include "pool.h"

/* Ops per allocation: 32 KiB (32,520 bytes). */
#define SLAB_OPS 32

struct casync_slab {
	struct casync_slab *next;
	struct casync_op ops[SLAB_OPS];
};

static void pool_use_own_parts(struct casync_parts *parts)
{
	parts->at = parts->own;
	parts->room = CASYNC_OP_PARTS;
}

static void pool_init_op(struct casync_op *op)
{
	op->parts.iovs = op->parts.own_iovs;
	op->parts.iovs_room = CASYNC_OP_IOVS;
	pool_use_own_parts(&op->parts);
	op->state = CASYNC_OP_DONE;
}

static void pool_free_iovs(struct casync_parts *parts)
{
	if (parts->iovs == parts->own_iovs)
		return;
	gsh_free(parts->iovs);
	parts->iovs = parts->own_iovs;
	parts->iovs_room = CASYNC_OP_IOVS;
}

static void pool_wipe_op(struct casync_op *op)
{
	size_t kept = offsetof(struct casync_op, work);

	op->parts.count = 0;
	memset((char *)op + kept, 0, sizeof(*op) - kept);
}

struct casync_pool *casync_pool_new(void)
{
	struct casync_pool *pool = gsh_calloc(1, sizeof(*pool));

	pthread_mutex_init(&pool->lock, NULL);
	return pool;
}

/* An array of 2^size parts, none of them armed. */
static struct casync_part_array *pool_take_array(struct casync_pool *pool,
						 unsigned int size)
{
	struct casync_pool_arrays *arrays = &pool->arrays[size];
	struct casync_part_array *array;

	pthread_mutex_lock(&pool->lock);
	array = arrays->oldest;
	if (array != NULL)
		arrays->oldest = array->next;
	pthread_mutex_unlock(&pool->lock);
	if (array != NULL)
		return array;
	array = gsh_calloc(1, sizeof(*array) + ((size_t)1 << size) *
						       sizeof(*array->parts));
	array->size = size;
	return array;
}

/* A late duplicate finds the parts unchanged until they are reused. */
static void pool_put_array_locked(struct casync_pool *pool,
				  struct casync_parts *parts)
{
	struct casync_part_array *array = parts->array;
	struct casync_pool_arrays *arrays;

	if (array == NULL)
		return;
	arrays = &pool->arrays[array->size];
	array->next = NULL;
	if (arrays->oldest != NULL)
		arrays->newest->next = array;
	else
		arrays->oldest = array;
	arrays->newest = array;
	parts->array = NULL;
}

static void pool_free_arrays(struct casync_pool *pool)
{
	struct casync_part_array *array;
	unsigned int i;

	for (i = 0; i < CASYNC_POOL_SIZES; i++) {
		while ((array = pool->arrays[i].oldest) != NULL) {
			pool->arrays[i].oldest = array->next;
			gsh_free(array);
		}
	}
}

static void pool_free_all(struct casync_pool *pool)
{
	struct casync_slab *slab;
	unsigned int i;

	while ((slab = pool->slabs) != NULL) {
		pool->slabs = slab->next;
		for (i = 0; i < SLAB_OPS; i++)
			pool_free_iovs(&slab->ops[i].parts);
		gsh_free(slab);
	}
	pool_free_arrays(pool);
	pthread_mutex_destroy(&pool->lock);
	gsh_free(pool);
}

void casync_pool_free(struct casync_pool *pool)
{
	bool unused;

	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	unused = pool->in_use == 0;
	pthread_mutex_unlock(&pool->lock);
	if (unused)
		pool_free_all(pool);
}

static void pool_append_locked(struct casync_pool *pool, struct casync_op *op)
{
	CASYNC_CHECK_HELD(&pool->lock);
	op->next = NULL;
	if (pool->newest != NULL)
		pool->newest->next = op;
	else
		pool->oldest = op;
	pool->newest = op;
}

static void pool_grow_locked(struct casync_pool *pool)
{
	struct casync_slab *slab = gsh_calloc(1, sizeof(*slab));
	unsigned int i;

	CASYNC_CHECK_HELD(&pool->lock);
	slab->next = pool->slabs;
	pool->slabs = slab;
	for (i = 0; i < SLAB_OPS; i++) {
		pool_init_op(&slab->ops[i]);
		pool_append_locked(pool, &slab->ops[i]);
	}
}

struct casync_op *casync_pool_get(struct casync_pool *pool)
{
	struct casync_op *op;

	pthread_mutex_lock(&pool->lock);
	if (pool->oldest == NULL)
		pool_grow_locked(pool);
	op = pool->oldest;
	pool->oldest = op->next;
	if (pool->oldest == NULL)
		pool->newest = NULL;
	pool->in_use++;
	pthread_mutex_unlock(&pool->lock);

	pool_wipe_op(op);
	return op;
}

void casync_pool_put(struct casync_pool *pool, struct casync_op *op)
{
	bool last;

	if (op->parts.iovs_room > CASYNC_POOL_IOVS)
		pool_free_iovs(&op->parts);
	pool_use_own_parts(&op->parts);

	pthread_mutex_lock(&pool->lock);
	pool_put_array_locked(pool, &op->parts);
	pool_append_locked(pool, op);
	CASYNC_CHECK(pool->in_use > 0);
	last = --pool->in_use == 0 && pool->closing;
	pthread_mutex_unlock(&pool->lock);
	if (last)
		pool_free_all(pool);
}

void casync_pool_keep_iovs(struct casync_parts *parts, unsigned int kept,
			   unsigned int iovs)
{
	struct iovec *more;

	if (iovs <= parts->iovs_room)
		return;
	/* A kept array has one size, so it does not grow step by step. */
	if (iovs < CASYNC_POOL_IOVS)
		iovs = CASYNC_POOL_IOVS;
	more = gsh_calloc(iovs, sizeof(*more));
	memcpy(more, parts->iovs, kept * sizeof(*more));
	pool_free_iovs(parts);
	parts->iovs = more;
	parts->iovs_room = iovs;
}

/* The least n with 2^n >= count. */
static unsigned int pool_size_for(unsigned int count)
{
	return count <= 1 ? 0 : 32 - (unsigned int)__builtin_clz(count - 1);
}

void casync_pool_make_room(struct casync_pool *pool, struct casync_parts *parts,
			   unsigned int count, unsigned int iovs)
{
	if (count > parts->room) {
		pthread_mutex_lock(&pool->lock);
		pool_put_array_locked(pool, parts);
		pthread_mutex_unlock(&pool->lock);
		parts->array = pool_take_array(pool, pool_size_for(count));
		parts->at = parts->array->parts;
		parts->room = 1U << parts->array->size;
	}
	casync_pool_keep_iovs(parts, 0, iovs);
}
