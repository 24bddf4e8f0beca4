/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "clock.h"
#include "gsh_list.h"
#include "lane.h"

#define PRODUCERS 4
#define JOBS_EACH 2000

void SetNameFunction(const char *nom)
{
	(void)nom;
}

/* Two mounts. */
static struct casync_lane mounts[2][CASYNC_MOUNT_LANES];
static struct casync_lane *const data = &mounts[0][CASYNC_LANE_DATA];
static struct casync_lane *const look = &mounts[0][CASYNC_LANE_LOOK];

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
		casync_lane_submit(data, work);
	else if (job->hold == NULL && begun != NULL)
		sem_post(begun);
}

static int up(void **state)
{
	unsigned int i;
	int rc = casync_lane_start_process();

	total = 0;
	for (i = 0; i < 2 && rc == 0; i++)
		rc = casync_lane_start_mount(mounts[i]);
	return rc;
}

/* All jobs have run, also those that they queued. */
static void end_all(void)
{
	unsigned int i;

	casync_lane_stop_process();
	for (i = 0; i < 2; i++)
		assert_true(
			casync_lane_stop_mount(mounts[i], 6 * RIG_TIMEOUT_S));
}

static int down(void **state)
{
	end_all();
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(job_is_run_once)
{
	struct job job = {.work.run = run};

	casync_lane_submit(data, &job.work);
	end_all();
	assert_int_equal(job.runs, 1);
}

CASE(job_may_queue_itself_again)
{
	struct job job = {.work.run = run, .again = 50};
	sem_t done;

	sem_init(&done, 0, 0);
	job.begun = &done;
	casync_lane_submit(data, &job.work);
	assert_true(rig_wait(&done));
	end_all();
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
		casync_lane_submit(data, &jobs[i].work);
	}
	end_all();
	for (i = 0; i < 500; i++)
		assert_int_equal(jobs[i].runs, 1);
}

CASE(start_after_stop_works)
{
	struct job job = {.work.run = run};

	end_all();
	assert_int_equal(up(state), 0);
	casync_lane_submit(data, &job.work);
	end_all();
	assert_int_equal(job.runs, 1);
}

/* All of them wait for Ceph: so many, and no more, run at once. */
CASE(blocked_jobs_get_threads_up_to_the_limit)
{
	static struct job jobs[CASYNC_LANE_THREADS + 8];
	const unsigned int count = CASYNC_LANE_THREADS + 8;
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
		casync_lane_submit(data, &jobs[i].work);
		/* One by one: see the case of two at once below. */
		if (i < CASYNC_LANE_THREADS)
			at_once = at_once && rig_wait(&begun);
	}
	sem_getvalue(&begun, &value);
	for (i = 0; i < count; i++)
		sem_post(&hold);
	end_all();
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
	struct casync_lane_share *share;
};

static void run_shared(struct casync_work *work)
{
	struct shared_job *shared =
		container_of(work, struct shared_job, job.work);
	struct casync_lane_share *share = shared->share;

	(void)sem_post(shared->job.begun);
	(void)rig_wait(shared->job.hold);
	__atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
	casync_lane_release_share(look, share);
}

static int begun_of(sem_t *begun)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int value = -1;

	nanosleep(&pause, NULL);
	sem_getvalue(begun, &value);
	return value;
}

/* A job of @p lane runs now. */
static void check_goes_on(struct casync_lane *lane)
{
	static struct job job;
	static sem_t done;

	job = (struct job){.work.run = run, .begun = &done};
	sem_init(&done, 0, 0);
	casync_lane_submit(lane, &job.work);
	assert_true(rig_wait(&done));
	sem_destroy(&done);
}

/* More jobs of one mount than a lane has threads, for an MDS that is away: the
 * mount's other lanes go on, and the same lane of another mount, and the lanes
 * of the process. */
CASE(stuck_lane_keeps_no_other)
{
	static struct job stuck[1000];
	static sem_t hold;
	unsigned int i;

	memset(stuck, 0, sizeof(stuck));
	sem_init(&hold, 0, 0);
	for (i = 0; i < 1000; i++) {
		stuck[i].work.run = run;
		stuck[i].hold = &hold;
		stuck[i].stuck = true;
		casync_lane_submit(&mounts[0][CASYNC_LANE_METADATA],
				   &stuck[i].work);
	}
	/* It gets all threads that a lane may have. */
	casync_lane_unblock_all();
	casync_lane_unblock_all();
	for (i = 0; i < CASYNC_MOUNT_LANES; i++) {
		check_goes_on(&mounts[1][i]);
		if (i != CASYNC_LANE_METADATA)
			check_goes_on(&mounts[0][i]);
	}
	for (i = 0; i < CASYNC_PROCESS_LANES; i++)
		check_goes_on(casync_lane_of_process(i));
	/* The other mount ends, too; this one does not wait for ever. */
	assert_true(casync_lane_stop_mount(mounts[1], RIG_TIMEOUT_S));
	for (i = 0; i < 1000; i++)
		sem_post(&hold);
	end_all();
	sem_destroy(&hold);
}

/* --- a time */

CASE(timed_job_waits_for_its_time)
{
	struct job job = {.work.run = run};
	sem_t done;
	uint64_t began_ns = casync_clock_ns();

	sem_init(&done, 0, 0);
	job.begun = &done;
	casync_lane_submit_in(data, &job.work, 30);
	assert_true(rig_wait(&done));
	assert_true(casync_clock_age_ns(began_ns) >= 30 * CASYNC_NS_PER_MS);
	end_all();
	assert_int_equal(job.runs, 1);
	sem_destroy(&done);
}

/* Also while the thread that waited for its time has another job. */
CASE(timed_job_needs_no_certain_thread)
{
	struct job stuck = {.work.run = run, .stuck = true};
	struct job job = {.work.run = run};
	sem_t begun, done, hold;

	sem_init(&begun, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&hold, 0, 0);
	stuck.begun = &begun;
	stuck.hold = &hold;
	job.begun = &done;
	casync_lane_submit_in(data, &job.work, 50);
	casync_lane_submit(data, &stuck.work);
	assert_true(rig_wait(&begun));
	assert_true(rig_wait(&done));
	sem_post(&hold);
	end_all();
	sem_destroy(&begun);
	sem_destroy(&done);
	sem_destroy(&hold);
}

CASE(timed_job_is_hastened)
{
	struct job job = {.work.run = run};
	struct job other = {.work.run = run};
	sem_t done;

	sem_init(&done, 0, 0);
	job.begun = &done;
	casync_lane_submit_in(data, &job.work, 3600 * 1000);
	casync_lane_hasten(data, &other.work);
	assert_int_equal(begun_of(&done), 0);
	casync_lane_hasten(data, &job.work);
	assert_true(rig_wait(&done));
	casync_lane_hasten(data, &job.work);
	end_all();
	assert_int_equal(job.runs, 1);
	sem_destroy(&done);
}

CASE(timed_job_runs_at_the_stop)
{
	struct job job = {.work.run = run};

	casync_lane_submit_in(data, &job.work, 3600 * 1000);
	end_all();
	assert_int_equal(job.runs, 1);
}

CASE(file_takes_its_share_and_no_more)
{
	static struct shared_job jobs[3 * CASYNC_LANE_SHARE + 1];
	struct casync_lane_share share = {0}, other = {0};
	const unsigned int last = 3 * CASYNC_LANE_SHARE;
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
		casync_lane_submit_shared(look, jobs[i].share,
					  &jobs[i].job.work);
	}
	/* The file's, and another file's beside them. */
	for (i = 0; i <= CASYNC_LANE_SHARE; i++)
		assert_true(rig_wait(&begun));
	assert_int_equal(begun_of(&begun), 0);
	assert_false(casync_lane_try_shared(look, &share, &one_more.work));
	for (i = 0; i <= last; i++)
		sem_post(&hold);
	end_all();
	assert_int_equal(total, last + 1);
	assert_int_equal(share.users, 0);
	assert_null(share.waiting);
	assert_int_equal(other.users, 0);
	sem_destroy(&begun);
	sem_destroy(&hold);
}

/* --- threads that are none of the lane's in a share */

static struct casync_lane_share crowded;
static int at_work, most_at_work; /* atomic */

static void be_at_work(void)
{
	int now = __atomic_add_fetch(&at_work, 1, __ATOMIC_ACQ_REL);
	int most = NOW(most_at_work);

	while (now > most &&
	       !__atomic_compare_exchange_n(&most_at_work, &most, now, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	sched_yield();
	__atomic_sub_fetch(&at_work, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&total, 1, __ATOMIC_ACQ_REL);
	casync_lane_release_share(look, &crowded);
}

static void run_in_the_crowd(struct casync_work *work)
{
	(void)work;
	be_at_work();
}

static struct casync_work crowd[PRODUCERS][JOBS_EACH];

static void *enter_or_queue(void *arg)
{
	struct casync_work *mine = arg;
	unsigned int i;

	for (i = 0; i < JOBS_EACH; i++) {
		mine[i].run = run_in_the_crowd;
		if (casync_lane_enter_share(&crowded))
			be_at_work();
		else
			casync_lane_submit_shared(look, &crowded, &mine[i]);
	}
	return NULL;
}

/* Nothing is lost where a place becomes free while somebody begins to wait. */
CASE(threads_and_jobs_share_the_places)
{
	pthread_t producers[PRODUCERS];
	unsigned int i;

	memset(&crowded, 0, sizeof(crowded));
	/* So a place becomes free, and all have to wait, as often as may be. */
	crowded.most = 2;
	at_work = most_at_work = 0;
	for (i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&producers[i], NULL,
						enter_or_queue, crowd[i]),
				 0);
	for (i = 0; i < PRODUCERS; i++)
		RIG_JOIN(producers[i], NULL);
	end_all();
	assert_int_equal(total, PRODUCERS * JOBS_EACH);
	assert_true(most_at_work == 1 || most_at_work == 2);
	assert_int_equal(crowded.users, 0);
	assert_null(crowded.waiting);
}

/* A thread finds no place while a job waits: that one comes first. */
CASE(nobody_passes_a_job_that_waits)
{
	struct casync_lane_share share = {.most = 2};
	struct shared_job waits = {.share = &share};
	sem_t begun, hold;

	sem_init(&begun, 0, 0);
	sem_init(&hold, 0, 0);
	waits.job.work.run = run_shared;
	waits.job.begun = &begun;
	waits.job.hold = &hold;
	assert_true(casync_lane_enter_share(&share));
	assert_true(casync_lane_enter_share(&share));
	assert_false(casync_lane_enter_share(&share));
	casync_lane_submit_shared(look, &share, &waits.job.work);
	assert_int_equal(begun_of(&begun), 0);
	casync_lane_release_share(look, &share);
	assert_true(rig_wait(&begun));
	assert_false(casync_lane_enter_share(&share));
	sem_post(&hold);
	RIG_UNTIL(NOW(share.users) == 1);
	assert_true(casync_lane_enter_share(&share));
	casync_lane_release_share(look, &share);
	casync_lane_release_share(look, &share);
	assert_int_equal(share.users, 0);
	end_all();
	sem_destroy(&begun);
	sem_destroy(&hold);
}

CASE(full_lane_is_not_waited_for)
{
	static struct job stuck[CASYNC_LANE_THREADS];
	struct casync_lane_share share = {0};
	struct job job = {.work.run = run};
	sem_t hold;
	unsigned int i;

	memset(stuck, 0, sizeof(stuck));
	sem_init(&hold, 0, 0);
	for (i = 0; i < CASYNC_LANE_THREADS; i++) {
		stuck[i].work.run = run;
		stuck[i].hold = &hold;
		casync_lane_submit(look, &stuck[i].work);
	}
	assert_false(casync_lane_try_shared(look, &share, &job.work));
	assert_int_equal(share.users, 0);
	for (i = 0; i < CASYNC_LANE_THREADS; i++)
		sem_post(&hold);
	end_all();
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
 * counts on time: the lane stands still once CASYNC_LANE_THREADS jobs have
 * begun, and one of two looks at a lane that stands still finds it so.
 */
CASE(lane_that_stands_still_gets_help)
{
	static struct job stuck[CASYNC_LANE_THREADS + 20];
	static struct job job;
	static sem_t begun, done, hold;
	const unsigned int count = CASYNC_LANE_THREADS + 20;
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
		casync_lane_submit(data, &stuck[i].work);
	}
	casync_lane_submit(data, &job.work);
	assert_true(await_all(&begun, CASYNC_LANE_THREADS));
	assert_int_equal(begun_of(&begun), 0);
	assert_int_equal(begun_of(&done), 0);
	casync_lane_unblock_all();
	casync_lane_unblock_all();
	assert_true(await_all(&begun, count - CASYNC_LANE_THREADS));
	assert_true(rig_wait(&done));
	for (i = 0; i < count; i++)
		sem_post(&hold);
	end_all();
	sem_destroy(&begun);
	sem_destroy(&done);
	sem_destroy(&hold);
}

static void run_in_another_lane(struct casync_work *work)
{
	struct job *job = container_of(work, struct job, work);

	work->run = run;
	job->begun = NULL;
	casync_lane_submit(casync_lane_of_process(CASYNC_LANE_TEARDOWN), work);
}

/* The last answer of an export ends it. */
CASE(stop_runs_what_one_lane_leaves_to_another)
{
	struct job job = {.work.run = run_in_another_lane};

	casync_lane_submit(data, &job.work);
	end_all();
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
		casync_lane_submit(data, &producer->jobs[i].work);
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
	end_all();
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
		end_all();
		assert_int_equal(up(state), 0);
		nanosleep(&pause, NULL);

		sem_init(&second_ran, 0, 0);
		first.hold = &second_ran;
		second.begun = &second_ran;
		casync_lane_submit(data, &first.work);
		casync_lane_submit(data, &second.work);
		end_all();
		all_held = first.held;
		sem_destroy(&second_ran);
	}
	assert_true(all_held);
}

/* The last case: nobody joins its threads. */
CASE(stop_does_not_wait_for_ever)
{
	static struct casync_lane lanes[CASYNC_MOUNT_LANES];
	static struct job stuck;
	static sem_t hold;

	sem_init(&hold, 0, 0);
	stuck = (struct job){.work.run = run, .hold = &hold, .stuck = true};
	assert_int_equal(casync_lane_start_mount(lanes), 0);
	casync_lane_submit(&lanes[CASYNC_LANE_LOOK], &stuck.work);
	assert_false(casync_lane_stop_mount(lanes, 0));
	assert_true(casync_lane_is_stopping(&lanes[CASYNC_LANE_LOOK]));
	sem_post(&hold);
}
