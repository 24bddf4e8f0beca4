/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "clock.h"
#include "delegations.h"
#include "inode.h"
#include "lock_calls.h"
#include "mount.h"
#include "object.h"
#include "state_calls.h"

/* Tries: a conflicting lock may be gone when we ask for its owner.  Each has
 * two calls to the MDS. */
#define LOCK_RACES_MAX 4

/* No longer than this is a lock on its way out. */
#define LEAVES_WITHIN_NS (60 * CASYNC_NS_PER_S)

/*
 * The MDS has a conflicting lock.  Ganesha would refuse ours in the name of an
 * owner that it makes up, and Linux makes EIO of that over NFSv4.1 and 4.2.  So
 * if the lock is on its way out, the client asks again: -EINPROGRESS.
 *
 * To be called before the MDS is asked for the last time: an UNLOCK that ends
 * before this call is no conflict then.
 */
static int lock_calls_conflict(const struct casync_mount *mount, uint64_t ino)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t since_ns =
		now_ns > LEAVES_WITHIN_NS ? now_ns - LEAVES_WITHIN_NS : 0;

	return casync_state_calls_left((struct casync_state_calls_like){
		       .mount = mount, .ino = ino, .after_ns = since_ns}) != 0
		       ? -EINPROGRESS
		       : -EAGAIN;
}

/* --- LOCK, UNLOCK and LOCKT */

static int lock_calls_test(const struct casync_mount *mount, uint64_t ino,
			   struct Fh *fh, struct flock *fl, void *owner)
{
	int conflict = lock_calls_conflict(mount, ino);
	int rc = ceph_ll_getlk(mount->client->ceph, fh, fl, (uint64_t)owner);

	if (rc != 0)
		return rc;
	return fl->l_type == F_UNLCK ? 0 : conflict;
}

/* Not once more after the worker has left: an UNLOCK may come next. */
static bool lock_calls_may_try(const struct casync_state_call *call, int tries)
{
	return tries == 0 ||
	       (tries < LOCK_RACES_MAX &&
		!__atomic_load_n(&call->overdue, __ATOMIC_ACQUIRE));
}

static int lock_calls_set(struct casync_state_call *call)
{
	int tries;
	int rc;

	for (tries = 0; lock_calls_may_try(call, tries); tries++) {
		call->fl = call->wanted;
		rc = ceph_ll_setlk(call->mount->client->ceph, call->fh,
				   &call->fl, (uint64_t)call->owner, false);
		if (rc != -EAGAIN && rc != -EACCES)
			return rc;
		call->fl = call->wanted;
		rc = lock_calls_test(call->mount, call->ino, call->fh,
				     &call->fl, call->owner);
		if (rc != 0)
			return rc;
	}
	call->fl = call->wanted;
	return -EAGAIN;
}

static void lock_calls_unset(struct casync_state_call *call)
{
	if (call->wanted.l_type != F_UNLCK && call->rc == 0) {
		call->wanted.l_type = F_UNLCK;
		call->rc = lock_calls_set(call);
	}
	if (call->rc != 0)
		LogInfo(COMPONENT_FSAL,
			"a late LOCK or UNLOCK of inode %#" PRIx64 ": %s",
			call->ino, strerror(-call->rc));
}

/* Has the owner no lock in the range, that giving it back would take? */
static bool lock_calls_may_be_left(const struct casync_state_call *call,
				   struct casync_object *obj)
{
	const fsal_lock_param_t range = {
		.lock_start = (uint64_t)call->wanted.l_start,
		.lock_length = (uint64_t)call->wanted.l_len};

	return call->wanted.l_type == F_UNLCK ||
	       !casync_lock_records_have(&obj->locks, call->owner, &range);
}

static struct casync_state_call *
lock_calls_new(const struct casync_borrowed *fd, const struct flock *fl,
	       void *owner)
{
	struct casync_state_call *call = gsh_calloc(1, sizeof(*call));

	*call = (struct casync_state_call){.ask = lock_calls_set,
					   .give_back = lock_calls_unset,
					   .may_be_left =
						   lock_calls_may_be_left,
					   .mount = casync_inode_mount(fd->obj),
					   .fh = casync_borrow_fh(fd),
					   .ino = fd->obj->id.ino,
					   .wanted = *fl,
					   .owner = owner};
	if (fd->fsal_fd->fd_type == FSAL_FD_STATE)
		call->st = container_of(fd->fsal_fd, struct casync_state,
					fd.fsal_fd);
	return call;
}

int casync_lock_calls_set(const struct casync_borrowed *fd, struct flock *fl,
			  void *owner, bool reclaim)
{
	const struct casync_mount *mount = casync_inode_mount(fd->obj);
	uint64_t ino = fd->obj->id.ino;
	bool unlock = fl->l_type == F_UNLCK;
	struct casync_state_call *call;
	uint32_t wait_ms = CASYNC_STATE_CALL_MS;
	int rc;

	if (!unlock && !reclaim && casync_state_calls_are_overdue(fd->obj))
		return -ETIME;
	/* At the address of an owner that is gone: its UNLOCK would take this
	 * lock, too. */
	if (!unlock &&
	    casync_state_calls_left((struct casync_state_calls_like){
		    .mount = mount, .ino = ino, .owner = owner}) != 0)
		return lock_calls_conflict(mount, ino);
	call = lock_calls_new(fd, fl, owner);
	if (unlock && casync_state_calls_follow(call))
		return -ETIME;
	if (call->st == NULL || (reclaim && !unlock))
		wait_ms = 0;
	rc = casync_state_calls_ask(fd->obj, call, wait_ms);
	if (rc == -ETIME)
		return rc;
	*fl = call->fl;
	gsh_free(call);
	return rc;
}

int casync_lock_calls_test(const struct casync_borrowed *fd, struct flock *fl,
			   void *owner)
{
	if (casync_state_calls_are_overdue(fd->obj))
		return -ETIME;
	return lock_calls_test(casync_inode_mount(fd->obj), fd->obj->id.ino,
			       casync_borrow_fh(fd), fl, owner);
}

/* --- UNLOCK for a client that is gone */

static void lock_calls_run_later(struct casync_work *work)
{
	struct casync_state_call *call =
		container_of(work, struct casync_state_call, work);
	struct casync_mount *mount = call->mount;

	if (casync_call_begin_release(mount)) {
		/* The locks of a lost client ended with it. */
		if (__atomic_load_n(&call->st->fd.generation,
				    __ATOMIC_ACQUIRE) ==
		    casync_guard_generation(&mount->guard))
			call->rc = ceph_ll_setlk(mount->client->ceph,
						 casync_fd_fh(&call->st->fd),
						 &call->fl,
						 (uint64_t)call->owner, false);
		casync_call_leave(mount);
	}
	if (call->rc != 0)
		LogInfo(COMPONENT_FSAL,
			"unlocking inode %#" PRIx64
			" for a client that is gone: %s",
			call->ino, strerror(-call->rc));
	casync_lane_release_share(&mount->lanes[CASYNC_LANE_METADATA],
				  &mount->unlocks);
	casync_state_calls_end(call);
}

void casync_lock_calls_unlock_later(struct casync_state *st, uint64_t ino,
				    void *owner)
{
	struct casync_state_call *call;

	if (casync_fd_fh(&st->fd) == NULL)
		return;
	call = gsh_calloc(1, sizeof(*call));
	*call = (struct casync_state_call){
		.work.run = lock_calls_run_later,
		.mount = st->mount,
		.st = st,
		.fl = {.l_type = F_UNLCK, .l_whence = SEEK_SET},
		.owner = owner,
		.ino = ino,
	};
	/* It is of the whole file: one is enough. */
	if (casync_state_calls_add_later(call))
		casync_lane_submit_shared(
			&call->mount->lanes[CASYNC_LANE_METADATA],
			&call->mount->unlocks, &call->work);
	else
		gsh_free(call);
}
