/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "check.h"
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

/* Overdue calls of a mount beside which a new one is made: below the threads of
 * a lane.  And of a file, beside which a file is opened. */
#define OVERDUE_MAX 24
#define OVERDUE_OF_FILE_MAX 4
/* The wait for an open beside an overdue call: it may need no MDS. */
#define BESIDE_MS 100

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
	/* Under `left_lock`; the first two are atomic, too. */
	uint32_t answered;
	bool overdue; /* A worker has left it. */
	bool waits;   /* It is not submitted yet. */
	uint64_t left_ns;
	struct glist_head link; /* In `left`. */
};

/* Those that no worker waits for: of clients that are gone, and overdue ones.
 * Oldest first.  A leaf. */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(left);
static uint32_t left_count; /* Atomic, too. */

/* --- what is on its way */

/* Which of them state_calls_left() counts. */
struct left_like {
	const struct casync_mount *mount;
	uint64_t ino;	   /* 0: of any file */
	const void *owner; /* NULL: of any */
	uint64_t after_ns;
	bool overdue;
};

static unsigned int state_calls_left(struct left_like like)
{
	const struct state_call *call;
	struct glist_head *node;
	unsigned int count = 0;

	if (__atomic_load_n(&left_count, __ATOMIC_ACQUIRE) == 0)
		return 0;
	pthread_mutex_lock(&left_lock);
	glist_for_each(node, &left) {
		call = glist_entry(node, struct state_call, link);
		count += call->mount == like.mount &&
			 (like.ino == 0 || call->ino == like.ino) &&
			 (like.owner == NULL || call->owner == like.owner) &&
			 (!like.overdue || call->overdue) &&
			 call->left_ns >= like.after_ns;
	}
	pthread_mutex_unlock(&left_lock);
	return count;
}

/* Of a file, or of any (0). */
static unsigned int state_calls_overdue(const struct casync_mount *mount,
					uint64_t ino)
{
	return state_calls_left((struct left_like){
		.mount = mount, .ino = ino, .overdue = true});
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

	return state_calls_left((struct left_like){
		       .mount = mount, .ino = ino, .after_ns = since_ns}) != 0
		       ? -EINPROGRESS
		       : -EAGAIN;
}

/* --- what is left */

/* It keeps the state's fd: the state may be freed soon. */
static void state_calls_add_left_locked(struct state_call *call)
{
	call->left_ns = casync_clock_ns();
	glist_add_tail(&left, &call->link);
	__atomic_add_fetch(&left_count, 1, __ATOMIC_RELEASE);
	if (call->st != NULL)
		atomic_inc_int32_t(&call->st->fd.fsal_fd.io_work);
}

static void state_calls_submit(struct state_call *call)
{
	casync_lane_submit(&call->mount->lanes[CASYNC_LANE_METADATA],
			   &call->work);
}

/* Is a LOCK or an UNLOCK of this file overdue? */
static bool state_calls_is_busy_locked(const struct state_call *like)
{
	const struct state_call *call;
	struct glist_head *node;

	glist_for_each(node, &left) {
		call = glist_entry(node, struct state_call, link);
		if (call->mount == like->mount && call->ino == like->ino &&
		    call->overdue && call->inode == NULL)
			return true;
	}
	return false;
}

/* The next UNLOCK that waited for this call. */
static struct state_call *
state_calls_next_locked(const struct state_call *ended)
{
	struct state_call *call;
	struct glist_head *node;

	glist_for_each(node, &left) {
		call = glist_entry(node, struct state_call, link);
		if (call->mount == ended->mount && call->ino == ended->ino &&
		    call->waits) {
			call->waits = false;
			return call;
		}
	}
	return NULL;
}

/* It may free the state's fd, and call libcephfs for that. */
static void state_calls_end_left(struct state_call *call)
{
	struct casync_state *st = call->st;
	struct state_call *next = NULL;

	pthread_mutex_lock(&left_lock);
	glist_del(&call->link);
	CASYNC_CHECK_DOWN(&left_count, __ATOMIC_RELEASE);
	if (call->overdue && call->inode == NULL)
		next = state_calls_next_locked(call);
	else if (st != NULL && !call->overdue)
		st->unlocks_later = false;
	pthread_mutex_unlock(&left_lock);
	if (next != NULL)
		state_calls_submit(next);
	gsh_free(call);
	if (st != NULL)
		casync_borrow_end_io(st);
}

/* --- a call that a worker waits for */

static void state_calls_run(struct casync_work *work)
{
	struct state_call *call = container_of(work, struct state_call, work);
	struct casync_mount *mount = call->mount;
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
	casync_call_leave(mount);
	state_calls_end_left(call);
}

/* The worker leaves it, unless it is answered just now. */
static bool state_calls_leave(struct state_call *call)
{
	bool leaves;

	pthread_mutex_lock(&left_lock);
	leaves = call->answered == 0;
	if (leaves) {
		casync_call_stay(call->mount);
		__atomic_store_n(&call->overdue, true, __ATOMIC_RELEASE);
		state_calls_add_left_locked(call);
	}
	pthread_mutex_unlock(&left_lock);
	return leaves;
}

/* Has the owner a lock in the range?  To give a late LOCK back would take that
 * one, too. */
static bool state_calls_has_older(struct casync_object *obj,
				  const struct state_call *call)
{
	const fsal_lock_param_t range = {
		.lock_start = (uint64_t)call->wanted.l_start,
		.lock_length = (uint64_t)call->wanted.l_len};

	return call->owner != NULL && call->wanted.l_type != F_UNLCK &&
	       casync_lock_records_have(&obj->locks, call->owner, &range);
}

/* Have a thread of the mount make the call, and wait; 0: without a limit.
 * @return Its result; -ETIME: it is left, and that thread's. */
static int state_calls_ask(struct casync_object *obj, struct state_call *call,
			   uint32_t wait_ms)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t until_ns = wait_ms == 0 ? UINT64_MAX
					 : now_ns + wait_ms * CASYNC_NS_PER_MS;

	state_calls_submit(call);
	while (__atomic_load_n(&call->answered, __ATOMIC_ACQUIRE) == 0) {
		if (now_ns < until_ns)
			casync_futex_wait(&call->answered, 0,
					  until_ns - now_ns);
		else if (state_calls_has_older(obj, call))
			until_ns = UINT64_MAX;
		else if (state_calls_leave(call))
			return -ETIME;
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

/* Not once more after the worker has left: an UNLOCK may come next. */
static bool state_calls_may_try(const struct state_call *call, int tries)
{
	return tries == 0 ||
	       (tries < LOCK_RACES_MAX &&
		!__atomic_load_n(&call->overdue, __ATOMIC_ACQUIRE));
}

static int state_calls_set(struct state_call *call)
{
	int tries;
	int rc;

	for (tries = 0; state_calls_may_try(call, tries); tries++) {
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
	if (call->wanted.l_type != F_UNLCK && call->rc == 0) {
		call->wanted.l_type = F_UNLCK;
		call->rc = state_calls_set(call);
	}
	if (call->rc != 0)
		LogInfo(COMPONENT_FSAL,
			"a late LOCK or UNLOCK of inode %#" PRIx64 ": %s",
			call->ino, strerror(-call->rc));
}

static struct state_call *state_calls_new(const struct casync_borrowed *fd,
					  const struct flock *fl, void *owner)
{
	struct state_call *call = gsh_calloc(1, sizeof(*call));

	*call = (struct state_call){.work.run = state_calls_run,
				    .ask = state_calls_set,
				    .give_back = state_calls_unset,
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

/* An UNLOCK after overdue calls of its file: it is made when they have ended.
 * @return false: there are none any more, or too many. */
static bool state_calls_queue_unlock(struct state_call *call)
{
	unsigned int of_file = state_calls_overdue(call->mount, call->ino);
	bool queued = false;

	if (of_file == 0 || call->st == NULL ||
	    state_calls_overdue(call->mount, 0) >= CASYNC_STATE_CALLS_LEFT)
		return false;
	pthread_mutex_lock(&left_lock);
	queued = state_calls_is_busy_locked(call);
	if (queued) {
		casync_call_stay(call->mount);
		call->overdue = true;
		call->waits = true;
		state_calls_add_left_locked(call);
	}
	pthread_mutex_unlock(&left_lock);
	return queued;
}

int casync_state_calls_setlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner, bool reclaim)
{
	const struct casync_mount *mount = casync_inode_mount(fd->obj);
	uint64_t ino = fd->obj->id.ino;
	bool unlock = fl->l_type == F_UNLCK;
	struct state_call *call;
	uint32_t wait_ms = CASYNC_STATE_CALL_MS;
	int rc;

	if (!unlock && !reclaim &&
	    (state_calls_overdue(mount, ino) != 0 ||
	     state_calls_overdue(mount, 0) >= OVERDUE_MAX))
		return -ETIME;
	/* At the address of an owner that is gone: its UNLOCK would take this
	 * lock, too. */
	if (!unlock &&
	    state_calls_left((struct left_like){
		    .mount = mount, .ino = ino, .owner = owner}) != 0)
		return state_calls_conflict(mount, ino);
	call = state_calls_new(fd, fl, owner);
	if (unlock && state_calls_queue_unlock(call))
		return 0;
	if (call->st == NULL || (reclaim && !unlock))
		wait_ms = 0;
	rc = state_calls_ask(fd->obj, call, wait_ms);
	if (rc == -ETIME)
		return unlock ? 0 : rc;
	*fl = call->fl;
	gsh_free(call);
	return rc;
}

int casync_state_calls_getlk(const struct casync_borrowed *fd, struct flock *fl,
			     void *owner)
{
	if (state_calls_overdue(casync_inode_mount(fd->obj), fd->obj->id.ino) !=
	    0)
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

/* How long an open may take; 0: it is not tried. */
static uint32_t state_calls_open_ms(const struct casync_object *obj)
{
	const struct casync_mount *mount = casync_inode_mount(obj);
	unsigned int of_file = state_calls_overdue(mount, obj->id.ino);

	if (of_file >= OVERDUE_OF_FILE_MAX ||
	    state_calls_overdue(mount, 0) >= OVERDUE_MAX)
		return 0;
	return of_file == 0 ? CASYNC_STATE_CALL_MS : BESIDE_MS;
}

int casync_state_calls_open(struct casync_object *obj, int posix_flags,
			    struct Fh **fh)
{
	struct casync_mount *mount = casync_inode_mount(obj);
	const vinodeno_t vino = {.ino.val = obj->id.ino,
				 .snapid.val = obj->id.snapid};
	uint32_t wait_ms = state_calls_open_ms(obj);
	struct state_call *call;
	struct Inode *inode;
	int rc;

	if (wait_ms == 0)
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
	rc = state_calls_ask(obj, call, wait_ms);
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
	queued = st->unlocks_later;
	if (!queued)
		state_calls_add_left_locked(call);
	st->unlocks_later = true;
	pthread_mutex_unlock(&left_lock);
	if (queued)
		gsh_free(call);
	else
		casync_lane_submit_shared(
			&call->mount->lanes[CASYNC_LANE_METADATA],
			&call->mount->unlocks, &call->work);
}
