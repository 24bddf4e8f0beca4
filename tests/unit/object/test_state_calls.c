/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* LOCK and UNLOCK that the MDS does not answer in time, and the UNLOCK for a
 * client that is gone. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"
#include "sal_data.h"

#include "clock.h"
#include "futex.h"
#include "state_calls.h"
#include "obj_ops.h"
#include "rig_lanes.h"

static int owner;
static uint64_t ahead_ns; /* of the clock */

int __real_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	now->tv_sec += (time_t)(ahead_ns / CASYNC_NS_PER_S);
	return rc;
}

/* The longest wait that this thread has asked for: a machine may be slow. */
static _Thread_local uint64_t longest_wait_ns;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, uint32_t *word, int op, uint32_t value,
		    const struct timespec *timeout);

/* The plugin makes no other system call by it than futex(2).  What nobody holds
 * is answered, by a thread that may have no CPU for long: a wait for it has no
 * end.
 */
long __wrap_syscall(long number, uint32_t *word, int op, uint32_t value,
		    const struct timespec *timeout)
{
	uint64_t wait_ns = UINT64_MAX;

	if (timeout != NULL)
		wait_ns = (uint64_t)timeout->tv_sec * CASYNC_NS_PER_S +
			  (uint64_t)timeout->tv_nsec;
	if (op == FUTEX_WAIT_PRIVATE && wait_ns > longest_wait_ns)
		longest_wait_ns = wait_ns;
	return __real_syscall(number, word, op, value,
			      fake.hook == NULL ? NULL : timeout, NULL, 0);
}

static int up(void **state)
{
	struct casync_fd *fd = &rig.state.fd;
	int rc = rig_up(state);

	if (rc == 0)
		rc = rig_lanes_up();
	if (rc == 0)
		rc = ceph_ll_open(NULL, NULL, O_RDWR, &fd->fh, NULL);
	fd->fh_access = FSAL_O_RDWR;
	init_fsal_fd(&fd->fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	rig.state.mount = &stub_mount;
	stub_mount.unlocks.most = 1;
	ahead_ns = 0;
	longest_wait_ns = 0;
	return rc;
}

static int down(void **state)
{
	/* After a failure nobody lets go of what is held. */
	fake.hook = NULL;
	rig_lanes_down();
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 0);
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static void others_lock(short type)
{
	fake.others_lock = (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

static fsal_errors_t lock_op_of(void *of, fsal_lock_op_t op, uint64_t start,
				uint64_t length)
{
	fsal_lock_param_t wanted = {
		.lock_sle_type = FSAL_POSIX_LOCK,
		.lock_type = FSAL_LOCK_W,
		.lock_start = start,
		.lock_length = length,
	};
	fsal_lock_param_t conflict;

	return casync_lock_op2(&rig.obj->handle,
			       of == &owner ? &rig.state.state : NULL, of, op,
			       &wanted, &conflict)
		.major;
}

static fsal_errors_t lock_op(fsal_lock_op_t op, uint64_t start, uint64_t length)
{
	return lock_op_of(&owner, op, start, length);
}

static fsal_errors_t other_owner(fsal_lock_op_t op)
{
	static int other;

	return lock_op_of(&other, op, 0, 10);
}

static void lock(uint64_t start, uint64_t length)
{
	assert_int_equal(lock_op(FSAL_OP_LOCK, start, length),
			 ERR_FSAL_NO_ERROR);
}

static fsal_errors_t unlock_all(void)
{
	return lock_op(FSAL_OP_UNLOCK, 0, 0);
}

/* All jobs end. */
static void settle(void)
{
	rig_lanes_down();
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 0);
	assert_int_equal(rig_lanes_up(), 0);
}

/* Its thread may come to it after the worker has given up. */
static unsigned int calls_held(void)
{
	RIG_UNTIL(NOW(rig_held.count) != 0);
	return NOW(rig_held.count);
}

/* After rig_hold(): the MDS answers. */
static void go_on(unsigned int calls)
{
	fake.hook = NULL;
	while (calls-- > 0)
		sem_post(&rig_held.go);
	settle();
	sem_destroy(&rig_held.go);
}

/* --- overdue calls */

CASE(lock_that_is_not_answered_is_given_back)
{
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	/* The Fh and the client stay. */
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 1);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	go_on(2);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 2);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_true(fake.asked_lock.l_start == 10);
	assert_true(fake.asked_lock.l_len == 20);
	assert_true(fake.asked_owner == (uintptr_t)&owner);
	/* It is in no record, and nothing is held. */
	assert_true(glist_empty(&rig.obj->locks.list));
	assert_true(casync_guard_is_empty(&stub_mount.guard));
}

CASE(lock_that_is_refused_late_is_not_given_back)
{
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	fake.blocking_result[FAKE_SETLK] = -EIO;
	go_on(1);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 1);
}

/* --- LOCKs that wait without a limit */

static fsal_errors_t told;
static bool is_told;

static void *lock_a_part_again(void *unused)
{
	op_ctx = &rig.request;
	told = lock_op(FSAL_OP_LOCK, 15, 100);
	__atomic_store_n(&is_told, true, __ATOMIC_RELEASE);
	return unused;
}

static void *reclaim(void *unused)
{
	fsal_lock_param_t wanted = {.lock_sle_type = FSAL_POSIX_LOCK,
				    .lock_type = FSAL_LOCK_W,
				    .lock_length = 10,
				    .lock_reclaim = true};

	op_ctx = &rig.request;
	told = casync_lock_op2(&rig.obj->handle, &rig.state.state, &owner,
			       FSAL_OP_LOCK, &wanted, NULL)
		       .major;
	__atomic_store_n(&is_told, true, __ATOMIC_RELEASE);
	return unused;
}

static void check_waits(void *(*locker)(void *), unsigned int setlks)
{
	pthread_t thread;

	is_told = false;
	rig_hold(FAKE_SETLK);
	assert_int_equal(pthread_create(&thread, NULL, locker, NULL), 0);
	usleep((CASYNC_STATE_CALL_MS + 100) * 1000);
	assert_false(NOW(is_told));
	fake.hook = NULL;
	sem_post(&rig_held.go);
	RIG_JOIN(thread, NULL);
	assert_int_equal(told, ERR_FSAL_NO_ERROR);
	settle();
	sem_destroy(&rig_held.go);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), setlks);
	assert_int_equal(fake.asked_lock.l_type, F_WRLCK);
}

/* To give it back would take the older one, too. */
CASE(lock_beside_an_older_one)
{
	lock(10, 20);
	check_waits(lock_a_part_again, 2);
}

/* Linux gives a lock up that it is to reclaim again. */
CASE(lock_that_is_reclaimed)
{
	check_waits(reclaim, 1);
}

CASE(reclaim_is_tried_beside_an_overdue_call)
{
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	go_on(2);
	check_waits(reclaim, 3);
}

/* --- */

CASE(nobody_waits_while_a_call_is_overdue)
{
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	longest_wait_ns = 0;
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	assert_int_equal(other_owner(FSAL_OP_LOCKT), ERR_FSAL_IN_GRACE);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_true(longest_wait_ns == 0);
	/* The UNLOCK is made after the LOCK. */
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 2);
	assert_int_equal(calls_held(), 1);
	go_on(1);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_true(fake.asked_lock.l_len == 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
}

CASE(they_wait_again_when_it_has_ended)
{
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	go_on(2);
	lock(10, 20);
	assert_int_equal(glist_length(&rig.obj->locks.list), 1);
}

/* Ganesha has forgotten the lock. */
CASE(unlock_that_is_not_answered_is_done_later)
{
	lock(10, 20);
	rig_hold(FAKE_SETLK);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_true(glist_empty(&rig.obj->locks.list));
	others_lock(F_WRLCK);
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	others_lock(F_UNLCK);
	go_on(1);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
}

/* A client may send as many as it wants: one thread makes them, in order. */
CASE(unlocks_are_made_in_order)
{
	unsigned int i;

	rig_hold(FAKE_SETLK);
	for (i = 1; i <= CASYNC_STATE_CALLS_LEFT; i++)
		assert_int_equal(lock_op(FSAL_OP_UNLOCK, i, 1),
				 ERR_FSAL_NO_ERROR);
	assert_int_equal(rig.state.fd.fsal_fd.io_work, CASYNC_STATE_CALLS_LEFT);
	assert_int_equal(calls_held(), 1);
	go_on(1);
	assert_int_equal(fake_blocking_count(FAKE_SETLK),
			 CASYNC_STATE_CALLS_LEFT);
	assert_true(fake.asked_lock.l_start == CASYNC_STATE_CALLS_LEFT);
}

/* The next one waits. */
CASE(unlocks_that_are_left_have_a_bound)
{
	unsigned int i;

	rig_hold(FAKE_SETLK);
	for (i = 0; i < CASYNC_STATE_CALLS_LEFT; i++)
		assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	longest_wait_ns = 0;
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_true(longest_wait_ns == CASYNC_STATE_CALL_MS * CASYNC_NS_PER_MS);
	go_on(2);
}

/* --- opens */

/* The Fh that comes too late is closed, and the Inode is let go. */
static void check_late_open(fsal_status_t (*open_now)(void))
{
	rig_hold(FAKE_OPEN);
	assert_int_equal(open_now().minor, ETIME);
	assert_true(longest_wait_ns == CASYNC_STATE_CALL_MS * CASYNC_NS_PER_MS);
	longest_wait_ns = 0;
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IN_GRACE);
	assert_int_equal(open_now().minor, ETIME);
	assert_int_equal(open_now().minor, ETIME);
	assert_int_equal(open_now().minor, ETIME);
	assert_true(longest_wait_ns == 100 * CASYNC_NS_PER_MS);
	longest_wait_ns = 0;
	/* The fourth is the last one that is tried. */
	assert_int_equal(open_now().minor, ETIME);
	assert_true(longest_wait_ns == 0);
	assert_int_equal(fake.inode_refs, 4);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	go_on(4);
	assert_int_equal(fake.open_fhs, 1);
	assert_int_equal(fake.inode_refs, 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(open_now().major, ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.inode_refs, 0);
}

static fsal_status_t open_for_more(void)
{
	return casync_fd_change(rig.obj, &rig.state.fd, FSAL_O_RDWR);
}

CASE(open_for_more_access)
{
	rig.state.fd.fh_access = FSAL_O_READ;
	check_late_open(open_for_more);
	assert_non_null(rig.state.fd.narrow_fh);
	(void)ceph_ll_close(NULL, rig.state.fd.narrow_fh);
}

static fsal_status_t open_state(void)
{
	return casync_fd_reopen(&rig.obj->handle, FSAL_O_RDWR,
				&rig.state.fd.fsal_fd);
}

CASE(open_of_a_state)
{
	check_late_open(open_state);
}

/* It needs no MDS. */
CASE(open_beside_an_overdue_call)
{
	rig.state.fd.fh_access = FSAL_O_READ;
	rig_hold(FAKE_OPEN);
	assert_int_equal(open_for_more().minor, ETIME);
	fake.hook = NULL;
	assert_int_equal(open_for_more().major, ERR_FSAL_NO_ERROR);
	(void)ceph_ll_close(NULL, rig.state.fd.narrow_fh);
	go_on(1);
}

CASE(open_of_another_file_waits)
{
	struct casync_object *file = rig.obj;

	rig.state.fd.fh_access = FSAL_O_READ;
	rig_hold(FAKE_OPEN);
	assert_int_equal(open_for_more().minor, ETIME);
	rig.obj = rig_new_object();
	rig.obj->id.ino++;
	fake.blocking_result[FAKE_SETLK] = -EIO;
	assert_int_equal(lock_op(FSAL_OP_LOCK, 10, 20), ERR_FSAL_IO);
	rig_free_object();
	rig.obj = file;
	go_on(1);
}

/* --- UNLOCK for a client that Ganesha expires */

static state_owner_t expired_owner;
static nfs_client_id_t expired_client;

static void expire(void)
{
	rig.state.state.state_owner = &expired_owner;
	rig.state.state.state_type = STATE_TYPE_LOCK;
	expired_owner.so_owner.so_nfs4_owner.so_clientrec = &expired_client;
	expired_client.cid_confirmed = EXPIRED_CLIENT_ID;
}

CASE(unlock_of_the_expired_does_not_wait)
{
	int changed;

	expire();
	lock(10, 20);
	rig_hold(FAKE_SETLK);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	/* CLOSE leaves the Fh to it. */
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 1);
	/* Another owner at the same address would lose its lock. */
	changed = (int)fake_blocking_count(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_LOCK, 50, 10), ERR_FSAL_IN_GRACE);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), changed);
	go_on(1);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), changed);
	assert_int_equal(fake.asked_lock.l_type, F_UNLCK);
	assert_true(fake.asked_lock.l_start == 0);
	assert_true(fake.asked_lock.l_len == 0);
	assert_true(fake.asked_owner == (uintptr_t)&owner);
	lock(50, 10);
}

/* It is of a part of the file. */
CASE(overdue_call_is_no_unlock_of_the_expired)
{
	lock(10, 20);
	rig_hold(FAKE_SETLK);
	assert_int_equal(lock_op(FSAL_OP_UNLOCK, 10, 5), ERR_FSAL_NO_ERROR);
	expire();
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_int_equal(rig.state.fd.fsal_fd.io_work, 2);
	go_on(2);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 3);
}

/* Ganesha has forgotten the lock: it cannot name the holder, and Linux takes a
 * refusal by an unknown one for an error. */
CASE(conflict_with_what_is_on_its_way_out_is_no_refusal)
{
	expire();
	lock(10, 20);
	others_lock(F_WRLCK);
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_DELAY);
	rig_hold(FAKE_SETLK);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	RIG_UNTIL(NOW(rig_held.count) >= 1);
	fake.hook = NULL;
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_IN_GRACE);
	assert_int_equal(other_owner(FSAL_OP_LOCKT), ERR_FSAL_IN_GRACE);
	/* Not for ever. */
	ahead_ns = 61 * CASYNC_NS_PER_S;
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_DELAY);
	assert_int_equal(other_owner(FSAL_OP_LOCKT), ERR_FSAL_DELAY);
	go_on(1);
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_DELAY);
	others_lock(F_UNLCK);
	assert_int_equal(other_owner(FSAL_OP_LOCK), ERR_FSAL_NO_ERROR);
}

CASE(lost_lock_of_the_expired_is_not_unlocked)
{
	expire();
	lock(10, 20);
	casync_guard_renew(&stub_mount.guard);
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	settle();
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 1);
	/* Nor is it taken again. */
	assert_true(glist_empty(&rig.obj->locks.list));
}

CASE(expired_without_an_fh_has_no_lock)
{
	expire();
	(void)ceph_ll_close(NULL, rig.state.fd.fh);
	rig.state.fd.fh = NULL;
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	settle();
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 0);
}

CASE(unlock_of_the_living_waits)
{
	expire();
	expired_client.cid_confirmed = CONFIRMED_CLIENT_ID;
	assert_int_equal(unlock_all(), ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_SETLK), 1);
	settle();
}
