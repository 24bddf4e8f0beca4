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
#include "lock_calls.h"
#include "mount.h"
#include "object.h"
#include "obj_ops.h"
#include "session.h"

/* A LOCK that took longer may have been overtaken by a grace period. */
#define LATE_MS (CASYNC_GRACE_LEAD_MS - 50)
/* A client that was told to ask again gets its lock, however slow the MDS. */
#define ASKS_AGAIN_WITHIN_NS (10 * CASYNC_NS_PER_S)

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
static fsal_status_t locks_undo(const struct casync_borrowed *fd,
				const struct flock *granted, void *owner)
{
	struct flock fl = *granted;
	int rc;

	fl.l_type = F_UNLCK;
	rc = casync_lock_calls_set(fd, &fl, owner, false);
	LogInfo(COMPONENT_FSAL,
		"a LOCK of inode %#" PRIx64
		" took more than %d ms; the client is to ask again, as a common grace period may have begun: %s",
		fd->obj->id.ino, LATE_MS, strerror(-rc));
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

static bool locks_is_refused(fsal_status_t status)
{
	return status.major == ERR_FSAL_ROFS || status.major == ERR_FSAL_ACCESS;
}

static fsal_status_t locks_open_fd(struct casync_object *obj,
				   struct fsal_fd *fsal_fd, bool or_to_read,
				   bool reclaim)
{
	fsal_status_t status;

	casync_ganesha_start_fd_work(fsal_fd);
	status = casync_fd_open_for_lock(obj, FSAL_O_RDWR, fsal_fd, reclaim);
	if (or_to_read && locks_is_refused(status))
		status = casync_fd_open_for_lock(obj, FSAL_O_READ, fsal_fd,
						 reclaim);
	if (!FSAL_IS_ERROR(status))
		insert_fd_lru(fsal_fd);
	fsal_complete_fd_work(fsal_fd);
	return status;
}

/*
 * Ganesha opens a lock's Fh for reading and writing, and if that is refused as
 * the open state is.  So do we, as it takes a delay of that for an error.  It
 * holds the lock of the file's state.
 *
 * NLM has no open state: a read lock would fail where nothing can be written,
 * in a snapshot or with a cephx user who only reads.  ACCESS would be a
 * conflict for Ganesha.
 */
static fsal_status_t locks_open(struct casync_object *obj,
				struct state_t *state,
				const fsal_lock_param_t *lock)
{
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);
	bool nlm = state != NULL && state->state_type == STATE_TYPE_NLM_LOCK;
	bool to_read = lock->lock_type == FSAL_LOCK_R;
	struct fsal_fd *fsal_fd;

	if (!nlm && (state == NULL || state->state_type != STATE_TYPE_LOCK))
		return status;
	fsal_fd = &casync_fd_of_state(state)->fsal_fd;
	if (fsal_fd->openflags == FSAL_O_CLOSED)
		status = locks_open_fd(obj, fsal_fd, nlm && to_read,
				       lock->lock_reclaim);
	else if (nlm && !to_read && !(fsal_fd->openflags & FSAL_O_WRITE))
		status.major = ERR_FSAL_ACCESS;
	if (nlm && status.major == ERR_FSAL_ACCESS)
		return fsalstat(ERR_FSAL_ROFS, EROFS);
	/* Ganesha does it as the open state is. */
	return !nlm && locks_is_refused(status) ? fsalstat(ERR_FSAL_NO_ERROR, 0)
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
		status = locks_open(obj, state, request_lock);
		if (FSAL_IS_ERROR(status))
			return status;
	}
	status = casync_borrow(
		&fd, obj, state,
		locks_flags_for(lock_op, request_lock->lock_type), true, test);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = test ? casync_lock_calls_test(&fd, &fl, owner)
		  : casync_lock_calls_set(&fd, &fl, owner,
					  request_lock->lock_reclaim);
	late = rc == 0 && lock_op == FSAL_OP_LOCK &&
	       locks_came_late(obj, owner, request_lock, begin_ns);
	if (late)
		status = locks_undo(&fd, &fl, owner);
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

fsal_status_t casync_lock_op2(struct fsal_obj_handle *obj_hdl,
			      struct state_t *state, void *owner,
			      fsal_lock_op_t lock_op,
			      fsal_lock_param_t *request_lock,
			      fsal_lock_param_t *conflicting_lock)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	const fsal_lock_param_t all = {.lock_start = 0, .lock_length = 0};
	uint32_t needs = CASYNC_CALL_ASKS_MDS;
	struct casync_call call;
	fsal_status_t status;

	if (lock_op == FSAL_OP_UNLOCK && locks_are_of_expired(state)) {
		/* Of the whole file: all its locks end. */
		casync_lock_records_unlocked(&obj->locks, state, owner, &all);
		casync_lock_calls_unlock_later(
			container_of(state, struct casync_state, state),
			obj->id.ino, owner);
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
