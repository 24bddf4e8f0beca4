/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What others may know of a mount (mount.h).  Apart from mount.c, because what
 * mount.c connects asks for it too.
 */
#include "config.h"

#include "connect.h"
#include "mount.h"

struct ceph_mount_info *casync_mount_ceph(const struct casync_mount *mount)
{
	return mount->client.ceph;
}

int64_t casync_mount_fscid(const struct casync_mount *mount)
{
	return mount->fscid;
}

uint64_t casync_mount_time_ns(const struct casync_mount *mount)
{
	return __atomic_load_n(&mount->mounted_ns, __ATOMIC_RELAXED);
}

bool casync_mount_delegations(const struct casync_mount *mount)
{
	return mount->delegations;
}

struct casync_upcalls *casync_mount_upcalls(struct casync_mount *mount)
{
	return &mount->upcalls;
}

struct casync_object_table *
casync_mount_object_table(struct casync_mount *mount)
{
	return &mount->upcalls.table;
}

struct casync_session *casync_mount_session(struct casync_mount *mount)
{
	return &mount->session;
}

struct casync_guard *casync_mount_guard(struct casync_mount *mount)
{
	return &mount->guard;
}

struct casync_waiter_limit *casync_mount_callers(struct casync_mount *mount)
{
	return &mount->callers;
}

const char *casync_mount_path(const struct casync_mount *mount)
{
	return mount->client.path;
}
