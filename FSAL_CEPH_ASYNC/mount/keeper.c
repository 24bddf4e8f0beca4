/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "clock.h"
#include "keeper.h"
#include "mount.h"
#include "tuning.h"

/*
 * For so long after the keeper has looked, errors that a loss may have caused
 * are believed.  Linux' NFSv3 client asks again after 5 s, and shall get the
 * error then.
 */
#define SETTLED_MS 10000

static const struct casync_keeper_hooks *keeper_hooks;

void casync_keeper_set_hooks(const struct casync_keeper_hooks *hooks)
{
	keeper_hooks = hooks;
}

const struct casync_keeper_hooks *casync_keeper_get_hooks(void)
{
	return keeper_hooks;
}

bool casync_keeper_pause(struct casync_mount *mount, uint64_t ms)
{
	struct casync_keeper *keeper = &mount->keeper;
	struct timespec deadline = casync_deadline(ms);
	bool stopping;
	int rc = 0;

	pthread_mutex_lock(&keeper->thread.lock);
	while (!keeper->thread.stopping && !keeper->woken && rc == 0)
		rc = pthread_cond_timedwait(&keeper->thread.wake,
					    &keeper->thread.lock, &deadline);
	keeper->woken = false;
	stopping = keeper->thread.stopping;
	pthread_mutex_unlock(&keeper->thread.lock);
	return !stopping;
}

bool casync_keeper_sleep(struct casync_mount *mount, uint64_t ms)
{
	uint64_t end_ns = casync_now_ns() + ms * CASYNC_NS_PER_MS;
	uint64_t now_ns;

	while ((now_ns = casync_now_ns()) < end_ns) {
		if (!casync_keeper_pause(
			    mount, (end_ns - now_ns) / CASYNC_NS_PER_MS + 1))
			return false;
	}
	return true;
}

static void keeper_wake(struct casync_keeper *keeper)
{
	pthread_mutex_lock(&keeper->thread.lock);
	keeper->woken = true;
	pthread_cond_signal(&keeper->thread.wake);
	pthread_mutex_unlock(&keeper->thread.lock);
}

/*
 * Who has lost the session has lost all capabilities, and must ask the MDS for
 * the root's attributes; else they come from memory.  If the MDS is away, the
 * call waits until it is back, or until it has ended the session.
 */
static int keeper_ask(struct casync_mount *mount)
{
	struct ceph_mount_info *ceph = mount->client.ceph;
	struct ceph_statx stx;
	struct Inode *root;
	int rc = ceph_ll_lookup_root(ceph, &root);

	if (rc != 0)
		return rc;
	rc = ceph_ll_getattr(ceph, root, &stx, CEPH_STATX_CTIME, 0,
			     ceph_mount_perms(ceph));
	ceph_ll_put(ceph, root);
	return rc;
}

/* The session served at that time: was there an error before that? */
static void keeper_settle(struct casync_keeper *keeper, uint64_t then_ns)
{
	uint64_t doubted_ns =
		__atomic_load_n(&keeper->doubted_ns, __ATOMIC_RELAXED);

	if (doubted_ns != 0 && then_ns > doubted_ns &&
	    __atomic_load_n(&keeper->settled_ns, __ATOMIC_RELAXED) < doubted_ns)
		__atomic_store_n(&keeper->settled_ns, casync_now_ns(),
				 __ATOMIC_RELAXED);
}

/* Has the MDS answered?  These refusals are its own; any other error may be
 * libcephfs' word for a session that it has lost, EPERM included. */
static bool keeper_was_answered(int rc)
{
	return rc == 0 || rc == -EACCES || rc == -ENOENT || rc == -ESTALE;
}

static void keeper_look(struct casync_mount *mount)
{
	uint64_t began_ns = casync_now_ns();
	int rc;

	if (!casync_guard_enter(&mount->guard))
		return;
	rc = keeper_ask(mount);
	casync_guard_leave(&mount->guard);
	casync_session_heard(&mount->session, -rc);
	if (!keeper_was_answered(rc))
		return;
	if (!casync_keeper_reconnects(mount))
		casync_session_found(&mount->session);
	keeper_settle(&mount->keeper, began_ns);
}

static void keeper_run(struct casync_mount *mount)
{
	const struct casync_session *session = &mount->session;

	SetNameFunction("casync_keeper");
	while (casync_keeper_pause(mount, CASYNC_KEEPER_LOOK_MS)) {
		/* A session that is not replaced may come back by itself. */
		if (casync_session_state(session) == CASYNC_SESSION_SERVES ||
		    !casync_keeper_reconnects(mount))
			keeper_look(mount);
		if (casync_session_state(session) == CASYNC_SESSION_LOST &&
		    casync_keeper_reconnects(mount))
			mount->keeper.replace(mount);
	}
}

int casync_keeper_start(struct casync_mount *mount,
			void (*replace)(struct casync_mount *mount))
{
	mount->keeper.replace = replace;
	return casync_deadline_thread_start(&mount->keeper.thread, keeper_run,
					    mount);
}

bool casync_keeper_stop(struct casync_mount *mount, uint32_t timeout_s)
{
	return casync_deadline_thread_stop(&mount->keeper.thread, timeout_s);
}

bool casync_keeper_reconnects(struct casync_mount *mount)
{
	return mount->keeper.thread.call != NULL &&
	       casync_tuned(&mount->keeper.reconnect) != 0 &&
	       !__atomic_load_n(&mount->keeper.given_up, __ATOMIC_RELAXED);
}

/* libcephfs has an eviction to tell, and tells only that it does not know the
 * Fh, that time is up, or, if the file has locks, an I/O error. */
static bool keeper_may_come_from_a_loss(int error, bool file_has_locks)
{
	return error == EBADF || error == ETIMEDOUT ||
	       (error == EIO && file_has_locks);
}

/* Does the keeper have to look before this error can be believed? */
static bool keeper_doubts(struct casync_keeper *keeper)
{
	uint64_t now_ns = casync_now_ns();
	uint64_t settled_ns =
		__atomic_load_n(&keeper->settled_ns, __ATOMIC_RELAXED);
	uint64_t doubted_ns =
		__atomic_load_n(&keeper->doubted_ns, __ATOMIC_RELAXED);

	if (doubted_ns > settled_ns)
		return true;
	if (settled_ns != 0 &&
	    now_ns - settled_ns < SETTLED_MS * CASYNC_NS_PER_MS)
		return false;
	__atomic_store_n(&keeper->doubted_ns, now_ns, __ATOMIC_RELAXED);
	return true;
}

fsal_status_t casync_keeper_answer(struct casync_mount *mount,
				   fsal_status_t status, bool file_has_locks)
{
	if (!FSAL_IS_ERROR(status))
		return status;
	casync_session_heard(&mount->session, status.minor);
	if (!casync_keeper_reconnects(mount))
		return status;
	if (casync_session_state(&mount->session) == CASYNC_SESSION_SERVES &&
	    !(keeper_may_come_from_a_loss(status.minor, file_has_locks) &&
	      keeper_doubts(&mount->keeper)))
		return status;
	/* Once it is at work, it need not be woken. */
	if (casync_guard_serves(&mount->guard))
		keeper_wake(&mount->keeper);
	return fsalstat(ERR_FSAL_DELAY, status.minor);
}
