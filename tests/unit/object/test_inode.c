/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Inodes by their number: of objects whose client was lost, and of handles, in
 * snapshots too.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "unit.h"

#include "call.h"
#include "errors.h"
#include "fake_names.h"
#include "inode.h"
#include "object_table.h"
#include "rig.h"
#include "stub_mount.h"

#define THREADS 4

static const char old_inode, new_inode;
#define OLD_INODE ((struct Inode *)&old_inode)
#define NEW_INODE ((struct Inode *)&new_inode)

static struct casync_object_table *table(void)
{
	return &stub_mount.upcalls.table;
}

static int up(void **state)
{
	int rc = rig_up(state);

	fake_names_setup();
	rig.obj->inode = OLD_INODE;
	(void)casync_object_table_enter(table(), rig.obj);
	fake.inode = NEW_INODE;
	return rc;
}

static int down(void **state)
{
	(void)casync_object_table_leave(table(), rig.obj);
	return rig_down(state);
}

#define CASE(test) TEST_WITH(test, up, down)

static void new_client(void)
{
	casync_guard_renew(&stub_mount.guard);
}

/* --- objects of a lost client */

static int enter(struct casync_call *call)
{
	return casync_call_take(call, rig.obj, CASYNC_CALL_CLIENT);
}

/* A request that does nothing. */
static int enter_and_leave(void)
{
	struct casync_call call;
	int rc = enter(&call);

	if (rc == 0)
		casync_call_drop(&call);
	return rc;
}

CASE(object_of_this_client_is_not_looked_up)
{
	struct casync_call call;

	assert_int_equal(enter(&call), 0);
	assert_false(casync_guard_is_empty(&stub_mount.guard));
	casync_call_drop(&call);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_ptr_equal(rig.obj->inode, OLD_INODE);
}

CASE(object_of_a_lost_client_is_looked_up_once)
{
	unsigned int i;

	new_client();
	fake.size_bytes = 4321;
	for (i = 0; i < 3; i++)
		assert_int_equal(enter_and_leave(), 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_int_equal(fake.looked_up_ino, rig.obj->id.ino);
	assert_ptr_equal(rig.obj->inode, NEW_INODE);
	assert_int_equal(rig.obj->generation, 1);
	assert_int_equal(fake.inode_refs, 1);
	/* Somebody else may have written meanwhile. */
	assert_int_equal(casync_file_size_hint(&rig.obj->size), 4321);
}

/* It may have become setuid meanwhile. */
CASE(looked_up_file_may_be_privileged)
{
	rig.obj->privileged = 0;
	new_client();
	assert_int_equal(enter_and_leave(), 0);
	assert_true(rig.obj->privileged);
}

/* The MDS does not answer, and the file's share of the workers waits. */
CASE(file_takes_no_more_workers_than_for_attributes)
{
	uint32_t *inside = &rig.obj->getattr[0].inside;

	new_client();
	*inside = casync_budget_quarter();
	/* EAGAIN would be a conflict of locks. */
	assert_int_equal(enter_and_leave(), -ETIME);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	*inside = 0;
	assert_int_equal(enter_and_leave(), 0);
	assert_int_equal(*inside, 0);
}

/* The same for all files of a mount, for the look-up of a READ. */
CASE(full_mount_looks_nothing_up)
{
	uint32_t *inside = &stub_mount.callers.room.inside;

	new_client();
	*inside = 200;
	assert_int_equal(enter_and_leave(), -ETIME);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(*inside, 200);
	*inside = 0;
	assert_int_equal(enter_and_leave(), 0);
	assert_int_equal(*inside, 0);
}

/* Two exports, or two entries of Ganesha's cache. */
CASE(objects_of_an_inode_share_its_reference)
{
	struct casync_object second = {
		.exp = &rig.exp, .id = rig.obj->id, .inode = OLD_INODE};

	second.handle.type = DIRECTORY;
	casync_file_size_init(&second.size, &rig.truncations);
	assert_true(casync_object_table_enter(table(), &second));
	new_client();
	assert_int_equal(casync_call_renew_inode(rig.obj), 0);
	assert_int_equal(casync_call_renew_inode(&second), 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 2);
	assert_ptr_equal(second.inode, NEW_INODE);
	assert_int_equal(fake.inode_refs, 1);
	assert_false(casync_object_table_leave(table(), &second));
}

/* The other object may never be used again. */
CASE(object_of_the_lost_client_shares_nothing)
{
	struct casync_object second = {
		.exp = &rig.exp, .id = rig.obj->id, .inode = OLD_INODE};

	second.handle.type = DIRECTORY;
	casync_file_size_init(&second.size, &rig.truncations);
	assert_true(casync_object_table_enter(table(), &second));
	new_client();
	/* The new Inode may come to lie where the old one was. */
	fake.inode = OLD_INODE;
	assert_int_equal(casync_call_renew_inode(rig.obj), 0);
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
	 -CASYNC_EBLOCKLISTED},
	{"error_of_getattr_passes", FAKE_GETATTR, -EIO, -EIO},
};

TEST_ROWS(check_gone, gone_cases, up, down)
{
	const struct gone_case *c = *state;

	new_client();
	fake.blocking_result[c->call] = c->result;
	assert_int_equal(enter_and_leave(), c->rc);
	/* A refused request is not inside, and holds nothing. */
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(fake.inode_refs, 0);
	assert_int_equal(rig.obj->generation, 0);
	/* The next one tries again. */
	fake.blocking_result[c->call] = 0;
	assert_int_equal(enter_and_leave(), 0);
}

CASE(without_a_client_nothing_begins)
{
	new_client();
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
	assert_int_equal(enter_and_leave(), -CASYNC_EBLOCKLISTED);
	stub_mount_set_phase(CASYNC_GUARD_CLOSED);
	assert_int_equal(enter_and_leave(), -CASYNC_EBLOCKLISTED);
	assert_true(casync_guard_is_empty(&stub_mount.guard));
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 0);
}

/* --- several threads at once: all are in the call before one goes on */

static int arrived;  /* atomic */
static int failures; /* atomic */

static void meet(enum fake_blocking which)
{
	if (which != FAKE_GETATTR)
		return;
	__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
	if (!RIG_COMES(NOW(arrived) >= THREADS))
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
}

static void *use_object(void *unused)
{
	struct casync_call call;

	if (enter(&call) != 0 || rig.obj->inode != NEW_INODE)
		__atomic_add_fetch(&failures, 1, __ATOMIC_ACQ_REL);
	else
		casync_call_drop(&call);
	return NULL;
}

CASE(threads_at_once_keep_one_reference)
{
	pthread_t threads[THREADS];
	unsigned int i;

	new_client();
	arrived = 0;
	failures = 0;
	fake.hook = meet;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, use_object, NULL), 0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	fake.hook = NULL;
	assert_int_equal(failures, 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), THREADS);
	assert_int_equal(fake.inode_refs, 1);
	assert_int_equal(rig.obj->generation, 1);
}

/* --- in a snapshot: libcephfs has an Inode for any number of one */

#define INO 0x10000000777
#define SNAPID 7
#define SNAPDIR UINT64_MAX

static int find(uint64_t snapid)
{
	const struct casync_fileid id = {.ino = INO, .snapid = snapid};
	struct Inode *inode = NULL;
	struct ceph_statx stx;
	int rc = casync_inode_find(stub_mount.client->ceph, &id,
				   CEPH_STATX_MODE, NULL, &inode, &stx);

	if (rc == 0) {
		assert_ptr_equal(inode, NEW_INODE);
		assert_int_equal(stx.stx_mode, fake.mode);
	}
	/* The caller's, and no other. */
	assert_int_equal(fake.inode_refs, rc == 0 ? 1 : 0);
	return rc;
}

CASE(present_file_is_found_by_its_number_alone)
{
	fake.mode = S_IFDIR | 0755;
	assert_int_equal(find(CEPH_NOSNAP), 0);
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 1);
	assert_string_equal(fake_names.log, "");
}

CASE(file_in_a_snapshot_has_its_time)
{
	fake.mode = S_IFREG | 0644;
	fake_names.xattr_bytes = 20;
	assert_int_equal(find(SNAPID), 0);
	assert_string_equal(fake_names.log, "getxattr");
}

CASE(snapshot_that_is_gone_is_stale)
{
	fake.mode = S_IFREG | 0644;
	fake_names.result = -ENODATA;
	assert_int_equal(find(SNAPID), -ESTALE);
	fake_names.result = 0;
	assert_int_equal(find(SNAPID), -ESTALE);
}

CASE(snapdir_of_a_directory_is_found)
{
	fake.mode = S_IFDIR | 0755;
	assert_int_equal(find(SNAPDIR), 0);
	assert_string_equal(fake_names.log, "");
}

CASE(snapdir_of_a_file_is_stale)
{
	fake.mode = S_IFREG | 0644;
	assert_int_equal(find(SNAPDIR), -ESTALE);
}

/* libcephfs asks for a folder by the path that led to it. */
CASE(folder_in_a_snapshot_is_passed_by)
{
	static const struct ceph_statx entries[] = {
		{.stx_ino = INO, .stx_dev = SNAPID + 1},
		{.stx_ino = INO + 1, .stx_dev = SNAPID},
		{.stx_ino = INO, .stx_dev = SNAPID},
		{.stx_ino = INO, .stx_dev = SNAPID + 2},
	};

	fake.mode = S_IFDIR | 0755;
	fake_names.xattr_bytes = 20;
	fake_names.entries = entries;
	fake_names.entry_count = 4;
	assert_int_equal(find(SNAPID), 0);
	assert_string_equal(fake_names.log,
			    "getxattr opendir readdir readdir readdir");
	assert_int_equal(fake_blocking_count(FAKE_LOOKUP_VINO), 2);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 1);
}

CASE(folder_that_no_path_leads_to_is_stale)
{
	static const struct ceph_statx other = {.stx_ino = INO,
						.stx_dev = SNAPID + 1};

	fake.mode = S_IFDIR | 0755;
	fake_names.xattr_bytes = 20;
	fake_names.entries = &other;
	fake_names.entry_count = 1;
	assert_int_equal(find(SNAPID), -ESTALE);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 1);
}

CASE(error_of_a_listing_passes)
{
	fake.mode = S_IFDIR | 0755;
	fake_names.xattr_bytes = 20;
	fake_names.fails = "opendir";
	fake_names.result = -EIO;
	assert_int_equal(find(SNAPID), -EIO);
	fake_names.result = -ENOENT;
	assert_int_equal(find(SNAPID), -ESTALE);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 0);
}

CASE(error_within_a_listing_passes)
{
	fake.mode = S_IFDIR | 0755;
	fake_names.xattr_bytes = 20;
	fake_names.fails = "readdir";
	fake_names.result = -ENOTCONN;
	assert_int_equal(find(SNAPID), -ENOTCONN);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 1);
}
