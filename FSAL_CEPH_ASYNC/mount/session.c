/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "clock.h"
#include "deadline_call.h"
#include "mount.h"
#include "session.h"
#include "tuning.h"

/* For so long after the keeper has looked, errors of this client that a loss
 * may have caused are believed.  Linux' NFSv3 client asks again after 5 s. */
#define BELIEVE_MS 10000

bool casync_session_comes_back(struct casync_mount *mount)
{
	return casync_deadline_call_runs(&mount->keeper.thread) &&
	       casync_tuning_read(&mount->keeper.reconnect) != 0 &&
	       casync_guard_phase(&mount->guard) != CASYNC_GUARD_GIVEN_UP;
}

bool casync_session_note_loss(struct casync_mount *mount, int error)
{
	/* All CPUs share this cache line, so only a change is written. */
	return casync_session_error(error) &&
	       casync_guard_phase(&mount->guard) == CASYNC_GUARD_SERVES &&
	       casync_guard_change(&mount->guard, CASYNC_GUARD_SERVES,
				   casync_session_comes_back(mount)
					   ? CASYNC_GUARD_LEAVES
					   : CASYNC_GUARD_LOST);
}

void casync_session_note_error(struct casync_mount *mount, int error)
{
	if (casync_session_note_loss(mount, error) &&
	    casync_session_comes_back(mount))
		casync_deadline_call_wake_thread(&mount->keeper.thread);
}

/* After an eviction libcephfs returns EBADF or ETIMEDOUT, and EIO if the file
 * has locks. */
static bool session_may_come_from_a_loss(int error, bool file_has_locks)
{
	return error == EBADF || error == ETIMEDOUT ||
	       (error == EIO && file_has_locks);
}

/* Does the keeper have to look before this error can be believed? */
static bool session_must_check(struct casync_keeper *keeper)
{
	uint64_t checked_ns =
		__atomic_load_n(&keeper->checked_ns, __ATOMIC_RELAXED);
	uint64_t doubted_since_ns =
		__atomic_load_n(&keeper->doubted_since_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = casync_clock_ns();

	if (doubted_since_ns > checked_ns)
		return true;
	if (doubted_since_ns != 0 && casync_clock_since_ns(now_ns, checked_ns) <
					     BELIEVE_MS * CASYNC_NS_PER_MS)
		return false;
	__atomic_store_n(&keeper->doubted_since_ns, now_ns, __ATOMIC_RELAXED);
	return true;
}

fsal_status_t casync_session_answer(struct casync_mount *mount,
				    fsal_status_t status, bool file_has_locks)
{
	enum casync_guard_phase phase;

	if (!FSAL_IS_ERROR(status))
		return status;
	casync_session_note_error(mount, status.minor);
	if (!casync_session_comes_back(mount))
		return status;
	phase = casync_guard_phase(&mount->guard);
	/* The next client may serve already: the keeper is quick. */
	if (phase == CASYNC_GUARD_SERVES &&
	    !casync_session_error(status.minor) &&
	    !(session_may_come_from_a_loss(status.minor, file_has_locks) &&
	      session_must_check(&mount->keeper)))
		return status;
	/* Once it is at work, it need not be woken. */
	if (phase <= CASYNC_GUARD_LOST)
		casync_deadline_call_wake_thread(&mount->keeper.thread);
	return fsalstat(ERR_FSAL_DELAY, status.minor);
}
