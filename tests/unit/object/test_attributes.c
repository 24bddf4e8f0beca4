/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "unit.h"

#include "fsal_types.h"
#include "fsal_convert.h"
#include "attributes.h"

/* Ganesha's conversions live in its core library, which a test of pure
 * functions does without. */
object_file_type_t posix2fsal_type(mode_t posix_type_in)
{
	switch (posix_type_in & S_IFMT) {
	case S_IFREG:
		return REGULAR_FILE;
	case S_IFDIR:
		return DIRECTORY;
	case S_IFLNK:
		return SYMBOLIC_LINK;
	case S_IFCHR:
		return CHARACTER_FILE;
	case S_IFBLK:
		return BLOCK_FILE;
	case S_IFIFO:
		return FIFO_FILE;
	case S_IFSOCK:
		return SOCKET_FILE;
	default:
		return NO_FILE_TYPE;
	}
}

fsal_fsid_t posix2fsal_fsid(dev_t posix_devid)
{
	return (fsal_fsid_t){.major = major(posix_devid),
			     .minor = minor(posix_devid)};
}

fsal_dev_t posix2fsal_devt(dev_t posix_devid)
{
	return (fsal_dev_t){.major = major(posix_devid),
			    .minor = minor(posix_devid)};
}

#define ALWAYS_WANTED (CEPH_STATX_INO | CEPH_STATX_RDEV)
#define ALWAYS_VALID (ATTR_TYPE | ATTR_FSID | ATTR_FILEID | ATTR_RAWDEV)
/* CephFS keeps these as extended attributes, statx knows none of them. */
#define BESIDE_STATX (ATTR_ACL | ATTR4_XATTR | ATTR4_SEC_LABEL)

/* --- casync_attributes_statx_wanted and what comes back for it --- */

struct source_case {
	const char *name;
	attrmask_t attr;
	unsigned int statx; /* On top of ALWAYS_WANTED. */
};

static const struct source_case source_cases[] = {
	{"nothing_asked_wants_identity_only", 0, 0},
	{"type_asked_wants_no_permissions", ATTR_TYPE, 0},
	{"fsid_and_fileid_asked_want_identity_only", ATTR_FSID | ATTR_FILEID,
	 0},
	{"rawdev_asked_wants_identity_only", ATTR_RAWDEV, 0},
	{"mode_asked_wants_mode", ATTR_MODE, CEPH_STATX_MODE},
	{"numlinks_asked_wants_nlink", ATTR_NUMLINKS, CEPH_STATX_NLINK},
	{"owner_asked_wants_uid", ATTR_OWNER, CEPH_STATX_UID},
	{"group_asked_wants_gid", ATTR_GROUP, CEPH_STATX_GID},
	{"size_asked_wants_size", ATTR_SIZE, CEPH_STATX_SIZE},
	{"spaceused_asked_wants_blocks", ATTR_SPACEUSED, CEPH_STATX_BLOCKS},
	{"atime_asked_wants_atime", ATTR_ATIME, CEPH_STATX_ATIME},
	{"mtime_asked_wants_mtime", ATTR_MTIME, CEPH_STATX_MTIME},
	{"ctime_asked_wants_ctime", ATTR_CTIME, CEPH_STATX_CTIME},
	{"creation_asked_wants_btime", ATTR_CREATION, CEPH_STATX_BTIME},
	{"change_asked_wants_version_and_ctime", ATTR_CHANGE,
	 CEPH_STATX_VERSION | CEPH_STATX_CTIME},
	{"error_report_asked_wants_identity_only", ATTR_RDATTR_ERR, 0},
	{"acl_asked_wants_identity_only", ATTR_ACL, 0},
	{"label_and_xattr_asked_want_identity_only",
	 ATTR4_SEC_LABEL | ATTR4_XATTR, 0},
};

TEST_ROWS(check_wanted, source_cases, NULL, NULL)
{
	const struct source_case *c = *state;

	assert_int_equal(casync_attributes_statx_wanted(c->attr),
			 ALWAYS_WANTED | c->statx);
}

TEST(everything_asked_wants_all_stats)
{
	assert_int_equal(
		casync_attributes_statx_wanted(casync_supported_attributes),
		CEPH_STATX_ALL_STATS);
}

TEST(everything_got_is_all_supported_but_xattrs)
{
	struct ceph_statx stx = {.stx_mask = CEPH_STATX_ALL_STATS,
				 .stx_mode = S_IFREG | 0644};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_true(attrs.valid_mask ==
		    (casync_supported_attributes & ~BESIDE_STATX));
	assert_true(attrs.supported == casync_supported_attributes);
}

TEST(acl_label_and_xattrs_are_offered)
{
	assert_true((casync_supported_attributes & BESIDE_STATX) ==
		    BESIDE_STATX);
	/* Extended attributes are set by operations of their own. */
	assert_true((casync_settable_attributes & BESIDE_STATX) ==
		    (ATTR_ACL | ATTR4_SEC_LABEL));
}

struct valid_case {
	const char *name;
	unsigned int stx_mask;
	attrmask_t valid; /* On top of ALWAYS_VALID. */
};

static const struct valid_case valid_cases[] = {
	{"nothing_got_leaves_identity_valid", 0, 0},
	{"size_got_is_valid_alone", CEPH_STATX_SIZE, ATTR_SIZE},
	{"ctime_without_version_gives_no_change", CEPH_STATX_CTIME, ATTR_CTIME},
	{"version_without_ctime_gives_no_change", CEPH_STATX_VERSION, 0},
	{"version_and_ctime_give_change", CEPH_STATX_VERSION | CEPH_STATX_CTIME,
	 ATTR_CTIME | ATTR_CHANGE},
	{"more_than_asked_is_valid_too",
	 CEPH_STATX_MODE | CEPH_STATX_UID | CEPH_STATX_GID | CEPH_STATX_BTIME,
	 ATTR_MODE | ATTR_OWNER | ATTR_GROUP | ATTR_CREATION},
};

TEST_ROWS(check_valid, valid_cases, NULL, NULL)
{
	const struct valid_case *c = *state;
	struct ceph_statx stx = {.stx_mask = c->stx_mask, .stx_mode = S_IFREG};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_true(attrs.valid_mask == (ALWAYS_VALID | c->valid));
}

/* --- casync_attributes_from_statx: values --- */

TEST(values_arrive_in_their_fields)
{
	struct ceph_statx stx = {
		.stx_mask = CEPH_STATX_ALL_STATS,
		.stx_mode = S_IFREG | 04751,
		.stx_nlink = 3,
		.stx_uid = UINT32_MAX - 1,
		.stx_gid = 1001,
		.stx_ino = UINT64_C(0x10000000005),
		.stx_size = UINT64_C(5) << 32,
		.stx_atime = {1, 11},
		.stx_mtime = {2, 22},
		.stx_ctime = {3, 33},
		.stx_btime = {4, 44},
	};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_int_equal(attrs.type, REGULAR_FILE);
	assert_int_equal(attrs.mode, 04751);
	assert_int_equal(attrs.numlinks, 3);
	assert_int_equal(attrs.owner, UINT32_MAX - 1);
	assert_int_equal(attrs.group, 1001);
	assert_int_equal(attrs.fileid, UINT64_C(0x10000000005));
	assert_int_equal(attrs.filesize, UINT64_C(5) << 32);
	assert_memory_equal(&attrs.atime, &stx.stx_atime, sizeof(attrs.atime));
	assert_memory_equal(&attrs.mtime, &stx.stx_mtime, sizeof(attrs.mtime));
	assert_memory_equal(&attrs.ctime, &stx.stx_ctime, sizeof(attrs.ctime));
	assert_memory_equal(&attrs.creation, &stx.stx_btime,
			    sizeof(attrs.creation));
}

TEST(type_is_known_without_permission_bits)
{
	struct ceph_statx stx = {.stx_mask = CEPH_STATX_INO,
				 .stx_mode = S_IFDIR};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_int_equal(attrs.type, DIRECTORY);
	assert_false(FSAL_TEST_MASK(attrs.valid_mask, ATTR_MODE));
}

TEST(spaceused_counts_blocks_of_512)
{
	struct ceph_statx stx = {.stx_mask = CEPH_STATX_BLOCKS,
				 .stx_blksize = 4194304,
				 .stx_blocks = 9};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_int_equal(attrs.spaceused, 4608);
}

TEST(fsid_is_device_split_as_fsal_ceph_does)
{
	/* CEPH_NOSNAP: every file outside of snapshots. */
	const dev_t nosnap = (dev_t)-2;
	struct ceph_statx stx = {.stx_dev = nosnap, .stx_mode = S_IFREG};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_int_equal(attrs.fsid.major, UINT32_MAX);
	assert_int_equal(attrs.fsid.minor, UINT32_MAX - 1);
}

TEST(rawdev_is_split_into_major_and_minor)
{
	struct ceph_statx stx = {.stx_rdev = makedev(259, 65537),
				 .stx_mode = S_IFBLK};
	struct fsal_attrlist attrs = {0};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_int_equal(attrs.rawdev.major, 259);
	assert_int_equal(attrs.rawdev.minor, 65537);
}

TEST(acl_filled_in_before_stays_valid)
{
	struct ceph_statx stx = {.stx_mode = S_IFREG};
	struct fsal_attrlist attrs = {.valid_mask = ATTR_ACL};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_true(FSAL_TEST_MASK(attrs.valid_mask, ATTR_ACL) != 0);
}

TEST(request_mask_is_left_alone)
{
	struct ceph_statx stx = {.stx_mask = CEPH_STATX_ALL_STATS,
				 .stx_mode = S_IFREG};
	struct fsal_attrlist attrs = {.request_mask = ATTR_SIZE};

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_true(attrs.request_mask == ATTR_SIZE);
}

/* --- casync_attributes_change --- */

struct change_case {
	const char *name;
	struct timespec ctime;
	uint64_t version;
	uint64_t change;
};

static const struct change_case change_cases[] = {
	{"change_of_new_inode_is_its_ctime",
	 {1700000000, 5},
	 0,
	 UINT64_C(1700000000000000005)},
	{"change_counts_version_within_one_ctime",
	 {1700000000, 5},
	 7,
	 UINT64_C(1700000000000000012)},
	{"change_goes_on_with_ctime_when_version_is_lost",
	 {1700000001, 0},
	 0,
	 UINT64_C(1700000001000000000)},
	{"change_past_2106_does_not_overflow",
	 {INT64_C(4294967296), 0},
	 1,
	 UINT64_C(4294967296000000001)},
};

TEST_ROWS(check_change, change_cases, NULL, NULL)
{
	const struct change_case *c = *state;
	struct ceph_statx stx = {
		.stx_mask = CEPH_STATX_CTIME | CEPH_STATX_VERSION,
		.stx_mode = S_IFREG,
		.stx_ctime = c->ctime,
		.stx_version = c->version,
	};
	struct fsal_attrlist attrs = {0};

	assert_true(casync_attributes_change(&stx, 0) == c->change);

	casync_attributes_from_statx(&stx, 0, &attrs);
	assert_true(attrs.change == c->change);
}

/* What a crash in data mode does: ctime comes back older than it was shown,
 * the counter without its last increments. */
TEST(change_goes_forward_over_lost_increments)
{
	const uint64_t second = UINT64_C(1000000000);
	struct ceph_statx shown = {.stx_ctime = {100, 5000000},
				   .stx_version = 1000000};
	struct ceph_statx recovered = {.stx_ctime = {100, 4000000},
				       .stx_version = 3};
	struct ceph_statx written = {.stx_ctime = {101, 200}, .stx_version = 4};
	uint64_t mounted = 50 * second, mounted_again = 101 * second;

	assert_true(casync_attributes_change(&recovered, mounted) <
		    casync_attributes_change(&shown, mounted));
	assert_true(casync_attributes_change(&recovered, mounted_again) >
		    casync_attributes_change(&shown, mounted));
	assert_true(casync_attributes_change(&written, mounted_again) >
		    casync_attributes_change(&recovered, mounted_again));
}

TEST(change_of_old_file_is_the_floor_and_the_counter)
{
	struct ceph_statx stx = {.stx_ctime = {1, 0}, .stx_version = 7};

	assert_true(casync_attributes_change(&stx, UINT64_C(9000000000)) ==
		    UINT64_C(9000000007));
}

/* --- casync_attributes_to_statx --- */

struct set_case {
	const char *name;
	attrmask_t attrs;
	int mask;
};

static const struct set_case set_cases[] = {
	{"nothing_set_gives_empty_mask", 0, 0},
	{"size_set_gives_size_and_the_mtime_of_now", ATTR_SIZE,
	 CEPH_SETATTR_SIZE | CEPH_SETATTR_MTIME | CEPH_SETATTR_MTIME_NOW},
	{"size_and_mtime_set_is_not_now", ATTR_SIZE | ATTR_MTIME,
	 CEPH_SETATTR_SIZE | CEPH_SETATTR_MTIME},
	{"mode_set_gives_mode", ATTR_MODE, CEPH_SETATTR_MODE},
	{"owner_and_group_set_give_uid_and_gid", ATTR_OWNER | ATTR_GROUP,
	 CEPH_SETATTR_UID | CEPH_SETATTR_GID},
	{"atime_set_is_not_now", ATTR_ATIME, CEPH_SETATTR_ATIME},
	{"mtime_set_is_not_now", ATTR_MTIME, CEPH_SETATTR_MTIME},
	{"atime_server_is_atime_and_now", ATTR_ATIME_SERVER,
	 CEPH_SETATTR_ATIME | CEPH_SETATTR_ATIME_NOW},
	{"mtime_server_is_mtime_and_now", ATTR_MTIME_SERVER,
	 CEPH_SETATTR_MTIME | CEPH_SETATTR_MTIME_NOW},
	{"ctime_set_gives_ctime", ATTR_CTIME, CEPH_SETATTR_CTIME},
	{"creation_set_gives_btime", ATTR_CREATION, CEPH_SETATTR_BTIME},
	{"what_cannot_be_set_gives_empty_mask",
	 ATTR_TYPE | ATTR_FILEID | ATTR_NUMLINKS | ATTR_RAWDEV | ATTR_ACL |
		 ATTR_CHANGE | ATTR_SPACEUSED,
	 0},
};

TEST_ROWS(check_set, set_cases, NULL, NULL)
{
	const struct set_case *c = *state;
	struct fsal_attrlist attrs = {.valid_mask = c->attrs};
	struct ceph_statx stx;

	assert_int_equal(casync_attributes_to_statx(&attrs, 0, &stx), c->mask);
}

TEST(every_settable_attribute_of_statx_reaches_libcephfs)
{
	int bit;

	for (bit = 0; bit < 64; bit++) {
		attrmask_t attr = UINT64_C(1) << bit;
		struct fsal_attrlist attrs = {.valid_mask = attr};
		struct ceph_statx stx;
		int mask = casync_attributes_to_statx(&attrs, 0, &stx);

		assert_int_equal(mask != 0, (casync_settable_attributes &
					     ~BESIDE_STATX & attr) != 0);
	}
}

TEST(set_values_arrive_in_their_fields)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_SIZE | ATTR_MODE | ATTR_OWNER | ATTR_GROUP |
			      ATTR_ATIME | ATTR_MTIME | ATTR_CREATION,
		.filesize = UINT64_C(3) << 40,
		.mode = 0640,
		.owner = 1000,
		.group = UINT32_MAX - 1,
		.atime = {1, 11},
		.mtime = {2, 22},
		.creation = {4, 44},
	};
	struct ceph_statx stx;

	casync_attributes_to_statx(&attrs, 0, &stx);
	assert_int_equal(stx.stx_size, UINT64_C(3) << 40);
	assert_int_equal(stx.stx_mode, 0640);
	assert_int_equal(stx.stx_uid, 1000);
	assert_int_equal(stx.stx_gid, UINT32_MAX - 1);
	assert_memory_equal(&stx.stx_atime, &attrs.atime, sizeof(attrs.atime));
	assert_memory_equal(&stx.stx_mtime, &attrs.mtime, sizeof(attrs.mtime));
	assert_memory_equal(&stx.stx_btime, &attrs.creation,
			    sizeof(attrs.creation));
}

struct mode_case {
	const char *name;
	uint32_t mode;
	mode_t umask;
	uint16_t result;
};

static const struct mode_case mode_cases[] = {
	{"mode_without_umask_is_taken_as_it_is", 0777, 0, 0777},
	{"mode_with_umask_loses_its_bits", 0777, 022, 0755},
	{"mode_keeps_setuid_setgid_and_sticky", 07755, 022, 07755},
	{"mode_loses_file_type_bits", S_IFDIR | 0700, 0, 0700},
};

TEST_ROWS(check_mode, mode_cases, NULL, NULL)
{
	const struct mode_case *c = *state;
	struct fsal_attrlist attrs = {.valid_mask = ATTR_MODE, .mode = c->mode};
	struct ceph_statx stx;

	assert_int_equal(casync_attributes_to_statx(&attrs, c->umask, &stx),
			 CEPH_SETATTR_MODE);
	assert_int_equal(stx.stx_mode, c->result);
}

TEST(server_times_carry_the_clock_themselves)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_ATIME_SERVER | ATTR_MTIME_SERVER,
	};
	struct ceph_statx stx;
	time_t before = time(NULL) - 1; /* time() may lag by a tick. */

	casync_attributes_to_statx(&attrs, 0, &stx);
	assert_in_range(stx.stx_atime.tv_sec, before, time(NULL) + 1);
	assert_in_range(stx.stx_mtime.tv_sec, before, time(NULL) + 1);
}

TEST(server_times_set_together_are_equal)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_ATIME_SERVER | ATTR_MTIME_SERVER,
	};
	struct ceph_statx stx;

	casync_attributes_to_statx(&attrs, 0, &stx);
	assert_memory_equal(&stx.stx_atime, &stx.stx_mtime,
			    sizeof(stx.stx_atime));
}

TEST(server_time_wins_over_a_given_one)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_MTIME | ATTR_MTIME_SERVER,
		.mtime = {5, 5},
	};
	struct ceph_statx stx;

	assert_int_equal(casync_attributes_to_statx(&attrs, 0, &stx),
			 CEPH_SETATTR_MTIME | CEPH_SETATTR_MTIME_NOW);
	assert_true(stx.stx_mtime.tv_sec != 5);
}

TEST(times_past_32_bits_are_the_nearest_there_are)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_ATIME | ATTR_MTIME,
		.atime = {-1, 5},
		.mtime = {(time_t)UINT32_MAX + 1, 5},
	};
	struct ceph_statx stx;

	casync_attributes_to_statx(&attrs, 0, &stx);
	assert_int_equal(stx.stx_atime.tv_sec, 0);
	assert_int_equal(stx.stx_atime.tv_nsec, 0);
	assert_true(stx.stx_mtime.tv_sec == UINT32_MAX);
	assert_int_equal(stx.stx_mtime.tv_nsec, 0);
}

TEST(the_last_time_of_32_bits_is_kept)
{
	struct fsal_attrlist attrs = {
		.valid_mask = ATTR_MTIME,
		.mtime = {UINT32_MAX, 999999999},
	};
	struct ceph_statx stx;

	casync_attributes_to_statx(&attrs, 0, &stx);
	assert_true(stx.stx_mtime.tv_sec == UINT32_MAX);
	assert_int_equal(stx.stx_mtime.tv_nsec, 999999999);
}
