/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "clock.h"
#include "delegations.h"
#include "futex.h"
#include "inode.h"
#include "state_calls.h"
#include "mount.h"
#include "object.h"

/* Tries: a conflicting lock may be gone when we ask for its owner.  Each has
 * two calls to the MDS. */
#define LOCK_RACES_MAX 4

/* No longer than this is a lock on its way out. */
#define LEAVES_WITHIN_NS (60 * CASYNC_NS_PER_S)

/* For the MDS.  It needs no object: Ganesha may free that when the worker has
 * left.  Freed by the worker, or by the job if it was left. */
struct state_call {
	struct casync_work work;
	int (*ask)(struct state_call *call);
	/* It gives back what nobody wants any more. */
	void (*give_back)(struct state_call *call);
	struct casync_mount *mount;
	struct casync_state *st; /* Of the Fh, or NULL; kept if it is left. */
	struct Fh *fh;
	uint64_t ino;
	/* LOCK and UNLOCK */
	struct flock wanted;
	struct flock fl; /* The answer: the lock, or a conflicting one. */
	void *owner;
	/* open */
	struct Inode *inode;
	int posix_flags;
	int rc;
	/* Under `left_lock`; `answered` is atomic, too. */
	uint32_t answered;
	bool overdue; /* A worker has left it. */
	bool keeps;   /* If it is a LOCK: it is not given back. */
	uint64_t left_ns;
	struct glist_head link; /* In `left`. */
};

/* Those that no worker waits for: of clients that are gone, and overdue ones.
 * A leaf. */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(left);

/* --- what is on its way */

/* How many of a mount are like this?  Of a file, or of any (0); of an owner, or
 * of any (NULL). */
static unsigned int state_calls_left(const struct casync_mount *mount,
				     uint64_t ino, const void *owner,
				     uint64_t after_ns, bool overdue)
{
	const struct state_call *call;
	struct glist_head *node;
	unsigned int count = 0;

	pthread_mutex_lock(&left_lock);
	glist_for_each(node, &left) {
		call = glist_entry(node, struct state_call, link);
		count += call->mount == mount &&
			 (ino == 0 || call->ino == ino) &&
			 (owner == NULL || call->owner == owner) &&
			 (!overdue || call->overdue) &&
			 call->left_ns >= after_ns;
	}
	pthread_mutex_unlock(&left_lock);
	return count;
}

static bool state_calls_are_overdue(const struct casync_object *obj)
{
	return state_calls_left(casync_inode_mount(obj), obj->id.ino, NULL, 0,
				true) != 0;
}

/*
 * The MDS has a conflicting lock.  Ganesha would refuse ours in the name of an
 * owner that it makes up, and Linux makes EIO of that over NFSv4.1 and 4.2.  So
 * if the lock is on its way out, the client asks again: -EINPROGRESS.
 *
 * To be called before the MDS is asked for the last time: an UNLOCK that ends
 * before this call is no conflict then.
 */
static int state_calls_conflict(const struct casync_mount *mount, uint64_t ino)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t since_ns =
		now_ns > LEAVES_WITHIN_NS ? now_ns - LEAVES_WITHIN_NS : 0;

	return state_calls_left(mount, ino, NULL, since_ns, false) != 0
		       ? -EINPROGRESS
		       : -EAGAIN;
}

/* --- what is left */

/* It keeps the state's fd: the state may be freed soon. */
static void state_calls_add_left_locked(struct state_call *call)
{
	call->left_ns = casync_clock_ns();
	glist_add_tail(&left, &call->link);
	if (call->st != NULL)
		atomic_inc_int32_t(&call->st->fd.fsal_fd.io_work);
}

/* It may free the state's fd, and call libcephfs for that. */
static void state_calls_end_left(struct state_call *call)
{
	struct casync_state *st = call->st;

	pthread_mutex_lock(&left_lock);
	glist_del(&call->link);
	pthread_mutex_unlock(&left_lock);
	gsh_free(call);
	if (st != NULL)
		casync_borrow_end_io(st);
}

/* --- a call that a worker waits for */

static void state_calls_run(struct casync_work *work)
{
	struct state_call *call = container_of(work, struct state_call, work);
	bool overdue;

	call->rc = call->ask(call);
	pthread_mutex_lock(&left_lock);
	overdue = call->overdue;
	if (!overdue)
		__atomic_store_n(&call->answered, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&left_lock);
	if (!overdue) {
		/* Of the address alone: the worker may have freed it. */
		casync_futex_wake(&call->answered, 1);
		return;
	}
	call->give_back(call);
	casync_call_leave(call->mount);
	state_calls_end_left(call);
}

/* The worker leaves it, unless it is answered just now, or the client must not
 * be kept any longer. */
static bool state_calls_leave(struct state_call *call, bool keeps)
{
	bool leaves;

	if (!casync_call_begin_release(call->mount))
		return false;
	pthread_mutex_lock(&left_lock);
	leaves = call->answered == 0;
	if (leaves) {
		call->keeps = keeps;
		call->overdue = true;
		state_calls_add_left_locked(call);
	}
	pthread_mutex_unlock(&left_lock);
	if (!leaves)
		casync_call_leave(call->mount);
	return leaves;
}

/* Has the owner a lock in the range, that an UNLOCK would take? */
static bool state_calls_has_older(struct casync_object *obj,
				  const struct state_call *call)
{
	const fsal_lock_param_t range = {
		.lock_start = (uint64_t)call->wanted.l_start,
		.lock_length = (uint64_t)call->wanted.l_len};

	return call->owner != NULL &&
	       casync_lock_records_have(&obj->locks, call->owner, &range);
}

/* Have a thread of the mount make the call.  @return Its result; -ETIME: it is
 * left, and that thread's. */
static int state_calls_ask(struct casync_object *obj, struct state_call *call)
{
	const uint64_t wait_ns = CASYNC_STATE_CALL_MS * CASYNC_NS_PER_MS;
	uint64_t now_ns = casync_clock_ns();
	uint64_t until_ns = now_ns;

	if (!state_calls_are_overdue(obj))
		until_ns += wait_ns;
	casync_lane_submit(&call->mount->lanes[CASYNC_LANE_METADATA],
			   &call->work);
	while (__atomic_load_n(&call->answered, __ATOMIC_ACQUIRE) == 0) {
		if (now_ns >= until_ns) {
			if (state_calls_leave(call,
					      state_calls_has_older(obj, call)))
				return -ETIME;
			until_ns = now_ns + wait_ns;
		}
		casync_futex_wait(&call->answered, 0, until_ns - now_ns);
		now_ns = casync_clock_ns();
	}
	return call->rc;
}

/* --- LOCK, UNLOCK and LOCKT */

static int state_calls_test(const struct casync_mount *mount, uint64_t ino,
			    struct Fh *fh, struct flock *fl, void *owner)
{
	int conflict = state_calls_conflict(mount, ino);
	int rc = ceph_ll_getlk(mount->client->ceph, fh, fl, (uint64_t)owner);

	if (rc != 0)
		return rc;
	return fl->l_type == F_UNLCK ? 0 : conflict;
}

static int state_calls_set(struct state_call *call)
{
	int tries;
	int rc;

	for (tries = 0; tries < LOCK_RACES_MAX; tries++) {
		call->fl = call->wanted;
		rc = ceph_ll_setlk(call->mount->client->ceph, call->fh,
				   &call->fl, (uint64_t)call->owner, false);
		if (rc != -EAGAIN && rc != -EACCES)
			return rc;
		call->fl = call->wanted;
		rc = state_calls_test(call->mount, call->ino, call->fh,
				      &call->fl, call->owner);
		if (rc != 0)
			return rc;
	}
	call->fl = call->wanted;
	return -EAGAIN;
}

static void state_calls_unset(struct state_call *call)
{
	if (call->wanted.l_type == F_UNLCK || call->rc != 0 || call->keeps)
		return;
	call->wanted.l_type = F_UNLCK;
	(void)state_calls_set(call);
}

/* UNLOCKs beyond the bound wait without a limit. */
static bool state_calls_may_be_left(const struct state_call *call)
{
	return call->st != NULL &&
	       state_calls_left(call->mount, 0, NULL, 0, true) <
		       CASYNC_STATE_CALLS_LEFT;
}

int casync_state_calls_setlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner)
{
	struct casync_mount *mount = casync_inode_mount(fd->obj);
	uint64_t ino = fd->obj->id.ino;
	struct state_call *call;
	int rc;

	if (fl->l_type != F_UNLCK && state_calls_are_overdue(fd->obj))
		return -ETIME;
	/* At the address of an owner that is gone: its UNLOCK would take this
	 * lock, too. */
	if (fl->l_type != F_UNLCK &&
	    state_calls_left(mount, ino, owner, 0, false) != 0)
		return state_calls_conflict(mount, ino);
	call = gsh_calloc(1, sizeof(*call));
	*call = (struct state_call){.work.run = state_calls_run,
				    .ask = state_calls_set,
				    .give_back = state_calls_unset,
				    .mount = mount,
				    .fh = casync_borrow_fh(fd),
				    .ino = ino,
				    .wanted = *fl,
				    .owner = owner};
	if (fd->fsal_fd->fd_type == FSAL_FD_STATE)
		call->st = container_of(fd->fsal_fd, struct casync_state,
					fd.fsal_fd);
	rc = state_calls_may_be_left(call) ? state_calls_ask(fd->obj, call)
					   : state_calls_set(call);
	if (rc == -ETIME)
		return rc;
	*fl = call->fl;
	gsh_free(call);
	return rc;
}

int casync_state_calls_getlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner)
{
	if (state_calls_are_overdue(fd->obj))
		return -ETIME;
	return state_calls_test(casync_inode_mount(fd->obj), fd->obj->id.ino,
				casync_borrow_fh(fd), fl, owner);
}

/* --- open */

static int state_calls_open(struct state_call *call)
{
	UserPerm *root = ceph_userperm_new(0, 0, 0, NULL);
	int rc;

	if (root == NULL)
		return -ENOMEM;
	rc = ceph_ll_open(call->mount->client->ceph, call->inode,
			  call->posix_flags, &call->fh, root);
	ceph_userperm_destroy(root);
	return rc;
}

static void state_calls_close(struct state_call *call)
{
	if (call->rc == 0)
		(void)ceph_ll_close(call->mount->client->ceph, call->fh);
	(void)ceph_ll_put(call->mount->client->ceph, call->inode);
}

int casync_state_calls_open(struct casync_object *obj, int posix_flags,
			    struct Fh **fh)
{
	struct casync_mount *mount = casync_inode_mount(obj);
	const vinodeno_t vino = {.ino.val = obj->id.ino,
				 .snapid.val = obj->id.snapid};
	struct state_call *call;
	struct Inode *inode;
	int rc;

	if (state_calls_are_overdue(obj))
		return -ETIME;
	/* The object may be gone before the call returns. */
	inode = ceph_ll_get_inode(mount->client->ceph, vino);
	if (inode == NULL)
		return -ETIME;
	call = gsh_calloc(1, sizeof(*call));
	*call = (struct state_call){.work.run = state_calls_run,
				    .ask = state_calls_open,
				    .give_back = state_calls_close,
				    .mount = mount,
				    .ino = obj->id.ino,
				    .inode = inode,
				    .posix_flags = posix_flags};
	rc = state_calls_ask(obj, call);
	if (rc == -ETIME)
		return rc;
	*fh = call->fh;
	(void)ceph_ll_put(mount->client->ceph, inode);
	gsh_free(call);
	return rc;
}

/* --- UNLOCK for a client that is gone */

static void state_calls_run_later(struct casync_work *work)
{
	struct state_call *call = container_of(work, struct state_call, work);
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
	state_calls_end_left(call);
}

static bool state_calls_has_later_locked(const struct casync_state *st)
{
	const struct state_call *call;
	struct glist_head *node;

	glist_for_each(node, &left) {
		call = glist_entry(node, struct state_call, link);
		if (call->st == st && !call->overdue)
			return true;
	}
	return false;
}

void casync_state_calls_unlock_later(struct casync_state *st, uint64_t ino,
				     void *owner)
{
	struct state_call *call;
	bool queued;

	if (casync_fd_fh(&st->fd) == NULL)
		return;
	call = gsh_calloc(1, sizeof(*call));
	*call = (struct state_call){
		.work.run = state_calls_run_later,
		.mount = st->mount,
		.st = st,
		.fl = {.l_type = F_UNLCK, .l_whence = SEEK_SET},
		.owner = owner,
		.ino = ino,
	};
	pthread_mutex_lock(&left_lock);
	/* It is of the whole file: one is enough. */
	queued = state_calls_has_later_locked(st);
	if (!queued)
		state_calls_add_left_locked(call);
	pthread_mutex_unlock(&left_lock);
	if (queued)
		gsh_free(call);
	else
		casync_lane_submit_shared(
			&call->mount->lanes[CASYNC_LANE_METADATA],
			&call->mount->unlocks, &call->work);
}
