/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "gsh_list.h"
#include "workers.h"

#define PRODUCERS 4
#define JOBS_EACH 2000

void SetNameFunction(const char *nom)
{
	(void)nom;
}

struct job {
	struct casync_work work;
	unsigned int runs; /* atomic */
	sem_t *begun;	   /* posted when it starts */
	sem_t *hold;	   /* waited for before it ends */
	bool stuck;	   /* for longer than the test waits for anything */
	bool held;	   /* hold came in time */
	int again;	   /* times it queues itself anew */
};

static unsigned int total;

static bool is_let_go(const struct job *job)
{
	int times = job->stuck ? 6 : 1;

	while (times-- > 0) {
		if (rig_wait(job->hold))
			return true;
	}
	return false;
}

static void run(struct casync_work *work)
{
	struct job *job = container_of(work, struct job, work);
	sem_t *begun = job->begun;

	if (job->hold != NULL)
		job->held = (begun == NULL || sem_post(begun) == 0) &&
			    is_let_go(job);
	__atomic_add_fetch(&job->runs, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
	if (job->again-- > 0)
		casync_workers_submit(CASYNC_WORK_DATA, work);
	else if (job->hold == NULL && begun != NULL)
		sem_post(begun);
}

static int up(void **state)
{
	total = 0;
	return casync_workers_start();
}

static int down(void **state)
{
	casync_workers_stop();
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(job_is_run_once)
{
	struct job job = {.work.run = run};

	casync_workers_submit(CASYNC_WORK_DATA, &job.work);
	casync_workers_stop();
	assert_int_equal(job.runs, 1);
}

CASE(job_may_queue_itself_again)
{
	struct job job = {.work.run = run, .again = 50};
	sem_t done;

	sem_init(&done, 0, 0);
	job.begun = &done;
	casync_workers_submit(CASYNC_WORK_DATA, &job.work);
	assert_true(rig_wait(&done));
	casync_workers_stop();
	assert_int_equal(job.runs, 51);
	sem_destroy(&done);
}

CASE(stop_runs_what_is_queued)
{
	static struct job jobs[500];
	unsigned int i;

	memset(jobs, 0, sizeof(jobs));
	for (i = 0; i < 500; i++) {
		jobs[i].work.run = run;
		casync_workers_submit(CASYNC_WORK_DATA, &jobs[i].work);
	}
	casync_workers_stop();
	for (i = 0; i < 500; i++)
		assert_int_equal(jobs[i].runs, 1);
}

CASE(start_after_stop_works)
{
	struct job job = {.work.run = run};

	casync_workers_stop();
	assert_int_equal(casync_workers_start(), 0);
	casync_workers_submit(CASYNC_WORK_DATA, &job.work);
	casync_workers_stop();
	assert_int_equal(job.runs, 1);
}

/* All of them wait for Ceph: so many, and no more, run at once. */
CASE(blocked_jobs_get_threads_up_to_the_limit)
{
	static struct job jobs[CASYNC_WORKERS_MAX + 8];
	const unsigned int count = CASYNC_WORKERS_MAX + 8;
	sem_t begun, hold;
	unsigned int i;
	bool at_once = true;
	int value = -1;

	memset(jobs, 0, sizeof(jobs));
	sem_init(&begun, 0, 0);
	sem_init(&hold, 0, 0);
	for (i = 0; i < count; i++) {
		jobs[i].work.run = run;
		jobs[i].begun = &begun;
		jobs[i].hold = &hold;
		casync_workers_submit(CASYNC_WORK_DATA, &jobs[i].work);
		/* One by one: see the case of two at once below. */
		if (i < CASYNC_WORKERS_MAX)
			at_once = at_once && rig_wait(&begun);
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

/* --- lanes and shares */

/* Jobs of a file, which begin and then wait. */
struct shared_job {
	struct job job;
	struct casync_work_share *share;
};

static void run_shared(struct casync_work *work)
{
	struct shared_job *shared =
		container_of(work, struct shared_job, job.work);
	struct casync_work_share *share = shared->share;

	(void)sem_post(shared->job.begun);
	(void)rig_wait(shared->job.hold);
	__atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
	casync_workers_release_share(CASYNC_WORK_LOOK, share);
}

CASE(stuck_lane_keeps_no_other)
{
	static struct job stuck[1000];
	static struct job job;
	static sem_t done, hold;
	unsigned int i, lane;

	memset(stuck, 0, sizeof(stuck));
	job = (struct job){.work.run = run, .begun = &done};
	sem_init(&done, 0, 0);
	sem_init(&hold, 0, 0);
	for (i = 0; i < 1000; i++) {
		stuck[i].work.run = run;
		stuck[i].hold = &hold;
		stuck[i].stuck = true;
		casync_workers_submit(CASYNC_WORK_METADATA, &stuck[i].work);
	}
	for (lane = 0; lane < CASYNC_WORK_LANES; lane++) {
		if (lane == CASYNC_WORK_METADATA)
			continue;
		casync_workers_submit(lane, &job.work);
		assert_true(rig_wait(&done));
	}
	for (i = 0; i < 1000; i++)
		sem_post(&hold);
	casync_workers_stop();
	sem_destroy(&done);
	sem_destroy(&hold);
}

static int begun_of(sem_t *begun)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int value = -1;

	nanosleep(&pause, NULL);
	sem_getvalue(begun, &value);
	return value;
}

CASE(file_takes_its_share_and_no_more)
{
	static struct shared_job jobs[3 * CASYNC_WORK_SHARE + 1];
	struct casync_work_share share = {0}, other = {0};
	const unsigned int last = 3 * CASYNC_WORK_SHARE;
	struct job one_more = {.work.run = run};
	sem_t begun, hold;
	unsigned int i;

	memset(jobs, 0, sizeof(jobs));
	sem_init(&begun, 0, 0);
	sem_init(&hold, 0, 0);
	for (i = 0; i <= last; i++) {
		jobs[i].job.work.run = run_shared;
		jobs[i].job.begun = &begun;
		jobs[i].job.hold = &hold;
		jobs[i].share = i == last ? &other : &share;
		casync_workers_submit_shared(CASYNC_WORK_LOOK, jobs[i].share,
					     &jobs[i].job.work);
	}
	/* The file's, and another file's beside them. */
	for (i = 0; i <= CASYNC_WORK_SHARE; i++)
		assert_true(rig_wait(&begun));
	assert_int_equal(begun_of(&begun), 0);
	assert_false(casync_workers_try_shared(CASYNC_WORK_LOOK, &share,
					       &one_more.work));
	for (i = 0; i <= last; i++)
		sem_post(&hold);
	casync_workers_stop();
	assert_int_equal(total, last + 1);
	assert_int_equal(share.at_work, 0);
	assert_null(share.waiting);
	assert_int_equal(other.at_work, 0);
	sem_destroy(&begun);
	sem_destroy(&hold);
}

CASE(full_lane_is_not_waited_for)
{
	static struct job stuck[CASYNC_WORKERS_MAX];
	struct casync_work_share share = {0};
	struct job job = {.work.run = run};
	sem_t hold;
	unsigned int i;

	memset(stuck, 0, sizeof(stuck));
	sem_init(&hold, 0, 0);
	for (i = 0; i < CASYNC_WORKERS_MAX; i++) {
		stuck[i].work.run = run;
		stuck[i].hold = &hold;
		casync_workers_submit(CASYNC_WORK_LOOK, &stuck[i].work);
	}
	assert_false(
		casync_workers_try_shared(CASYNC_WORK_LOOK, &share, &job.work));
	assert_int_equal(share.at_work, 0);
	for (i = 0; i < CASYNC_WORKERS_MAX; i++)
		sem_post(&hold);
	casync_workers_stop();
	assert_int_equal(job.runs, 0);
	sem_destroy(&hold);
}

/* All threads are stuck with others' jobs: the watchdog adds some. */
static bool await_all(sem_t *sem, unsigned int count)
{
	while (count != 0 && rig_wait(sem))
		count--;
	return count == 0;
}

/*
 * Static: a case that fails leaves threads that still use them.  No step
 * counts on time: the lane stands still once CASYNC_WORKERS_MAX jobs have
 * begun, and one of two looks at a lane that stands still finds it so.
 */
CASE(lane_that_stands_still_gets_help)
{
	static struct job stuck[CASYNC_WORKERS_MAX + 20];
	static struct job job;
	static sem_t begun, done, hold;
	const unsigned int count = CASYNC_WORKERS_MAX + 20;
	unsigned int i;

	memset(stuck, 0, sizeof(stuck));
	job = (struct job){.work.run = run, .begun = &done};
	sem_init(&begun, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&hold, 0, 0);
	for (i = 0; i < count; i++) {
		stuck[i].work.run = run;
		stuck[i].begun = &begun;
		stuck[i].hold = &hold;
		stuck[i].stuck = true;
		casync_workers_submit(CASYNC_WORK_DATA, &stuck[i].work);
	}
	casync_workers_submit(CASYNC_WORK_DATA, &job.work);
	assert_true(await_all(&begun, CASYNC_WORKERS_MAX));
	assert_int_equal(begun_of(&begun), 0);
	assert_int_equal(begun_of(&done), 0);
	casync_workers_unblock();
	casync_workers_unblock();
	assert_true(await_all(&begun, count - CASYNC_WORKERS_MAX));
	assert_true(rig_wait(&done));
	for (i = 0; i < count; i++)
		sem_post(&hold);
	casync_workers_stop();
	sem_destroy(&begun);
	sem_destroy(&done);
	sem_destroy(&hold);
}

static void run_in_another_lane(struct casync_work *work)
{
	struct job *job = container_of(work, struct job, work);

	work->run = run;
	job->begun = NULL;
	casync_workers_submit(CASYNC_WORK_METADATA, work);
}

/* The last job of the last lane may have work for the first. */
CASE(stop_runs_what_one_lane_leaves_to_another)
{
	struct job job = {.work.run = run_in_another_lane};

	casync_workers_submit(CASYNC_WORK_UPCALL, &job.work);
	casync_workers_stop();
	assert_int_equal(job.runs, 1);
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
		casync_workers_submit(CASYNC_WORK_DATA,
				      &producer->jobs[i].work);
	return NULL;
}

CASE(many_producers_have_each_job_run_once)
{
	static struct producer producers[PRODUCERS];
	int i, j;

	memset(producers, 0, sizeof(producers));
	for (i = 0; i < PRODUCERS; i++) {
		for (j = 0; j < JOBS_EACH; j++)
			producers[i].jobs[j].work.run = run;
		assert_int_equal(pthread_create(&producers[i].thread, NULL,
						produce, &producers[i]),
				 0);
	}
	for (i = 0; i < PRODUCERS; i++)
		RIG_JOIN(producers[i].thread, NULL);
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
CASE(second_of_two_jobs_at_once_is_not_held_up)
{
	bool all_held = true;
	int round;

	for (round = 0; round < 50 && all_held; round++) {
		sem_t second_ran;
		struct job first = {.work.run = run};
		struct job second = {.work.run = run};
		const struct timespec pause = {.tv_nsec = 3000000};

		/* One thread, and time for it to become idle. */
		casync_workers_stop();
		assert_int_equal(casync_workers_start(), 0);
		nanosleep(&pause, NULL);

		sem_init(&second_ran, 0, 0);
		first.hold = &second_ran;
		second.begun = &second_ran;
		casync_workers_submit(CASYNC_WORK_DATA, &first.work);
		casync_workers_submit(CASYNC_WORK_DATA, &second.work);
		casync_workers_stop();
		all_held = first.held;
		sem_destroy(&second_ran);
	}
	assert_true(all_held);
}
