/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Nanoseconds of CPU that counting one WRITE takes: what op.c, submit.c and
 * finish.c add to it, in as many threads as are asked for.
 *
 *	metrics_ns THREADS
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "inflight.h"
#include "metrics.h"

#define REQUESTS 2000000
#define MAX_THREADS 64

static struct casync_metrics metrics;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void one_write(void)
{
	const unsigned int h = CASYNC_H_STAGES + CASYNC_STAGES;
	uint64_t submitted_ns = casync_clock_ns();
	uint64_t answered_ns = casync_clock_ns();
	uint64_t taken_ns = casync_clock_ns();
	uint64_t now_ns = casync_clock_ns();
	struct casync_metrics_shard *shard = casync_metrics_shard(&metrics);

	casync_metrics_count_answer(shard, CASYNC_METRIC_WRITE,
				    fsalstat(ERR_FSAL_NO_ERROR, 0));
	casync_metrics_observe(shard, h + CASYNC_STAGE_TOTAL,
			       now_ns - submitted_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_QUEUED, 500);
	casync_metrics_observe(shard, h + CASYNC_STAGE_LIBCEPHFS,
			       answered_ns - submitted_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_HANDOVER,
			       taken_ns - answered_ns);
	casync_metrics_observe(shard, h + CASYNC_STAGE_FINISH,
			       now_ns - taken_ns);
	casync_metrics_count(shard, CASYNC_C_BYTES + CASYNC_METRIC_WRITE, 4096);
	casync_metrics_count(shard, CASYNC_C_STABLE, 1);
	casync_metrics_count(shard, CASYNC_C_FLUSHES_AVOIDED, 1);
}

static void *load(void *unused)
{
	unsigned int i;

	(void)unused;
	for (i = 0; i < REQUESTS; i++)
		one_write();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int threads = argc == 2 ? (unsigned int)atoi(argv[1]) : 1;
	pthread_t started[MAX_THREADS];
	uint64_t before_ns = cpu_ns();
	unsigned int i;

	if (threads == 0 || threads > MAX_THREADS)
		return 2;
	for (i = 0; i < threads; i++) {
		if (pthread_create(&started[i], NULL, load, NULL) != 0)
			return 1;
	}
	for (i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	printf("%.1f\n",
	       (double)(cpu_ns() - before_ns) / ((double)REQUESTS * threads));
	return 0;
}
