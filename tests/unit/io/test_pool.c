/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "export.h"
#include "op.h"
#include "pool.h"
#include "pool_look.h"

/* More than one slab. */
#define MANY 100

static struct casync_export exp;
#define pool (exp.pool)

static struct casync_op *get(void)
{
	struct casync_op *op = casync_pool_get(pool);

	op->exp = &exp;
	return op;
}

static int up(void **state)
{
	pool = casync_pool_new();
	return 0;
}

static int down(void **state)
{
	assert_int_equal(pool_in_use(pool), 0);
	casync_pool_free(pool);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(ops_in_use_are_different_and_counted)
{
	struct casync_op *ops[MANY];
	unsigned int i, j;

	for (i = 0; i < MANY; i++) {
		ops[i] = get();
		assert_int_equal(pool_in_use(pool), i + 1);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(ops[i], ops[j]);
	}
	for (i = 0; i < MANY; i++)
		casync_pool_put(pool, ops[i]);
}

/* What a late duplicate relies on. */
CASE(op_put_back_first_is_used_again_first)
{
	struct casync_op *ops[MANY];
	struct casync_op *again;
	unsigned int i;

	/* Until the pool is empty: each op has been used. */
	for (i = 0; i < 32; i++)
		ops[i] = get();
	for (i = 0; i < 32; i++)
		casync_pool_put(pool, ops[i]);
	for (i = 0; i < 64; i++) {
		again = get();
		assert_ptr_equal(again, ops[i % 32]);
		casync_pool_put(pool, again);
	}
}

CASE(used_op_knows_nothing_of_its_last_request)
{
	struct casync_op *op = get();
	struct casync_op *used = op;
	unsigned int i;

	op->state = CASYNC_OP_DONE;
	op->amount_bytes = 5;
	op->status.major = ERR_FSAL_IO;
	op->end_of_file = true;
	op->share_held = true;
	op->fsal_fd = &op->temp_fd.fsal_fd;
	op->entry.reported = true;
	casync_pool_put(pool, op);
	for (i = 0; i < 32; i++) {
		op = get();
		casync_pool_put(pool, op);
	}
	assert_ptr_equal(op, used);
	assert_int_equal(op->state, CASYNC_OP_NEW);
	assert_int_equal(op->amount_bytes, 0);
	assert_int_equal(op->status.major, ERR_FSAL_NO_ERROR);
	assert_false(op->end_of_file);
	assert_false(op->share_held);
	assert_null(op->fsal_fd);
	assert_false(op->entry.reported);
}

CASE(usual_request_allocates_nothing)
{
	struct casync_op *op = get();
	uint64_t bytes;

	casync_pool_put(pool, op);
	bytes = pool_free_bytes(pool);
	op = get();
	casync_pool_make_room(pool, &op->parts, CASYNC_OP_PARTS,
			      CASYNC_OP_IOVS);
	assert_ptr_equal(op->parts.at, op->parts.own);
	assert_ptr_equal(op->parts.iovs, op->parts.own_iovs);
	casync_pool_put(pool, op);
	assert_int_equal(pool_free_bytes(pool), bytes);
}

/* The sanitizers see whether it is there, and freed in the end. */
CASE(large_request_has_room)
{
	struct casync_op *op = get();
	struct casync_part *parts;

	casync_pool_make_room(pool, &op->parts, 17, 40);
	memset(op->parts.at, 1, 17 * sizeof(*op->parts.at));
	memset(op->parts.iovs, 1, 40 * sizeof(*op->parts.iovs));
	parts = op->parts.at;
	casync_pool_make_room(pool, &op->parts, 16, 1);
	assert_ptr_equal(op->parts.at, parts);
	casync_pool_make_room(pool, &op->parts, 33, 80);
	memset(op->parts.at, 0, 33 * sizeof(*op->parts.at));
	memset(op->parts.iovs, 0, 80 * sizeof(*op->parts.iovs));
	casync_pool_put(pool, op);
	assert_ptr_equal(op->parts.at, op->parts.own);
}

/* The sanitizer sees whether a part outlives the room it was in. */
CASE(part_of_an_earlier_request_stays_a_part)
{
	struct casync_op *op = get();
	struct casync_part *early;

	casync_pool_make_room(pool, &op->parts, 3, 1);
	early = &op->parts.at[2];
	early->op = op;
	casync_pool_make_room(pool, &op->parts, 30, 1);
	assert_ptr_not_equal(&op->parts.at[2], early);
	assert_ptr_equal(early->op, op);
	casync_pool_put(pool, op);
	assert_ptr_equal(early->op, op);
	assert_false(early->armed);
}

CASE(array_of_parts_is_used_again)
{
	struct casync_op *op = get();
	struct casync_part *parts;

	casync_pool_make_room(pool, &op->parts, 5, 1);
	parts = op->parts.at;
	casync_pool_put(pool, op);
	op = get();
	assert_ptr_equal(op->parts.at, op->parts.own);
	casync_pool_make_room(pool, &op->parts, 8, 1);
	assert_ptr_equal(op->parts.at, parts);
	casync_pool_put(pool, op);
}

/* What 8192 in flight at once may leave behind, whatever they were. */
#define AT_ONCE 8192U
#define MOST_PARTS 1025U /* 64 MiB in objects of 64 KiB */

CASE(what_is_kept_is_bounded)
{
	const uint64_t ops_bytes =
		(uint64_t)AT_ONCE *
		(CASYNC_OP_MAX_BYTES + CASYNC_POOL_IOVS * sizeof(struct iovec));
	static struct casync_op *ops[AT_ONCE];
	uint64_t parts = 0;
	unsigned int i;

	for (i = 0; i < AT_ONCE; i++)
		ops[i] = get();
	for (i = 0; i < AT_ONCE; i++)
		casync_pool_put(pool, ops[i]);
	/* Each op of them all has been the largest there is, one at a time;
	 * and part of a refused call. */
	for (i = 0; i < AT_ONCE; i++) {
		ops[0] = get();
		casync_pool_make_room(pool, &ops[0]->parts, i % MOST_PARTS + 1,
				      i % 3 ? CASYNC_GATHER_IOVS : 64);
		casync_pool_put(pool, ops[0]);
		ops[0] = get();
		casync_gather_make_alone(ops[0]);
		casync_pool_make_room(pool, &ops[0]->parts, 1, 4);
		casync_pool_put(pool, ops[0]);
	}
	for (i = 1; i < 2 * MOST_PARTS; i *= 2)
		parts += i;
	print_message("%" PRIu64 " KiB are kept\n",
		      pool_free_bytes(pool) / 1024);
	assert_in_range(pool_free_bytes(pool), AT_ONCE,
			ops_bytes + parts * sizeof(struct casync_part) + 4096);
}
