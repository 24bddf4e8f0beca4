/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdbool.h>

#include "on_thread.h"

static __thread bool on_completion_thread;

void casync_on_thread_begin(void)
{
	on_completion_thread = true;
}

bool casync_on_completion_thread(void)
{
	return on_completion_thread;
}
