/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "op.h"
#include "pool.h"

/* Ops per allocation: 28 KiB. */
#define SLAB_OPS 32

struct casync_slab {
	struct casync_slab *next;
	struct casync_op ops[SLAB_OPS];
};

static void init_op(struct casync_op *op)
{
	op->parts = op->own_parts;
	op->parts_room = CASYNC_OP_PARTS;
	op->iovs = op->own_iovs;
	op->iovs_room = CASYNC_OP_IOVS;
	op->state = CASYNC_OP_DONE;
}

static void fini_op(struct casync_op *op)
{
	struct casync_part_array *array;

	while ((array = op->part_arrays) != NULL) {
		op->part_arrays = array->older;
		gsh_free(array);
	}
	if (op->iovs != op->own_iovs)
		gsh_free(op->iovs);
}

static void wipe_op(struct casync_op *op)
{
	size_t kept = offsetof(struct casync_op, work);

	memset((char *)op + kept, 0, sizeof(*op) - kept);
}

void casync_pool_init(struct casync_pool *pool)
{
	pthread_mutex_init(&pool->lock, NULL);
	pool->oldest = NULL;
	pool->newest = NULL;
	pool->slabs = NULL;
	pool->in_use = 0;
}

void casync_pool_destroy(struct casync_pool *pool)
{
	struct casync_slab *slab;
	unsigned int i;

	/* Whoever put the last op back may still hold the lock. */
	pthread_mutex_lock(&pool->lock);
	pthread_mutex_unlock(&pool->lock);

	while ((slab = pool->slabs) != NULL) {
		pool->slabs = slab->next;
		for (i = 0; i < SLAB_OPS; i++)
			fini_op(&slab->ops[i]);
		gsh_free(slab);
	}
	pthread_mutex_destroy(&pool->lock);
}

static void append_locked(struct casync_pool *pool, struct casync_op *op)
{
	op->next = NULL;
	if (pool->newest != NULL)
		pool->newest->next = op;
	else
		pool->oldest = op;
	pool->newest = op;
}

static void grow_locked(struct casync_pool *pool)
{
	struct casync_slab *slab = gsh_calloc(1, sizeof(*slab));
	unsigned int i;

	slab->next = pool->slabs;
	pool->slabs = slab;
	for (i = 0; i < SLAB_OPS; i++) {
		init_op(&slab->ops[i]);
		append_locked(pool, &slab->ops[i]);
	}
}

struct casync_op *casync_pool_get(struct casync_pool *pool)
{
	struct casync_op *op;

	pthread_mutex_lock(&pool->lock);
	if (pool->oldest == NULL)
		grow_locked(pool);
	op = pool->oldest;
	pool->oldest = op->next;
	if (pool->oldest == NULL)
		pool->newest = NULL;
	pool->in_use++;
	pthread_mutex_unlock(&pool->lock);

	wipe_op(op);
	return op;
}

void casync_pool_put(struct casync_pool *pool, struct casync_op *op)
{
	pthread_mutex_lock(&pool->lock);
	append_locked(pool, op);
	pool->in_use--;
	pthread_mutex_unlock(&pool->lock);
}

uint64_t casync_pool_in_use(struct casync_pool *pool)
{
	uint64_t in_use;

	pthread_mutex_lock(&pool->lock);
	in_use = pool->in_use;
	pthread_mutex_unlock(&pool->lock);
	return in_use;
}

void casync_pool_keep_iovs(struct casync_op *op, unsigned int kept,
			   unsigned int iovs)
{
	struct iovec *more;

	if (iovs <= op->iovs_room)
		return;
	more = gsh_calloc(iovs, sizeof(*more));
	memcpy(more, op->iovs, kept * sizeof(*more));
	if (op->iovs != op->own_iovs)
		gsh_free(op->iovs);
	op->iovs = more;
	op->iovs_room = iovs;
}

void casync_pool_make_room(struct casync_op *op, unsigned int parts,
			   unsigned int iovs)
{
	struct casync_part_array *array;

	if (parts > op->parts_room) {
		/* The old ones stay: a late duplicate may come for them. */
		array = gsh_calloc(1, sizeof(*array) +
					      parts * sizeof(array->parts[0]));
		array->older = op->part_arrays;
		op->part_arrays = array;
		op->parts = array->parts;
		op->parts_room = parts;
	}
	casync_pool_keep_iovs(op, 0, iovs);
}
