/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <time.h>

#include "fsal.h"

#include "clock.h"
#include "deadline_call.h"
#include "mount.h"
#include "reclaim.h"

/*
 * While no MDS answers, each try to reclaim the session leaves a call behind,
 * with a client and its 14 threads.  So after some of them a try takes twice as
 * long as the one before, up to 2^5 times.  A call that waits for an MDS
 * returns by itself when there is one.  One that was refused by a monitor does
 * not.
 */
#define TRIES_OF_ONE_LENGTH 4
#define LONGER_TRIES 5

/* Then all of them return, and end whatever session has our name.  So the new
 * session is not made before, but for calls that take longer than this. */
#define LATE_RECLAIMS_MS 5000
#define LATE_RECLAIMS_LOOK_MS 20

static uint32_t other_reclaims; /* of clients that do not count; atomic */
static uint32_t reclaim_under_way(const struct casync_client *client)
{
	return client->reclaims == NULL
		       ? 0
		       : __atomic_load_n(client->reclaims, __ATOMIC_ACQUIRE);
}

void casync_reclaim_wait_for_late(const struct casync_client *client)
{
	const struct timespec moment = {.tv_nsec = LATE_RECLAIMS_LOOK_MS *
						   CASYNC_NS_PER_MS};
	int looks = LATE_RECLAIMS_MS / LATE_RECLAIMS_LOOK_MS;

	while (reclaim_under_way(client) != 0 && looks-- > 0)
		nanosleep(&moment, NULL);
}

int casync_reclaim_in_time(struct casync_client *client,
			   const struct casync_mount_params *params,
			   const char *uuid)
{
	uint32_t before = reclaim_under_way(client);
	uint32_t longer = 0;

	if (before > TRIES_OF_ONE_LENGTH)
		longer = before - TRIES_OF_ONE_LENGTH;
	if (longer > LONGER_TRIES)
		longer = LONGER_TRIES;
	return casync_deadline_call_reclaim(
		client->ceph, uuid, params->timeout_s << longer,
		client->reclaims != NULL ? client->reclaims : &other_reclaims);
}
