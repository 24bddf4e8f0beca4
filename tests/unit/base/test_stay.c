/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What keeps the plugin mapped, and ends the process without destructors.  It
 * is done once in a process: each case has one of its own.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "log.h"
#include "pin.h"
#include "stub_ganesha.h"

#define STATUS 3
#define RAN_DESTRUCTORS 4
#define WRONG 5

static bool exit_is_refused, load_is_refused;
static unsigned int exits_asked;

int __real_on_exit(void (*function)(int, void *), void *arg);

int __wrap_on_exit(void (*function)(int, void *), void *arg)
{
	exits_asked++;
	return exit_is_refused ? -1 : __real_on_exit(function, arg);
}

/* A program cannot be loaded again, as the plugin can. */
void *__wrap_dlopen(const char *path, int flags)
{
	static int handle;

	(void)path;
	(void)flags;
	return load_is_refused ? NULL : &handle;
}

/* The status of a process that ran this. */
static int status_of(int (*body)(void))
{
	int status;
	pid_t child;

	(void)fflush(NULL);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		component_log_level[COMPONENT_FSAL] = NIV_EVENT;
		_exit(body());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void destroy(void)
{
	_exit(RAN_DESTRUCTORS);
}

static int stay_and_exit(void)
{
	if (atexit(destroy) != 0 || casync_pin_is_set())
		return WRONG;
	casync_pin_module();
	casync_pin_module();
	if (!casync_pin_is_set() || exits_asked != 1 || stub.warnings != 0)
		return WRONG;
	exit(STATUS);
}

TEST(process_ends_with_its_status_and_no_destructor)
{
	assert_int_equal(status_of(stay_and_exit), STATUS);
}

static int stay_without_exit(void)
{
	exit_is_refused = true;
	casync_pin_module();
	return stub.warnings == 1 && stub_warned("may crash at its end")
		       ? STATUS
		       : WRONG;
}

TEST(end_that_cannot_be_changed_is_told)
{
	assert_int_equal(status_of(stay_without_exit), STATUS);
}

static int stay_without_code(void)
{
	load_is_refused = true;
	casync_pin_module();
	return stub.warnings == 1 && stub_warned("cannot be kept loaded")
		       ? STATUS
		       : WRONG;
}

TEST(code_that_cannot_be_kept_is_told)
{
	assert_int_equal(status_of(stay_without_code), STATUS);
}
