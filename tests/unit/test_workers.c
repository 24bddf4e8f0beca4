/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gsh_list.h"
#include "workers.h"

#define TIMEOUT_S 10
#define PRODUCERS 4
#define JOBS_EACH 2000

void SetNameFunction(const char *nom)
{
	(void)nom;
}

static bool await(sem_t *sem, int seconds)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += seconds;
	while (sem_timedwait(sem, &deadline) != 0) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

struct job {
	struct casync_work work;
	unsigned int runs; /* atomic */
	sem_t *begun; /* posted when it starts */
	sem_t *hold; /* waited for before it ends */
	bool held; /* hold came in time */
	int again; /* times it queues itself anew */
};

static unsigned int total;

static void run(struct casync_work *work)
{
	struct job *job = container_of(work, struct job, work);
	sem_t *begun = job->begun;

	if (job->hold != NULL)
		job->held = (begun == NULL || sem_post(begun) == 0) &&
			    await(job->hold, 2);
	__atomic_add_fetch(&job->runs, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
	if (job->again-- > 0)
		casync_work_submit(CASYNC_WORK_DATA, work);
	else if (job->hold == NULL && begun != NULL)
		sem_post(begun);
}

static int up(void **state)
{
	(void)state;
	total = 0;
	return casync_workers_start();
}

static int down(void **state)
{
	(void)state;
	casync_workers_stop();
	return 0;
}

static void job_is_run_once(void **state)
{
	struct job job = { .work.run = run };

	(void)state;
	casync_work_submit(CASYNC_WORK_DATA, &job.work);
	casync_workers_stop();
	assert_int_equal(job.runs, 1);
}

static void job_may_queue_itself_again(void **state)
{
	struct job job = { .work.run = run, .again = 50 };
	sem_t done;

	(void)state;
	sem_init(&done, 0, 0);
	job.begun = &done;
	casync_work_submit(CASYNC_WORK_DATA, &job.work);
	assert_true(await(&done, TIMEOUT_S));
	casync_workers_stop();
	assert_int_equal(job.runs, 51);
	sem_destroy(&done);
}

static void stop_runs_what_is_queued(void **state)
{
	static struct job jobs[500];
	unsigned int i;

	(void)state;
	memset(jobs, 0, sizeof(jobs));
	for (i = 0; i < 500; i++) {
		jobs[i].work.run = run;
		casync_work_submit(CASYNC_WORK_DATA, &jobs[i].work);
	}
	casync_workers_stop();
	for (i = 0; i < 500; i++)
		assert_int_equal(jobs[i].runs, 1);
}

static void start_after_stop_works(void **state)
{
	struct job job = { .work.run = run };

	(void)state;
	casync_workers_stop();
	assert_int_equal(casync_workers_start(), 0);
	casync_work_submit(CASYNC_WORK_DATA, &job.work);
	casync_workers_stop();
	assert_int_equal(job.runs, 1);
}

/* All of them wait for Ceph: so many, and no more, run at once. */
static void blocked_jobs_get_threads_up_to_the_limit(void **state)
{
	static struct job jobs[CASYNC_WORKERS_MAX + 8];
	const unsigned int count = CASYNC_WORKERS_MAX + 8;
	sem_t begun, hold;
	unsigned int i;
	bool at_once = true;
	int value = -1;

	(void)state;
	memset(jobs, 0, sizeof(jobs));
	sem_init(&begun, 0, 0);
	sem_init(&hold, 0, 0);
	for (i = 0; i < count; i++) {
		jobs[i].work.run = run;
		jobs[i].begun = &begun;
		jobs[i].hold = &hold;
		casync_work_submit(CASYNC_WORK_DATA, &jobs[i].work);
		/* One by one: see the case of two at once below. */
		if (i < CASYNC_WORKERS_MAX)
			at_once = at_once && await(&begun, TIMEOUT_S);
	}
	sem_getvalue(&begun, &value);
	for (i = 0; i < count; i++)
		sem_post(&hold);
	casync_workers_stop();
	assert_true(at_once);
	assert_int_equal(value, 0);
	for (i = 0; i < count; i++)
		assert_int_equal(jobs[i].runs, 1);
	sem_destroy(&begun);
	sem_destroy(&hold);
}

struct producer {
	pthread_t thread;
	struct job jobs[JOBS_EACH];
};

static void *produce(void *arg)
{
	struct producer *producer = arg;
	int i;

	for (i = 0; i < JOBS_EACH; i++)
		casync_work_submit(CASYNC_WORK_DATA, &producer->jobs[i].work);
	return NULL;
}

static void many_producers_have_each_job_run_once(void **state)
{
	static struct producer producers[PRODUCERS];
	int i, j;

	(void)state;
	memset(producers, 0, sizeof(producers));
	for (i = 0; i < PRODUCERS; i++) {
		for (j = 0; j < JOBS_EACH; j++)
			producers[i].jobs[j].work.run = run;
		assert_int_equal(pthread_create(&producers[i].thread, NULL,
						produce, &producers[i]),
				 0);
	}
	for (i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
	casync_workers_stop();
	for (i = 0; i < PRODUCERS; i++) {
		for (j = 0; j < JOBS_EACH; j++)
			assert_int_equal(producers[i].jobs[j].runs, 1);
	}
}

/*
 * Two jobs in a row find one idle thread: `idle` still counts it for the
 * second, so no thread is added, and the second is stuck for as long as the
 * first waits.  Here the first waits for the second.
 */
static void second_of_two_jobs_at_once_is_not_held_up(void **state)
{
	bool all_held = true;
	int round;

	(void)state;
	for (round = 0; round < 50 && all_held; round++) {
		sem_t second_ran;
		struct job first = { .work.run = run };
		struct job second = { .work.run = run };
		const struct timespec pause = { .tv_nsec = 3000000 };

		/* One thread, and time for it to become idle. */
		casync_workers_stop();
		assert_int_equal(casync_workers_start(), 0);
		nanosleep(&pause, NULL);

		sem_init(&second_ran, 0, 0);
		first.hold = &second_ran;
		second.begun = &second_ran;
		casync_work_submit(CASYNC_WORK_DATA, &first.work);
		casync_work_submit(CASYNC_WORK_DATA, &second.work);
		casync_workers_stop();
		all_held = first.held;
		sem_destroy(&second_ran);
	}
	assert_true(all_held);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(job_is_run_once),
		CASE(job_may_queue_itself_again),
		CASE(stop_runs_what_is_queued),
		CASE(start_after_stop_works),
		CASE(blocked_jobs_get_threads_up_to_the_limit),
		CASE(many_producers_have_each_job_run_once),
		CASE(second_of_two_jobs_at_once_is_not_held_up),
	};

	return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
