/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "fsal.h"

#include "check.h"
#include "client.h"
#include "clock.h"
#include "mount.h"
#include "pin.h"
#include "text.h"

/* How long an end may take if another one has timed out recently.  The MDS is
 * away then, and all exports together have to end in time. */
#define NEXT_END_S 1
#define GIVEN_UP_RECENTLY_NS (60 * CASYNC_NS_PER_S)

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

static uint64_t last_given_up_ns; /* CLOCK_MONOTONIC; 0: never; atomic */
static uint32_t other_reclaims;	  /* of sessions of no mount; atomic */

struct casync_client *casync_client_new(const struct casync_identity *identity,
					struct casync_mount *mount)
{
	struct casync_client *client = gsh_calloc(1, sizeof(*client));

	client->identity = identity;
	client->mount = mount;
	client->users = 1;
	if (mount != NULL)
		__atomic_add_fetch(&mount->clients_alive, 1, __ATOMIC_RELAXED);
	return client;
}

/* --- its end */

/*
 * It waits for Ceph: if it was mounted, for the MDS without a timeout; if not,
 * up to client_shutdown_timeout, 30 s.  The MDS does not know a lost session,
 * and would not answer.
 */
static int client_run_end(struct casync_deadline_call *call)
{
	struct casync_client *client =
		container_of(call, struct casync_client, end);
	struct casync_mount *mount = client->mount;

	if (client->ceph != NULL) {
		if (client->lost)
			(void)ceph_abort_conn(client->ceph);
		else if (ceph_is_mounted(client->ceph))
			(void)ceph_unmount(client->ceph);
		(void)ceph_release(client->ceph);
	}
	if (mount == NULL)
		return 0;
	if (client->reads_left != 0)
		LogEvent(
			COMPONENT_FSAL,
			"mount %s: the READs that were left with a lost CephFS client have come back, and it has ended",
			mount->session.client);
	/* The mount may be freed from then on. */
	CASYNC_CHECK_DOWN(&mount->clients_alive, __ATOMIC_RELEASE);
	return 0;
}

void casync_client_hold(struct casync_client *client)
{
	CASYNC_CHECK(__atomic_load_n(&client->users, __ATOMIC_RELAXED) != 0);
	__atomic_add_fetch(&client->users, 1, __ATOMIC_RELAXED);
}

struct casync_client *casync_client_drop(struct casync_client *client)
{
	int rc;

	if (CASYNC_CHECK_DOWN(&client->users, __ATOMIC_ACQ_REL) != 0)
		return NULL;
	client->end.run = client_run_end;
	rc = casync_deadline_call_begin(&client->end);
	if (rc == 0)
		return client;
	/* The handle stays, and with it its mount. */
	LogCrit(COMPONENT_FSAL,
		"cannot start a thread to end a CephFS client: %s",
		strerror(-rc));
	casync_pin_module();
	return NULL;
}

void casync_client_note_stuck(const struct casync_identity *identity,
			      uint32_t timeout_s)
{
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16
		": unmounting '%s' of file system '%s' did not end within %" PRIu32
		" s; its CephFS session stays open",
		identity->export_id, identity->path,
		casync_text_or(identity->filesystem, "(default)"), timeout_s);
	__atomic_store_n(&last_given_up_ns, casync_clock_ns(),
			 __ATOMIC_RELAXED);
}

bool casync_client_await(struct casync_client *client, uint32_t timeout_s)
{
	const struct casync_identity *identity;

	if (client == NULL)
		return false;
	identity = client->identity;
	if (casync_deadline_call_end(&client->end, timeout_s) != -ETIMEDOUT)
		return true;
	casync_client_note_stuck(identity, timeout_s);
	return false;
}

bool casync_client_end(struct casync_client *client, uint32_t timeout_s)
{
	return casync_client_await(casync_client_drop(client), timeout_s);
}

void casync_client_put(struct casync_client *client)
{
	client = casync_client_drop(client);
	if (client != NULL)
		(void)casync_deadline_call_end(&client->end, 0);
}

uint32_t casync_client_end_time_s(uint32_t timeout_s)
{
	uint64_t last_ns = __atomic_load_n(&last_given_up_ns, __ATOMIC_RELAXED);

	return last_ns != 0 && casync_clock_age_ns(last_ns) <
				       GIVEN_UP_RECENTLY_NS
		       ? NEXT_END_S
		       : timeout_s;
}

/* Of those that are alive one is the mount's, and those that reclaim have no
 * READs. */
bool casync_client_may_be_left(const struct casync_mount *mount)
{
	uint32_t reclaiming =
		__atomic_load_n(&mount->clients_reclaiming, __ATOMIC_RELAXED);

	return __atomic_load_n(&mount->clients_alive, __ATOMIC_RELAXED) <=
	       CASYNC_CLIENTS_LEFT_MAX + reclaiming;
}

/* --- calls that may never return */

struct sync {
	struct casync_deadline_call call;
	struct casync_client *client;
};

static int client_run_sync(struct casync_deadline_call *call)
{
	struct casync_client *client =
		container_of(call, struct sync, call)->client;
	int rc = ceph_sync_fs(client->ceph);

	casync_client_put(client);
	return rc;
}

int casync_client_sync(struct casync_client *client, uint32_t timeout_s)
{
	struct sync *sync = gsh_calloc(1, sizeof(*sync));
	int rc;

	sync->call.run = client_run_sync;
	sync->client = client;
	casync_client_hold(client);
	rc = casync_deadline_call_begin(&sync->call);
	if (rc == 0)
		return casync_deadline_call_end(&sync->call, timeout_s);
	casync_client_put(client);
	return rc;
}

/* The end of another client's session. */

struct reclaim {
	struct casync_deadline_call call;
	struct casync_client *client;
	char uuid[CASYNC_UUID_BYTES];
};

/* Counts the calls that have not returned. */
static uint32_t *client_reclaims(struct casync_client *client)
{
	return client->mount != NULL ? &client->mount->clients_reclaiming
				     : &other_reclaims;
}

static int client_run_reclaim(struct casync_deadline_call *call)
{
	struct reclaim *reclaim = container_of(call, struct reclaim, call);
	struct casync_client *client = reclaim->client;
	int rc;

	rc = ceph_start_reclaim(client->ceph, reclaim->uuid,
				CEPH_RECLAIM_RESET);
	if (rc == 0 || rc == -ENOENT)
		ceph_finish_reclaim(client->ceph);
	CASYNC_CHECK_DOWN(client_reclaims(client), __ATOMIC_RELEASE);
	casync_client_put(client);
	return rc;
}

static int client_reclaim_in_time(struct casync_client *client,
				  const char *uuid, uint32_t timeout_s)
{
	struct reclaim *reclaim = gsh_calloc(1, sizeof(*reclaim));
	int rc;

	reclaim->call.run = client_run_reclaim;
	reclaim->client = client;
	(void)snprintf(reclaim->uuid, sizeof(reclaim->uuid), "%s", uuid);
	casync_client_hold(client);
	__atomic_add_fetch(client_reclaims(client), 1, __ATOMIC_RELAXED);
	rc = casync_deadline_call_begin(&reclaim->call);
	if (rc == 0)
		return casync_deadline_call_end(&reclaim->call, timeout_s);
	CASYNC_CHECK_DOWN(client_reclaims(client), __ATOMIC_RELAXED);
	casync_client_put(client);
	return rc;
}

int casync_client_reclaim(struct casync_client *client,
			  const struct casync_mount_params *params,
			  const char *uuid)
{
	uint32_t before =
		__atomic_load_n(client_reclaims(client), __ATOMIC_ACQUIRE);
	uint32_t longer = 0;

	if (before > TRIES_OF_ONE_LENGTH)
		longer = MIN(before - TRIES_OF_ONE_LENGTH, LONGER_TRIES);
	return client_reclaim_in_time(client, uuid,
				      params->timeout_s << longer);
}

/* Those of no mount may be for this one's name: exports of a former run. */
static bool client_is_late(const struct casync_mount *mount, bool starts)
{
	return __atomic_load_n(&mount->clients_reclaiming, __ATOMIC_ACQUIRE) !=
		       0 ||
	       (starts &&
		__atomic_load_n(&other_reclaims, __ATOMIC_ACQUIRE) != 0);
}

void casync_client_wait_for_late_reclaims(const struct casync_mount *mount,
					  bool starts)
{
	const struct timespec moment = {.tv_nsec = LATE_RECLAIMS_LOOK_MS *
						   CASYNC_NS_PER_MS};
	int looks = LATE_RECLAIMS_MS / LATE_RECLAIMS_LOOK_MS;

	while (client_is_late(mount, starts) && looks-- > 0)
		nanosleep(&moment, NULL);
}
