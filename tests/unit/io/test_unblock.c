/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A call of several WRITEs was answered: its thread takes all of them, and is
 * held up by the first.  The others are for a thread that sleeps.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"

#include "complete.h"
#include "op.h"

nfs_parameter_t nfs_param;

void SetNameFunction(const char *nom)
{
}

static struct casync_op first, second;
static sem_t begun, go;
static int finished; /* atomic */

static void finish(struct casync_op *op)
{
	if (op == &first) {
		sem_post(&begun);
		(void)rig_wait(&go);
	}
	__atomic_add_fetch(&finished, 1, __ATOMIC_ACQ_REL);
}

static void prepare(struct casync_op *op)
{
	memset(op, 0, sizeof(*op));
	op->kind = CASYNC_OP_WRITE;
	op->length_bytes = 10;
	op->parts.at = op->parts.own;
	op->parts.count = 1;
	op->parts.own[0].asked_bytes = 10;
}

static bool has_finished(int count)
{
	casync_complete_unblock();
	return NOW(finished) == count;
}

TEST(thread_that_sleeps_takes_what_another_one_has_taken)
{
	/* Until the threads sleep; if they do not, they need not be woken. */
	const struct timespec moment = {.tv_nsec = 50000000};

	prepare(&first);
	prepare(&second);
	first.members = &second;
	first.parts.own[0].asked_bytes = 20;
	first.parts.own[0].result = 20;
	sem_init(&begun, 0, 0);
	sem_init(&go, 0, 0);
	assert_int_equal(casync_complete_start(finish), 0);
	nanosleep(&moment, NULL);
	casync_complete_queue(&first);
	assert_true(rig_wait(&begun));
	RIG_UNTIL(has_finished(1));
	sem_post(&go);
	RIG_UNTIL(has_finished(2));
	casync_complete_stop();
	sem_destroy(&begun);
	sem_destroy(&go);
}
