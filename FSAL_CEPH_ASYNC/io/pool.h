/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pool.h
 * @brief The memory of an export's ops: allocated in slabs, reused.
 *
 * There are two reasons.  Once the export is warm, an op costs no malloc; a
 * fill of the read cache does, and a requester with more than CASYNC_OP_GROUPS
 * groups.  And an op's memory stays an op.  If libcephfs calls back for a part
 * a second time, even after the request was answered, the callback finds a
 * disarmed part (submit.c) instead of freed memory.  To make this last as long
 * as possible, the op that was put back first is reused first.
 *
 * The memory of a pool is bounded, whatever the requests are:
 *
 *	ops		as many as there were at once: at most Max_Inflight, the
 *			waiting requests (inflight.h) and Ganesha's workers;
 *			CASYNC_OP_MAX_BYTES (op.h) each
 *	iovecs		CASYNC_POOL_IOVS an op; longer ones are freed with the
 *			request
 *	arrays of	as many of each size as were used at once.  Sizes are
 *	parts		powers of two.  Only a read over as many objects uses
 *			an array, and Max_Inflight_Bytes bounds these reads.
 *			For each MiB of that limit an array size takes about
 *			3 KiB for long reads, and 6.3 KiB for reads over three
 *			objects (objects of 64 KiB, the smallest of CephFS).
 *
 * A READ that was left with a lost client (disown.h) keeps its op for longer
 * than its export may live.  So the pool is allocated by itself, and is freed
 * with the last op.
 *
 * The lock is a leaf.
 */
#ifndef CASYNC_POOL_H
#define CASYNC_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_op;
struct casync_part_array;
struct casync_parts;
struct casync_slab;

/** Iovecs that an op keeps from request to request, 16 bytes each. */
#define CASYNC_POOL_IOVS 64

/** Sizes of arrays: 2^0 to 2^31 parts; reads use 2^2 and above, because an op
 * has room for two parts itself. */
#define CASYNC_POOL_SIZES 32

/** Free arrays of one size; the oldest is reused first. */
struct casync_pool_arrays {
	struct casync_part_array *oldest;
	struct casync_part_array *newest;
};

struct casync_pool {
	pthread_mutex_t lock;
	struct casync_pool_arrays arrays[CASYNC_POOL_SIZES];
	struct casync_op *oldest; /**< Free ops; this one is reused first. */
	struct casync_op *newest;
	struct casync_slab *slabs;
	uint64_t in_use; /**< Ops that were taken and not put back. */
	bool closing;	 /**< To be freed with the last op in use. */
};

/** @return A pool without ops, for casync_pool_free(). */
struct casync_pool *casync_pool_new(void);

/** Free the pool, now or when the last op in use is put back. */
void casync_pool_free(struct casync_pool *pool);

/**
 * Take an op.
 *
 * @return A NEW op without a request; never NULL (Ganesha's allocator aborts).
 */
struct casync_op *casync_pool_get(struct casync_pool *pool);

/** Put it back. */
void casync_pool_put(struct casync_pool *pool, struct casync_op *op);

/**
 * Make room for so many parts and iovecs of a request.  Call it before the
 * parts are filled in: both may move.
 */
void casync_pool_make_room(struct casync_pool *pool, struct casync_parts *parts,
			   unsigned int count, unsigned int iovs);

/** Make room for this many iovecs; the first @p kept keep their values. */
void casync_pool_keep_iovs(struct casync_parts *parts, unsigned int kept,
			   unsigned int iovs);

#endif /* CASYNC_POOL_H */
