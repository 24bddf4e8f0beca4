/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "name.h"
#include "pin.h"

static bool staying; /* atomic */

/*
 * The threads of a session that did not end use objects that exit() destroys.
 * This was seen as a crash at the end of ganesha.nfsd, in libcephfs'
 * MonClient::tick().  So the process ends at once; all other work is done.
 */
static void pin_end_at_once(int status, void *unused)
{
	(void)unused;
	(void)fflush(NULL);
	_exit(status);
}

void casync_pin_module(void)
{
	Dl_info self;

	if (dladdr(&staying, &self) == 0 ||
	    dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE) == NULL)
		LogCrit(COMPONENT_FSAL, "FSAL %s cannot be kept loaded: %s",
			casync_name, dlerror());
	if (!__atomic_exchange_n(&staying, true, __ATOMIC_ACQ_REL) &&
	    on_exit(pin_end_at_once, NULL) != 0)
		LogWarn(COMPONENT_FSAL,
			"FSAL %s: the process may crash at its end",
			casync_name);
}

bool casync_pin_is_set(void)
{
	return __atomic_load_n(&staying, __ATOMIC_ACQUIRE);
}
