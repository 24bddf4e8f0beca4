/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * An export with three clients; the second one is the file's.  libcephfs is a
 * stand-in that notes which client each call was made to.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fsal.h"

#include "birth.h"
#include "clock.h"
#include "errors.h"
#include "object_table.h"
#include "owner.h"
#include "rig.h"
#include "stub_mount.h"

#define CLIENTS 3

static struct casync_mount others[CLIENTS - 1];
static uint64_t ino_of[CLIENTS]; /* a file of each client */
static const char inode;
#define INODE ((struct Inode *)&inode)

/* A number of a file that belongs to this client. */
static uint64_t find_ino(unsigned int client)
{
	uint64_t ino = 0x10000000000;

	while (casync_mount_index_of(ino, CLIENTS) != client)
		ino++;
	return ino;
}

static int up(void **state)
{
	unsigned int i;
	int rc = rig_up(state);

	rig.exp.client_count = CLIENTS;
	for (i = 0; i < CLIENTS; i++)
		ino_of[i] = find_ino(i);
	for (i = 1; i < CLIENTS; i++) {
		struct casync_mount *mount = &others[i - 1];

		memset(mount, 0, sizeof(*mount));
		mount->client.index = i;
		mount->client.ceph = (struct ceph_mount_info *)mount;
		mount->mounted_ns = 1;
		casync_object_table_init(&mount->upcalls.table);
		rig.exp.mounts[i] = mount;
		rig.exp.sessions[i] = &mount->session;
	}
	rig.obj->inode = INODE;
	rig.obj->client = 1;
	rig.obj->id.ino = ino_of[1];
	fake.inode = INODE;
	return rc;
}

static int down(void **state)
{
	unsigned int i;

	for (i = 0; i < CLIENTS - 1; i++) {
		assert_true(casync_guard_is_empty(&others[i].guard));
		casync_object_table_destroy(&others[i].upcalls.table);
	}
	return rig_down(state);
}

static struct ceph_statx stx_of(uint64_t ino, mode_t mode)
{
	return (struct ceph_statx){.stx_ino = ino,
				   .stx_dev = CEPH_NOSNAP,
				   .stx_mode = (uint16_t)mode};
}

static unsigned int owner(uint64_t ino, mode_t mode, uint64_t snapid)
{
	struct ceph_statx stx = stx_of(ino, mode);

	stx.stx_dev = snapid;
	return casync_owner_of(&rig.exp, &stx);
}

static void a_regular_file_goes_by_its_number(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < CLIENTS; i++)
		assert_int_equal(owner(ino_of[i], S_IFREG, CEPH_NOSNAP), i);
}

static void all_else_is_the_first_ones(void **state)
{
	(void)state;
	assert_int_equal(owner(ino_of[1], S_IFDIR, CEPH_NOSNAP), 0);
	assert_int_equal(owner(ino_of[1], S_IFLNK, CEPH_NOSNAP), 0);
	assert_int_equal(owner(ino_of[1], S_IFIFO, CEPH_NOSNAP), 0);
	/* In a snapshot. */
	assert_int_equal(owner(ino_of[1], S_IFREG, 7), 0);
}

static void one_client_has_everything(void **state)
{
	struct ceph_statx stx = stx_of(ino_of[1], S_IFREG);
	struct Inode *in = INODE;
	uint64_t ino;

	(void)state;
	for (ino = 0; ino < 1000; ino++) {
		assert_int_equal(casync_mount_index_of(ino, 0), 0);
		assert_int_equal(casync_mount_index_of(ino, 1), 0);
	}
	rig.exp.client_count = 1;
	assert_int_equal(casync_owner_of(&rig.exp, &stx), 0);
	assert_int_equal(casync_owner_wanted(&rig.exp, CEPH_STATX_SIZE),
			 CEPH_STATX_SIZE);
	/* No call is made. */
	assert_int_equal(
		casync_owner_settle(&rig.exp, &in, &stx, CEPH_STATX_SIZE, NULL),
		0);
	assert_ptr_equal(in, INODE);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 0);
	rig.exp.client_count = CLIENTS;
}

/* libcephfs gives numbers in a row. */
static void files_in_a_row_are_spread_evenly(void **state)
{
	unsigned int clients, i, count[CASYNC_CLIENTS_MAX];

	(void)state;
	for (clients = 2; clients <= CASYNC_CLIENTS_MAX; clients++) {
		memset(count, 0, sizeof(count));
		for (i = 0; i < 1000 * clients; i++)
			count[casync_mount_index_of(0x10000000000 + i,
						    clients)]++;
		for (i = 0; i < clients; i++) {
			assert_true(count[i] > 800);
			assert_true(count[i] < 1200);
		}
	}
}

/* --- a name was found */

/* To whom attributes were asked of, and how many references are left. */
static int settle(uint64_t ino, mode_t mode, struct Inode **in)
{
	struct ceph_statx stx = stx_of(ino, mode);

	*in = INODE;
	fake.inode_refs = 1;
	return casync_owner_settle(&rig.exp, in, &stx, CEPH_STATX_SIZE, NULL);
}

static void the_first_clients_own_keep_their_inode(void **state)
{
	struct Inode *in;

	(void)state;
	assert_int_equal(settle(ino_of[0], S_IFREG, &in), 0);
	assert_ptr_equal(in, INODE);
	assert_int_equal(settle(ino_of[1], S_IFDIR, &in), 0);
	assert_ptr_equal(in, INODE);
	assert_int_equal(fake.inode_refs, 1);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 2);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
}

static void a_file_nobody_uses_is_asked_of_the_first(void **state)
{
	struct Inode *in;

	(void)state;
	assert_int_equal(settle(ino_of[1], S_IFREG, &in), 0);
	assert_null(in);
	assert_int_equal(fake.inode_refs, 0);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
}

static void a_file_in_use_is_asked_of_its_client(void **state)
{
	struct casync_object_table *table =
		casync_mount_object_table(&others[0]);
	struct Inode *in;

	(void)state;
	(void)casync_object_table_enter(table, rig.obj);
	assert_int_equal(settle(ino_of[1], S_IFREG, &in), 0);
	assert_null(in);
	/* Once more there, and put both there and in the first. */
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 1);
	assert_int_equal(fake.inode_refs, 0);

	/* Its client is being replaced: the MDS has what it had. */
	casync_guard_set(&others[0].guard, CASYNC_GUARD_RELEASES);
	assert_int_equal(settle(ino_of[1], S_IFREG, &in), 0);
	assert_null(in);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_int_equal(fake_blocking_count(FAKE_GETATTR), 2);

	/* A new one does not have the file. */
	casync_guard_renew(&others[0].guard);
	casync_guard_set(&others[0].guard, CASYNC_GUARD_SERVES);
	assert_int_equal(settle(ino_of[1], S_IFREG, &in), 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	casync_guard_set(&others[0].guard, CASYNC_GUARD_SERVES);
	(void)casync_object_table_leave(table, rig.obj);
}

static void a_loss_is_its_clients_own(void **state)
{
	struct casync_object_table *table =
		casync_mount_object_table(&others[0]);
	struct Inode *in;

	(void)state;
	(void)casync_object_table_enter(table, rig.obj);
	fake.blocking_result[FAKE_LOOKUP_VINO] = -CASYNC_EBLOCKLISTED;
	assert_int_equal(settle(ino_of[1], S_IFREG, &in), 0);
	assert_int_equal(casync_session_state(&others[0].session),
			 CASYNC_SESSION_LOST);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_SERVES);
	(void)casync_object_table_leave(table, rig.obj);
}

static void an_error_leaves_nothing(void **state)
{
	struct Inode *in;

	(void)state;
	fake.blocking_result[FAKE_GETATTR] = -ENOENT;
	assert_int_equal(settle(ino_of[0], S_IFREG, &in), -ENOENT);
	assert_null(in);
	assert_int_equal(fake.inode_refs, 0);
}

/* --- a request in the first client goes on with a file */

static void both_guards_are_entered_and_left(void **state)
{
	(void)state;
	assert_false(FSAL_IS_ERROR(casync_owner_begin(rig.obj)));
	assert_false(casync_guard_is_empty(&others[0].guard));
	assert_true(casync_guard_is_empty(&others[1].guard));
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_false(FSAL_IS_ERROR(
		casync_owner_end(&others[0], fsalstat(ERR_FSAL_NO_ERROR, 0))));
	assert_true(casync_guard_is_empty(&others[0].guard));

	/* The first one's guard is the request's. */
	rig.obj->client = 0;
	assert_false(FSAL_IS_ERROR(casync_owner_begin(rig.obj)));
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(
		casync_owner_end(&stub_mount, casync_status(-ENOSPC)).major,
		ERR_FSAL_NOSPC);
	rig.obj->client = 1;
}

static void an_object_without_an_inode_gets_one(void **state)
{
	struct casync_object_table *table =
		casync_mount_object_table(&others[0]);

	(void)state;
	rig.obj->inode = NULL;
	rig.obj->generation = casync_guard_generation(&others[0].guard) - 1;
	(void)casync_object_table_enter(table, rig.obj);
	assert_false(casync_object_table_has(table, ino_of[1], CEPH_NOSNAP, 0));
	assert_true(
		casync_object_table_has_file(table, ino_of[1], CEPH_NOSNAP));
	assert_false(FSAL_IS_ERROR(casync_owner_begin(rig.obj)));
	assert_ptr_equal(rig.obj->inode, INODE);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_true(casync_object_table_has(table, ino_of[1], CEPH_NOSNAP, 0));
	(void)casync_owner_end(&others[0], fsalstat(ERR_FSAL_NO_ERROR, 0));
	(void)casync_object_table_leave(table, rig.obj);
}

static void a_file_that_is_gone_has_no_name_either(void **state)
{
	struct casync_object_table *table =
		casync_mount_object_table(&others[0]);

	(void)state;
	rig.obj->generation = casync_guard_generation(&others[0].guard) - 1;
	(void)casync_object_table_enter(table, rig.obj);
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(casync_owner_begin(rig.obj).major, ERR_FSAL_NOENT);
	assert_true(casync_guard_is_empty(&others[0].guard));
	(void)casync_object_table_leave(table, rig.obj);
}

static void no_loss_reaches_the_first_client(void **state)
{
	fsal_status_t status;

	(void)state;
	casync_guard_set(&others[0].guard, CASYNC_GUARD_RELEASES);
	status = casync_owner_begin(rig.obj);
	assert_true(FSAL_IS_ERROR(status));
	assert_false(casync_session_error(status.minor));
	casync_guard_set(&others[0].guard, CASYNC_GUARD_SERVES);

	assert_false(FSAL_IS_ERROR(casync_owner_begin(rig.obj)));
	status = casync_owner_end(&others[0], casync_status(-ENOTCONN));
	assert_true(FSAL_IS_ERROR(status));
	assert_false(casync_session_error(status.minor));
	casync_guard_set(&others[0].guard, CASYNC_GUARD_SERVES);
}

/* --- the create of a file is journaled in the first client */

static void its_birth_is_flushed_where_it_was(void **state)
{
	(void)state;
	assert_int_equal(casync_birth_sync(rig.obj), 0);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 1);
	assert_int_equal(fake.inode_refs, 0);

	/* Nobody needs to know that it is gone. */
	fake.blocking_result[FAKE_LOOKUP_VINO] = -ENOENT;
	assert_int_equal(casync_birth_sync(rig.obj), 0);
	fake.blocking_result[FAKE_LOOKUP_VINO] = 0;

	/* Not known: the client asks again. */
	fake.blocking_result[FAKE_SYNC_INODE] = -CASYNC_EBLOCKLISTED;
	assert_int_equal(casync_status(casync_birth_sync(rig.obj)).major,
			 ERR_FSAL_DELAY);
	assert_int_equal(casync_session_state(&stub_mount.session),
			 CASYNC_SESSION_LOST);
	assert_int_equal(casync_session_state(&others[0].session),
			 CASYNC_SESSION_SERVES);
	casync_guard_set(&stub_mount.guard, CASYNC_GUARD_RELEASES);
	assert_int_equal(casync_status(casync_birth_sync(rig.obj)).major,
			 ERR_FSAL_DELAY);
	casync_guard_set(&stub_mount.guard, CASYNC_GUARD_SERVES);

	/* The flush of a file of the first client does it. */
	rig.obj->client = 0;
	assert_int_equal(casync_birth_sync(rig.obj), 0);
	assert_int_equal(fake_blocking_count(FAKE_SYNC_INODE), 2);
	rig.obj->client = 1;
}

/* --- what all clients of an export have in common */

static void the_export_is_as_old_as_its_last_client(void **state)
{
	(void)state;
	stub_mount.mounted_ns = 5;
	assert_int_equal(casync_export_time_ns(&rig.exp), 5);
	others[1].mounted_ns = 9;
	assert_int_equal(casync_export_time_ns(&rig.exp), 9);
}

static void they_share_the_room_for_callers(void **state)
{
	(void)state;
	others[0].names = &stub_mount;
	assert_ptr_equal(casync_mount_callers(&others[0]),
			 casync_mount_callers(&stub_mount));
	others[0].names = NULL;
	assert_ptr_not_equal(casync_mount_callers(&others[0]),
			     casync_mount_callers(&stub_mount));
}

static void the_log_says_which_client(void **state)
{
	char text[CASYNC_OF_CLIENTS_BYTES];

	(void)state;
	assert_string_equal(casync_mount_of_clients(0, 1, text, sizeof(text)),
			    "");
	assert_string_equal(casync_mount_of_clients(0, 0, text, sizeof(text)),
			    "");
	assert_string_equal(casync_mount_of_clients(1, 4, text, sizeof(text)),
			    ", client 2 of 4");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_regular_file_goes_by_its_number),
		TEST(all_else_is_the_first_ones),
		TEST(one_client_has_everything),
		TEST(files_in_a_row_are_spread_evenly),
		TEST(the_first_clients_own_keep_their_inode),
		TEST(a_file_nobody_uses_is_asked_of_the_first),
		TEST(a_file_in_use_is_asked_of_its_client),
		TEST(a_loss_is_its_clients_own),
		TEST(an_error_leaves_nothing),
		TEST(both_guards_are_entered_and_left),
		TEST(an_object_without_an_inode_gets_one),
		TEST(a_file_that_is_gone_has_no_name_either),
		TEST(no_loss_reaches_the_first_client),
		TEST(its_birth_is_flushed_where_it_was),
		TEST(the_export_is_as_old_as_its_last_client),
		TEST(they_share_the_room_for_callers),
		TEST(the_log_says_which_client),
	};

	return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
