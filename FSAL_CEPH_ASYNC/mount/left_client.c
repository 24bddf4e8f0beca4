/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "check.h"
#include "deadline_call.h"
#include "left_client.h"
#include "mount.h"
#include "stay.h"

struct casync_left_client {
	struct casync_deadline_call call; /**< Its end; freed with it. */
	struct casync_mount *mount;
	struct ceph_mount_info *ceph; /**< NULL: it stays in the mount. */
	uint32_t users;		      /**< Atomic. */
};

struct casync_left_client *casync_left_client_new(struct casync_mount *mount)
{
	struct casync_left_client *left;

	if (__atomic_load_n(&mount->clients_left, __ATOMIC_RELAXED) >=
	    CASYNC_LEFT_CLIENTS_MAX)
		return NULL;
	/* Its threads may call back until the process ends. */
	casync_stay();
	__atomic_add_fetch(&mount->clients_left, 1, __ATOMIC_RELAXED);
	left = gsh_calloc(1, sizeof(*left));
	left->mount = mount;
	left->users = 1;
	return left;
}

void casync_left_client_hold(struct casync_left_client *left)
{
	__atomic_add_fetch(&left->users, 1, __ATOMIC_RELAXED);
}

/* The mount is not freed before that (mount.c). */
static int left_client_end(struct casync_deadline_call *call)
{
	struct casync_left_client *left =
		container_of(call, struct casync_left_client, call);

	(void)ceph_abort_conn(left->ceph);
	(void)ceph_release(left->ceph);
	LogEvent(
		COMPONENT_FSAL,
		"mount %s: the READs that were left with a lost CephFS client have come back, and it has ended",
		left->mount->session.client);
	CASYNC_CHECK_DOWN(&left->mount->clients_left, __ATOMIC_RELEASE);
	return 0;
}

void casync_left_client_put(struct casync_left_client *left)
{
	struct casync_deadline_call *call = &left->call;

	if (CASYNC_CHECK_DOWN(&left->users, __ATOMIC_ACQ_REL) != 0)
		return;
	if (left->ceph == NULL) {
		CASYNC_CHECK_DOWN(&left->mount->clients_left, __ATOMIC_RELEASE);
		gsh_free(left);
		return;
	}
	call->run = left_client_end;
	/* Without a thread the client stays; nobody waits for it either way. */
	if (casync_deadline_call_begin(call) == 0)
		(void)casync_deadline_call_end(call, 0);
}

void casync_left_client_leave(struct casync_left_client *left)
{
	struct casync_client *client = &left->mount->client;

	/* It has served, so no call hangs in it: take-overs have clients of
	 * their own. */
	left->ceph = client->ceph;
	client->ceph = NULL;
}

void casync_left_client_give_up(struct casync_left_client *left)
{
	left->mount->client.stuck = true;
	left->mount->left_client = true;
}
