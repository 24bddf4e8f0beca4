/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "stub_mount.h"

struct casync_mount stub_mount;
static struct casync_client client;
static char root[] = "/";

void stub_mount_reset(void)
{
	memset(&stub_mount, 0, sizeof(stub_mount));
	glist_init(&stub_mount.delegations_held);
	stub_mount.identity.path = root;
	client = (struct casync_client){
		.mount = &stub_mount,
		.ceph = (struct ceph_mount_info *)&stub_mount,
		.users = 1};
	stub_mount.client = &client;
	stub_mount.clients_alive = 1;
}

void stub_mount_set_phase(enum casync_guard_phase phase)
{
	__atomic_store_n(&stub_mount.guard.phase, (uint32_t)phase,
			 __ATOMIC_SEQ_CST);
}
