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

#include "fsal.h"

#include "borrow.h"
#include "errors.h"
#include "export.h"
#include "object.h"
#include "obj_ops.h"

/* Tries: a conflicting lock may be gone when we ask for its owner. */
#define LOCK_RACES_MAX 4

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

/* 0, -EAGAIN with the conflicting lock in fl, or another negative errno. */
static int locks_test_lock(struct casync_object *obj, struct Fh *fh,
			   struct flock *fl, void *owner)
{
	int rc = ceph_ll_getlk(obj->exp->ceph, fh, fl, (uint64_t)owner);

	if (rc != 0)
		return rc;
	return fl->l_type == F_UNLCK ? 0 : -EAGAIN;
}

/* The same, for LOCK and UNLOCK. */
static int locks_set_lock(struct casync_object *obj, struct Fh *fh,
			  struct flock *fl, void *owner)
{
	const struct flock wanted = *fl;
	int tries;
	int rc;

	for (tries = 0; tries < LOCK_RACES_MAX; tries++) {
		*fl = wanted;
		rc = ceph_ll_setlk(obj->exp->ceph, fh, fl, (uint64_t)owner,
				   false);
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

static fsal_openflags_t locks_flags_for(fsal_lock_op_t op, fsal_lock_t type)
{
	/* Testing and unlocking work with any Fh. */
	if (op != FSAL_OP_LOCK)
		return FSAL_O_ANY;
	return type == FSAL_LOCK_R ? FSAL_O_READ : FSAL_O_WRITE;
}

fsal_status_t casync_lock_op2(struct fsal_obj_handle *obj_hdl,
			      struct state_t *state, void *owner,
			      fsal_lock_op_t lock_op,
			      fsal_lock_param_t *request_lock,
			      fsal_lock_param_t *conflicting_lock)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	bool test = lock_op == FSAL_OP_LOCKT;
	struct casync_borrowed fd;
	fsal_status_t status;
	struct flock fl;
	int rc;

	/* Ganesha waits for a lock by polling. */
	if (!test && lock_op != FSAL_OP_LOCK && lock_op != FSAL_OP_UNLOCK)
		return fsalstat(ERR_FSAL_NOTSUPP, 0);
	if (!locks_to_flock(lock_op, request_lock, &fl))
		return fsalstat(ERR_FSAL_BAD_RANGE, ERANGE);

	status = casync_borrow(
		&fd, obj, state,
		locks_flags_for(lock_op, request_lock->lock_type), true, test);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = test ? locks_test_lock(obj, casync_borrowed_fh(&fd), &fl, owner)
		  : locks_set_lock(obj, casync_borrowed_fh(&fd), &fl, owner);
	casync_give_back(&fd);

	/* Ganesha takes a delay for a conflict. */
	if (rc == -EAGAIN) {
		locks_report_conflict(&fl, conflicting_lock);
		return fsalstat(ERR_FSAL_DELAY, EAGAIN);
	}
	return casync_status(rc);
}
