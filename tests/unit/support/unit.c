/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* main() of all unit tests. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

/* More than any program has. */
#define MOST 2048

static struct CMUnitTest tests[MOST];
static int lines[MOST];
static size_t count;
static CMFixtureFunction fixture_up, fixture_down;

/* A compiler may call the constructors of a file in any order. */
void unit_add(int line, const struct CMUnitTest *test)
{
	size_t at;

	if (count == MOST)
		abort();
	for (at = count; at > 0 && lines[at - 1] > line; at--) {
		tests[at] = tests[at - 1];
		lines[at] = lines[at - 1];
	}
	tests[at] = *test;
	lines[at] = line;
	count++;
}

void unit_set_fixture(CMFixtureFunction up, CMFixtureFunction down)
{
	fixture_up = up;
	fixture_down = down;
}

/* Who unlocks a mutex has locked it: glibc looks at that for none of ours. */
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);

__thread void (*rig_after_unlock)(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int rc;

#ifdef __GLIBC__
	static __thread pid_t self;

	if (self == 0)
		self = gettid();
	if (mutex->__data.__owner != self) {
		fprintf(stderr, "a mutex that is not ours is unlocked\n");
		abort();
	}
#endif
	rc = __real_pthread_mutex_unlock(mutex);
	if (rig_after_unlock != NULL)
		rig_after_unlock(mutex);
	return rc;
}

bool rig_pause(unsigned int looks)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	return looks < RIG_TIMEOUT_S * 5000U;
}

/* By time(), as some programs have a clock_gettime() of their own. */
bool rig_wait(sem_t *sem)
{
	struct timespec deadline = {.tv_sec = time(NULL) + 1 + RIG_TIMEOUT_S};

	while (sem_timedwait(sem, &deadline) != 0) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

int rig_join(pthread_t thread, void **result)
{
	struct timespec deadline = {.tv_sec = time(NULL) + RIG_JOIN_S};

	return pthread_timedjoin_np(thread, result, &deadline);
}

static int wanted(const char *name, int patterns, char **pattern)
{
	int i;

	for (i = 0; i < patterns; i++) {
		if (strstr(name, pattern[i]) != NULL ||
		    fnmatch(pattern[i], name, 0) == 0)
			return 1;
	}
	return patterns == 0;
}

int main(int argc, char **argv)
{
	const char *name = program_invocation_short_name;
	size_t kept = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if (wanted(tests[i].name, argc - 1, argv + 1))
			tests[kept++] = tests[i];
	}
	if (kept == 0) {
		fprintf(stderr, "%s: none of %zu cases is asked for\n", name,
			count);
		return 2;
	}
	if (strncmp(name, "test_", 5) == 0)
		name += 5;
	return _cmocka_run_group_tests(name, tests, kept, fixture_up,
				       fixture_down);
}
