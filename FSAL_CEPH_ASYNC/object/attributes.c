/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <sys/stat.h>
#include <time.h>

#include "fsal_convert.h"
#include "attributes.h"
#include "clock.h"

/* libcephfs counts stx_blocks in units of 512 bytes, whatever stx_blksize. */
#define STATX_BLOCK_BYTES 512

/* Attributes that every ceph_statx has, requested or not. */
#define ALWAYS_KNOWN (ATTR_TYPE | ATTR_FSID | ATTR_FILEID | ATTR_RAWDEV)

const attrmask_t casync_supported_attributes =
	ATTRS_POSIX | ATTR_CREATION | ATTR4_XATTR | ATTR_ACL | ATTR4_SEC_LABEL;

const attrmask_t casync_settable_attributes =
	ATTR_SIZE | ATTR_MODE | ATTR_OWNER | ATTR_GROUP | ATTRS_SET_TIME |
	ATTR_CTIME | ATTR_CREATION | ATTR_ACL | ATTR4_SEC_LABEL;

/*
 * The statx bits that each attribute needs.  An attribute is valid only if
 * libcephfs has filled in all of them.
 */
static const struct {
	attrmask_t attr;
	unsigned int statx;
} attr_sources[] = {
	{ATTR_MODE, CEPH_STATX_MODE},
	{ATTR_NUMLINKS, CEPH_STATX_NLINK},
	{ATTR_OWNER, CEPH_STATX_UID},
	{ATTR_GROUP, CEPH_STATX_GID},
	{ATTR_SIZE, CEPH_STATX_SIZE},
	{ATTR_SPACEUSED, CEPH_STATX_BLOCKS},
	{ATTR_ATIME, CEPH_STATX_ATIME},
	{ATTR_MTIME, CEPH_STATX_MTIME},
	{ATTR_CTIME, CEPH_STATX_CTIME},
	{ATTR_CREATION, CEPH_STATX_BTIME},
	{ATTR_CHANGE, CEPH_STATX_CTIME | CEPH_STATX_VERSION},
};

#define N_ATTR_SOURCES (sizeof(attr_sources) / sizeof(attr_sources[0]))

uint64_t casync_attributes_change(const struct ceph_statx *stx,
				  uint64_t floor_ns)
{
	uint64_t ctime_ns = casync_clock_timespec_ns(&stx->stx_ctime);

	return (ctime_ns > floor_ns ? ctime_ns : floor_ns) + stx->stx_version;
}

unsigned int casync_attributes_statx_wanted(attrmask_t mask)
{
	/* The type bits of stx_mode always come.  CEPH_STATX_MODE would also
	 * ask for the permissions, and these need a capability. */
	unsigned int wanted = CEPH_STATX_INO | CEPH_STATX_RDEV;
	size_t i;

	for (i = 0; i < N_ATTR_SOURCES; i++) {
		if (FSAL_TEST_MASK(mask, attr_sources[i].attr))
			wanted |= attr_sources[i].statx;
	}

	return wanted;
}

static attrmask_t attributes_in_statx(unsigned int stx_mask)
{
	attrmask_t valid = ALWAYS_KNOWN;
	size_t i;

	for (i = 0; i < N_ATTR_SOURCES; i++) {
		unsigned int needed = attr_sources[i].statx;

		if ((stx_mask & needed) == needed)
			valid |= attr_sources[i].attr;
	}

	return valid;
}

void casync_attributes_from_statx(const struct ceph_statx *stx,
				  uint64_t floor_ns,
				  struct fsal_attrlist *attrs)
{
	attrs->supported = casync_supported_attributes;

	/* All values are copied; a value without its bit in valid_mask is not
	 * used.  fsid is the same as FSAL_CEPH's (stx_dev is the snapshot id):
	 * after a change of FSAL clients must not see another file system. */
	attrs->type = posix2fsal_type(stx->stx_mode);
	attrs->fsid = posix2fsal_fsid(stx->stx_dev);
	attrs->fileid = stx->stx_ino;
	attrs->rawdev = posix2fsal_devt(stx->stx_rdev);
	attrs->mode = unix2fsal_mode(stx->stx_mode);
	attrs->numlinks = stx->stx_nlink;
	attrs->owner = stx->stx_uid;
	attrs->group = stx->stx_gid;
	attrs->filesize = stx->stx_size;
	attrs->spaceused = stx->stx_blocks * STATX_BLOCK_BYTES;
	attrs->atime = stx->stx_atime;
	attrs->mtime = stx->stx_mtime;
	attrs->ctime = stx->stx_ctime;
	attrs->creation = stx->stx_btime;
	attrs->change = casync_attributes_change(stx, floor_ns);

	FSAL_SET_MASK(attrs->valid_mask, attributes_in_statx(stx->stx_mask));
}

/* CephFS keeps 32 bits of seconds, and would wrap larger values.  We store the
 * nearest possible value, as its kernel client does. */
static struct timespec attributes_storable(struct timespec time)
{
	if (time.tv_sec < 0)
		return (struct timespec){0};
	if (time.tv_sec > UINT32_MAX)
		return (struct timespec){.tv_sec = UINT32_MAX};
	return time;
}

/* A truncation sets the mtime, whether the file shrinks or grows (POSIX).
 * libcephfs omits this if it need not ask the MDS. */
static bool attributes_mtime_is_now(attrmask_t valid)
{
	if (FSAL_TEST_MASK(valid, ATTR_MTIME_SERVER))
		return true;
	return FSAL_TEST_MASK(valid, ATTR_SIZE) &&
	       !FSAL_TEST_MASK(valid, ATTR_MTIME);
}

/* With the _NOW bits libcephfs accepts a writer that is not the owner.  It does
 * not read a clock itself, so the time must be set too. */
static int attributes_times_to_statx(const struct fsal_attrlist *attrs,
				     struct ceph_statx *stx)
{
	struct timespec now;
	int mask = 0;

	clock_gettime(CLOCK_REALTIME, &now);

	if (FSAL_TEST_MASK(attrs->valid_mask, ATTR_ATIME_SERVER)) {
		stx->stx_atime = now;
		mask |= CEPH_SETATTR_ATIME | CEPH_SETATTR_ATIME_NOW;
	} else if (FSAL_TEST_MASK(attrs->valid_mask, ATTR_ATIME)) {
		stx->stx_atime = attributes_storable(attrs->atime);
		mask |= CEPH_SETATTR_ATIME;
	}

	if (attributes_mtime_is_now(attrs->valid_mask)) {
		stx->stx_mtime = now;
		mask |= CEPH_SETATTR_MTIME | CEPH_SETATTR_MTIME_NOW;
	} else if (FSAL_TEST_MASK(attrs->valid_mask, ATTR_MTIME)) {
		stx->stx_mtime = attributes_storable(attrs->mtime);
		mask |= CEPH_SETATTR_MTIME;
	}

	return mask;
}

int casync_attributes_to_statx(const struct fsal_attrlist *attrs, mode_t umask,
			       struct ceph_statx *stx)
{
	static const struct {
		attrmask_t attr;
		int setattr;
	} plain[] = {
		{ATTR_SIZE, CEPH_SETATTR_SIZE},
		{ATTR_MODE, CEPH_SETATTR_MODE},
		{ATTR_OWNER, CEPH_SETATTR_UID},
		{ATTR_GROUP, CEPH_SETATTR_GID},
		{ATTR_CTIME, CEPH_SETATTR_CTIME},
		{ATTR_CREATION, CEPH_SETATTR_BTIME},
	};
	int mask = 0;
	size_t i;

	*stx = (struct ceph_statx){
		.stx_size = attrs->filesize,
		.stx_mode = (uint16_t)(fsal2unix_mode(attrs->mode) & ~umask),
		.stx_uid = (uint32_t)attrs->owner,
		.stx_gid = (uint32_t)attrs->group,
		.stx_ctime = attrs->ctime,
		.stx_btime = attrs->creation,
	};

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (FSAL_TEST_MASK(attrs->valid_mask, plain[i].attr))
			mask |= plain[i].setattr;
	}

	return mask | attributes_times_to_statx(attrs, stx);
}
