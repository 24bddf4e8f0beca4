/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#include "call.h"
#include "clock.h"
#include "inode.h"
#include "module.h"
#include "object_table.h"
#include "operations_rig.h"
#include "read_cache.h"
#include "stub_mount.h"

static const char old_inode, new_inode;
#define OLD_INODE ((struct Inode *)&old_inode)
#define NEW_INODE ((struct Inode *)&new_inode)

struct seen seen;
struct casync_object dirs[2];
static struct casync_module module;

/* --- what a request holds */

uint32_t *mount_inside(void)
{
	return &stub_mount.callers.room.inside;
}

static bool is_inside(const struct casync_room *room)
{
	return room->inside != 0;
}

static uint32_t held(void)
{
	uint32_t held = 0;

	if (*mount_inside() != 0)
		held |= CASYNC_CALL_MOUNT_SLOT;
	if (!casync_guard_is_empty(&stub_mount.guard))
		held |= CASYNC_CALL_CLIENT;
	if (is_inside(&rig.obj->getattr[0]))
		held |= CASYNC_CALL_ATTR_SLOT;
	if (is_inside(&rig.obj->change))
		held |= CASYNC_CALL_SETATTR_SLOT;
	if (is_inside(&rig.exp.statfs))
		held |= CASYNC_CALL_STATFS_SLOT;
	if (rig.obj->cached->file.writers != 0)
		held |= CASYNC_CALL_ANNOUNCES;
	return held;
}

void check_nothing_held(void)
{
	assert_int_equal(held(), 0);
	assert_int_equal(fake_names.perms, 0);
}

/* --- the calls of libcephfs */

static void see_call(void)
{
	uint32_t now = held();

	seen.calls++;
	seen.always &= now;
	seen.ever |= now;
}

static void see_name_call(const char *name, const struct Inode *in)
{
	(void)name;
	see_call();
	if (in != NULL && in != NEW_INODE)
		seen.old_inode = true;
}

static void see_blocking_call(enum fake_blocking which)
{
	if (which == FAKE_LOOKUP_VINO) {
		seen.renewing = fake.blocking_result[which] == 0;
	} else if (which == FAKE_GETATTR && seen.renewing) {
		seen.renewing = false;
	} else if (which != FAKE_CLOSE) {
		see_call();
		if (which == FAKE_GETATTR || which == FAKE_OPEN)
			seen.old_inode |= fake.asked_inode != NEW_INODE;
	}
}

void forget_seen(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.always = UINT32_MAX;
	memset(fake_names.log, 0, sizeof(fake_names.log));
}

void set_result(int rc)
{
	static const enum fake_blocking calls[] = {
		FAKE_GETATTR, FAKE_SYNC_INODE, FAKE_OPEN,
		FAKE_SETLK,   FAKE_GETLK,      FAKE_DELEGATION};
	size_t i;

	fake_names.result = rc;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		fake.blocking_result[calls[i]] = rc;
}

/* --- */

/* As fsal_test_access() of a requester who may. */
static fsal_status_t test_access(struct fsal_obj_handle *obj_hdl,
				 fsal_accessflags_t access_type,
				 fsal_accessflags_t *allowed,
				 fsal_accessflags_t *denied, bool owner_skip)
{
	(void)obj_hdl;
	(void)access_type;
	(void)allowed;
	(void)denied;
	(void)owner_skip;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static uint32_t umask_of(struct fsal_export *exp_hdl)
{
	(void)exp_hdl;
	return 0;
}

static attrmask_t supported_attrs(struct fsal_export *exp_hdl)
{
	(void)exp_hdl;
	return 0;
}

static void enter_object(struct casync_object *obj)
{
	obj->inode = OLD_INODE;
	obj->handle.obj_ops = &module.obj_ops;
	(void)casync_object_table_enter(&stub_mount.upcalls.table, obj);
}

static void make_dir(struct casync_object *dir, uint64_t ino)
{
	memset(dir, 0, sizeof(*dir));
	dir->exp = &rig.exp;
	dir->id.ino = ino;
	dir->id.snapid = CEPH_NOSNAP;
	dir->handle.type = DIRECTORY;
	casync_file_size_init(&dir->size, &rig.truncations);
	casync_queue_init(&dir->queue);
	enter_object(dir);
}

static void end_dir(struct casync_object *dir)
{
	(void)casync_object_table_leave(&stub_mount.upcalls.table, dir);
	casync_queue_destroy(&dir->queue);
	casync_file_size_destroy(&dir->size);
}

static void start_keeper(struct casync_keeper *keeper)
{
	pthread_mutex_init(&keeper->thread.lock, NULL);
	casync_clock_cond_init(&keeper->thread.wake);
	keeper->thread.call = (struct casync_deadline_call *)&stub_mount;
	keeper->reconnect = 1;
}

static struct casync_fd *fds(size_t i)
{
	struct casync_fd *all[] = {&rig.obj->read_fd, &rig.obj->write_fd,
				   &rig.state.fd};

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

/* The client ends, and with it its Fhs.  The fds do not know it. */
static void end_fhs(void)
{
	struct casync_fd *fd;
	size_t i;

	for (i = 0; (fd = fds(i)) != NULL; i++) {
		if (fd->fh != NULL && !casync_inode_fd_is_lost(rig.obj, fd))
			(void)ceph_ll_close(NULL, fd->fh);
	}
}

/* They ended with their client. */
static void forget_lost_fhs(void)
{
	struct casync_fd *fd;
	size_t i;

	for (i = 0; (fd = fds(i)) != NULL; i++) {
		if (casync_inode_fd_is_lost(rig.obj, fd))
			fd->fh = NULL;
	}
}

int operations_up(void **state)
{
	int rc = request_up(state);

	fake_names_setup();
	fake_names.hook = see_name_call;
	fake.hook = see_blocking_call;
	fake.inode = NEW_INODE;
	module.obj_ops.test_access = test_access;
	module.obj_ops.release = casync_object_release;
	rig.exp.export.fsal = &module.fsal;
	rig.exp.export.exp_ops.fs_umask = umask_of;
	rig.exp.export.exp_ops.fs_supported_attrs = supported_attrs;
	rig.exp.mount->delegations = true;
	set_creds(NULL, 0);
	casync_dir_cache_init(&rig.exp.dir_cache);
	casync_layout_init(&rig.exp.layout, 1);
	casync_delegations_init(&rig.obj->delegations);
	enter_object(rig.obj);
	make_dir(&dirs[0], 100);
	make_dir(&dirs[1], 101);
	start_keeper(&stub_mount.keeper);
	/* No job asks for the journal beside the operations. */
	stub_mount.journal.under_way = true;
	forget_seen();
	return rc;
}

int operations_down(void **state)
{
	struct casync_object_table *table = &stub_mount.upcalls.table;

	fake.hook = NULL;
	fake_names_setup();
	forget_lost_fhs();
	(void)casync_object_table_leave(table, rig.obj);
	end_dir(&dirs[0]);
	end_dir(&dirs[1]);
	pthread_cond_destroy(&stub_mount.keeper.thread.wake);
	pthread_mutex_destroy(&stub_mount.keeper.thread.lock);
	return request_down(state);
}

void new_client(void)
{
	end_fhs();
	casync_guard_renew(&stub_mount.guard);
	/* The references ended with the lost one. */
	fake.inode_refs = 0;
}

void use_objects(void)
{
	struct casync_object *objects[] = {rig.obj, &dirs[0], &dirs[1]};
	size_t i;

	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		assert_int_equal(casync_call_renew_inode(objects[i]), 0);
}

void forget_answers(void)
{
	rig.obj->answered_ns = 0;
	dirs[0].answered_ns = 0;
	dirs[1].answered_ns = 0;
}

void lose_client(void)
{
	stub_mount_set_phase(CASYNC_GUARD_LEAVES);
}
