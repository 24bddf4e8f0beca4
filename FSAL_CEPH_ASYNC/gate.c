/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "fsal.h"

#include "export.h"
#include "gate.h"
#include "op.h"

void casync_gate_init(struct casync_gate *gate)
{
	pthread_mutex_init(&gate->lock, NULL);
	gate->inside = 0;
	gate->oldest = NULL;
	gate->newest = NULL;
}

void casync_gate_destroy(struct casync_gate *gate)
{
	/* Whoever came out last may still hold the lock. */
	pthread_mutex_lock(&gate->lock);
	pthread_mutex_unlock(&gate->lock);
	pthread_mutex_destroy(&gate->lock);
}

bool casync_gate_enter(struct casync_gate *gate, struct casync_op *op)
{
	bool let_in;

	pthread_mutex_lock(&gate->lock);
	let_in = gate->inside < CASYNC_GATE_THREADS;
	if (let_in) {
		gate->inside++;
	} else {
		/* Now: without the lock it is not the caller's any more. */
		casync_count(casync_metrics_shard(&op->exp->metrics),
			     CASYNC_C_HELD, 1);
		casync_op_set_state(op, CASYNC_OP_HELD);
		op->next = NULL;
		if (gate->newest != NULL)
			gate->newest->next = op;
		else
			gate->oldest = op;
		gate->newest = op;
	}
	pthread_mutex_unlock(&gate->lock);
	return let_in;
}

struct casync_op *casync_gate_next(struct casync_gate *gate)
{
	struct casync_op *op;

	pthread_mutex_lock(&gate->lock);
	op = gate->oldest;
	if (op == NULL)
		gate->inside--;
	else
		gate->oldest = op->next;
	if (gate->oldest == NULL)
		gate->newest = NULL;
	pthread_mutex_unlock(&gate->lock);
	return op;
}
