/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pool_look.h
 * @brief What a pool of ops has; any thread may look.
 */
#ifndef POOL_LOOK_H
#define POOL_LOOK_H

#include "op.h"
#include "pool.h"

/** Ops that were taken and not put back. */
static inline uint64_t pool_in_use(struct casync_pool *pool)
{
	uint64_t in_use;

	pthread_mutex_lock(&pool->lock);
	in_use = pool->in_use;
	pthread_mutex_unlock(&pool->lock);
	return in_use;
}

/** Bytes of all free ops, with the iovecs that they keep, and of all free
 * arrays of parts. */
static inline uint64_t pool_free_bytes(struct casync_pool *pool)
{
	const struct casync_part_array *array;
	const struct casync_op *op;
	uint64_t bytes = 0;
	unsigned int i;

	pthread_mutex_lock(&pool->lock);
	for (op = pool->oldest; op != NULL; op = op->next) {
		bytes += sizeof(*op);
		if (op->parts.iovs != op->parts.own_iovs)
			bytes += op->parts.iovs_room * sizeof(struct iovec);
	}
	for (i = 0; i < CASYNC_POOL_SIZES; i++) {
		for (array = pool->arrays[i].oldest; array != NULL;
		     array = array->next)
			bytes += sizeof(*array) +
				 ((size_t)1 << i) * sizeof(array->parts[0]);
	}
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}

#endif /* POOL_LOOK_H */
