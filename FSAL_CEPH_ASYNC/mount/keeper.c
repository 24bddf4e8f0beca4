/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "check.h"
#include "client.h"
#include "clock.h"
#include "common_grace.h"
#include "connect.h"
#include "mount.h"
#include "keeper.h"
#include "session.h"
#include "pin.h"
#include "take_over.h"
#include "text.h"
#include "tuning.h"

/* How often to look whether the old client's users have left, and how often
 * to say that they have not. */
#define DRAIN_LOOK_MS 5
#define DRAIN_SAY_MS 10000

/* A session is ended by ourselves so often at most. */
#define END_PAUSE_MS 60000

/* Pauses between tries. */
#define FIRST_PAUSE_MS 500
#define LONGEST_PAUSE_MS 30000

/* A session of our own that the MDS has not ended yet has our name for
 * Session_Timeout at most, and an MDS that takes over for a moment longer. */
#define TAKEN_MARGIN_S 60

/* --- the phases of the guard */

/*
 * Only the keeper changes a phase that is not SERVES.  A thread that enters
 * uses the client, so there has to be one.
 */
static void keeper_set_phase(struct casync_mount *mount,
			     enum casync_guard_phase to)
{
	enum casync_guard_phase from = casync_guard_phase(&mount->guard);

	CASYNC_CHECK(to >= CASYNC_GUARD_CLOSED || mount->client != NULL);
	if (from != to)
		(void)casync_guard_change(&mount->guard, from, to);
	CASYNC_CHECK(casync_guard_phase(&mount->guard) == to);
}

/* A client that ends, or leaves the mount, is in no use, and stays so. */
static void keeper_check_closed(const struct casync_mount *mount)
{
	CASYNC_CHECK(casync_guard_phase(&mount->guard) == CASYNC_GUARD_CLOSED);
}

/* --- the six steps of keeper.h */

struct attempt {
	struct casync_mount *mount;
	uint64_t began_ns;
	uint64_t waited_ms; /**< For a successor: not of Reconnect_Timeout. */
	uint64_t taken_ns;  /**< Since when another has the name; 0: none. */
	bool disowns;	    /**< READs may be left with the client. */
	unsigned int tries;
};

static uint64_t keeper_elapsed_ms(const struct attempt *attempt)
{
	return casync_clock_age_ns(attempt->began_ns) / CASYNC_NS_PER_MS;
}

static uint32_t keeper_taken_max_s(const struct casync_mount *mount)
{
	return mount->params.session_timeout_s + TAKEN_MARGIN_S;
}

/* Has another gateway had our name for so long that it cannot be a session of
 * our own, which the MDS has yet to end? */
static bool keeper_is_replaced(const struct attempt *attempt)
{
	return attempt->taken_ns != 0 &&
	       casync_clock_age_ns(attempt->taken_ns) >=
		       keeper_taken_max_s(attempt->mount) * CASYNC_NS_PER_S;
}

static void keeper_note_taken(struct attempt *attempt, bool taken)
{
	struct casync_mount *mount = attempt->mount;

	if (!taken) {
		attempt->taken_ns = 0;
		return;
	}
	if (attempt->taken_ns != 0)
		return;
	attempt->taken_ns = casync_clock_ns();
	LogCrit(COMPONENT_FSAL,
		"mount %s: another ganesha.nfsd, started later, has its name (or User_Id '%s' may not mount); no new CephFS client, requests are asked to retry for %" PRIu32
		" s: end one of the two",
		mount->session.client,
		casync_text_or(mount->identity.user_id, "admin"),
		keeper_taken_max_s(mount));
}

/* Give up, if the time of Reconnect_Timeout is over. */
static bool keeper_gives_up(const struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;
	uint32_t timeout_s = casync_tuning_read(&mount->keeper.timeout_s);
	bool late = timeout_s != 0 &&
		    keeper_elapsed_ms(attempt) >=
			    timeout_s * UINT64_C(1000) + attempt->waited_ms;

	if (keeper_is_replaced(attempt))
		LogCrit(COMPONENT_FSAL,
			"mount %s: another ganesha.nfsd keeps its name (or User_Id '%s' may not mount); its requests fail with EIO: end this one",
			mount->session.client,
			casync_text_or(mount->identity.user_id, "admin"));
	else if (late)
		LogCrit(COMPONENT_FSAL,
			"mount %s: no new CephFS client within %" PRIu32
			" s (Reconnect_Timeout), %u tries; its requests fail with EIO: restart ganesha.nfsd once Ceph serves",
			mount->session.client, timeout_s, attempt->tries);
	else
		return false;
	/* libcephfs must recall no delegation that is freed then. */
	if (casync_guard_phase(&mount->guard) == CASYNC_GUARD_LEAVES)
		mount->params.hooks->forget(mount);
	keeper_set_phase(mount, CASYNC_GUARD_GIVEN_UP);
	return true;
}

/*
 * Leave READs that are not answered with the old client.  From then on nothing
 * of it is released any more: libcephfs uses their Inodes.  So the guard is
 * closed first; what is released meanwhile ends with the client.  Again and
 * again, as READs may be submitted that waited for a place.
 *
 * If there are none, the guard goes back to the drain's own phase.
 */
static void keeper_disown(struct attempt *attempt,
			  enum casync_guard_phase phase)
{
	struct casync_mount *mount = attempt->mount;
	struct casync_client *client = mount->client;

	if (!attempt->disowns) {
		if (!casync_client_may_be_left(mount))
			return;
		attempt->disowns = true;
		/* A delegation whose holder returns it while the guard is
		 * closed is freed: libcephfs must not recall it. */
		mount->params.hooks->forget(mount);
	}
	keeper_set_phase(mount, CASYNC_GUARD_CLOSED);
	client->reads_left += mount->params.hooks->disown(mount);
	if (client->reads_left == 0)
		keeper_set_phase(mount, phase);
	else
		/* Its threads may call back until the process ends. */
		casync_pin_module();
}

/* In this phase, wait until nobody uses the old client.  False: the keeper has
 * to end, or time is up. */
static bool keeper_drain(struct attempt *attempt, enum casync_guard_phase phase)
{
	struct casync_mount *mount = attempt->mount;
	uint64_t began_ns = casync_clock_ns();
	uint64_t say_ms = DRAIN_SAY_MS;

	keeper_set_phase(mount, phase);
	while (!casync_guard_is_empty(&mount->guard)) {
		if (!casync_deadline_call_pause(&mount->keeper.thread,
						DRAIN_LOOK_MS) ||
		    keeper_gives_up(attempt))
			return false;
		if (casync_clock_age_ns(began_ns) >=
		    CASYNC_KEEPER_DISOWN_MS * CASYNC_NS_PER_MS)
			keeper_disown(attempt, phase);
		if (keeper_elapsed_ms(attempt) < say_ms)
			continue;
		say_ms += DRAIN_SAY_MS;
		LogWarn(COMPONENT_FSAL,
			"mount %s: calls of the lost CephFS client have not returned for %" PRIu64
			" s; the new one has to wait for them",
			mount->session.client,
			keeper_elapsed_ms(attempt) / 1000);
	}
	return true;
}

static uint32_t keeper_end_time_s(struct casync_mount *mount)
{
	return casync_client_end_time_s(
		casync_tuning_read(&mount->drain_timeout_s));
}

/* A client that does not end is left behind: no request uses it. */
static void keeper_end_old(struct casync_mount *mount)
{
	struct casync_client *client = mount->client;

	keeper_check_closed(mount);
	if (client->reads_left != 0)
		LogWarn(COMPONENT_FSAL,
			"mount %s: %u READs that Ceph does not answer are left with the lost CephFS client; their NFS clients are asked to retry",
			mount->session.client, client->reads_left);
	mount->client = NULL;
	client->lost = true;
	(void)casync_client_end(client, keeper_end_time_s(mount));
}

static int keeper_try(struct casync_mount *mount)
{
	struct casync_client *client;
	int rc = casync_connect(mount, &mount->params, &client);

	if (rc != 0)
		return rc;
	if (client->fscid != mount->fscid) {
		(void)casync_client_end(client, keeper_end_time_s(mount));
		return casync_connect_failed(
			&mount->identity, -ESTALE,
			"Filesystem '%s' has another id: it was made anew",
			casync_text_or(mount->identity.filesystem,
				       "(default)"));
	}
	keeper_check_closed(mount);
	mount->client = client;
	__atomic_store_n(&mount->delegations, client->delegations,
			 __ATOMIC_RELAXED);
	return 0;
}

/* False: the keeper has to end, or gave up. */
static bool keeper_connect(struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;
	uint64_t pause_ms = FIRST_PAUSE_MS;
	int rc;

	if (casync_common_grace())
		attempt->waited_ms = CASYNC_NEW_SESSION_PAUSE_MS;
	if (!casync_deadline_call_sleep(&mount->keeper.thread,
					attempt->waited_ms) ||
	    keeper_gives_up(attempt))
		return false;
	/* A reload may end it. */
	while (casync_session_comes_back(mount)) {
		attempt->tries++;
		/* Its session may have locks that clients reclaim here, and
		 * capabilities that ours would wait for.  At once only before
		 * the first try: each one without an MDS takes seconds, and may
		 * leave a client behind. */
		casync_take_over_again(mount, attempt->tries == 1);
		rc = keeper_try(mount);
		if (rc == 0)
			return true;
		keeper_note_taken(attempt, rc == CASYNC_CONNECT_NAME_TAKEN);
		if (keeper_gives_up(attempt) ||
		    !casync_deadline_call_sleep(&mount->keeper.thread,
						pause_ms))
			return false;
		pause_ms = MIN(2 * pause_ms, LONGEST_PAUSE_MS);
	}
	return false;
}

static void keeper_serve(const struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;
	struct casync_session *session = &mount->session;
	uint64_t took_ms = keeper_elapsed_ms(attempt);

	casync_upcalls_invalidate_all(&mount->upcalls);
	mount->keeper.lost_ns = 0;
	/* The MDS has answered the new client. */
	__atomic_store_n(&mount->keeper.asked, false, __ATOMIC_RELAXED);
	casync_budget_prove(&mount->callers);
	/* Nor is a READ of the lost client a reason to end this one's session.
	 * None is in flight: the watchdog finds no more of them. */
	__atomic_store_n(&mount->keeper.unanswered_read_ino, 0,
			 __ATOMIC_RELAXED);
	keeper_set_phase(mount, CASYNC_GUARD_SERVES);
	__atomic_store_n(&session->reconnect_ms, took_ms, __ATOMIC_RELAXED);
	__atomic_add_fetch(&session->reconnects, 1, __ATOMIC_RELAXED);
	LogEvent(COMPONENT_FSAL,
		 "mount %s: a new CephFS client serves after %" PRIu64
		 " ms (%u tries)",
		 session->client, took_ms, attempt->tries);
}

/* Steps 1 to 3.  False: the keeper has to end, or gave up. */
static bool keeper_leave_client(struct attempt *attempt)
{
	struct casync_mount *mount = attempt->mount;
	bool drained;

	/* 1: no request enters any more.  2: the requests leave, then the
	 * releases, which are real still. */
	drained = keeper_drain(attempt, CASYNC_GUARD_LEAVES);
	if (drained) {
		mount->params.hooks->forget(mount);
		drained = keeper_drain(attempt, CASYNC_GUARD_CLOSED);
	}
	/* 3: the old client ends. */
	if (drained)
		keeper_end_old(mount);
	return drained;
}

/* It returns when the mount serves, when the new session is lost too, when it
 * gave up (Reconnect_Timeout), or when the keeper has to end. */
static void keeper_replace_client(struct casync_mount *mount)
{
	struct casync_keeper *keeper = &mount->keeper;
	struct attempt attempt = {.mount = mount};

	/* A client that is lost before it serves gets no time of its own. */
	if (keeper->lost_ns == 0)
		keeper->lost_ns = casync_clock_ns();
	attempt.began_ns = keeper->lost_ns;
	LogWarn(COMPONENT_FSAL,
		"mount %s: the CephFS session is lost (evicted or blocklisted); making a new client, requests are asked to retry",
		mount->session.client);
	/* There is none if Reconnect was false for a while. */
	if (mount->client != NULL && !keeper_leave_client(&attempt))
		return;
	/* 4: the new one connects. */
	if (!keeper_connect(&attempt))
		return;
	/* 5: locks are taken again. */
	casync_guard_renew(&mount->guard);
	keeper_set_phase(mount, CASYNC_GUARD_RESTORES);
	/* A look at the client before says nothing of this one. */
	__atomic_store_n(&keeper->doubted_since_ns, 0, __ATOMIC_RELAXED);
	if (mount->params.hooks->restore(mount) < 0)
		return;
	/* 6: requests enter. */
	keeper_serve(&attempt);
}

/* --- the thread */

/*
 * The root's attributes may come from memory while the session serves.  A
 * client that has lost its session has lost all capabilities, and has to ask
 * the MDS.  If the MDS is away, the call waits until it is back, or until it
 * has ended the session.  For a quota libcephfs always asks
 * (Client::_getxattr()). */
static int keeper_query_root(struct casync_mount *mount, bool ask_mds)
{
	struct ceph_mount_info *ceph = mount->client->ceph;
	struct ceph_statx stx;
	struct Inode *root;
	int rc = ceph_ll_lookup_root(ceph, &root);

	if (rc != 0)
		return rc;
	if (ask_mds)
		rc = ceph_ll_getxattr(ceph, root, "ceph.quota.max_bytes", NULL,
				      0, ceph_mount_perms(ceph));
	else
		rc = ceph_ll_getattr(ceph, root, &stx, CEPH_STATX_CTIME, 0,
				     ceph_mount_perms(ceph));
	ceph_ll_put(ceph, root);
	return rc;
}

/* The session served then.  Was there an error before that? */
static void keeper_note_served(struct casync_keeper *keeper, uint64_t then_ns)
{
	uint64_t doubted_since_ns =
		__atomic_load_n(&keeper->doubted_since_ns, __ATOMIC_RELAXED);

	if (doubted_since_ns != 0 && then_ns > doubted_since_ns &&
	    __atomic_load_n(&keeper->checked_ns, __ATOMIC_RELAXED) <
		    doubted_since_ns)
		__atomic_store_n(&keeper->checked_ns, casync_clock_ns(),
				 __ATOMIC_RELAXED);
}

/* Has the MDS answered?  These refusals are its own; any other error may be
 * libcephfs' word for a session that it has lost, EPERM included. */
static bool keeper_was_answered(int rc)
{
	return rc >= 0 || rc == -EACCES || rc == -ENOENT || rc == -ESTALE ||
	       rc == -ENODATA;
}

static void keeper_look(struct casync_mount *mount)
{
	uint64_t began_ns = casync_clock_ns();
	bool asked;
	int rc;

	if (!casync_guard_enter(&mount->guard))
		return;
	asked = __atomic_exchange_n(&mount->keeper.asked, false,
				    __ATOMIC_RELAXED);
	rc = keeper_query_root(mount, asked);
	casync_guard_leave(&mount->guard);
	(void)casync_session_note_loss(mount, -rc);
	if (!keeper_was_answered(rc))
		return;
	if (asked)
		casync_budget_prove(&mount->callers);
	(void)casync_guard_change(&mount->guard, CASYNC_GUARD_LOST,
				  CASYNC_GUARD_SERVES);
	keeper_note_served(&mount->keeper, began_ns);
}

void casync_keeper_ask_mds(struct casync_mount *mount)
{
	if (__atomic_exchange_n(&mount->keeper.asked, true, __ATOMIC_RELAXED))
		return;
	casync_budget_await_proof(&mount->callers);
	casync_deadline_call_wake_thread(&mount->keeper.thread);
}

void casync_keeper_end_session(struct casync_mount *mount, uint64_t ino)
{
	if (__atomic_exchange_n(&mount->keeper.unanswered_read_ino, ino,
				__ATOMIC_RELAXED) == 0)
		casync_deadline_call_wake_thread(&mount->keeper.thread);
}

/* As a restarted gateway does.  The helper is a client of its own. */
static void keeper_look_for_hangs(struct casync_mount *mount)
{
	struct casync_keeper *keeper = &mount->keeper;
	struct casync_client *helper;
	uint64_t now_ns = casync_clock_ns();
	uint64_t ino = __atomic_exchange_n(&keeper->unanswered_read_ino, 0,
					   __ATOMIC_RELAXED);
	int rc;

	if (ino == 0 ||
	    casync_guard_phase(&mount->guard) != CASYNC_GUARD_SERVES)
		return;
	if (keeper->ended_ns != 0 &&
	    now_ns - keeper->ended_ns < END_PAUSE_MS * CASYNC_NS_PER_MS)
		return;
	keeper->ended_ns = now_ns;
	LogWarn(COMPONENT_FSAL,
		"mount %s: inode 0x%" PRIx64
		" was truncated while it was read, and libcephfs does not answer the READ; ending the CephFS session to make a new client",
		mount->session.client, ino);
	helper = casync_client_new(&mount->identity, mount);
	rc = casync_connect_end_session(helper, &mount->params, NULL);
	(void)casync_client_end(helper, keeper_end_time_s(mount));
	if (rc == 0 || rc == -ENOENT)
		(void)casync_session_note_loss(mount, CASYNC_EBLOCKLISTED);
}

/* Read once: a session that served a moment ago may be left now (leave.h). */
static bool keeper_is_lost(const struct casync_mount *mount)
{
	enum casync_guard_phase phase = casync_guard_phase(&mount->guard);

	return phase != CASYNC_GUARD_SERVES && phase != CASYNC_GUARD_LEFT;
}

static uint64_t keeper_pause_ms(void)
{
	return casync_common_grace_look() ? CASYNC_GRACE_LOOK_MS
					  : CASYNC_KEEPER_CHECK_MS;
}

static void keeper_run(struct casync_mount *mount)
{
	SetNameFunction("casync_keeper");
	while (casync_deadline_call_pause(&mount->keeper.thread,
					  keeper_pause_ms())) {
		casync_upcalls_try_removed(&mount->upcalls);
		if (!casync_session_comes_back(mount) &&
		    casync_guard_phase(&mount->guard) == CASYNC_GUARD_LEAVES)
			keeper_set_phase(mount, CASYNC_GUARD_LOST);
		/* A session that is not replaced may come back by itself. */
		if (casync_session_state(&mount->guard) ==
			    CASYNC_SESSION_SERVES ||
		    !casync_session_comes_back(mount))
			keeper_look(mount);
		casync_take_over_again(mount, false);
		if (!casync_session_comes_back(mount))
			continue;
		keeper_look_for_hangs(mount);
		if (keeper_is_lost(mount))
			keeper_replace_client(mount);
	}
}

int casync_keeper_start(struct casync_mount *mount)
{
	return casync_deadline_call_start_thread(&mount->keeper.thread,
						 keeper_run, mount);
}
