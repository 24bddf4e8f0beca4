/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "errors.h"
#include "export.h"
#include "fd.h"
#include "inode.h"
#include "leases.h"
#include "object.h"

/* Guards casync_fd.lease, casync_lease except `recall`, and the lists of
 * leases.  It is held across libcephfs calls.  A recall does not take it. */
static pthread_mutex_t leases_lock = PTHREAD_MUTEX_INITIALIZER;

/* All that libcephfs has granted.  Under the lock. */
static GLIST_HEAD(held);

/* Under client_lock. */
static void leases_recalled(struct Fh *fh, void *priv)
{
	struct casync_lease *lease = priv;

	(void)fh;
	__atomic_store_n(&lease->recalled, true, __ATOMIC_RELEASE);
	casync_recall(&lease->recall);
}

void casync_leases_init(struct casync_leases *leases)
{
	glist_init(&leases->list);
	leases->count = 0;
}

static void leases_unlink_locked(struct casync_lease *lease)
{
	if (lease->obj == NULL)
		return;
	glist_del(&lease->link);
	__atomic_sub_fetch(&lease->obj->leases.count, 1, __ATOMIC_RELAXED);
	lease->obj = NULL;
}

void casync_leases_destroy(struct casync_leases *leases)
{
	struct glist_head *node, *next;

	if (__atomic_load_n(&leases->count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&leases_lock);
	glist_for_each_safe(node, next, &leases->list)
		leases_unlink_locked(
			glist_entry(node, struct casync_lease, link));
	pthread_mutex_unlock(&leases_lock);
}

static int leases_grant_locked(struct casync_lease *lease,
			       struct casync_object *obj, struct Fh *fh,
			       unsigned int command)
{
	int rc;

	lease->recall.exp = obj->exp;
	lease->recall.id = obj->id;
	__atomic_store_n(&lease->recalled, false, __ATOMIC_RELEASE);
	rc = ceph_ll_delegation(casync_object_ceph(obj), fh, command,
				leases_recalled, lease);
	if (rc != 0)
		return rc;
	lease->fh = fh;
	lease->for_write = command == CEPH_DELEGATION_WR;
	lease->obj = obj;
	glist_add_tail(&obj->leases.list, &lease->link);
	glist_add_tail(&held, &lease->held_link);
	__atomic_add_fetch(&obj->leases.count, 1, __ATOMIC_RELAXED);
	return 0;
}

static fsal_status_t leases_grant_read(struct casync_lease *lease,
				       struct casync_object *obj)
{
	struct Fh *fh = NULL; /* as in fd_open_fh() */
	int rc;

	rc = ceph_ll_open(casync_object_ceph(obj), obj->inode, O_RDONLY, &fh,
			  casync_object_root(obj));
	if (rc < 0)
		return casync_status(rc);
	pthread_mutex_lock(&leases_lock);
	rc = leases_grant_locked(lease, obj, fh, CEPH_DELEGATION_RD);
	pthread_mutex_unlock(&leases_lock);
	if (rc != 0)
		(void)ceph_ll_close(casync_object_ceph(obj), fh);
	return casync_status(rc);
}

static fsal_status_t leases_grant_write(struct casync_lease *lease,
					struct casync_object *obj,
					struct state_t *state)
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

	pthread_mutex_lock(&leases_lock);
	rc = fd == &borrowed.temp_fd || fd->lease != NULL
		     ? -EAGAIN
		     : leases_grant_locked(lease, obj, fd->fh,
					   CEPH_DELEGATION_WR);
	if (rc == 0) {
		lease->fd = fd;
		fd->lease = lease;
	}
	pthread_mutex_unlock(&leases_lock);

	casync_give_back(&borrowed);
	return casync_status(rc);
}

static void leases_give_back_locked(struct casync_lease *lease)
{
	struct ceph_mount_info *ceph;

	leases_unlink_locked(lease);
	if (lease->fh == NULL)
		return;
	glist_del(&lease->held_link);
	ceph = casync_export_ceph(lease->recall.exp);
	(void)ceph_ll_delegation(ceph, lease->fh, CEPH_DELEGATION_NONE,
				 leases_recalled, lease);
	if (lease->fd != NULL)
		lease->fd->lease = NULL;
	else
		(void)ceph_ll_close(ceph, lease->fh);
	lease->fd = NULL;
	lease->fh = NULL;
}

/* Outside the guard there is nothing to give back: casync_leases_forget() has
 * done it. */
void casync_lease_give_back(struct casync_lease *lease)
{
	struct casync_mount *mount;

	if (lease->recall.exp == NULL) /* never granted */
		return;
	mount = lease->recall.exp->mount;
	if (casync_call_begin_release(mount)) {
		pthread_mutex_lock(&leases_lock);
		leases_give_back_locked(lease);
		pthread_mutex_unlock(&leases_lock);
		casync_call_leave(mount);
	}
	/* libcephfs no longer recalls it. */
	casync_recall_forget(&lease->recall);
}

void casync_leases_forget(struct casync_mount *mount)
{
	struct glist_head *node, *next;
	struct casync_lease *lease;

	pthread_mutex_lock(&leases_lock);
	glist_for_each_safe(node, next, &held) {
		lease = glist_entry(node, struct casync_lease, held_link);
		if (lease->recall.exp->mount != mount)
			continue;
		casync_recall(&lease->recall);
		leases_give_back_locked(lease);
	}
	pthread_mutex_unlock(&leases_lock);
}

void casync_lease_yield(struct casync_object *obj, fsal_openflags_t openflags)
{
	bool writes = (openflags & (FSAL_O_WRITE | FSAL_O_TRUNC)) != 0;
	struct glist_head *node, *next;
	struct casync_lease *lease;

	if (__atomic_load_n(&obj->leases.count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&leases_lock);
	glist_for_each_safe(node, next, &obj->leases.list) {
		lease = glist_entry(node, struct casync_lease, link);
		if (!writes && !lease->for_write)
			continue;
		casync_recall(&lease->recall);
		leases_give_back_locked(lease);
	}
	pthread_mutex_unlock(&leases_lock);
}

void casync_lease_let_go(struct casync_object *obj)
{
	struct glist_head *node, *next;
	struct casync_lease *lease;

	if (__atomic_load_n(&obj->leases.count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&leases_lock);
	glist_for_each_safe(node, next, &obj->leases.list) {
		lease = glist_entry(node, struct casync_lease, link);
		if (__atomic_load_n(&lease->recalled, __ATOMIC_ACQUIRE))
			leases_give_back_locked(lease);
	}
	pthread_mutex_unlock(&leases_lock);
}

fsal_status_t casync_lease_op2(struct fsal_obj_handle *obj_hdl,
			       struct state_t *state, void *owner,
			       fsal_deleg_t deleg)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	struct casync_lease *lease =
		&container_of(state, struct casync_state, state)->lease;
	struct casync_call call;
	fsal_status_t status;

	(void)owner;
	/* To give a delegation back needs no client. */
	if (deleg == FSAL_DELEG_NONE) {
		casync_lease_give_back(lease);
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	}
	status = casync_call_begin(&call, obj_hdl, CASYNC_CALL_ASKS_MDS);
	if (FSAL_IS_ERROR(status))
		return status;
	if (!obj->exp->delegations || lease->fh != NULL)
		status = fsalstat(ERR_FSAL_DELAY, EAGAIN);
	else
		status = deleg == FSAL_DELEG_RD
				 ? leases_grant_read(lease, obj)
				 : leases_grant_write(lease, obj, state);
	return casync_call_end(&call, status);
}

bool casync_lease_keeps_fh(struct casync_fd *fd)
{
	bool kept;

	/* No delegation is granted on an fd that is being closed. */
	if (__atomic_load_n(&fd->lease, __ATOMIC_ACQUIRE) == NULL)
		return false;
	pthread_mutex_lock(&leases_lock);
	kept = fd->lease != NULL;
	if (kept) {
		fd->lease->fd = NULL;
		fd->lease = NULL;
	}
	pthread_mutex_unlock(&leases_lock);
	return kept;
}
