/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Preloaded into ganesha.nfsd, before a sanitizer's runtime: Ganesha opens
 * its FSALs with RTLD_DEEPBIND, by which they would get libc's malloc and
 * pthread functions instead of the runtime's.  The runtimes refuse that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

void *dlopen(const char *path, int flags)
{
	void *(*next)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");

	return next(path, flags & ~RTLD_DEEPBIND);
}
