/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>

#include "fsal.h"

#include "errors.h"
#include "module.h"
#include "mount.h"
#include "service.h"

/* Ganesha's; it comes with the RADOS recovery backends. */
#define RADOS_LIBRARY "libganesha_rados_urls.so"

fsal_status_t casync_service_take_over(struct fsal_module *fsal_hdl,
				       char *nodeid)
{
	(void)fsal_hdl;
	return casync_status(casync_mount_take_over(
		nodeid, casync_module.keys.tuning.mount_timeout));
}

void casync_service_register(void)
{
	void (*register_service)(char *nodeid) = NULL;
	void *library;

	if (!casync_module.keys.register_service)
		return;

	library = dlopen(RADOS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (library != NULL)
		*(void **)&register_service =
			dlsym(library, "register_service_to_ceph");
	if (register_service == NULL)
		LogCrit(COMPONENT_FSAL,
			"Register_Service = true: %s; install Ganesha's RADOS library or leave the key out; serving goes on",
			dlerror());
	else
		register_service(casync_module.keys.nodeid);
}
