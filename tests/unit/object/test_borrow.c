/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Fhs on loan, and those of a lost client, which are opened again.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "borrow.h"
#include "call.h"
#include "errors.h"
#include "inode.h"
#include "object_table.h"
#include "request.h"
#include "stub_mount.h"

#define THREADS 4

static const char old_inode, new_inode;
#define OLD_INODE ((struct Inode *)&old_inode)
#define NEW_INODE ((struct Inode *)&new_inode)

static struct casync_fd *fd;
static struct Fh *old_fh; /* of the lost client, which ends it */

static struct casync_object_table *table(void)
{
	return &stub_mount.upcalls.table;
}

static uint32_t *mount_inside(void)
{
	return &stub_mount.callers.room.inside;
}

static int up(void **state)
{
	int rc = request_up(state);

	rig.obj->inode = OLD_INODE;
	(void)casync_object_table_enter(table(), rig.obj);
	fake.inode = NEW_INODE;
	fd = &rig.state.fd;
	old_fh = NULL;
	return rc;
}

static int down(void **state)
{
	(void)casync_object_table_leave(table(), rig.obj);
	if (old_fh != NULL && fd->fh != old_fh)
		(void)ceph_ll_close(NULL, old_fh);
	return request_down(state);
}

#define BORROW_CASE(test) TEST_WITH(test, up, down)

static void new_client(void)
{
	casync_guard_renew(&stub_mount.guard);
}

/* As casync_fd_opened() of the first client leaves it. */
static void open_fd(fsal_openflags_t openflags)
{
	assert_int_equal(ceph_ll_open(NULL, OLD_INODE, O_RDONLY, &fd->fh, NULL),
			 0);
	old_fh = fd->fh;
	fd->fh_access = openflags;
	fd->fsal_fd.openflags = openflags;
}

/* --- fds of a lost client */

struct flags_case {
	const char *name;
	fsal_openflags_t openflags;
	int posix;
};

static const struct flags_case flags_cases[] = {
	{"fd_to_read_is_opened_to_read", FSAL_O_READ, O_RDONLY},
	{"fd_to_write_is_opened_to_write", FSAL_O_WRITE, O_WRONLY},
	{"fd_for_both_is_opened_for_both", FSAL_O_RDWR, O_RDWR},
	{"fd_that_truncated_does_not_again", FSAL_O_RDWR | FSAL_O_TRUNC,
	 O_RDWR},
};

TEST_ROWS(check_flags, flags_cases, up, down)
{
	const struct flags_case *c = *state;

	open_fd(c->openflags);
	assert_false(casync_inode_fd_is_lost(rig.obj, fd));
	new_client();
	assert_true(casync_inode_fd_is_lost(rig.obj, fd));
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_false(casync_inode_fd_is_lost(rig.obj, fd));
	assert_ptr_not_equal(fd->fh, old_fh);
	assert_int_equal(fake.last_open_flags, c->posix);
	assert_int_equal(fd->fh_access, c->openflags);
	/* Once. */
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 2);
	/* The lost client has ended its own. */
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

BORROW_CASE(fd_of_this_client_is_used)
{
	open_fd(FSAL_O_READ);
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_ptr_equal(fd->fh, old_fh);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 1);
}

BORROW_CASE(former_fh_ended_with_its_client)
{
	static const char former;

	open_fd(FSAL_O_RDWR);
	fd->narrow_fh = (struct Fh *)&former;
	new_client();
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_null(fd->narrow_fh);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

BORROW_CASE(closed_fd_stays_closed)
{
	new_client();
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 0);
	assert_null(fd->fh);
}

BORROW_CASE(fd_of_a_removed_file_is_stale)
{
	open_fd(FSAL_O_READ);
	new_client();
	fake.blocking_result[FAKE_OPEN] = -ENOENT;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), -ESTALE);
	fake.blocking_result[FAKE_OPEN] = -ENOTCONN;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), -ENOTCONN);
	assert_true(casync_inode_fd_is_lost(rig.obj, fd));
	assert_ptr_equal(fd->fh, old_fh);
	fake.blocking_result[FAKE_OPEN] = 0;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
}

static uint32_t slots_while_opening;

static void count_slots(enum fake_blocking which)
{
	if (which == FAKE_OPEN)
		slots_while_opening = *mount_inside();
}

/* A READ has none otherwise. */
BORROW_CASE(opening_has_a_slot_of_the_mount)
{
	open_fd(FSAL_O_READ);
	new_client();
	slots_while_opening = 0;
	fake.hook = count_slots;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_int_equal(slots_while_opening, 1);
	assert_int_equal(*mount_inside(), 0);
	/* A failure has one too, and gives it back. */
	new_client();
	(void)ceph_ll_close(NULL, fd->fh);
	fake.blocking_result[FAKE_OPEN] = -EIO;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), -EIO);
	assert_int_equal(*mount_inside(), 0);
	fd->fh = NULL;
}

BORROW_CASE(full_mount_opens_nothing)
{
	open_fd(FSAL_O_READ);
	new_client();
	*mount_inside() = 200;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), -ETIME);
	assert_ptr_equal(fd->fh, old_fh);
	assert_true(casync_inode_fd_is_lost(rig.obj, fd));
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 1);
	assert_int_equal(*mount_inside(), 200);
	*mount_inside() = 0;
	assert_int_equal(casync_call_use_fd(rig.obj, fd), 0);
	assert_int_equal(*mount_inside(), 0);
}

/* --- several threads at once: all are in the call before one goes on */

static int arrived;  /* atomic */
static int failures; /* atomic */

static void meet(enum fake_blocking which)
{
	if (which != FAKE_OPEN)
		return;
	__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	if (!RIG_COMES(NOW(arrived) >= THREADS))
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
}

static void *renew_fd(void *fh)
{
	if (casync_call_use_fd(rig.obj, fd) != 0)
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
	*(struct Fh **)fh = casync_fd_fh(fd);
	return NULL;
}

BORROW_CASE(threads_at_once_keep_one_fh)
{
	pthread_t threads[THREADS];
	struct Fh *fhs[THREADS];
	unsigned int i;

	open_fd(FSAL_O_RDWR);
	new_client();
	assert_int_equal(casync_call_renew_inode(rig.obj), 0);
	arrived = 0;
	failures = 0;
	fake.hook = meet;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, renew_fd, &fhs[i]),
			0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	fake.hook = NULL;
	assert_int_equal(failures, 0);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), THREADS - 1);
	/* The old one, and one new one. */
	assert_int_equal(fake.open_fhs, 2);
	assert_ptr_not_equal(fd->fh, old_fh);
	for (i = 0; i < THREADS; i++)
		assert_ptr_equal(fhs[i], fd->fh);
}

/* --- loans */

static fsal_errors_t borrow(struct casync_borrowed *borrowed,
			    struct state_t *state)
{
	return casync_borrow(borrowed, rig.obj, state, FSAL_O_READ, false,
			     false)
		.major;
}

BORROW_CASE(states_fd_is_on_loan)
{
	struct casync_borrowed borrowed;

	open_fd(FSAL_O_READ);
	assert_int_equal(borrow(&borrowed, &rig.state.state),
			 ERR_FSAL_NO_ERROR);
	assert_ptr_equal(casync_borrow_fh(&borrowed), old_fh);
	assert_int_equal(stub.ios_started, 1);
	assert_int_equal(stub.reservations, 0);
	casync_borrow_return(&borrowed);
	assert_int_equal(stub.ios_completed, 1);
	assert_int_equal(stub.reservation_changes, 0);
}

BORROW_CASE(loan_without_a_state_has_a_reservation)
{
	struct casync_borrowed borrowed;

	assert_int_equal(borrow(&borrowed, NULL), ERR_FSAL_NO_ERROR);
	assert_ptr_equal(casync_borrow_fh(&borrowed), rig.obj->read_fd.fh);
	assert_int_equal(stub.reservations, 1);
	casync_borrow_return(&borrowed);
	assert_int_equal(stub.reservations, 0);
	assert_int_equal(stub.reservation_changes, 2);
}

BORROW_CASE(temporary_fd_ends_with_its_loan)
{
	struct casync_borrowed borrowed;

	stub.global_fd_busy = true;
	assert_int_equal(borrow(&borrowed, NULL), ERR_FSAL_NO_ERROR);
	assert_ptr_equal(casync_borrow_fh(&borrowed), borrowed.temp_fd.fh);
	casync_borrow_return(&borrowed);
	assert_int_equal(fake.open_fhs, 0);
}

BORROW_CASE(refused_loan_leaves_nothing)
{
	struct casync_borrowed borrowed;

	stub.start_status = fsalstat(ERR_FSAL_SHARE_DENIED, 0);
	assert_int_equal(borrow(&borrowed, NULL), ERR_FSAL_SHARE_DENIED);
	assert_int_equal(stub.ios_completed, 0);
	assert_int_equal(stub.reservations, 0);
	assert_int_equal(stub.reservation_changes, CHANGES_OF_REFUSED_IO);
}

BORROW_CASE(loan_of_a_lost_fd_opens_it)
{
	struct casync_borrowed borrowed;

	open_fd(FSAL_O_READ);
	new_client();
	assert_int_equal(borrow(&borrowed, &rig.state.state),
			 ERR_FSAL_NO_ERROR);
	assert_ptr_not_equal(casync_borrow_fh(&borrowed), old_fh);
	assert_ptr_equal(casync_borrow_fh(&borrowed), fd->fh);
	casync_borrow_return(&borrowed);
}

BORROW_CASE(lost_fd_that_cannot_be_opened_is_given_back)
{
	struct casync_borrowed borrowed;

	open_fd(FSAL_O_READ);
	new_client();
	fake.blocking_result[FAKE_OPEN] = -ENOENT;
	assert_int_equal(borrow(&borrowed, &rig.state.state), ERR_FSAL_STALE);
	assert_int_equal(stub.ios_started, 1);
	assert_int_equal(stub.ios_completed, 1);
}

/* --- a request */

BORROW_CASE(read_uses_a_new_fh)
{
	struct io *io = new_io(0, 100);

	open_fd(FSAL_O_READ);
	new_client();
	io->arg.state = &rig.state.state;
	start_read(io);
	settle(io);
	check_ok(io, 100);
	check_bytes_read(io, 100);
	assert_ptr_not_equal(fake.calls[0].asked.fh, old_fh);
	assert_ptr_equal(fake.calls[0].asked.fh, fd->fh);
	free_io(io);
}

BORROW_CASE(write_without_an_fh_is_answered)
{
	struct io *io = new_io(0, 100);

	open_fd(FSAL_O_WRITE);
	new_client();
	fake.blocking_result[FAKE_OPEN] = -EIO;
	io->arg.state = &rig.state.state;
	start_write(io, true);
	settle(io);
	check_error(io, ERR_FSAL_IO);
	assert_int_equal(fake.call_count, 0);
	free_io(io);
}
