/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Byte-range locks.  The MDS keeps them, so other gateways and CephFS' own
 * clients see them.  The owner is the address of Ganesha's owner: it is unique
 * in this process, and the MDS adds the session.  A lock lives as long as the
 * Fh that it was taken with: the lock state's own.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"

#include "borrow.h"
#include "call.h"
#include "clock.h"
#include "common_grace.h"
#include "errors.h"
#include "fd.h"
#include "ganesha.h"
#include "inode.h"
#include "mount.h"
#include "object.h"
#include "obj_ops.h"
#include "session.h"

/* Tries: a conflicting lock may be gone when we ask for its owner.  Each has
 * two calls to the MDS, so a worker is held by eight at most. */
#define LOCK_RACES_MAX 4

/* A LOCK that took longer may have been overtaken by a grace period. */
#define LATE_MS (CASYNC_GRACE_LEAD_MS - 50)
/* A client that was told to ask again gets its lock, however slow the MDS. */
#define ASKS_AGAIN_WITHIN_NS (10 * CASYNC_NS_PER_S)

/* No longer than this is a lock on its way out. */
#define LEAVES_WITHIN_NS (60 * CASYNC_NS_PER_S)

/* Owners whose locks the MDS still has, although Ganesha has forgotten them.  A
 * leaf. */
static pthread_mutex_t unlocks_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(unlocks);

static bool locks_to_flock(fsal_lock_op_t op, const fsal_lock_param_t *lock,
			   struct flock *fl)
{
	/* A negative length would be another range (fcntl(2)). */
	if (lock->lock_start > INT64_MAX ||
	    lock->lock_length > INT64_MAX - lock->lock_start)
		return false;

	*fl = (struct flock){
		.l_type = lock->lock_type == FSAL_LOCK_R ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)lock->lock_start,
		.l_len = (off_t)lock->lock_length, /* 0: to the end */
	};
	if (op == FSAL_OP_UNLOCK)
		fl->l_type = F_UNLCK;
	return true;
}

static void locks_report_conflict(const struct flock *fl,
				  fsal_lock_param_t *lock)
{
	if (lock == NULL)
		return;
	lock->lock_sle_type = FSAL_POSIX_LOCK;
	lock->lock_type = fl->l_type == F_RDLCK ? FSAL_LOCK_R : FSAL_LOCK_W;
	lock->lock_start = (uint64_t)fl->l_start;
	lock->lock_length = (uint64_t)fl->l_len;
}

/* Is there an UNLOCK of this file to come?  Of this owner, or NULL: of any. */
static bool locks_leave(struct casync_object *obj, const void *owner,
			uint64_t queued_after_ns)
{
	const struct casync_state *st;
	struct glist_head *node;
	bool found = false;

	pthread_mutex_lock(&unlocks_lock);
	glist_for_each(node, &unlocks) {
		st = glist_entry(node, struct casync_state, unlock.link);
		found = found ||
			((owner == NULL || st->unlock.owner == owner) &&
			 st->unlock.ino == obj->id.ino &&
			 st->unlock.queued_ns >= queued_after_ns &&
			 st->mount == casync_inode_mount(obj));
	}
	pthread_mutex_unlock(&unlocks_lock);
	return found;
}

/*
 * The MDS has a conflicting lock.  Ganesha would refuse ours in the name of an
 * owner that it makes up, and Linux makes EIO of that over NFSv4.1 and 4.2.  So
 * if the lock is on its way out, the client asks again: -EINPROGRESS.
 *
 * To be called before the MDS is asked for the last time: an UNLOCK that ends
 * before this call is no conflict then.
 */
static int locks_conflict(struct casync_object *obj)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t since_ns =
		now_ns > LEAVES_WITHIN_NS ? now_ns - LEAVES_WITHIN_NS : 0;

	return locks_leave(obj, NULL, since_ns) ? -EINPROGRESS : -EAGAIN;
}

/* 0, -EAGAIN with the conflicting lock in fl, or another negative errno. */
static int locks_test_lock(struct casync_object *obj, struct Fh *fh,
			   struct flock *fl, void *owner)
{
	int conflict = locks_conflict(obj);
	int rc = ceph_ll_getlk(casync_inode_ceph(obj), fh, fl, (uint64_t)owner);

	if (rc != 0)
		return rc;
	return fl->l_type == F_UNLCK ? 0 : conflict;
}

/* The same, for LOCK and UNLOCK. */
static int locks_set_lock(struct casync_object *obj, struct Fh *fh,
			  struct flock *fl, void *owner)
{
	const struct flock wanted = *fl;
	int tries;
	int rc;

	/* At the address of an owner that is gone: its UNLOCK would take this
	 * lock, too. */
	if (fl->l_type != F_UNLCK && locks_leave(obj, owner, 0))
		return locks_conflict(obj);
	for (tries = 0; tries < LOCK_RACES_MAX; tries++) {
		*fl = wanted;
		rc = ceph_ll_setlk(casync_inode_ceph(obj), fh, fl,
				   (uint64_t)owner, false);
		if (rc != -EAGAIN && rc != -EACCES)
			return rc;
		*fl = wanted;
		rc = locks_test_lock(obj, fh, fl, owner);
		if (rc != 0)
			return rc;
	}
	*fl = wanted;
	return -EAGAIN;
}

/*
 * An owner that has lost a lock learns it from an error (RFC 8881, 9.6: the
 * server must not let it go on).  This ends when the owner has unlocked the
 * whole file.
 */
static bool locks_state_may(struct state_t *state, fsal_lock_op_t op)
{
	return op == FSAL_OP_UNLOCK || !casync_fd_lost_lock(state);
}

/* For the next client of the mount, if this one loses its session. */
static void locks_record(struct casync_object *obj, struct fsal_fd *fsal_fd,
			 void *owner, const fsal_lock_param_t *lock)
{
	if (fsal_fd->fd_type == FSAL_FD_STATE)
		casync_lock_records_locked(
			&obj->locks, casync_fd_of(fsal_fd), owner, lock,
			casync_guard_generation(
				&casync_inode_mount(obj)->guard));
}

static uint64_t locks_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return casync_clock_timespec_ns(&now);
}

/* When Ganesha began with the request; its grace period was checked later. */
static uint64_t locks_begin_ns(void)
{
	uint64_t begin_ns = casync_clock_timespec_ns(&op_ctx->start_time);

	return begin_ns != 0 ? begin_ns : locks_wall_ns();
}

/*
 * May this LOCK, just granted, be one that a client of a dead gateway is going
 * to reclaim (common_grace.h)?  A client that asks again passes Ganesha's check
 * once more, so it is not sent away a second time.
 *
 * An owner that had part of the range keeps what it got: giving it back would
 * take the older lock too.
 */
static bool locks_came_late(struct casync_object *obj, const void *owner,
			    const fsal_lock_param_t *lock, uint64_t begin_ns)
{
	uint64_t now_ns = locks_wall_ns();
	uint64_t undone_ns;

	if (lock->lock_reclaim || !casync_common_grace() ||
	    now_ns < begin_ns + LATE_MS * CASYNC_NS_PER_MS ||
	    casync_lock_records_have(&obj->locks, owner, lock))
		return false;
	undone_ns = __atomic_load_n(&obj->locks.undone_ns, __ATOMIC_RELAXED);
	if (begin_ns >= undone_ns && now_ns < undone_ns + ASKS_AGAIN_WITHIN_NS)
		return false;
	__atomic_store_n(&obj->locks.undone_ns, now_ns, __ATOMIC_RELAXED);
	return true;
}

/* The client asks again, and meets the grace period if there is one. */
static fsal_status_t locks_undo(struct casync_object *obj, struct Fh *fh,
				const struct flock *granted, void *owner)
{
	struct flock fl = *granted;
	int rc;

	fl.l_type = F_UNLCK;
	rc = ceph_ll_setlk(casync_inode_ceph(obj), fh, &fl, (uint64_t)owner,
			   false);
	LogInfo(COMPONENT_FSAL,
		"a LOCK of inode %#" PRIx64
		" took more than %d ms; the client is to ask again, as a common grace period may have begun: %s",
		obj->id.ino, LATE_MS, strerror(-rc));
	return rc == 0 ? fsalstat(ERR_FSAL_IN_GRACE, 0)
		       : casync_errors_status(rc);
}

static fsal_openflags_t locks_flags_for(fsal_lock_op_t op, fsal_lock_t type)
{
	/* Testing and unlocking work with any Fh. */
	if (op != FSAL_OP_LOCK)
		return FSAL_O_ANY;
	return type == FSAL_LOCK_R ? FSAL_O_READ : FSAL_O_WRITE;
}

static fsal_status_t locks_open_nlm_fd(struct casync_object *obj,
				       struct fsal_fd *fsal_fd,
				       fsal_lock_t type)
{
	fsal_status_t status;

	casync_ganesha_start_fd_work(fsal_fd);
	status = casync_fd_reopen(&obj->handle, FSAL_O_RDWR, fsal_fd);
	if (type == FSAL_LOCK_R &&
	    (status.major == ERR_FSAL_ROFS || status.major == ERR_FSAL_ACCESS))
		status = casync_fd_reopen(&obj->handle, FSAL_O_READ, fsal_fd);
	if (!FSAL_IS_ERROR(status))
		insert_fd_lru(fsal_fd);
	fsal_complete_fd_work(fsal_fd);
	return status;
}

/*
 * Ganesha opens a lock's Fh for reading and writing, and if that is refused as
 * the open state is.  NLM has no open state: a read lock would fail where
 * nothing can be written, in a snapshot or with a cephx user who only reads.
 * Ganesha holds the lock of the file's state.
 *
 * ACCESS would be a conflict for Ganesha.
 */
static fsal_status_t locks_open_nlm(struct casync_object *obj,
				    struct state_t *state, fsal_lock_t type)
{
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);
	struct fsal_fd *fsal_fd;

	if (state == NULL || state->state_type != STATE_TYPE_NLM_LOCK)
		return status;
	fsal_fd = &casync_fd_of_state(state)->fsal_fd;
	if (fsal_fd->openflags == FSAL_O_CLOSED)
		status = locks_open_nlm_fd(obj, fsal_fd, type);
	else if (type != FSAL_LOCK_R && !(fsal_fd->openflags & FSAL_O_WRITE))
		status.major = ERR_FSAL_ACCESS;
	return status.major == ERR_FSAL_ACCESS ? fsalstat(ERR_FSAL_ROFS, EROFS)
					       : status;
}

static fsal_status_t locks_in_call(struct casync_object *obj,
				   struct state_t *state, void *owner,
				   fsal_lock_op_t lock_op,
				   const fsal_lock_param_t *request_lock,
				   fsal_lock_param_t *conflicting_lock)
{
	bool test = lock_op == FSAL_OP_LOCKT;
	uint64_t begin_ns = locks_begin_ns();
	struct casync_borrowed fd;
	fsal_status_t status;
	struct flock fl;
	bool late;
	int rc;

	/* Ganesha waits for a lock by polling. */
	if (!test && lock_op != FSAL_OP_LOCK && lock_op != FSAL_OP_UNLOCK)
		return fsalstat(ERR_FSAL_NOTSUPP, 0);
	if (!locks_to_flock(lock_op, request_lock, &fl))
		return fsalstat(ERR_FSAL_BAD_RANGE, ERANGE);
	if (!locks_state_may(state, lock_op))
		return fsalstat(ERR_FSAL_IO, EIO);

	if (lock_op == FSAL_OP_LOCK) {
		status = locks_open_nlm(obj, state, request_lock->lock_type);
		if (FSAL_IS_ERROR(status))
			return status;
	}
	status = casync_borrow(
		&fd, obj, state,
		locks_flags_for(lock_op, request_lock->lock_type), true, test);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = test ? locks_test_lock(obj, casync_borrow_fh(&fd), &fl, owner)
		  : locks_set_lock(obj, casync_borrow_fh(&fd), &fl, owner);
	late = rc == 0 && lock_op == FSAL_OP_LOCK &&
	       locks_came_late(obj, owner, request_lock, begin_ns);
	if (late)
		status = locks_undo(obj, casync_borrow_fh(&fd), &fl, owner);
	else if (rc == 0 && lock_op == FSAL_OP_LOCK)
		locks_record(obj, fd.fsal_fd, owner, request_lock);
	casync_borrow_return(&fd);
	if (late)
		return status;

	if (rc == -EINPROGRESS)
		return fsalstat(ERR_FSAL_IN_GRACE, EINPROGRESS);
	/* Ganesha takes a delay for a conflict. */
	if (rc == -EAGAIN) {
		locks_report_conflict(&fl, conflicting_lock);
		return fsalstat(ERR_FSAL_DELAY, EAGAIN);
	}
	return casync_errors_status(rc);
}

/*
 * An UNLOCK must not fail for the loss of the session.  Ganesha has forgotten
 * the lock, and would repeat the call without a pause.  The lost client's lock
 * is gone, and the next client does not take it: it has no record.
 */
static bool locks_unlock_is_done(struct casync_object *obj,
				 fsal_status_t status)
{
	struct casync_mount *mount = casync_inode_mount(obj);

	if (casync_session_state(&mount->guard) == CASYNC_SESSION_LOST)
		return true;
	/* EBUSY: Ganesha is short of descriptors. */
	return status.major == ERR_FSAL_DELAY && status.minor != EBUSY;
}

/* Ganesha takes a delay for a conflict; "grace" makes the client ask again. */
static fsal_status_t locks_answer(struct casync_object *obj,
				  fsal_lock_op_t lock_op, fsal_status_t status)
{
	if (!FSAL_IS_ERROR(status))
		return status;
	if (lock_op == FSAL_OP_UNLOCK && locks_unlock_is_done(obj, status))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	if (lock_op != FSAL_OP_UNLOCK && status.major == ERR_FSAL_DELAY &&
	    status.minor != EAGAIN)
		return fsalstat(ERR_FSAL_IN_GRACE, status.minor);
	return status;
}

/* --- UNLOCK for a client that Ganesha expires.  It may be on the reaper's
 * thread, which ends the states of all clients: it must not wait for the MDS.
 */

/* A LOCK state is NFSv4's.  The values of so_type depend on how Ganesha was
 * built (_USE_9P). */
static bool locks_are_of_expired(const struct state_t *state)
{
	const state_owner_t *owner = state == NULL ? NULL : state->state_owner;

	return owner != NULL && state->state_type == STATE_TYPE_LOCK &&
	       owner->so_owner.so_nfs4_owner.so_clientrec->cid_confirmed ==
		       EXPIRED_CLIENT_ID;
}

static void locks_unlock_late(struct casync_work *work)
{
	struct casync_state *st =
		container_of(work, struct casync_state, unlock.work);
	struct flock fl = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	struct casync_mount *mount = st->mount;
	int rc = 0;

	if (casync_call_begin_release(mount)) {
		/* The locks of a lost client ended with it. */
		if (__atomic_load_n(&st->fd.generation, __ATOMIC_ACQUIRE) ==
		    casync_guard_generation(&mount->guard))
			rc = ceph_ll_setlk(mount->client->ceph,
					   casync_fd_fh(&st->fd), &fl,
					   (uint64_t)st->unlock.owner, false);
		casync_call_leave(mount);
	}
	if (rc != 0)
		LogInfo(COMPONENT_FSAL,
			"unlocking inode %#" PRIx64
			" for a client that is gone: %s",
			st->unlock.ino, strerror(-rc));
	pthread_mutex_lock(&unlocks_lock);
	st->unlock.owner = NULL;
	glist_del(&st->unlock.link);
	pthread_mutex_unlock(&unlocks_lock);
	casync_lane_release_share(&mount->lanes[CASYNC_LANE_METADATA],
				  &mount->unlocks);
	casync_borrow_end_io(st);
}

/* Of the whole file: all its locks end.  io_work keeps the Fh and the fd: the
 * state is freed soon.  Ganesha holds the lock of the file's state. */
static void locks_leave_unlock(struct casync_object *obj, struct state_t *state,
			       void *owner)
{
	const fsal_lock_param_t all = {.lock_start = 0, .lock_length = 0};
	struct casync_state *st =
		container_of(state, struct casync_state, state);
	bool queued;

	casync_lock_records_unlocked(&obj->locks, state, owner, &all);
	if (casync_fd_fh(&st->fd) == NULL)
		return;
	pthread_mutex_lock(&unlocks_lock);
	queued = st->unlock.owner != NULL;
	if (!queued) {
		st->unlock.owner = owner;
		st->unlock.ino = obj->id.ino;
		st->unlock.queued_ns = casync_clock_ns();
		st->unlock.work.run = locks_unlock_late;
		glist_add_tail(&unlocks, &st->unlock.link);
		atomic_inc_int32_t(&st->fd.fsal_fd.io_work);
	}
	pthread_mutex_unlock(&unlocks_lock);
	if (!queued)
		casync_lane_submit_shared(
			&st->mount->lanes[CASYNC_LANE_METADATA],
			&st->mount->unlocks, &st->unlock.work);
}

fsal_status_t casync_lock_op2(struct fsal_obj_handle *obj_hdl,
			      struct state_t *state, void *owner,
			      fsal_lock_op_t lock_op,
			      fsal_lock_param_t *request_lock,
			      fsal_lock_param_t *conflicting_lock)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	uint32_t needs = CASYNC_CALL_ASKS_MDS;
	struct casync_call call;
	fsal_status_t status;

	if (lock_op == FSAL_OP_UNLOCK && locks_are_of_expired(state)) {
		locks_leave_unlock(obj, state, owner);
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	}
	if (lock_op == FSAL_OP_UNLOCK) {
		/* First: a keeper that takes it meanwhile must see that. */
		casync_lock_records_unlocked(&obj->locks, state, owner,
					     request_lock);
		needs = CASYNC_CALL_MOUNT_SLOT_ALWAYS |
			CASYNC_CALL_CLIENT_TO_UNLOCK;
	}
	status = casync_call_begin(&call, obj_hdl, needs);
	if (!FSAL_IS_ERROR(status))
		status = casync_call_end(
			&call, locks_in_call(obj, state, owner, lock_op,
					     request_lock, conflicting_lock));
	return locks_answer(obj, lock_op, status);
}
