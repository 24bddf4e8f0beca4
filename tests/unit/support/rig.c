/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attributes.h"
#include "clock.h"
#include "obj_ops.h"
#include "delegations.h"
#include "object_table.h"
#include "read_cache.h"
#include "rig.h"
#include "stub_mount.h"
#include "watchdog.h"

struct rig rig;
struct rig_held rig_held;

/* From attributes.c, delegations.c, privileges.c, object.c and publish.c, whose
 * other contents are not wanted here.  A test that links the real file gets that.
 */
#define WEAK __attribute__((weak))

WEAK unsigned int casync_attributes_statx_wanted(attrmask_t mask)
{
	return CEPH_STATX_INO |
	       (FSAL_TEST_MASK(mask, ATTR_SIZE) ? CEPH_STATX_SIZE : 0) |
	       (FSAL_TEST_MASK(mask, ATTR_MODE) ? CEPH_STATX_MODE : 0);
}

WEAK void casync_publish_tick(void)
{
}

WEAK bool casync_object_privileged(const struct casync_object *obj)
{
	return obj->privileged != obj->unprivileged;
}

WEAK int casync_privileges_drop(struct casync_object *obj)
{
	rig.privileges_dropped++;
	if (rig.drop_privileges_rc == 0)
		obj->privileged = 0;
	return rig.drop_privileges_rc;
}

/* Nobody has delegations here. */
WEAK void
casync_delegations_return_recalled(struct casync_delegations *delegations,
				   bool change)
{
	(void)delegations;
	(void)change;
}

struct casync_object *rig_new_object(void)
{
	/* On the heap: sanitizers then see what outlives it. */
	struct casync_object *obj = calloc(1, sizeof(*obj));

	obj->exp = &rig.exp;
	obj->id.ino = 0x10000000001;
	obj->id.snapid = CEPH_NOSNAP;
	obj->handle.type = REGULAR_FILE;
	pthread_rwlock_init(&obj->handle.obj_lock, NULL);
	casync_file_size_init(&obj->size, &rig.truncations);
	casync_queue_init(&obj->queue);
	casync_lock_records_init(&obj->locks);
	init_fsal_fd(&obj->read_fd.fsal_fd, FSAL_FD_GLOBAL, &rig.exp.export);
	init_fsal_fd(&obj->write_fd.fsal_fd, FSAL_FD_GLOBAL, &rig.exp.export);
	obj->size.hint = fake.size_bytes;
	obj->object_span = RIG_OBJECT;
	obj->cached = calloc(1, sizeof(*obj->cached));
	return obj;
}

struct casync_watched *rig_watch(void)
{
	const struct casync_watchdog_source source = {
		.export_id = rig.exp.export.export_id,
		.metrics = &rig.exp.metrics,
		.inflight = &rig.exp.inflight,
		.guard = &stub_mount.guard,
		.mount = &stub_mount,
		.tuning = &rig.exp.keys.tuning,
	};

	return casync_watchdog_add(&source);
}

void rig_shorten(void)
{
	__atomic_add_fetch(&rig.truncations, CASYNC_TRUNCATION_TOLD,
			   __ATOMIC_RELEASE);
}

void rig_set_size(uint64_t size_bytes)
{
	uint64_t begun = casync_file_size_truncates(&rig.obj->size);

	casync_file_size_truncated(&rig.obj->size, begun, size_bytes);
}

void rig_grow(uint64_t end_bytes)
{
	casync_file_size_written(&rig.obj->size, end_bytes,
				 casync_file_size_truncations(&rig.obj->size));
}

void rig_close(struct casync_fd *fd)
{
	if (fd->fh != NULL)
		(void)ceph_ll_close(NULL, fd->fh);
	fd->fh = NULL;
	destroy_fsal_fd(&fd->fsal_fd);
}

void rig_free_object(void)
{
	struct casync_object *obj = rig.obj;

	rig.obj = NULL;
	casync_file_size_destroy(&obj->size);
	casync_queue_destroy(&obj->queue);
	casync_read_cache_free(obj->cached);
	rig_close(&obj->read_fd);
	rig_close(&obj->write_fd);
	pthread_rwlock_destroy(&obj->handle.obj_lock);
	memset(obj, 0xa5, sizeof(*obj));
	free(obj);
}

int rig_up(void **state)
{
	stub_reset();
	fake_setup(RIG_OBJECT * RIG_OBJECTS, RIG_OBJECT);
	memset(&rig, 0, sizeof(rig));
	stub_mount_reset();
	casync_object_table_init(&stub_mount.upcalls.table);
	rig.exp.mount = &stub_mount;
	/* Who submits does not wait for the answer: but in test_await.c. */
	rig.exp.await_not_before_ns = UINT64_MAX;
	casync_inflight_init(&rig.exp.inflight, 64, 1U << 30);
	rig.exp.pool = casync_pool_new();
	rig.obj = rig_new_object();
	init_fsal_fd(&rig.state.fd.fsal_fd, FSAL_FD_STATE, &rig.exp.export);
	rig.state.mount = &stub_mount;

	rig.request.ctx_export = &rig.gsh_export;
	rig.request.fsal_export = &rig.exp.export;
	op_ctx = &rig.request;
	return 0;
}

int rig_down(void **state)
{
	fake.hook = NULL;
	memset(fake.blocking_result, 0, sizeof(fake.blocking_result));
	if (rig.obj != NULL) {
		casync_lock_records_forget(&rig.obj->locks);
		rig_free_object();
	}
	rig_close(&rig.state.fd);
	casync_inflight_destroy(&rig.exp.inflight);
	casync_pool_free(rig.exp.pool);
	casync_object_table_destroy(&stub_mount.upcalls.table);
	op_ctx = NULL;
	fake_teardown();
	/* Each request has left, and only once. */
	return casync_guard_is_empty(&stub_mount.guard) ? 0 : -1;
}

void rig_wait_held(enum fake_blocking which)
{
	if (which != rig_held.kind)
		return;
	__atomic_add_fetch(&rig_held.count, 1, __ATOMIC_ACQ_REL);
	(void)rig_wait(&rig_held.go);
}

void rig_hold(enum fake_blocking kind)
{
	rig_held.kind = kind;
	rig_held.count = 0;
	sem_init(&rig_held.go, 0, 0);
	fake.hook = rig_wait_held;
}
