/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "fsal.h"

#include "borrow.h"
#include "call.h"
#include "check.h"
#include "clock.h"
#include "delegations.h"
#include "futex.h"
#include "inode.h"
#include "mount.h"
#include "object.h"
#include "state_calls.h"

/* Overdue calls of a file beside which it is opened. */
#define OVERDUE_OF_FILE_MAX 4
/* The wait for an open beside an overdue call: it may need no MDS. */
#define BESIDE_MS 100

/* Those that no worker waits for: of clients that are gone, and overdue ones.
 * Oldest first.  A leaf. */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static GLIST_HEAD(left);
static uint32_t left_count; /* Atomic, too. */

/* --- what is on its way */

unsigned int casync_state_calls_left(struct casync_state_calls_like like)
{
	const struct casync_state_call *call;
	struct glist_head *node;
	unsigned int count = 0;

	if (__atomic_load_n(&left_count, __ATOMIC_ACQUIRE) == 0)
		return 0;
	pthread_mutex_lock(&left_lock);
	glist_for_each(node, &left) {
		call = glist_entry(node, struct casync_state_call, link);
		count += call->mount == like.mount &&
			 (like.ino == 0 || call->ino == like.ino) &&
			 (like.owner == NULL || call->owner == like.owner) &&
			 (!like.overdue || call->overdue) &&
			 (!like.made || !call->waits) &&
			 call->left_ns >= like.after_ns;
	}
	pthread_mutex_unlock(&left_lock);
	return count;
}

static unsigned int state_calls_of_file(const struct casync_object *obj)
{
	return casync_state_calls_left((struct casync_state_calls_like){
		.mount = casync_inode_mount(obj),
		.ino = obj->id.ino,
		.overdue = true});
}

static bool state_calls_are_too_many(const struct casync_mount *mount)
{
	return casync_state_calls_left((struct casync_state_calls_like){
		       .mount = mount, .overdue = true, .made = true}) >=
	       CASYNC_STATE_CALLS_OVERDUE;
}

bool casync_state_calls_are_overdue(const struct casync_object *obj)
{
	return state_calls_of_file(obj) != 0 ||
	       state_calls_are_too_many(casync_inode_mount(obj));
}

/* --- what is left */

/* It keeps the state's fd: the state may be freed soon. */
static void state_calls_add_left_locked(struct casync_state_call *call)
{
	call->left_ns = casync_clock_ns();
	glist_add_tail(&left, &call->link);
	__atomic_add_fetch(&left_count, 1, __ATOMIC_RELEASE);
	if (call->st != NULL)
		atomic_inc_int32_t(&call->st->fd.fsal_fd.io_work);
}

static void state_calls_submit(struct casync_state_call *call)
{
	casync_lane_submit(&call->mount->lanes[CASYNC_LANE_METADATA],
			   &call->work);
}

/* Is a LOCK or an UNLOCK of this file overdue? */
static bool state_calls_is_busy_locked(const struct casync_state_call *like)
{
	const struct casync_state_call *call;
	struct glist_head *node;

	glist_for_each(node, &left) {
		call = glist_entry(node, struct casync_state_call, link);
		if (call->mount == like->mount && call->ino == like->ino &&
		    call->overdue && call->inode == NULL)
			return true;
	}
	return false;
}

/* The next UNLOCK that waited for this call. */
static struct casync_state_call *
state_calls_next_locked(const struct casync_state_call *ended)
{
	struct casync_state_call *call;
	struct glist_head *node;

	glist_for_each(node, &left) {
		call = glist_entry(node, struct casync_state_call, link);
		if (call->mount == ended->mount && call->ino == ended->ino &&
		    call->waits) {
			call->waits = false;
			return call;
		}
	}
	return NULL;
}

void casync_state_calls_end(struct casync_state_call *call)
{
	struct casync_state *st = call->st;
	struct casync_state_call *next = NULL;

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
	struct casync_state_call *call =
		container_of(work, struct casync_state_call, work);
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
	casync_state_calls_end(call);
}

/* The worker leaves it, unless it is answered just now. */
static bool state_calls_leave(struct casync_state_call *call)
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

int casync_state_calls_ask(struct casync_object *obj,
			   struct casync_state_call *call, uint32_t wait_ms)
{
	uint64_t now_ns = casync_clock_ns();
	uint64_t until_ns = wait_ms == 0 ? UINT64_MAX
					 : now_ns + wait_ms * CASYNC_NS_PER_MS;

	call->work.run = state_calls_run;
	state_calls_submit(call);
	while (__atomic_load_n(&call->answered, __ATOMIC_ACQUIRE) == 0) {
		if (now_ns < until_ns)
			casync_futex_wait(&call->answered, 0,
					  until_ns - now_ns);
		else if (call->may_be_left != NULL &&
			 !call->may_be_left(call, obj))
			until_ns = UINT64_MAX;
		else if (state_calls_leave(call))
			return -ETIME;
		now_ns = casync_clock_ns();
	}
	return call->rc;
}

bool casync_state_calls_follow(struct casync_state_call *call)
{
	const struct casync_state_calls_like all = {.mount = call->mount,
						    .overdue = true};
	bool follows;

	if (call->st == NULL ||
	    casync_state_calls_left(all) >= CASYNC_STATE_CALLS_LEFT)
		return false;
	call->work.run = state_calls_run;
	pthread_mutex_lock(&left_lock);
	follows = state_calls_is_busy_locked(call);
	if (follows) {
		casync_call_stay(call->mount);
		call->overdue = true;
		call->waits = true;
		state_calls_add_left_locked(call);
	}
	pthread_mutex_unlock(&left_lock);
	return follows;
}

bool casync_state_calls_add_later(struct casync_state_call *call)
{
	bool add;

	pthread_mutex_lock(&left_lock);
	add = !call->st->unlocks_later;
	if (add)
		state_calls_add_left_locked(call);
	call->st->unlocks_later = true;
	pthread_mutex_unlock(&left_lock);
	return add;
}

/* --- open */

/* The export may end before the call: so the credentials are the call's. */
static int state_calls_open(struct casync_state_call *call)
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

static void state_calls_close(struct casync_state_call *call)
{
	if (call->rc == 0)
		(void)ceph_ll_close(call->mount->client->ceph, call->fh);
	(void)ceph_ll_put(call->mount->client->ceph, call->inode);
}

/* How long an open may take; 0: it is not tried. */
static uint32_t state_calls_open_ms(const struct casync_object *obj)
{
	unsigned int of_file = state_calls_of_file(obj);

	if (of_file >= OVERDUE_OF_FILE_MAX ||
	    state_calls_are_too_many(casync_inode_mount(obj)))
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
	struct casync_state_call *call;
	struct Inode *inode;
	int rc;

	if (wait_ms == 0)
		return -ETIME;
	/* The object may be gone before the call returns. */
	inode = ceph_ll_get_inode(mount->client->ceph, vino);
	if (inode == NULL)
		return -ETIME;
	call = gsh_calloc(1, sizeof(*call));
	*call = (struct casync_state_call){.ask = state_calls_open,
					   .give_back = state_calls_close,
					   .mount = mount,
					   .ino = obj->id.ino,
					   .inode = inode,
					   .posix_flags = posix_flags};
	rc = casync_state_calls_ask(obj, call, wait_ms);
	if (rc == -ETIME)
		return rc;
	*fh = call->fh;
	(void)ceph_ll_put(mount->client->ceph, inode);
	gsh_free(call);
	return rc;
}
