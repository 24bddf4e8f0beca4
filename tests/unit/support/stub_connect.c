/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "client.h"
#include "connect.h"
#include "mount.h"
#include "upcalls.h"

/* Ceph lets each client connect and end. */

int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params,
		   struct casync_client **client)
{
	(void)params;
	*client = casync_client_new(&mount->identity, mount);
	(*client)->ceph = (struct ceph_mount_info *)mount;
	return 0;
}

int casync_connect_end_session(struct casync_client *client,
			       const struct casync_mount_params *params,
			       const char *nodeid)
{
	(void)client;
	(void)params;
	(void)nodeid;
	return 0;
}

void casync_connect_uuid(const struct casync_identity *identity,
			 const char *nodeid, char *uuid, size_t size)
{
	(void)identity;
	(void)nodeid;
	if (size != 0)
		uuid[0] = '\0';
}

void casync_connect_set_time(struct casync_mount *mount)
{
	(void)mount;
}

const char *casync_connect_reason(int rc)
{
	return rc == 0 ? "" : "error";
}

int casync_connect_failed(const struct casync_identity *identity, int rc,
			  const char *format, ...)
{
	(void)identity;
	(void)format;
	return rc;
}

/* A test that links upcalls.c gets that. */
__attribute__((weak)) void
casync_upcalls_try_removed(struct casync_upcalls *upcalls)
{
	(void)upcalls;
}

/* A test that links upcalls.c gets that. */
__attribute__((weak)) void
casync_upcalls_invalidate_all(struct casync_upcalls *upcalls)
{
	(void)upcalls;
}
