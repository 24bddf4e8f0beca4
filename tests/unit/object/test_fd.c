/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * OPEN changes what a state's fd is for while I/O is in flight on it: nobody
 * waits, no Fh is closed under libcephfs, and there are never more than two.
 * CLOSE leaves the Fh to whoever uses it last.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

#include "borrow.h"
#include "call.h"
#include "fd.h"
#include "inode.h"
#include "request.h"
#include "stub_mount.h"

/* --- of Ganesha's and delegations.c's, what fd.c calls */

fsal_status_t close_fsal_fd(struct fsal_obj_handle *obj_hdl,
			    struct fsal_fd *fsal_fd, bool is_reclaiming)
{
	(void)is_reclaiming;
	return casync_fd_close(obj_hdl, fsal_fd);
}

void fsal_complete_fd_work(struct fsal_fd *fsal_fd)
{
	atomic_dec_int32_t(&fsal_fd->fd_work);
	PTHREAD_MUTEX_unlock(&fsal_fd->work_mutex);
}

void casync_delegations_return_conflicting(
	struct casync_delegations *delegations, fsal_openflags_t openflags)
{
	(void)delegations;
	(void)openflags;
}

bool casync_delegations_take_fh(struct casync_mount *mount,
				struct casync_fd *fd)
{
	(void)mount;
	(void)fd;
	return false;
}

void casync_delegations_return(struct casync_delegation *delegation)
{
	(void)delegation;
}

/* --- */

static struct casync_fd *fd;

static int up(void **state)
{
	int rc = request_up(state);

	fd = &rig.state.fd;
	return rc;
}

#define FD_CASE(test) TEST_WITH(test, up, request_down)

static void open_for(fsal_openflags_t openflags)
{
	assert_int_equal(
		casync_fd_reopen(&rig.obj->handle, openflags, &fd->fsal_fd)
			.major,
		ERR_FSAL_NO_ERROR);
}

static void change_to(fsal_openflags_t openflags)
{
	assert_int_equal(casync_fd_change(rig.obj, fd, openflags).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fd->fsal_fd.openflags, FSAL_O_NFS_FLAGS(openflags));
}

static void close_it(void)
{
	assert_int_equal(casync_fd_close(&rig.obj->handle, &fd->fsal_fd).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake.open_fhs, 0);
	assert_int_equal(fake.closed_in_use, 0);
}

FD_CASE(change_waits_for_no_io)
{
	struct io *read = new_io(0, 100);
	struct io *write = new_io(OBJ, 100);
	struct Fh *first;

	open_for(FSAL_O_READ);
	first = fd->fh;
	fake.plan.when = FAKE_LATER;
	read->arg.state = &rig.state.state;
	start_read(read);
	change_to(FSAL_O_RDWR);
	assert_ptr_not_equal(fd->fh, first);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
	write->arg.state = &rig.state.state;
	start_write(write, true);
	assert_ptr_equal(fake.calls[0].asked.fh, first);
	assert_ptr_equal(fake.calls[1].asked.fh, fd->fh);
	fake_complete_in_order();
	assert_true(rig_wait(&read->came));
	settle(write);
	check_ok(read, 100);
	check_ok(write, 100);
	close_it();
	free_io(read);
	free_io(write);
}

FD_CASE(less_is_no_reopening)
{
	open_for(FSAL_O_RDWR);
	change_to(FSAL_O_READ);
	change_to(FSAL_O_WRITE);
	change_to(FSAL_O_RDWR);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 1);
	close_it();
}

FD_CASE(there_are_never_more_than_two)
{
	unsigned int i;

	open_for(FSAL_O_WRITE);
	for (i = 0; i < 100; i++) {
		change_to(FSAL_O_RDWR);
		change_to(FSAL_O_READ);
		change_to(FSAL_O_WRITE | FSAL_O_TRUNC);
		change_to(FSAL_O_READ);
		assert_int_equal(fake.open_fhs, 2);
	}
	assert_int_equal(fake.truncations, 100);
	close_it();
}

FD_CASE(truncation_empties_the_file)
{
	open_for(FSAL_O_WRITE);
	change_to(FSAL_O_WRITE | FSAL_O_TRUNC);
	assert_int_equal(casync_file_size_hint(&rig.obj->size), 0);
	assert_int_equal(fake.open_fhs, 1);
	close_it();
}

FD_CASE(refused_change_changes_nothing)
{
	struct Fh *first;

	open_for(FSAL_O_READ);
	first = fd->fh;
	fake.blocking_result[FAKE_OPEN] = -EIO;
	assert_int_equal(casync_fd_change(rig.obj, fd, FSAL_O_RDWR).major,
			 ERR_FSAL_IO);
	assert_ptr_equal(fd->fh, first);
	assert_int_equal(fd->fsal_fd.openflags, FSAL_O_READ);
	assert_int_equal(fake.open_fhs, 1);
	fake.blocking_result[FAKE_OPEN] = -ENOENT;
	assert_int_equal(casync_fd_change(rig.obj, fd, FSAL_O_RDWR).major,
			 ERR_FSAL_STALE);
	fake.blocking_result[FAKE_OPEN] = 0;
	close_it();
}

/* Ganesha's LRU closes it some time, and opens it again. */
FD_CASE(reopening_forgets_the_former_one)
{
	open_for(FSAL_O_READ);
	change_to(FSAL_O_RDWR);
	open_for(FSAL_O_READ);
	assert_int_equal(fake.open_fhs, 1);
	close_it();
}

/* --- a lost client has ended its Fhs; here they are still there */

static void close_what_the_lost_client_had(struct Fh *fh)
{
	(void)ceph_ll_close(NULL, fh);
	assert_int_equal(fake.open_fhs, 0);
}

FD_CASE(close_of_a_lost_fd_asks_nobody)
{
	struct Fh *lost;

	open_for(FSAL_O_READ);
	lost = fd->fh;
	casync_guard_renew(&stub_mount.guard);
	assert_int_equal(casync_fd_close(&rig.obj->handle, &fd->fsal_fd).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
	assert_null(fd->fh);
	assert_int_equal(fd->fsal_fd.openflags, FSAL_O_CLOSED);
	close_what_the_lost_client_had(lost);
}

FD_CASE(former_fh_is_lost_too)
{
	struct Fh *first, *second;

	open_for(FSAL_O_READ);
	first = fd->fh;
	change_to(FSAL_O_RDWR);
	second = fd->fh;
	casync_guard_renew(&stub_mount.guard);
	assert_int_equal(casync_fd_close(&rig.obj->handle, &fd->fsal_fd).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
	(void)ceph_ll_close(NULL, first);
	close_what_the_lost_client_had(second);
}

/* It still exists, and calls its Fh its own. */
FD_CASE(fd_is_closed_while_releases_may_enter)
{
	open_for(FSAL_O_READ);
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	close_it();
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 1);
}

FD_CASE(fd_is_not_closed_while_its_client_ends)
{
	struct Fh *lost;

	open_for(FSAL_O_READ);
	lost = fd->fh;
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	assert_int_equal(casync_fd_close(&rig.obj->handle, &fd->fsal_fd).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
	assert_null(fd->fh);
	close_what_the_lost_client_had(lost);
}

FD_CASE(reopening_of_a_lost_fd_closes_nothing)
{
	struct Fh *lost;

	open_for(FSAL_O_READ);
	lost = fd->fh;
	casync_guard_renew(&stub_mount.guard);
	open_for(FSAL_O_RDWR);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
	assert_false(casync_inode_fd_is_lost(rig.obj, fd));
	(void)ceph_ll_close(NULL, lost);
	close_it();
}

FD_CASE(change_of_a_lost_fd_opens_it_first)
{
	struct Fh *lost;

	open_for(FSAL_O_READ);
	lost = fd->fh;
	casync_guard_renew(&stub_mount.guard);
	change_to(FSAL_O_RDWR);
	assert_ptr_not_equal(fd->narrow_fh, lost);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 3);
	(void)ceph_ll_close(NULL, lost);
	close_it();
}

/* --- CLOSE does not wait for I/O in flight */

static struct casync_state *opened;

static void open_a_state(void)
{
	opened = container_of(
		casync_fd_alloc_state(&rig.exp.export, STATE_TYPE_LOCK, NULL),
		struct casync_state, state);
	fd = &opened->fd;
	open_for(FSAL_O_RDWR);
}

static void close_state(void)
{
	assert_int_equal(casync_close2(&rig.obj->handle, &opened->state).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(fd->fsal_fd.openflags, FSAL_O_CLOSED);
	assert_int_equal(fd->fsal_fd.fd_work, 0);
}

static void check_closed(int closes)
{
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), closes);
	assert_int_equal(fake.open_fhs, closes == 0);
	assert_int_equal(fake.closed_in_use, 0);
}

static struct io *write_in_flight(void)
{
	struct io *write = new_io(0, 100);

	fake.plan.when = FAKE_LATER;
	write->arg.state = &opened->state;
	start_write(write, true);
	return write;
}

FD_CASE(close_without_io_closes_at_once)
{
	open_a_state();
	close_state();
	check_closed(1);
	free_state(&opened->state);
	check_closed(1);
}

FD_CASE(close_leaves_the_fh_to_the_end_of_the_state)
{
	struct io *write;

	open_a_state();
	write = write_in_flight();
	close_state();
	check_closed(0);
	fake_complete_in_order();
	settle(write);
	check_ok(write, 100);
	check_closed(0);
	free_state(&opened->state);
	check_closed(1);
	free_io(write);
}

/* A WRITE by the stateid of a delegation keeps only the delegation alive. */
FD_CASE(last_io_closes_when_the_state_is_gone)
{
	struct io *first, *second;

	open_a_state();
	stub.io_fd = &fd->fsal_fd;
	first = write_in_flight();
	second = new_io(OBJ, 100);
	start_write(second, true);
	first->arg.state = NULL;
	close_state();
	free_state(&opened->state);
	check_closed(0);
	fake_complete(0);
	assert_true(rig_wait(&first->came));
	check_closed(0);
	fake_complete(1);
	settle(second);
	check_ok(second, 100);
	check_closed(1);
	free_io(first);
	free_io(second);
}

FD_CASE(lost_fh_is_not_closed_at_the_end_of_the_state)
{
	struct Fh *lost;
	struct io *write;

	open_a_state();
	lost = fd->fh;
	write = write_in_flight();
	close_state();
	fake_complete_in_order();
	settle(write);
	casync_guard_renew(&stub_mount.guard);
	free_state(&opened->state);
	check_closed(0);
	close_what_the_lost_client_had(lost);
	free_io(write);
}

/* Whoever comes last of the two, closes. */
static void *free_the_state(void *unused)
{
	free_state(&opened->state);
	return NULL;
}

FD_CASE(end_of_state_and_of_io_may_meet)
{
	pthread_t thread;
	int i;

	for (i = 1; i <= 2000; i++) {
		open_a_state();
		atomic_inc_int32_t(&fd->fsal_fd.io_work);
		close_state();
		assert_int_equal(
			pthread_create(&thread, NULL, free_the_state, NULL), 0);
		(void)casync_borrow_complete_io(rig.obj, &fd->fsal_fd);
		RIG_JOIN(thread, NULL);
		check_closed(i);
	}
}
