/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int looks;

static bool holds(void)
{
	looks++;
	return true;
}

static void break_a_check(void)
{
	CASYNC_CHECK(looks == 77);
}

static void take_one_too_many(void)
{
	uint32_t count = 0;

	(void)CASYNC_CHECK_DOWN(&count, __ATOMIC_RELAXED);
}

static void claim_a_lock(void)
{
	CASYNC_CHECK_HELD(&lock);
}

/* Does it abort, in a process of its own? */
static bool aborts(void (*what)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		(void)close(STDERR_FILENO);
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#ifdef CASYNC_DEBUG
#define IN_DEBUG true
#else
#define IN_DEBUG false
#endif

TEST(debug_build_aborts_and_a_release_goes_on)
{
	assert_int_equal(aborts(break_a_check), IN_DEBUG);
	assert_int_equal(aborts(take_one_too_many), IN_DEBUG);
	assert_int_equal(aborts(claim_a_lock), IN_DEBUG);
}

TEST(release_does_not_evaluate)
{
	CASYNC_CHECK(holds());
	assert_int_equal(looks, IN_DEBUG);
}

TEST(count_goes_down_in_both)
{
	uint64_t count = 2;

	assert_int_equal(CASYNC_CHECK_DOWN(&count, __ATOMIC_RELAXED), 1);
	assert_int_equal(CASYNC_CHECK_DOWN(&count, __ATOMIC_RELAXED), 0);
}

TEST(lock_that_is_held_passes)
{
	pthread_mutex_lock(&lock);
	CASYNC_CHECK_HELD(&lock);
	pthread_mutex_unlock(&lock);
}
