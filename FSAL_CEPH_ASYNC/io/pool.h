/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pool.h
 * @brief Ops of an export: allocated in slabs, used again, freed with it.
 *
 * Two reasons.  A READ or WRITE costs no malloc once the export is warm.  And
 * an op's memory stays an op: should libcephfs call back for a part a second
 * time, even after the request was answered, the callback finds the part
 * disarmed (submit.c) instead of freed memory.  So that it stays so for as
 * long as possible, the op that was put back first is used again first.
 *
 * What a pool keeps is bounded, whatever was asked for in whatever order:
 *
 *	ops		as many as there were at once: Max_Inflight, what waits
 *			for room (inflight.h) and Ganesha's workers at most;
 *			CASYNC_OP_MAX_BYTES (op.h) each
 *	iovecs		CASYNC_POOL_IOVS an op; more are freed with the request
 *	arrays of	as many of each size as were used at once.  Sizes are
 *	parts		powers of two, and an array is used only by a read
 *			over as many objects, which Max_Inflight_Bytes bounds:
 *			of each size at most 3 KiB for each MiB of that
 *			(objects of 64 KiB, the smallest that CephFS has)
 *
 * The lock is a leaf.
 */
#ifndef CASYNC_POOL_H
#define CASYNC_POOL_H

#include <pthread.h>
#include <stdint.h>

struct casync_op;
struct casync_part_array;
struct casync_slab;

/** Iovecs that an op keeps from request to request, 16 bytes each. */
#define CASYNC_POOL_IOVS 64

/** Sizes of arrays: 2^0 to 2^31 parts. */
#define CASYNC_POOL_SIZES 32

/** Arrays of one size that nobody uses; the oldest is used first. */
struct casync_pool_arrays {
	struct casync_part_array *oldest;
	struct casync_part_array *newest;
};

struct casync_pool {
	pthread_mutex_t lock;
	struct casync_pool_arrays arrays[CASYNC_POOL_SIZES];
	struct casync_op *oldest; /**< Free ops; the first to be used. */
	struct casync_op *newest;
	struct casync_slab *slabs;
	uint64_t in_use;
	uint64_t bytes; /**< Atomic. */
};

void casync_pool_init(struct casync_pool *pool);

/** Free all ops.  None may be in use. */
void casync_pool_destroy(struct casync_pool *pool);

/**
 * Take an op.
 *
 * @return A NEW op of no request; never NULL (Ganesha's allocator aborts).
 */
struct casync_op *casync_pool_get(struct casync_pool *pool);

/** Put it back.  The pool may be destroyed as soon as none is in use. */
void casync_pool_put(struct casync_pool *pool, struct casync_op *op);

/**
 * Make room for so many parts and iovecs of an op in use, before its parts are
 * first filled in; both may move.
 */
void casync_pool_make_room(struct casync_op *op, unsigned int parts,
			   unsigned int iovs);

/** Make room for so many iovecs; the first @p kept stay what they are. */
void casync_pool_keep_iovs(struct casync_op *op, unsigned int kept,
			   unsigned int iovs);

/** Ops that were taken and not put back. */
uint64_t casync_pool_in_use(struct casync_pool *pool);

/** All memory that the pool holds, used or not, in bytes. */
uint64_t casync_pool_bytes(struct casync_pool *pool);

#endif /* CASYNC_POOL_H */
