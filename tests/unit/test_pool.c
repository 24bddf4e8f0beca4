/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fsal.h"

#include "op.h"
#include "pool.h"

/* More than one slab. */
#define MANY 100

static struct casync_pool pool;

static int up(void **state)
{
	(void)state;
	casync_pool_init(&pool);
	return 0;
}

static int down(void **state)
{
	(void)state;
	assert_int_equal(casync_pool_in_use(&pool), 0);
	casync_pool_destroy(&pool);
	return 0;
}

static void ops_in_use_are_different_and_counted(void **state)
{
	struct casync_op *ops[MANY];
	unsigned int i, j;

	(void)state;
	for (i = 0; i < MANY; i++) {
		ops[i] = casync_pool_get(&pool);
		assert_int_equal(casync_pool_in_use(&pool), i + 1);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(ops[i], ops[j]);
	}
	for (i = 0; i < MANY; i++)
		casync_pool_put(&pool, ops[i]);
}

/* What a late duplicate relies on. */
static void op_put_back_first_is_used_again_first(void **state)
{
	struct casync_op *ops[MANY];
	struct casync_op *again;
	unsigned int i;

	(void)state;
	/* Until the pool is empty: each op has been used. */
	for (i = 0; i < 32; i++)
		ops[i] = casync_pool_get(&pool);
	for (i = 0; i < 32; i++)
		casync_pool_put(&pool, ops[i]);
	for (i = 0; i < 64; i++) {
		again = casync_pool_get(&pool);
		assert_ptr_equal(again, ops[i % 32]);
		casync_pool_put(&pool, again);
	}
}

static void used_op_knows_nothing_of_its_last_request(void **state)
{
	struct casync_op *op = casync_pool_get(&pool);
	struct casync_op *used = op;
	unsigned int i;

	(void)state;
	op->state = CASYNC_OP_DONE;
	op->amount_bytes = 5;
	op->status.major = ERR_FSAL_IO;
	op->end_of_file = true;
	op->share_held = true;
	op->fsal_fd = &op->temp_fd.fsal_fd;
	op->entry.reported = true;
	casync_pool_put(&pool, op);
	for (i = 0; i < 32; i++) {
		op = casync_pool_get(&pool);
		casync_pool_put(&pool, op);
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

static void usual_request_allocates_nothing(void **state)
{
	struct casync_op *op = casync_pool_get(&pool);

	(void)state;
	casync_pool_make_room(op, CASYNC_OP_PARTS, CASYNC_OP_IOVS);
	assert_ptr_equal(op->parts, op->own_parts);
	assert_ptr_equal(op->iovs, op->own_iovs);
	casync_pool_put(&pool, op);
}

/* The sanitizers see whether it is there, and freed in the end. */
static void room_for_large_request_is_kept(void **state)
{
	struct casync_op *op = casync_pool_get(&pool);
	struct casync_part *parts;

	(void)state;
	casync_pool_make_room(op, 17, 40);
	memset(op->parts, 1, 17 * sizeof(*op->parts));
	memset(op->iovs, 1, 40 * sizeof(*op->iovs));
	parts = op->parts;
	casync_pool_make_room(op, 16, 1);
	assert_ptr_equal(op->parts, parts);
	casync_pool_make_room(op, 33, 80);
	memset(op->parts, 0, 33 * sizeof(*op->parts));
	memset(op->iovs, 0, 80 * sizeof(*op->iovs));
	casync_pool_put(&pool, op);
}

/* The sanitizer sees whether a part outlives the room it was in. */
static void part_of_an_earlier_request_stays_a_part(void **state)
{
	struct casync_op *op = casync_pool_get(&pool);
	struct casync_part *early;

	(void)state;
	casync_pool_make_room(op, 3, 1);
	early = &op->parts[2];
	early->op = op;
	casync_pool_make_room(op, 30, 1);
	assert_ptr_not_equal(&op->parts[2], early);
	assert_ptr_equal(early->op, op);
	assert_false(early->armed);
	casync_pool_put(&pool, op);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ops_in_use_are_different_and_counted),
		CASE(op_put_back_first_is_used_again_first),
		CASE(used_op_knows_nothing_of_its_last_request),
		CASE(usual_request_allocates_nothing),
		CASE(room_for_large_request_is_kept),
		CASE(part_of_an_earlier_request_stays_a_part),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
