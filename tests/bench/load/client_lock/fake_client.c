/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A libcephfs that takes its locks as the real one does: one for a moment in
 * each call, then client_lock; its answers come with client_lock held. */
#include <cephfs/libcephfs.h>
#include <pthread.h>
#include <time.h>

pthread_mutex_t fake_mount_state = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t fake_client_lock = PTHREAD_MUTEX_INITIALIZER;

static void fake_enter(void)
{
	pthread_mutex_lock(&fake_mount_state);
	pthread_mutex_unlock(&fake_mount_state);
	pthread_mutex_lock(&fake_client_lock);
}

/* Longer than anything between two calls is likely to take. */
static void fake_work(void)
{
	const struct timespec each = {.tv_nsec = 1000000};

	nanosleep(&each, NULL);
}

int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in,
		    struct ceph_statx *stx, unsigned int want,
		    unsigned int flags, const UserPerm *perms)
{
	(void)cmount, (void)in, (void)stx, (void)want, (void)flags, (void)perms;
	fake_enter();
	fake_work();
	pthread_mutex_unlock(&fake_client_lock);
	return 0;
}

int64_t ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
					 struct ceph_ll_io_info *io)
{
	(void)cmount;
	fake_enter();
	if (io->write) /* answered at once, with the lock held */
		io->callback(io);
	pthread_mutex_unlock(&fake_client_lock);
	if (!io->write)
		io->callback(io);
	return 0;
}
