/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "unit.h"

#include "fake_libcephfs.h"
#include "dir_cache.h"

static struct casync_dir_cache listings;

/* Stand-ins for handles; never looked into. */
static char handles[2 * CASYNC_DIR_CACHE_KEPT];

static struct ceph_dir_result *handle(unsigned int number)
{
	return (struct ceph_dir_result *)&handles[number];
}

static int up(void **state)
{
	fake_setup(0, 1);
	casync_dir_cache_init(&listings);
	return 0;
}

static int down(void **state)
{
	casync_dir_cache_drop(&listings, NULL, 0);
	casync_dir_cache_destroy(&listings);
	fake_teardown();
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

static struct casync_listing a_listing(void)
{
	return (struct casync_listing){
		.id = {.ino = 1, .snapid = 2, .fscid = 3},
		.position = 40,
		.before = 30,
		.uid = 5,
		.gid = 6,
		.stamp = {.ctime = {7, 8}, .version = 9, .known = true},
	};
}

static void keep(struct casync_listing listing, unsigned int number)
{
	struct casync_listing displaced;

	listing.dirp = handle(number);
	casync_dir_cache_keep(&listings, &listing, &displaced);
	assert_null(displaced.dirp);
}

CASE(what_was_kept_is_taken_once)
{
	struct casync_listing wanted = a_listing();

	keep(a_listing(), 0);
	assert_true(casync_dir_cache_take(&listings, &wanted));
	assert_ptr_equal(wanted.dirp, handle(0));
	assert_false(casync_dir_cache_take(&listings, &wanted));
	assert_null(wanted.dirp);
}

/* The caller may have had no room for the last entry. */
CASE(last_entry_may_come_again)
{
	struct casync_listing wanted = a_listing();

	keep(a_listing(), 0);
	wanted.position = 30;
	wanted.before = 20;
	assert_true(casync_dir_cache_take(&listings, &wanted));
	assert_int_equal(wanted.position, 40);
	assert_int_equal(wanted.before, 30);
}

static void change_ino(struct casync_listing *one)
{
	one->id.ino++;
}

static void change_snapshot(struct casync_listing *one)
{
	one->id.snapid++;
}

static void change_position(struct casync_listing *one)
{
	one->position++;
}

static void change_user(struct casync_listing *one)
{
	one->uid++;
}

static void change_group(struct casync_listing *one)
{
	one->gid++;
}

static void change_groups(struct casync_listing *one)
{
	one->groups++;
}

static void change_version(struct casync_listing *one)
{
	one->stamp.version++;
}

static void change_seconds(struct casync_listing *one)
{
	one->stamp.ctime.tv_sec++;
}

static void change_nanoseconds(struct casync_listing *one)
{
	one->stamp.ctime.tv_nsec++;
}

static void forget_stamp(struct casync_listing *one)
{
	one->stamp.known = false;
}

CASE(any_difference_counts)
{
	void (*const changes[])(struct casync_listing *one) = {
		change_ino,	change_snapshot, change_position,
		change_user,	change_group,	 change_version,
		change_seconds, forget_stamp,	 change_nanoseconds,
		change_groups,
	};
	struct casync_listing wanted;
	size_t i;

	keep(a_listing(), 0);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		wanted = a_listing();
		changes[i](&wanted);
		assert_false(casync_dir_cache_take(&listings, &wanted));
		assert_null(wanted.dirp);
	}
	wanted = a_listing();
	assert_true(casync_dir_cache_take(&listings, &wanted));
}

/* With one listing for each number of a folder. */
static void fill(void)
{
	struct casync_listing listing;
	unsigned int i;

	for (i = 0; i < CASYNC_DIR_CACHE_KEPT; i++) {
		listing = a_listing();
		listing.id.ino = i;
		keep(listing, i);
	}
}

CASE(oldest_makes_room)
{
	struct casync_listing listing, displaced, wanted;
	unsigned int i;

	fill();
	for (i = CASYNC_DIR_CACHE_KEPT; i < 2 * CASYNC_DIR_CACHE_KEPT; i++) {
		listing = a_listing();
		listing.id.ino = i;
		listing.dirp = handle(i);
		casync_dir_cache_keep(&listings, &listing, &displaced);
		assert_ptr_equal(displaced.dirp,
				 handle(i - CASYNC_DIR_CACHE_KEPT));
	}
	/* Out of the middle: the others stay, in their order. */
	wanted = a_listing();
	wanted.id.ino = CASYNC_DIR_CACHE_KEPT + 3;
	assert_true(casync_dir_cache_take(&listings, &wanted));
	assert_ptr_equal(wanted.dirp, handle(CASYNC_DIR_CACHE_KEPT + 3));
	wanted.id.ino = CASYNC_DIR_CACHE_KEPT + 4;
	assert_true(casync_dir_cache_take(&listings, &wanted));
	assert_ptr_equal(wanted.dirp, handle(CASYNC_DIR_CACHE_KEPT + 4));
	assert_int_equal(listings.count, CASYNC_DIR_CACHE_KEPT - 2);
}

/* Its client has ended, and the handle with it. */
CASE(listing_of_a_former_client_is_not_released)
{
	struct casync_listing listing, displaced;
	unsigned int i;

	fill();
	for (i = CASYNC_DIR_CACHE_KEPT; i < 2 * CASYNC_DIR_CACHE_KEPT; i++) {
		listing = a_listing();
		listing.id.ino = i;
		listing.generation = 1;
		keep(listing, i);
	}
	listing.dirp = handle(i);
	casync_dir_cache_keep(&listings, &listing, &displaced);
	assert_ptr_equal(displaced.dirp, handle(CASYNC_DIR_CACHE_KEPT));
}

CASE(all_are_released)
{
	struct casync_listing listing = a_listing();

	keep(listing, 0);
	listing.id.ino++;
	keep(listing, 1);
	casync_dir_cache_drop(&listings, NULL, 0);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 2);
	assert_ptr_equal(fake.released, handle(1));
	assert_false(casync_dir_cache_take(&listings, &listing));
	casync_dir_cache_drop(&listings, NULL, 0);
	assert_int_equal(fake_blocking_count(FAKE_RELEASEDIR), 2);
}

CASE(stamp_needs_ctime_and_version)
{
	struct ceph_statx stx = {
		.stx_ctime = {10, 11},
		.stx_version = 12,
		.stx_mask = CEPH_STATX_CTIME | CEPH_STATX_VERSION,
	};
	struct casync_listing_stamp stamp = casync_dir_cache_stamp(&stx);

	assert_true(stamp.known);
	assert_int_equal(stamp.version, 12);
	assert_int_equal(stamp.ctime.tv_sec, 10);
	assert_int_equal(stamp.ctime.tv_nsec, 11);
	stx.stx_mask = CEPH_STATX_CTIME;
	assert_false(casync_dir_cache_stamp(&stx).known);
	stx.stx_mask = CEPH_STATX_VERSION;
	assert_false(casync_dir_cache_stamp(&stx).known);
}
