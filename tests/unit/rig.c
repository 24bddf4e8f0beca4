/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "parts.h"
#include "rig.h"
#include "obj_ops.h"

struct rig rig;

/* From export.c, object.c and publish.c, whose other contents are not wanted
 * here. */

void casync_publish_tick(void)
{
}

bool casync_object_privileged(const struct casync_object *obj)
{
	return obj->privileged;
}

int casync_drop_privileges(struct casync_object *obj)
{
	rig.privileges_dropped++;
	if (rig.drop_privileges_rc == 0)
		obj->privileged = false;
	return rig.drop_privileges_rc;
}

/* Nobody has delegations here. */
void casync_lease_let_go(struct casync_object *obj)
{
	(void)obj;
}

static struct casync_object *new_object(void)
{
	/* On the heap: sanitizers then see what outlives it. */
	struct casync_object *obj = calloc(1, sizeof(*obj));

	obj->exp = &rig.exp;
	obj->id.ino = 0x10000000001;
	obj->id.snapid = CEPH_NOSNAP;
	obj->handle.type = REGULAR_FILE;
	pthread_rwlock_init(&obj->handle.obj_lock, NULL);
	casync_file_size_init(&obj->size);
	casync_flush_init(&obj->flush);
	casync_gate_init(&obj->gate);
	init_fsal_fd(&obj->read_fd.fsal_fd, FSAL_FD_GLOBAL, &rig.exp.export);
	init_fsal_fd(&obj->write_fd.fsal_fd, FSAL_FD_GLOBAL, &rig.exp.export);
	obj->size.hint = fake.size_bytes;
	obj->object_span = RIG_OBJECT;
	return obj;
}

void rig_close(struct casync_fd *fd)
{
	if (fd->fh != NULL)
		(void)ceph_ll_close(NULL, fd->fh);
	fd->fh = NULL;
	destroy_fsal_fd(&fd->fsal_fd);
}

int rig_up(void **state)
{
	(void)state;

	stub_reset();
	fake_setup(RIG_OBJECT * RIG_OBJECTS, RIG_OBJECT);
	memset(&rig, 0, sizeof(rig));
	rig.exp.session = &rig.session;
	/* Who submits does not wait for the answer: but in test_await.c. */
	rig.exp.await_not_before_ns = UINT64_MAX;
	casync_inflight_init(&rig.exp.inflight, 64, 1U << 30);
	casync_pool_init(&rig.exp.pool);
	rig.obj = new_object();
	init_fsal_fd(&rig.state.fd.fsal_fd, FSAL_FD_STATE, &rig.exp.export);

	rig.request.ctx_export = &rig.gsh_export;
	rig.request.fsal_export = &rig.exp.export;
	op_ctx = &rig.request;
	return 0;
}

int rig_down(void **state)
{
	(void)state;

	fake.hook = NULL;
	memset(fake.blocking_result, 0, sizeof(fake.blocking_result));
	if (rig.obj != NULL) {
		rig_close(&rig.obj->read_fd);
		rig_close(&rig.obj->write_fd);
		casync_flush_destroy(&rig.obj->flush);
		casync_file_size_destroy(&rig.obj->size);
		casync_gate_destroy(&rig.obj->gate);
		pthread_rwlock_destroy(&rig.obj->handle.obj_lock);
		free(rig.obj);
	}
	rig_close(&rig.state.fd);
	casync_inflight_destroy(&rig.exp.inflight);
	casync_pool_destroy(&rig.exp.pool);
	op_ctx = NULL;
	fake_teardown();
	return 0;
}

bool rig_wait(sem_t *sem)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += RIG_TIMEOUT_S;
	while (sem_timedwait(sem, &deadline) != 0) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

bool rig_wait_count(const int *counter, int value)
{
	const struct timespec pause = {.tv_nsec = 200000};
	uint64_t give_up_ns =
		casync_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value) {
		if (casync_now_ns() > give_up_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
