/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A libcephfs with one file; it counts its calls. */
#include <cephfs/libcephfs.h>

#define FAKE_SIZE 10000

unsigned int fake_calls;

int ceph_ll_getattr(struct ceph_mount_info *cmount, struct Inode *in,
		    struct ceph_statx *stx, unsigned int want,
		    unsigned int flags, const UserPerm *perms)
{
	(void)cmount, (void)in, (void)flags, (void)perms;
	fake_calls++;
	stx->stx_mask = want;
	stx->stx_size = FAKE_SIZE;
	stx->stx_ino = 1000 + fake_calls;
	return 0;
}

off_t ceph_ll_lseek(struct ceph_mount_info *cmount, struct Fh *fh, off_t offset,
		    int whence)
{
	(void)cmount, (void)fh, (void)offset, (void)whence;
	fake_calls++;
	return FAKE_SIZE;
}

int ceph_ll_close(struct ceph_mount_info *cmount, struct Fh *fh)
{
	(void)cmount, (void)fh;
	return 0;
}

int ceph_ll_put(struct ceph_mount_info *cmount, struct Inode *in)
{
	(void)cmount, (void)in;
	return 0;
}

int ceph_ll_write(struct ceph_mount_info *cmount, struct Fh *fh, int64_t offset,
		  uint64_t length, const char *data)
{
	(void)cmount, (void)fh, (void)offset, (void)data;
	fake_calls++;
	return (int)length;
}

int64_t ceph_ll_nonblocking_readv_writev(struct ceph_mount_info *cmount,
					 struct ceph_ll_io_info *io)
{
	(void)cmount, (void)io;
	fake_calls++;
	return 0; /* it never calls back */
}
