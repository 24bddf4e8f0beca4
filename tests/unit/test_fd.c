/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * OPEN changes what a state's fd is for while I/O is in flight on it: nobody
 * waits, no Fh is closed under libcephfs, and there are never more than two.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fd.h"
#include "request.h"

/* --- of Ganesha's and leases.c's, what fd.c calls */

static int truncations; /* of ceph_ll_open(); by posix flags */

int fsal2posix_openflags(fsal_openflags_t fsal_flags, int *p_posix_flags);

int fsal2posix_openflags(fsal_openflags_t fsal_flags, int *p_posix_flags)
{
	*p_posix_flags = fsal_flags & FSAL_O_TRUNC ? O_TRUNC : 0;
	truncations += (fsal_flags & FSAL_O_TRUNC) != 0;
	return 0;
}

fsal_status_t close_fsal_fd(struct fsal_obj_handle *obj_hdl,
			    struct fsal_fd *fsal_fd, bool is_reclaiming)
{
	(void)is_reclaiming;
	return casync_fd_close(obj_hdl, fsal_fd);
}

void casync_lease_yield(struct casync_object *obj, fsal_openflags_t openflags)
{
	(void)obj;
	(void)openflags;
}

bool casync_lease_keeps_fh(struct casync_fd *fd)
{
	(void)fd;
	return false;
}

void casync_lease_give_back(struct casync_lease *lease)
{
	(void)lease;
}

/* --- */

static struct casync_fd *fd;

static int up(void **state)
{
	int rc = request_up(state);

	truncations = 0;
	fd = &rig.state.fd;
	return rc;
}

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

static void change_waits_for_no_io(void **state)
{
	struct io *read = new_io(0, 100);
	struct io *write = new_io(OBJ, 100);
	struct Fh *first;

	(void)state;
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

static void less_is_no_reopening(void **state)
{
	(void)state;
	open_for(FSAL_O_RDWR);
	change_to(FSAL_O_READ);
	change_to(FSAL_O_WRITE);
	change_to(FSAL_O_RDWR);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 1);
	close_it();
}

static void there_are_never_more_than_two(void **state)
{
	unsigned int i;

	(void)state;
	open_for(FSAL_O_WRITE);
	for (i = 0; i < 100; i++) {
		change_to(FSAL_O_RDWR);
		change_to(FSAL_O_READ);
		change_to(FSAL_O_WRITE | FSAL_O_TRUNC);
		change_to(FSAL_O_READ);
		assert_int_equal(fake.open_fhs, 2);
	}
	assert_int_equal(truncations, 100);
	close_it();
}

static void truncation_empties_the_file(void **state)
{
	(void)state;
	open_for(FSAL_O_WRITE);
	change_to(FSAL_O_WRITE | FSAL_O_TRUNC);
	assert_int_equal(casync_file_size_hint(rig.obj), 0);
	assert_int_equal(fake.open_fhs, 1);
	close_it();
}

static void refused_change_changes_nothing(void **state)
{
	struct Fh *first;

	(void)state;
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
static void reopening_forgets_the_former_one(void **state)
{
	(void)state;
	open_for(FSAL_O_READ);
	change_to(FSAL_O_RDWR);
	open_for(FSAL_O_READ);
	assert_int_equal(fake.open_fhs, 1);
	close_it();
}

#define FD_CASE(test) cmocka_unit_test_setup_teardown(test, up, request_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FD_CASE(change_waits_for_no_io),
		FD_CASE(less_is_no_reopening),
		FD_CASE(there_are_never_more_than_two),
		FD_CASE(truncation_empties_the_file),
		FD_CASE(refused_change_changes_nothing),
		FD_CASE(reopening_forgets_the_former_one),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
