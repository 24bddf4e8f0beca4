/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The plugin's calls of libcephfs, by the linker's --wrap: within the plugin
 * itself, so that RTLD_DEEPBIND does not matter.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "fsal.h"

#include "events.h"
#include "op.h"
#include "pending.h"
#include "shim.h"

int64_t __real_ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
						struct ceph_ll_io_info *io);
int64_t __wrap_ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
						struct ceph_ll_io_info *io);
int __real_ceph_ll_sync_inode(struct ceph_mount_info *cmount,
			      struct Inode *inode, int syncdataonly);
int __wrap_ceph_ll_sync_inode(struct ceph_mount_info *cmount,
			      struct Inode *inode, int syncdataonly);
int __real_ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *fh,
			int64_t off, uint64_t len, char *buf);
int __wrap_ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *fh,
			int64_t off, uint64_t len, char *buf);
int __real_ceph_ll_setlk(struct ceph_mount_info *cmount, struct Fh *fh,
			 struct flock *fl, uint64_t owner, int sleep);
int __wrap_ceph_ll_setlk(struct ceph_mount_info *cmount, struct Fh *fh,
			 struct flock *fl, uint64_t owner, int sleep);
int __real_ceph_ll_setattr(struct ceph_mount_info *cmount, struct Inode *inode,
			   struct ceph_statx *stx, int mask,
			   const UserPerm *perms);
int __wrap_ceph_ll_setattr(struct ceph_mount_info *cmount, struct Inode *inode,
			   struct ceph_statx *stx, int mask,
			   const UserPerm *perms);

static struct fault_call_id identify(const struct ceph_ll_io_info *io)
{
	/* Every io of the plugin's is the first member of a part. */
	const struct casync_part *part = (const struct casync_part *)io;
	struct fault_call_id id = {
		.kind = io->write ? FAULT_WRITE : FAULT_READ,
		.ino = part->op->ino,
		.offset = (uint64_t)io->off,
	};
	int i;

	for (i = 0; i < io->iovcnt; i++)
		id.length_bytes += io->iov[i].iov_len;
	return id;
}

static void really_done(struct ceph_ll_io_info *io)
{
	struct fault_call *call = (struct fault_call *)io;

	if (call->hit.action == FAULT_DUPLICATE && !call->hit.later)
		(void)sem_post(&call->answered);
	else
		fault_pending_done(call);
}

/* A shortened write transfers less, so that its data are what it says. */
static void cut_write(struct fault_call *call)
{
	uint64_t left = call->hit.bytes;
	int i;

	if (left >= call->id.length_bytes)
		return;
	call->cut = calloc((size_t)call->io.iovcnt, sizeof(*call->cut));
	if (call->cut == NULL)
		abort();
	for (i = 0; left != 0; i++) {
		call->cut[i] = call->io.iov[i];
		if (call->cut[i].iov_len > left)
			call->cut[i].iov_len = left;
		left -= call->cut[i].iov_len;
	}
	call->io.iov = call->cut;
	call->io.iovcnt = i;
}

/* The op lives until the plugin's call returns: all completions come in it. */
static void complete_within(struct fault_call *call)
{
	unsigned int i;

	while (sem_wait(&call->answered) != 0)
		; /* EINTR */
	for (i = 0; i <= call->hit.times; i++)
		fault_call_complete(call);
	fault_call_free(call);
}

static int64_t intercept(struct ceph_mount_info *cmount,
			 struct fault_call *call)
{
	bool within = call->hit.action == FAULT_DUPLICATE && !call->hit.later;
	int64_t rc;

	if (call->hit.action == FAULT_SHORT && call->io.write)
		cut_write(call);
	call->io.callback = really_done;

	/* Injected errors are not performed; nor is what transfers nothing. */
	if (call->hit.action == FAULT_ERROR || call->io.iovcnt == 0) {
		call->io.result = -call->hit.error;
		fault_pending_done(call);
		return 0;
	}

	rc = __real_ceph_ll_nonblocking_readv_writev(cmount, &call->io);
	if (rc != 0) {
		fault_event_returned(&call->id, rc);
		fault_call_free(call);
	} else if (within) {
		complete_within(call);
	}
	return rc;
}

int64_t __wrap_ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
						struct ceph_ll_io_info *io)
{
	struct fault_call_id id = identify(io);
	struct fault_hit hit = fault_decide(&id);

	if (hit.action == FAULT_NONE)
		return __real_ceph_ll_nonblocking_readv_writev(cmount, io);
	if (hit.action == FAULT_REFUSE) {
		fault_scribble(io, 0);
		return -hit.error;
	}
	return intercept(cmount, fault_call_new(io, &id, &hit));
}

/* Waits, and says what is to be answered instead of the call: 0 for nothing. */
static int block(const struct fault_call_id *id)
{
	struct fault_hit hit = fault_decide(id);
	struct timespec left = {
		.tv_sec = hit.wait_ms / 1000,
		.tv_nsec = hit.wait_ms % 1000 * 1000000L,
	};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	if (hit.action == FAULT_HOLD)
		fault_pending_wait(hit.edition);
	return hit.action == FAULT_ERROR ? -hit.error : 0;
}

/* By what libcephfs has in memory. */
static bool is_directory(struct ceph_mount_info *cmount, struct Inode *inode)
{
	struct ceph_statx stx;

	return ceph_ll_getattr(cmount, inode, &stx, CEPH_STATX_MODE,
			       AT_STATX_DONT_SYNC,
			       ceph_mount_perms(cmount)) == 0 &&
	       S_ISDIR(stx.stx_mode);
}

/* When a directory is flushed (journal.h) depends on the clock: no rule could
 * count on it. */
int __wrap_ceph_ll_sync_inode(struct ceph_mount_info *cmount,
			      struct Inode *inode, int syncdataonly)
{
	struct fault_call_id id = {.kind = FAULT_FLUSH};
	int rc = is_directory(cmount, inode) ? 0 : block(&id);

	if (rc != 0)
		return rc;
	return __real_ceph_ll_sync_inode(cmount, inode, syncdataonly);
}

int __wrap_ceph_ll_read(struct ceph_mount_info *cmount, struct Fh *fh,
			int64_t off, uint64_t len, char *buf)
{
	struct fault_call_id id = {
		.kind = FAULT_REPAIR,
		.offset = (uint64_t)off,
		.length_bytes = len,
	};
	int rc = block(&id);

	if (rc != 0) {
		memset(buf, FAULT_SCRIBBLE, len);
		return rc;
	}
	return __real_ceph_ll_read(cmount, fh, off, len, buf);
}

int __wrap_ceph_ll_setlk(struct ceph_mount_info *cmount, struct Fh *fh,
			 struct flock *fl, uint64_t owner, int sleep)
{
	struct fault_call_id id = {.kind = FAULT_LOCK};
	int rc = block(&id);

	if (rc != 0)
		return rc;
	return __real_ceph_ll_setlk(cmount, fh, fl, owner, sleep);
}

int __wrap_ceph_ll_setattr(struct ceph_mount_info *cmount, struct Inode *inode,
			   struct ceph_statx *stx, int mask,
			   const UserPerm *perms)
{
	struct fault_call_id id = {.kind = FAULT_SETATTR};
	int rc = block(&id);

	if (rc != 0)
		return rc;
	return __real_ceph_ll_setattr(cmount, inode, stx, mask, perms);
}
