/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* client_lock.c beside a libcephfs of known locks: fake_client.c. */
#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "figures.h"

#define MS_NS 1000000ULL
#define CALLS 34 /* twice what is sampled */

extern pthread_mutex_t fake_client_lock;

static const struct figures *figures;
static unsigned int answers;

static int map_figures(void **state)
{
	const char *path = getenv("CLIENT_LOCK_FILE");
	int fd;

	(void)state;
	assert_non_null(path);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	figures = mmap(NULL, sizeof(*figures), PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(figures, MAP_FAILED);
	return close(fd);
}

static const struct figures_kind *kind_named(const char *name)
{
	uint64_t i;

	for (i = 0; i < figures->kinds; i++)
		if (strcmp(figures->kind[i].name, name) == 0)
			return &figures->kind[i];
	fail_msg("no threads named %s", name);
	return NULL;
}

static void *getattr_calls(void *calls)
{
	int i;

	prctl(PR_SET_NAME, "caller-7");
	for (i = 0; i < *(int *)calls; i++)
		ceph_ll_getattr(NULL, NULL, NULL, 0, 0, NULL);
	return NULL;
}

static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_mutex_of_getattr_is_found(void **state)
{
	int calls = 33;

	(void)state;
	assert_int_equal(figures->mutex, 0);
	in_thread(getattr_calls, &calls);
	assert_int_equal(figures->mutex, (uintptr_t)&fake_client_lock);
	assert_int_equal(figures->learned_calls, 33);
	assert_in_range(figures->learned_votes, 30, 33);
}

static void holds_are_counted_and_timed(void **state)
{
	const struct figures_kind *kind;
	int calls = CALLS;
	uint64_t i, holds = 0;

	(void)state;
	in_thread(getattr_calls, &calls);
	kind = kind_named("caller");
	assert_int_equal(kind->taken, CALLS);
	assert_int_equal(kind->contended, 0);
	assert_true(kind->held_ns >= CALLS * MS_NS);
	for (i = 0; i < FIGURES_BUCKETS; i++) {
		holds += kind->holds[i];
		/* None is shorter than the fake's work. */
		if (i < 20)
			assert_int_equal(kind->holds[i], 0);
	}
	assert_int_equal(holds, CALLS);
	/* It sleeps: the clock runs, the CPU's does not. */
	assert_int_equal(kind->sampled, CALLS / 17);
	assert_true(kind->sampled_cpu_ns < kind->sampled * MS_NS / 2);
}

static void *take_once(void *name)
{
	prctl(PR_SET_NAME, (char *)name);
	pthread_mutex_lock(&fake_client_lock);
	pthread_mutex_unlock(&fake_client_lock);
	return NULL;
}

static void who_waits_for_the_holder_is_told(void **state)
{
	const struct timespec held = {.tv_nsec = 400 * MS_NS};
	const struct figures_kind *kind;
	char name[] = "late-1";
	pthread_t thread;

	(void)state;
	pthread_mutex_lock(&fake_client_lock);
	assert_int_equal(pthread_create(&thread, NULL, take_once, name), 0);
	nanosleep(&held, NULL);
	pthread_mutex_unlock(&fake_client_lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	kind = kind_named("late");
	assert_int_equal(kind->taken, 1);
	assert_int_equal(kind->contended, 1);
	assert_true(kind->waited_ns >= 100 * MS_NS);
	assert_true(kind->held_ns < 100 * MS_NS);
}

static void *wait_on_condition(void *cond)
{
	struct timespec until;

	prctl(PR_SET_NAME, "sleeper");
	pthread_mutex_lock(&fake_client_lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_cond_timedwait(cond, &fake_client_lock, &until);
	pthread_mutex_unlock(&fake_client_lock);
	return NULL;
}

static void a_wait_on_a_condition_is_no_hold(void **state)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	const struct figures_kind *kind;

	(void)state;
	in_thread(wait_on_condition, &cond);
	kind = kind_named("sleeper");
	assert_int_equal(kind->taken, 2);
	assert_int_equal(kind->waits, 1);
	assert_true(kind->held_ns < 500 * MS_NS);
}

static void answered(struct ceph_ll_io_info *io)
{
	(void)io;
	answers++;
}

static void callbacks_tell_whether_the_lock_is_held(void **state)
{
	struct ceph_ll_io_info io = {.callback = answered, .write = true};
	int i;

	(void)state;
	/* The same io again: its callback is already replaced. */
	for (i = 0; i < 5; i++)
		ceph_ll_nonblocking_readv_writev(NULL, &io);
	io.write = false;
	for (i = 0; i < 3; i++)
		ceph_ll_nonblocking_readv_writev(NULL, &io);
	assert_int_equal(answers, 8);
	assert_int_equal(figures->callbacks, 8);
	assert_int_equal(figures->callbacks_held, 5);
}

static void other_mutexes_are_not_counted(void **state)
{
	pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
	uint64_t before = 0, after = 0, i;

	(void)state;
	for (i = 0; i < figures->kinds; i++)
		before += figures->kind[i].taken;
	for (i = 0; i < 100; i++) {
		pthread_mutex_lock(&other);
		pthread_mutex_unlock(&other);
	}
	for (i = 0; i < figures->kinds; i++)
		after += figures->kind[i].taken;
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mutex_of_getattr_is_found),
		cmocka_unit_test(holds_are_counted_and_timed),
		cmocka_unit_test(who_waits_for_the_holder_is_told),
		cmocka_unit_test(a_wait_on_a_condition_is_no_hold),
		cmocka_unit_test(callbacks_tell_whether_the_lock_is_held),
		cmocka_unit_test(other_mutexes_are_not_counted),
	};

	return cmocka_run_group_tests(tests, map_figures, NULL);
}
