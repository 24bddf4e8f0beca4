/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "clock.h"
#include "common_grace.h"
#include "connect.h"
#include "keeper.h"
#include "reconnect.h"
#include "tuning.h"

/* How often to look whether the old client's users have left, and how often
 * to say that they have not. */
#define DRAIN_LOOK_MS 5
#define DRAIN_SAY_MS 10000

/* Pauses between tries. */
#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 30000

struct attempt {
	struct casync_mount *mount;
	uint64_t began_ns;
	uint64_t waited_ms; /**< For a successor: not of Reconnect_Timeout. */
	unsigned int tries;
};

static uint64_t reconnect_elapsed_ms(const struct attempt *attempt)
{
	return (casync_now_ns() - attempt->began_ns) / CASYNC_NS_PER_MS;
}

/* Returns whether the time of Reconnect_Timeout is over. */
static bool reconnect_is_overdue(const struct attempt *attempt)
{
	uint32_t timeout_s = casync_tuned(&attempt->mount->keeper.timeout_s);

	return timeout_s != 0 &&
	       reconnect_elapsed_ms(attempt) >=
		       timeout_s * UINT64_C(1000) + attempt->waited_ms;
}

static void reconnect_give_up(const struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;

	LogCrit(COMPONENT_FSAL,
		"mount %s: no new CephFS client within %" PRIu32
		" s (Reconnect_Timeout), %u tries; its requests fail with EIO: restart ganesha.nfsd once Ceph serves",
		mount->session.client, casync_tuned(&mount->keeper.timeout_s),
		attempt->tries);
	__atomic_store_n(&mount->keeper.given_up, true, __ATOMIC_RELAXED);
}

/* Wait until nobody uses the old client.  False: the keeper has to end, or time
 * is up. */
static bool reconnect_drain(const struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;
	uint64_t say_ms = DRAIN_SAY_MS;

	while (!casync_guard_is_empty(&mount->guard)) {
		if (!casync_keeper_pause(mount, DRAIN_LOOK_MS))
			return false;
		if (reconnect_is_overdue(attempt)) {
			reconnect_give_up(attempt);
			return false;
		}
		if (reconnect_elapsed_ms(attempt) < say_ms)
			continue;
		say_ms += DRAIN_SAY_MS;
		LogWarn(COMPONENT_FSAL,
			"mount %s: calls of the lost CephFS client have not returned for %" PRIu64
			" s; the new one has to wait for them",
			mount->session.client,
			reconnect_elapsed_ms(attempt) / 1000);
	}
	return true;
}

/* Let all requests leave the client, then all releases.  Meanwhile they are
 * still real: the client may call back until it has ended. */
static bool reconnect_leave_client(const struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;

	casync_guard_set(&mount->guard, CASYNC_GUARD_RELEASES);
	if (!reconnect_drain(attempt))
		return false;
	casync_keeper_get_hooks()->forget(mount);
	casync_guard_set(&mount->guard, CASYNC_GUARD_CLOSED);
	return reconnect_drain(attempt);
}

/* A client that does not end is left behind: nobody uses it. */
static void reconnect_end_client(struct casync_mount *mount, bool lost)
{
	struct casync_client *client = &mount->client;

	client->lost = lost;
	if (!casync_disconnect(client, casync_connect_end_time_s(client)))
		mount->left_client = true;
	client->ceph = NULL;
	client->stuck = false;
	client->lost = false;
}

static int reconnect_try(struct casync_mount *mount)
{
	int64_t fscid = mount->fscid;
	int rc = casync_connect(mount, &mount->params, true);

	if (rc == CASYNC_CONNECT_AGAIN) {
		reconnect_end_client(mount, false);
		rc = casync_connect(mount, &mount->params, false);
	}
	if (rc == 0 && mount->fscid != fscid) {
		rc = casync_connect_failed(
			&mount->params, -ESTALE,
			"Filesystem '%s' has another id: it was made anew",
			mount->client.filesystem != NULL
				? mount->client.filesystem
				: "(default)");
		mount->fscid = fscid;
		mount->upcalls.fscid = fscid;
	}
	if (rc != 0)
		reconnect_end_client(mount, false);
	return rc;
}

/* False: the keeper has to end, or gave up. */
static bool reconnect_connect(struct attempt *attempt)
{
	uint64_t pause_ms = FIRST_PAUSE_MS;

	for (;;) {
		attempt->tries++;
		if (reconnect_try(attempt->mount) == 0)
			return true;
		/* A reload may have ended it. */
		if (!casync_keeper_reconnects(attempt->mount))
			return false;
		if (reconnect_is_overdue(attempt)) {
			reconnect_give_up(attempt);
			return false;
		}
		if (!casync_keeper_sleep(attempt->mount, pause_ms))
			return false;
		pause_ms *= 2;
		if (pause_ms > LONGEST_PAUSE_MS)
			pause_ms = LONGEST_PAUSE_MS;
	}
}

static void reconnect_serve(const struct attempt *attempt)
{
	const struct casync_keeper_hooks *hooks = casync_keeper_get_hooks();
	struct casync_mount *mount = attempt->mount;
	struct casync_session *session = &mount->session;

	casync_guard_renew(&mount->guard);
	casync_guard_set(&mount->guard, CASYNC_GUARD_RELEASES);
	if (hooks->restore(mount) < 0)
		return; /* lost again */
	casync_upcalls_forget_all(&mount->upcalls);
	mount->keeper.lost_ns = 0;
	casync_session_found(session);
	casync_guard_set(&mount->guard, CASYNC_GUARD_SERVES);
	__atomic_store_n(&session->reconnect_ms, reconnect_elapsed_ms(attempt),
			 __ATOMIC_RELAXED);
	__atomic_add_fetch(&session->reconnects, 1, __ATOMIC_RELAXED);
	LogEvent(COMPONENT_FSAL,
		 "mount %s: a new CephFS client serves after %" PRIu64
		 " ms (%u tries)",
		 session->client, reconnect_elapsed_ms(attempt),
		 attempt->tries);
}

/* False: the keeper has to end. */
static bool reconnect_wait_for_successor(struct attempt *attempt)
{
	if (!casync_common_grace())
		return true;
	attempt->waited_ms = CASYNC_SUCCESSOR_MS;
	return casync_keeper_sleep(attempt->mount, CASYNC_SUCCESSOR_MS);
}

void casync_reconnect(struct casync_mount *mount)
{
	struct casync_keeper *keeper = &mount->keeper;
	struct attempt attempt = {.mount = mount};

	/* A client that is lost before it serves gets no time of its own. */
	if (keeper->lost_ns == 0)
		keeper->lost_ns = casync_now_ns();
	attempt.began_ns = keeper->lost_ns;
	LogWarn(COMPONENT_FSAL,
		"mount %s: the CephFS session is lost (evicted or blocklisted); making a new client, requests are asked to retry",
		mount->session.client);
	if (!reconnect_leave_client(&attempt))
		return;
	reconnect_end_client(mount, true);
	if (!reconnect_wait_for_successor(&attempt))
		return;
	if (reconnect_is_overdue(&attempt))
		reconnect_give_up(&attempt);
	else if (reconnect_connect(&attempt))
		reconnect_serve(&attempt);
}
