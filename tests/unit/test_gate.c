/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fsal.h"

#include "export.h"
#include "gate.h"
#include "op.h"

#define THREADS 16
#define OPS_EACH 500

static struct casync_gate gate;
static struct casync_export exp;
static struct casync_op ops[CASYNC_GATE_THREADS + 3];

static int up(void **state)
{
	unsigned int i;

	(void)state;
	memset(ops, 0, sizeof(ops));
	memset(&exp.metrics, 0, sizeof(exp.metrics));
	for (i = 0; i < CASYNC_GATE_THREADS + 3; i++)
		ops[i].exp = &exp;
	casync_gate_init(&gate);
	return 0;
}

static int down(void **state)
{
	(void)state;
	assert_int_equal(gate.inside, 0);
	assert_null(gate.oldest);
	assert_ptr_equal(gate.end, &gate.oldest);
	casync_gate_destroy(&gate);
	return 0;
}

static struct casync_totals totals;

static void so_many_are_let_in_and_the_rest_is_held(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CASYNC_GATE_THREADS; i++) {
		assert_ptr_equal(casync_gate_enter(&gate, &ops[i]), &ops[i]);
		assert_int_equal(ops[i].state, CASYNC_OP_NEW);
	}
	for (; i < CASYNC_GATE_THREADS + 3; i++) {
		assert_null(casync_gate_enter(&gate, &ops[i]));
		assert_int_equal(ops[i].state, CASYNC_OP_HELD);
	}
	casync_metrics_add_up(&exp.metrics, &totals);
	assert_int_equal(totals.counters[CASYNC_C_HELD], 3);
	/* In the order they came, whoever asks. */
	for (i = CASYNC_GATE_THREADS; i < CASYNC_GATE_THREADS + 3; i++)
		assert_ptr_equal(casync_gate_next(&gate), &ops[i]);
	for (i = 0; i < CASYNC_GATE_THREADS; i++)
		assert_null(casync_gate_next(&gate));
}

static void place_that_is_free_again_is_given(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CASYNC_GATE_THREADS; i++)
		assert_ptr_equal(casync_gate_enter(&gate, &ops[i]), &ops[i]);
	assert_null(casync_gate_next(&gate));
	assert_ptr_equal(casync_gate_enter(&gate, &ops[i]), &ops[i]);
	for (i = 0; i < CASYNC_GATE_THREADS; i++)
		assert_null(casync_gate_next(&gate));
}

/* Many threads with many ops; each op is to be submitted once. */
static struct casync_op crowd[THREADS][OPS_EACH];
static unsigned int submitted[THREADS][OPS_EACH]; /* atomic */

static void submit(struct casync_op *op)
{
	size_t number = (size_t)(op - &crowd[0][0]);

	__atomic_add_fetch(&submitted[0][0] + number, 1, __ATOMIC_RELAXED);
}

static void *submit_many(void *arg)
{
	struct casync_op *mine = arg;
	struct casync_op *op;
	unsigned int i;

	for (i = 0; i < OPS_EACH; i++) {
		for (op = casync_gate_enter(&gate, &mine[i]); op != NULL;
		     op = casync_gate_next(&gate))
			submit(op);
	}
	return NULL;
}

static void each_of_many_is_submitted_once(void **state)
{
	pthread_t threads[THREADS];
	unsigned int t, i;

	(void)state;
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < OPS_EACH; i++)
			crowd[t][i].exp = &exp;
	}
	for (t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, submit_many,
						crowd[t]),
				 0);
	for (t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (t = 0; t < THREADS; t++) {
		for (i = 0; i < OPS_EACH; i++)
			assert_int_equal(submitted[t][i], 1);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(so_many_are_let_in_and_the_rest_is_held),
		CASE(place_that_is_free_again_is_given),
		CASE(each_of_many_is_submitted_once),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
