/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "stub_mount.h"

struct casync_mount stub_mount;
static char root[] = "/";

void stub_mount_reset(void)
{
	memset(&stub_mount, 0, sizeof(stub_mount));
	glist_init(&stub_mount.delegations_held);
	stub_mount.client.path = root;
	stub_mount.client.ceph = (struct ceph_mount_info *)&stub_mount;
}
