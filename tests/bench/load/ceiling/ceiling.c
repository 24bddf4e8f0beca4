/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * How fast could any FSAL be?  An LD_PRELOAD for ganesha.nfsd:
 *
 *   CEILING_FILE=FILE LD_PRELOAD=libceiling.so ganesha.nfsd ...
 *
 * It answers libcephfs' calls for data and attributes at once, from nothing:
 * no OSD, no client_lock, no other thread.  A READ is zeros up to the end of
 * the file, a WRITE goes nowhere; one past the end goes to libcephfs.  Sizes
 * and attributes are what libcephfs said first, so files have to be full
 * before.  FILE has how many it answered (figures.h).
 *
 * With CEILING_HOLD_US=N each answer holds a lock of its mount for N us, asleep:
 * as client_lock on a machine with so many cores that it is the limit.
 */
#include <cephfs/libcephfs.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"

#define EXPORTED __attribute__((visibility("default")))
#define PLACES 4096
#define MOUNTS 16
#define PLACE(key) ((uintptr_t)(key) / 16 % PLACES)
#define COUNT(what) __atomic_fetch_add(&figures->what, 1, __ATOMIC_RELAXED)
/* libcephfs' own function.  Looked up each time: only rare calls need it. */
#define NEXT(name) ((__typeof__(&(name)))find_in_libcephfs(#name))

static struct figures *figures;

/* Of Inodes and Fhs, by address; of two in one place the later one. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const void *key;
	struct ceph_statx stx;
} known[PLACES];

static struct timespec hold;
static struct {
	const struct ceph_mount_info *mount;
	pthread_mutex_t lock;
} mounts[MOUNTS] = {
	[0 ... MOUNTS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CEILING_FILE");
	const char *hold_us = getenv("CEILING_HOLD_US");
	int fd = open(path != NULL ? path : "",
		      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (ftruncate(fd, sizeof(*figures)) != 0)
		abort(); /* also when it was not opened */
	figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	close(fd);
	if (hold_us != NULL)
		hold.tv_nsec = strtol(hold_us, NULL, 10) * 1000;
}

/* Ganesha loads its FSALs with RTLD_DEEPBIND, by which they would get
 * libcephfs' functions and not these. */
EXPORTED void *dlopen(const char *path, int flags)
{
	__typeof__(&dlopen) next = dlsym(RTLD_NEXT, "dlopen");

	return next(path, flags & ~RTLD_DEEPBIND);
}

/* Ganesha loads it with the FSAL, out of RTLD_NEXT's sight; a test is linked
 * with its own. */
static void *find_in_libcephfs(const char *name)
{
	void *library = dlopen("libcephfs.so.2", RTLD_LAZY | RTLD_NOLOAD);
	void *found = dlsym(library != NULL ? library : RTLD_NEXT, name);

	if (found == NULL)
		abort();
	return found;
}

/* STX NULL: forget it, the address may soon be another's. */
static void learn(const void *key, const struct ceph_statx *stx)
{
	size_t at = PLACE(key);

	pthread_mutex_lock(&known_lock);
	known[at].key = stx != NULL ? key : NULL;
	if (stx != NULL)
		known[at].stx = *stx;
	pthread_mutex_unlock(&known_lock);
}

static bool recall(const void *key, struct ceph_statx *stx)
{
	size_t at = PLACE(key);
	bool found;

	pthread_mutex_lock(&known_lock);
	found = known[at].key == key;
	if (found)
		*stx = known[at].stx;
	pthread_mutex_unlock(&known_lock);
	return found;
}

/* All mounts beyond the table share its last lock. */
static void hold_lock_of(const struct ceph_mount_info *cmount)
{
	unsigned int at = 0;

	if (hold.tv_nsec == 0)
		return;
	pthread_mutex_lock(&known_lock);
	while (at < MOUNTS - 1 && mounts[at].mount != NULL &&
	       mounts[at].mount != cmount)
		at++;
	mounts[at].mount = cmount;
	pthread_mutex_unlock(&known_lock);
	pthread_mutex_lock(&mounts[at].lock);
	nanosleep(&hold, NULL);
	pthread_mutex_unlock(&mounts[at].lock);
}

EXPORTED int ceph_ll_close(struct ceph_mount_info *cmount, struct Fh *fh)
{
	learn(fh, NULL);
	return NEXT(ceph_ll_close)(cmount, fh);
}

EXPORTED int ceph_ll_put(struct ceph_mount_info *cmount, struct Inode *in)
{
	learn(in, NULL);
	return NEXT(ceph_ll_put)(cmount, in);
}

EXPORTED int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in,
			     struct ceph_statx *stx, unsigned int want,
			     unsigned int flags, const UserPerm *perms)
{
	int rc;

	if (recall(in, stx)) {
		hold_lock_of(cmount);
		COUNT(getattrs);
		return 0;
	}
	COUNT(passed);
	want = CEPH_STATX_ALL_STATS;
	rc = NEXT(ceph_ll_getattr)(cmount, in, stx, want, flags, perms);
	if (rc == 0)
		learn(in, stx);
	return rc;
}

/* Bytes that there are, or -1: libcephfs has to answer. */
static int64_t answer(struct ceph_mount_info *cmount, struct Fh *fh, bool write,
		      int64_t offset, uint64_t asked)
{
	struct ceph_statx stx = {0};
	int64_t left;

	if (!recall(fh, &stx)) {
		/* Nobody uses a Fh's position. */
		left = NEXT(ceph_ll_lseek)(cmount, fh, 0, SEEK_END);
		stx.stx_size = left > 0 ? (uint64_t)left : 0;
		learn(fh, &stx);
	}
	left = (int64_t)stx.stx_size - offset;
	if (left < (write ? (int64_t)asked : 0)) {
		COUNT(passed);
		return -1;
	}
	hold_lock_of(cmount);
	write ? COUNT(writes) : COUNT(reads);
	return (int64_t)asked < left ? (int64_t)asked : left;
}

EXPORTED int ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *fh,
			  int64_t offset, uint64_t length, char *data)
{
	int64_t bytes = answer(cmount, fh, false, offset, length);

	memset(data, 0, length); /* past the end nobody looks */
	if (bytes < 0)
		return NEXT(ceph_ll_read)(cmount, fh, offset, length, data);
	return (int)bytes;
}

EXPORTED int ceph_ll_write(struct ceph_mount_info *cmount, struct Fh *fh,
			   int64_t offset, uint64_t length, const char *data)
{
	int64_t bytes = answer(cmount, fh, true, offset, length);

	if (bytes < 0)
		return NEXT(ceph_ll_write)(cmount, fh, offset, length, data);
	return (int)bytes;
}

EXPORTED int ceph_ll_fsync(struct ceph_mount_info *cmount, struct Fh *fh,
			   int syncdataonly)
{
	(void)cmount, (void)fh, (void)syncdataonly;
	COUNT(fsyncs);
	return 0;
}

EXPORTED int64_t ceph_ll_nonblocking_readv_writev(
	struct ceph_mount_info *cmount, struct ceph_ll_io_info *io)
{
	uint64_t asked = 0;
	int64_t bytes;
	int i;

	for (i = 0; i < io->iovcnt; i++) {
		asked += io->iov[i].iov_len;
		if (!io->write)
			memset(io->iov[i].iov_base, 0, io->iov[i].iov_len);
	}
	bytes = answer(cmount, io->fh, io->write, io->off, asked);
	if (bytes < 0)
		return NEXT(ceph_ll_nonblocking_readv_writev)(cmount, io);
	io->result = bytes;
	io->callback(io); /* it may free it */
	return 0;
}
