/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "fsal.h"
#include "nfs_core.h"
#include "sal_functions.h"

#include "client.h"
#include "clock.h"
#include "common_grace.h"
#include "deadline_call.h"
#include "leave.h"
#include "mount.h"
#include "pin.h"

#define LOOK_MS 5

static int leave_ask(struct casync_deadline_call *call)
{
	(void)call;
	return nfs_grace_is_member();
}

bool casync_leave_is_due(uint32_t timeout_s)
{
	static bool silent; /* one thread ends all exports */
	struct casync_deadline_call *call;
	int rc;

	if (!__atomic_load_n(&admin_shutdown, __ATOMIC_RELAXED) ||
	    !casync_common_grace())
		return false;
	if (silent)
		return true;
	call = gsh_calloc(1, sizeof(*call));
	call->run = leave_ask;
	rc = casync_deadline_call_run(call, timeout_s);
	silent = rc == -ETIMEDOUT;
	return rc != 0;
}

/* Not if the session is lost: then the keeper makes another one, or nobody has
 * any. */
static bool leave_close(struct casync_mount *mount)
{
	return casync_guard_change(&mount->guard, CASYNC_GUARD_SERVES,
				   CASYNC_GUARD_LEFT);
}

static bool leave_is_empty_in_time(struct casync_mount *mount,
				   uint64_t until_ns)
{
	const struct timespec moment = {.tv_nsec = LOOK_MS * CASYNC_NS_PER_MS};

	while (!casync_guard_is_empty(&mount->guard)) {
		if (casync_clock_ns() >= until_ns)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static uint32_t leave_seconds_to(uint64_t until_ns)
{
	uint64_t now_ns = casync_clock_ns();

	if (now_ns >= until_ns)
		return 1;
	return (uint32_t)((until_ns - now_ns) / CASYNC_NS_PER_S) + 1;
}

static void leave_log(const struct casync_mount *mount, int rc)
{
	if (rc < 0)
		LogWarn(COMPONENT_FSAL,
			"mount %s: the last changes may not be in the MDS' journal: %s",
			mount->session.client, strerror(-rc));
	LogEvent(
		COMPONENT_FSAL,
		"mount %s: this gateway leaves its CephFS session and locks to its successor, for %" PRIu32
		" s (Session_Timeout); if none will start: ganesha-ceph-async-config end-session %s",
		mount->session.client, mount->params.session_timeout_s,
		mount->uuid);
}

/* The client stays, and libcephfs must recall no delegation that Ganesha
 * frees.  The connection ends with the process, without a word. */
static void leave_unfinished(struct casync_mount *mount, uint32_t timeout_s)
{
	if (casync_guard_phase(&mount->guard) == CASYNC_GUARD_LEFT) {
		mount->params.hooks->forget(mount);
		leave_log(mount, -ETIMEDOUT);
	}
	casync_client_note_stuck(&mount->identity, timeout_s);
}

/* Nobody uses the client, and nobody will. */
static void leave_client(struct casync_mount *mount, uint64_t until_ns)
{
	struct casync_client *client = mount->client;
	uint32_t timeout_s = leave_seconds_to(until_ns);
	int rc = casync_client_sync(client, timeout_s);

	client->lost = true;
	if (rc == -ETIMEDOUT) {
		/* The client ends when the call has returned, or with this
		 * process. */
		leave_unfinished(mount, timeout_s);
		return;
	}
	leave_log(mount, rc);
	mount->client = NULL;
	(void)casync_client_end(client, leave_seconds_to(until_ns));
}

bool casync_leave_session(struct casync_mount *mount, uint32_t timeout_s)
{
	uint64_t until_ns = casync_clock_ns() + timeout_s * CASYNC_NS_PER_S;

	(void)leave_close(mount);
	if (!leave_is_empty_in_time(mount, until_ns)) {
		/* They use the client until the process ends. */
		casync_pin_module();
		leave_unfinished(mount, timeout_s);
		return false;
	}
	/* No request is inside that could wake it. */
	if (!casync_deadline_call_stop_thread(&mount->keeper.thread,
					      leave_seconds_to(until_ns))) {
		leave_unfinished(mount, timeout_s);
		return false;
	}
	/* It had the session, and has another one now. */
	if (!leave_close(mount))
		(void)casync_guard_change(&mount->guard, CASYNC_GUARD_RESTORES,
					  CASYNC_GUARD_LEFT);
	if (casync_guard_phase(&mount->guard) != CASYNC_GUARD_LEFT)
		return true;
	/* A job of a lane may have entered when it was RESTORES or SERVES. */
	if (!leave_is_empty_in_time(mount, until_ns)) {
		casync_pin_module();
		leave_unfinished(mount, timeout_s);
		return false;
	}
	leave_client(mount, until_ns);
	return true;
}
