/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "errors.h"
#include "object_table.h"
#include "request.h"
#include "revive.h"
#include "stub_mount.h"

#define THREADS 4

static const char old_inode, new_inode;
#define OLD_INODE ((struct Inode *)&old_inode)
#define NEW_INODE ((struct Inode *)&new_inode)

static struct casync_fd *fd;
static struct Fh *old_fh; /* of the lost client, which ends it */

static struct casync_object_table *table(void)
{
	return casync_mount_object_table(&stub_mount);
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
	fd->fh_flags = openflags;
	fd->fsal_fd.openflags = openflags;
}

/* --- objects */

static void object_of_this_client_is_not_looked_up(void **state)
{
	assert_int_equal(casync_revive_begin(rig.obj), 0);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	casync_revive_end(rig.obj);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_ptr_equal(rig.obj->inode, OLD_INODE);
}

static void object_of_a_lost_client_is_looked_up_once(void **state)
{
	unsigned int i;

	new_client();
	fake.size_bytes = 4321;
	for (i = 0; i < 3; i++) {
		assert_int_equal(casync_revive_begin(rig.obj), 0);
		casync_revive_end(rig.obj);
	}
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_ptr_equal(rig.obj->inode, NEW_INODE);
	assert_int_equal(rig.obj->generation, 1);
	assert_int_equal(fake.inode_refs, 1);
	/* Somebody else may have written meanwhile. */
	assert_int_equal(casync_file_size_hint(&rig.obj->size), 4321);
}

/* The MDS does not answer, and the file's share of the workers waits. */
static void file_takes_no_more_workers_than_for_attributes(void **state)
{
	uint32_t *inside = &rig.obj->getattr.lanes[CASYNC_LANE_WORKER].inside;

	new_client();
	*inside = casync_waiter_limit_workers();
	/* EAGAIN would be a conflict of locks. */
	assert_int_equal(casync_revive_begin(rig.obj), -ETIME);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	*inside = 0;
	assert_int_equal(casync_revive_begin(rig.obj), 0);
	casync_revive_end(rig.obj);
}

/* The same for all files of a mount: for the look-up of a READ, and for the
 * opening of its file. */
static void full_mount_revives_nothing(void **state)
{
	uint32_t *inside =
		&stub_mount.callers.lanes[CASYNC_LANE_COMPLETER].inside;

	open_fd(FSAL_O_READ);
	new_client();
	*inside = 200;
	assert_int_equal(casync_revive_begin(rig.obj), -ETIME);
	assert_int_equal(casync_revive_fd(rig.obj, fd), -ETIME);
	assert_ptr_equal(fd->fh, old_fh);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(*inside, 200);
	*inside = 0;
	assert_int_equal(casync_revive_begin(rig.obj), 0);
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
	casync_revive_end(rig.obj);
	assert_int_equal(*inside, 0);
}

/* Two exports, or two entries of Ganesha's cache. */
static void objects_of_an_inode_share_its_reference(void **state)
{
	struct casync_object second = {
		.exp = &rig.exp, .id = rig.obj->id, .inode = OLD_INODE};

	second.handle.type = DIRECTORY;
	casync_file_size_init(&second.size, &rig.cuts);
	assert_true(casync_object_table_enter(table(), &second));
	new_client();
	assert_int_equal(casync_revive_inode(rig.obj), 0);
	assert_int_equal(casync_revive_inode(&second), 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 2);
	assert_ptr_equal(second.inode, NEW_INODE);
	assert_int_equal(fake.inode_refs, 1);
	assert_false(casync_object_table_leave(table(), &second));
}

/* The other object may never be used again. */
static void object_of_the_lost_client_shares_nothing(void **state)
{
	struct casync_object second = {
		.exp = &rig.exp, .id = rig.obj->id, .inode = OLD_INODE};

	second.handle.type = DIRECTORY;
	casync_file_size_init(&second.size, &rig.cuts);
	assert_true(casync_object_table_enter(table(), &second));
	new_client();
	/* The new Inode may come to lie where the old one was. */
	fake.inode = OLD_INODE;
	assert_int_equal(casync_revive_inode(rig.obj), 0);
	assert_int_equal(fake.inode_refs, 1);
	assert_true(casync_object_table_leave(table(), &second));
}

struct gone_case {
	const char *name;
	enum fake_blocking call;
	int result;
	int rc;
};

static const struct gone_case gone_cases[] = {
	{"unknown_number_is_stale", FAKE_LOOKUP_VINO, -ENOENT, -ESTALE},
	{"number_without_an_inode_is_stale", FAKE_LOOKUP_VINO, -EINVAL,
	 -ESTALE},
	{"removed_file_is_stale", FAKE_GETATTR, -ENOENT, -ESTALE},
	{"lost_session_is_no_removed_file", FAKE_LOOKUP_VINO, -ENOTCONN,
	 -ENOTCONN},
	{"error_of_getattr_passes", FAKE_GETATTR, -EIO, -EIO},
};

static void check_gone(void **state)
{
	const struct gone_case *c = *state;

	new_client();
	fake.blocking_result[c->call] = c->result;
	assert_int_equal(casync_revive_begin(rig.obj), c->rc);
	/* Who was refused is not inside, and holds nothing. */
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(fake.inode_refs, 0);
	assert_int_equal(rig.obj->generation, 0);
	/* The next one tries again. */
	fake.blocking_result[c->call] = 0;
	assert_int_equal(casync_revive_begin(rig.obj), 0);
	casync_revive_end(rig.obj);
}

static void without_a_client_nothing_begins(void **state)
{
	new_client();
	casync_guard_set(&stub_mount.guard, CASYNC_GUARD_RELEASES);
	assert_int_equal(casync_revive_begin(rig.obj), -CASYNC_EBLOCKLISTED);
	casync_guard_set(&stub_mount.guard, CASYNC_GUARD_CLOSED);
	assert_int_equal(casync_revive_begin(rig.obj), -CASYNC_EBLOCKLISTED);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
}

/* --- several threads at once: all are in the call before one goes on */

static enum fake_blocking meeting;
static int arrived;  /* atomic */
static int failures; /* atomic */

static void meet(enum fake_blocking which)
{
	if (which != meeting)
		return;
	__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	if (!rig_wait_count(&arrived, THREADS))
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
}

static void *revive_object(void *arg)
{
	(void)arg;
	if (casync_revive_begin(rig.obj) != 0 || rig.obj->inode != NEW_INODE)
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
	else
		casync_revive_end(rig.obj);
	return NULL;
}

static void *revive_fd(void *fh)
{
	if (casync_revive_fd(rig.obj, fd) != 0)
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
	*(struct Fh **)fh = casync_fd_fh(fd);
	return NULL;
}

static void at_once(void *(*run)(void *arg), enum fake_blocking where,
		    struct Fh **fhs)
{
	pthread_t threads[THREADS];
	unsigned int i;

	meeting = where;
	arrived = 0;
	failures = 0;
	fake.hook = meet;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, run, &fhs[i]), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	fake.hook = NULL;
	assert_int_equal(failures, 0);
}

static void threads_at_once_keep_one_reference(void **state)
{
	struct Fh *none[THREADS];

	new_client();
	at_once(revive_object, FAKE_GETATTR, none);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), THREADS);
	assert_int_equal(fake.inode_refs, 1);
	assert_int_equal(rig.obj->generation, 1);
}

static void threads_at_once_keep_one_fh(void **state)
{
	struct Fh *fhs[THREADS];
	unsigned int i;

	open_fd(FSAL_O_RDWR);
	new_client();
	assert_int_equal(casync_revive_inode(rig.obj), 0);
	at_once(revive_fd, FAKE_OPEN, fhs);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), THREADS - 1);
	/* The old one, and one new one. */
	assert_int_equal(fake.open_fhs, 2);
	assert_ptr_not_equal(fd->fh, old_fh);
	for (i = 0; i < THREADS; i++)
		assert_ptr_equal(fhs[i], fd->fh);
}

/* --- fds */

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

static void check_flags(void **state)
{
	const struct flags_case *c = *state;

	open_fd(c->openflags);
	assert_false(casync_revive_fd_is_lost(rig.obj, fd));
	new_client();
	assert_true(casync_revive_fd_is_lost(rig.obj, fd));
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
	assert_false(casync_revive_fd_is_lost(rig.obj, fd));
	assert_ptr_not_equal(fd->fh, old_fh);
	assert_int_equal(fake.last_open_flags, c->posix);
	assert_int_equal(fd->fh_flags, c->openflags);
	/* Once. */
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 2);
	/* The lost client has ended its own. */
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

static void former_fh_ended_with_its_client(void **state)
{
	static const char former;

	open_fd(FSAL_O_RDWR);
	fd->former_fh = (struct Fh *)&former;
	new_client();
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
	assert_null(fd->former_fh);
	assert_int_equal(fake_blocking_count(FAKE_CLOSE), 0);
}

static void closed_fd_stays_closed(void **state)
{
	new_client();
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
	assert_int_equal(fake_blocking_count(FAKE_OPEN), 0);
	assert_null(fd->fh);
}

static void fd_of_a_removed_file_is_stale(void **state)
{
	open_fd(FSAL_O_READ);
	new_client();
	fake.blocking_result[FAKE_OPEN] = -ENOENT;
	assert_int_equal(casync_revive_fd(rig.obj, fd), -ESTALE);
	fake.blocking_result[FAKE_OPEN] = -ENOTCONN;
	assert_int_equal(casync_revive_fd(rig.obj, fd), -ENOTCONN);
	assert_true(casync_revive_fd_is_lost(rig.obj, fd));
	fake.blocking_result[FAKE_OPEN] = 0;
	assert_int_equal(casync_revive_fd(rig.obj, fd), 0);
}

/* --- a request */

static void read_uses_a_new_fh(void **state)
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

static void write_without_an_fh_is_answered(void **state)
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

#define REVIVE_CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct CMUnitTest plain_tests[] = {
	REVIVE_CASE(object_of_this_client_is_not_looked_up),
	REVIVE_CASE(object_of_a_lost_client_is_looked_up_once),
	REVIVE_CASE(file_takes_no_more_workers_than_for_attributes),
	REVIVE_CASE(full_mount_revives_nothing),
	REVIVE_CASE(objects_of_an_inode_share_its_reference),
	REVIVE_CASE(object_of_the_lost_client_shares_nothing),
	REVIVE_CASE(without_a_client_nothing_begins),
	REVIVE_CASE(threads_at_once_keep_one_reference),
	REVIVE_CASE(threads_at_once_keep_one_fh),
	REVIVE_CASE(former_fh_ended_with_its_client),
	REVIVE_CASE(closed_fd_stays_closed),
	REVIVE_CASE(fd_of_a_removed_file_is_stale),
	REVIVE_CASE(read_uses_a_new_fh),
	REVIVE_CASE(write_without_an_fh_is_answered),
};

static struct CMUnitTest
	tests[COUNT(plain_tests) + COUNT(gone_cases) + COUNT(flags_cases)];

#define ADD_TABLE(next, table, function)                                \
	do {                                                            \
		size_t row;                                             \
		for (row = 0; row < COUNT(table); row++)                \
			*(next)++ = (struct CMUnitTest){                \
				.name = (table)[row].name,              \
				.test_func = (function),                \
				.setup_func = up,                       \
				.teardown_func = down,                  \
				.initial_state = (void *)&(table)[row], \
			};                                              \
	} while (0)

int main(void)
{
	struct CMUnitTest *next = tests + COUNT(plain_tests);

	memcpy(tests, plain_tests, sizeof(plain_tests));
	ADD_TABLE(next, gone_cases, check_gone);
	ADD_TABLE(next, flags_cases, check_flags);
	return cmocka_run_group_tests_name("revive", tests, NULL, NULL);
}
