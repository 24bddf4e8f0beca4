/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "fsal.h"
#include "fsal_up.h"

#include "borrow.h"
#include "call.h"
#include "check.h"
#include "delegations.h"
#include "errors.h"
#include "export.h"
#include "fd.h"
#include "inode.h"
#include "object.h"
#include "upcalls.h"

/*
 * casync_mount.delegations_lock guards casync_fd.delegation, casync_delegation
 * except what the other lock guards, and the lists of delegations, of the
 * mount's files.  It is held across libcephfs calls: it is the mount's, so that
 * a client that hangs stops no other mount.  A recall does not take it.
 */
static pthread_mutex_t *delegations_lock_of(struct casync_delegations *of)
{
	const struct casync_object *obj =
		container_of(of, struct casync_object, delegations);

	return &casync_inode_mount(obj)->delegations_lock;
}

/* Guards the list of recalls and the recallers.  It is taken under client_lock,
 * and never held across a call.  Under it a job is queued. */
static pthread_mutex_t recalls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t recall_ended = PTHREAD_COND_INITIALIZER;
static GLIST_HEAD(recalls);
/* Jobs that work on the list until it is empty. */
static struct recaller {
	struct casync_work work;
	bool at_work;
} recallers[CASYNC_DELEGATIONS_RECALLERS];

/* --- recalls: from libcephfs to Ganesha */

/* A recall names the object by its handle, as a client does. */
static void delegations_send_recall(struct casync_export *exp,
				    const struct casync_fileid *id)
{
	const struct fsal_up_vector *up = exp->export.up_ops;
	uint8_t wire[CASYNC_WIRE_BYTES];
	struct gsh_buffdesc handle = {.addr = wire, .len = sizeof(wire)};

	casync_filehandle_encode(id, wire);
	up_ready_wait((struct fsal_up_vector *)up);
	casync_upcalls_enter();
	(void)up->delegrecall(up, &handle);
	casync_upcalls_exit();
}

/* A delegation that is off the queue may be freed at any time; the export is
 * kept while it is busy. */
static void delegations_run_recall_locked(struct casync_delegation *delegation)
{
	struct casync_export *exp = delegation->exp;
	struct casync_fileid id = delegation->id;

	glist_del(&delegation->recall_link);
	delegation->recall_queued = false;
	/* Ganesha revokes at once while it ends, also what libcephfs may recall
	 * later.  So nothing is recalled of a mount that is LEFT. */
	if (!exp->recalls_joined ||
	    casync_guard_phase(&exp->mount->guard) == CASYNC_GUARD_LEFT)
		return;
	exp->recalls_busy++;
	pthread_mutex_unlock(&recalls_lock);
	delegations_send_recall(exp, &id);
	pthread_mutex_lock(&recalls_lock);
	CASYNC_CHECK(exp->recalls_busy != 0);
	exp->recalls_busy--;
	pthread_cond_broadcast(&recall_ended);
}

static void delegations_run_recalls(struct casync_work *work)
{
	struct recaller *self = container_of(work, struct recaller, work);
	struct casync_delegation *delegation;

	pthread_mutex_lock(&recalls_lock);
	for (;;) {
		delegation = glist_first_entry(
			&recalls, struct casync_delegation, recall_link);
		if (delegation == NULL)
			break;
		delegations_run_recall_locked(delegation);
	}
	self->at_work = false;
	pthread_mutex_unlock(&recalls_lock);
}

/* One more of the recallers works on the list, if not all do. */
static void delegations_wake_recaller_locked(void)
{
	unsigned int i;

	CASYNC_CHECK_HELD(&recalls_lock);
	for (i = 0; i < CASYNC_DELEGATIONS_RECALLERS; i++) {
		if (recallers[i].at_work)
			continue;
		recallers[i].at_work = true;
		recallers[i].work.run = delegations_run_recalls;
		casync_lane_submit(casync_lane_of_process(CASYNC_LANE_RECALL),
				   &recallers[i].work);
		return;
	}
}

void casync_delegations_join(struct casync_export *exp)
{
	pthread_mutex_lock(&recalls_lock);
	exp->recalls_joined = true;
	pthread_mutex_unlock(&recalls_lock);
}

void casync_delegations_leave(struct casync_export *exp)
{
	pthread_mutex_lock(&recalls_lock);
	exp->recalls_joined = false;
	/* Not in an upcall: it would wait for itself. */
	while (exp->recalls_busy != 0 && !casync_upcalls_on_thread())
		pthread_cond_wait(&recall_ended, &recalls_lock);
	pthread_mutex_unlock(&recalls_lock);
}

/* Queue a recall, unless it is queued already.  May run under client_lock. */
static void delegations_queue_recall(struct casync_delegation *delegation)
{
	pthread_mutex_lock(&recalls_lock);
	if (!delegation->recall_queued) {
		delegation->recall_queued = true;
		glist_add_tail(&recalls, &delegation->recall_link);
		delegations_wake_recaller_locked();
	}
	pthread_mutex_unlock(&recalls_lock);
}

/* Take a recall out of the queue, before its memory is freed. */
static void delegations_unqueue_recall(struct casync_delegation *delegation)
{
	pthread_mutex_lock(&recalls_lock);
	if (delegation->recall_queued)
		glist_del(&delegation->recall_link);
	delegation->recall_queued = false;
	pthread_mutex_unlock(&recalls_lock);
}

/* libcephfs calls it, under client_lock. */
static void delegations_recalled(struct Fh *fh, void *priv)
{
	struct casync_delegation *delegation = priv;

	(void)fh;
	__atomic_store_n(&delegation->recalled, true, __ATOMIC_RELEASE);
	delegations_queue_recall(delegation);
}

/* --- delegations of a file */

void casync_delegations_init(struct casync_delegations *delegations)
{
	glist_init(&delegations->list);
	delegations->count = 0;
}

static void delegations_unlink_locked(struct casync_delegation *delegation)
{
	if (delegation->obj == NULL)
		return;
	glist_del(&delegation->link);
	CASYNC_CHECK_DOWN(&delegation->obj->delegations.count,
			  __ATOMIC_RELAXED);
	delegation->obj = NULL;
}

void casync_delegations_destroy(struct casync_delegations *delegations)
{
	struct glist_head *node, *next;

	if (__atomic_load_n(&delegations->count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(delegations_lock_of(delegations));
	glist_for_each_safe(node, next, &delegations->list)
		delegations_unlink_locked(
			glist_entry(node, struct casync_delegation, link));
	pthread_mutex_unlock(delegations_lock_of(delegations));
}

static int delegations_grant_locked(struct casync_delegation *delegation,
				    struct casync_object *obj, struct Fh *fh,
				    unsigned int command)
{
	int rc;

	delegation->exp = obj->exp;
	delegation->id = obj->id;
	delegation->clientid = op_ctx->clientid ? *op_ctx->clientid : 0;
	delegation->host = op_ctx->client;
	__atomic_store_n(&delegation->recalled, false, __ATOMIC_RELEASE);
	rc = ceph_ll_delegation(casync_inode_ceph(obj), fh, command,
				delegations_recalled, delegation);
	if (rc != 0)
		return rc;
	delegation->fh = fh;
	delegation->for_write = command == CEPH_DELEGATION_WR;
	delegation->obj = obj;
	glist_add_tail(&obj->delegations.list, &delegation->link);
	glist_add_tail(&obj->exp->mount->delegations_held,
		       &delegation->held_link);
	__atomic_add_fetch(&obj->delegations.count, 1, __ATOMIC_RELAXED);
	return 0;
}

static fsal_status_t
delegations_grant_read(struct casync_delegation *delegation,
		       struct casync_object *obj)
{
	struct Fh *fh = NULL; /* as in fd_open_fh() */
	int rc;

	rc = ceph_ll_open(casync_inode_ceph(obj), obj->inode, O_RDONLY, &fh,
			  casync_inode_root(obj));
	if (rc < 0)
		return casync_errors_status(rc);
	pthread_mutex_lock(delegations_lock_of(&obj->delegations));
	rc = delegations_grant_locked(delegation, obj, fh, CEPH_DELEGATION_RD);
	pthread_mutex_unlock(delegations_lock_of(&obj->delegations));
	if (rc != 0)
		(void)ceph_ll_close(casync_inode_ceph(obj), fh);
	return casync_errors_status(rc);
}

static fsal_status_t
delegations_grant_write(struct casync_delegation *delegation,
			struct casync_object *obj, struct state_t *state)
{
	struct casync_borrowed borrowed;
	struct casync_fd *fd;
	fsal_status_t status;
	int rc;

	/* Ganesha gives the open state's fd. */
	status = casync_borrow(&borrowed, obj, state, FSAL_O_ANY, false, false);
	if (FSAL_IS_ERROR(status))
		return status;
	fd = casync_fd_of(borrowed.fsal_fd);

	pthread_mutex_lock(delegations_lock_of(&obj->delegations));
	rc = fd == &borrowed.temp_fd || fd->delegation != NULL
		     ? -EAGAIN
		     : delegations_grant_locked(delegation, obj, fd->fh,
						CEPH_DELEGATION_WR);
	if (rc == 0) {
		delegation->fd = fd;
		fd->delegation = delegation;
		/* Else GETATTR would use CB_GETATTR.  Ganesha holds the lock of
		 * the file's state. */
		state->state_obj->state_hdl->file.write_delegated = false;
	}
	pthread_mutex_unlock(delegations_lock_of(&obj->delegations));

	casync_borrow_return(&borrowed);
	return casync_errors_status(rc);
}

fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_delegation *delegation =
		&container_of(state, struct casync_state, state)->delegation;
	struct casync_call call;
	fsal_status_t status;

	(void)owner;
	/* DELEGRETURN comes with any state.  If it succeeds, Ganesha drops the
	 * state as if it had no locks. */
	if (state->state_type != STATE_TYPE_DELEG)
		return fsalstat(ERR_FSAL_INVAL, EINVAL);
	/* To return a delegation needs no client. */
	if (deleg == FSAL_DELEG_NONE) {
		casync_delegations_return(delegation);
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	}
	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	if (!__atomic_load_n(&obj->exp->mount->delegations, __ATOMIC_RELAXED) ||
	    delegation->fh != NULL)
		status = fsalstat(ERR_FSAL_DELAY, EAGAIN);
	else
		status = deleg == FSAL_DELEG_RD
				 ? delegations_grant_read(delegation, obj)
				 : delegations_grant_write(delegation, obj,
							   state);
	return casync_call_end(&call, status);
}

/* --- their return */

/* Nothing of ours points to it any more. */
static void delegations_forget_locked(struct casync_delegation *delegation)
{
	delegations_unlink_locked(delegation);
	if (delegation->fh == NULL)
		return;
	glist_del(&delegation->held_link);
	if (delegation->fd != NULL)
		delegation->fd->delegation = NULL;
	delegation->fd = NULL;
	delegation->fh = NULL;
}

static void delegations_return_locked(struct casync_delegation *delegation)
{
	bool own_fh = delegation->fd == NULL;
	struct Fh *fh = delegation->fh;
	struct ceph_mount_info *ceph;

	delegations_forget_locked(delegation);
	if (fh == NULL)
		return;
	ceph = casync_export_ceph(delegation->exp);
	(void)ceph_ll_delegation(ceph, fh, CEPH_DELEGATION_NONE,
				 delegations_recalled, delegation);
	if (own_fh)
		(void)ceph_ll_close(ceph, fh);
}

/* Outside the guard there is nothing to return: the client ends, with what
 * casync_delegations_return_all() has left.  One that was granted after that
 * must not be found when it is freed. */
void casync_delegations_return(struct casync_delegation *delegation)
{
	struct casync_mount *mount;
	bool inside;

	if (delegation->exp == NULL) /* never granted */
		return;
	mount = delegation->exp->mount;
	inside = casync_call_begin_release(mount);
	pthread_mutex_lock(&mount->delegations_lock);
	if (inside)
		delegations_return_locked(delegation);
	else
		delegations_forget_locked(delegation);
	pthread_mutex_unlock(&mount->delegations_lock);
	if (inside)
		casync_call_leave(mount);
	/* libcephfs no longer recalls it. */
	delegations_unqueue_recall(delegation);
}

void casync_delegations_return_all(struct casync_mount *mount)
{
	struct glist_head *node, *next;
	struct casync_delegation *delegation;

	pthread_mutex_lock(&mount->delegations_lock);
	glist_for_each_safe(node, next, &mount->delegations_held) {
		delegation =
			glist_entry(node, struct casync_delegation, held_link);
		delegations_queue_recall(delegation);
		delegations_return_locked(delegation);
	}
	pthread_mutex_unlock(&mount->delegations_lock);
}

void casync_delegations_return_conflicting(
	struct casync_delegations *delegations, fsal_openflags_t openflags)
{
	bool writes = (openflags & (FSAL_O_WRITE | FSAL_O_TRUNC)) != 0;
	struct glist_head *node, *next;
	struct casync_delegation *delegation;

	if (__atomic_load_n(&delegations->count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(delegations_lock_of(delegations));
	glist_for_each_safe(node, next, &delegations->list) {
		delegation = glist_entry(node, struct casync_delegation, link);
		if (!writes && !delegation->for_write)
			continue;
		delegations_queue_recall(delegation);
		delegations_return_locked(delegation);
	}
	pthread_mutex_unlock(delegations_lock_of(delegations));
}

/* NFSv3 and NFSv4.0 tell only the host of whoever asks.  An upcall has none. */
static bool delegations_is_of_other(const struct casync_delegation *delegation)
{
	if (op_ctx->clientid != NULL && delegation->clientid != 0)
		return *op_ctx->clientid != delegation->clientid;
	return op_ctx->client != NULL && op_ctx->client != delegation->host;
}

/* CephFS would recall a read delegation because of the change.  Its holder may
 * send the change together with the return (RFC 9754), and no earlier. */
static bool delegations_is_ended_by(const struct casync_delegation *delegation,
				    bool change)
{
	return change && !delegation->for_write &&
	       !delegations_is_of_other(delegation);
}

void casync_delegations_return_recalled(struct casync_delegations *delegations,
					bool change)
{
	struct glist_head *node, *next;
	struct casync_delegation *delegation;

	if (__atomic_load_n(&delegations->count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(delegations_lock_of(delegations));
	glist_for_each_safe(node, next, &delegations->list) {
		delegation = glist_entry(node, struct casync_delegation, link);
		if (!__atomic_load_n(&delegation->recalled, __ATOMIC_ACQUIRE)) {
			if (!delegations_is_ended_by(delegation, change))
				continue;
			delegations_queue_recall(delegation);
		}
		delegations_return_locked(delegation);
	}
	pthread_mutex_unlock(delegations_lock_of(delegations));
}

bool casync_delegations_recall_writers(struct casync_delegations *delegations)
{
	struct casync_delegation *delegation;
	struct glist_head *node;
	bool hide = false;

	if (__atomic_load_n(&delegations->count, __ATOMIC_RELAXED) == 0)
		return false;
	pthread_mutex_lock(delegations_lock_of(delegations));
	glist_for_each(node, &delegations->list) {
		delegation = glist_entry(node, struct casync_delegation, link);
		if (!delegation->for_write ||
		    !delegations_is_of_other(delegation))
			continue;
		delegations_queue_recall(delegation);
		hide = true;
	}
	pthread_mutex_unlock(delegations_lock_of(delegations));
	return hide;
}

bool casync_delegations_take_fh(struct casync_mount *mount,
				struct casync_fd *fd)
{
	bool kept;

	/* No delegation is granted on an fd that is being closed. */
	if (__atomic_load_n(&fd->delegation, __ATOMIC_ACQUIRE) == NULL)
		return false;
	pthread_mutex_lock(&mount->delegations_lock);
	kept = fd->delegation != NULL;
	if (kept) {
		fd->delegation->fd = NULL;
		fd->delegation = NULL;
	}
	pthread_mutex_unlock(&mount->delegations_lock);
	return kept;
}
