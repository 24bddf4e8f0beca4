/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Layouts of new files: what keys ask for, and that it changes while files
 * are created.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "export.h"
#include "layout.h"
#include "object.h"
#include "stub_mount.h"

#define ROUNDS 5000
#define CREATORS 3

#define DEFAULT_LAYOUT \
	"stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data"
#define SMALL "stripe_unit=65536 stripe_count=1 object_size=65536"
#define FAST SMALL " pool=7" /* by its number */

static struct casync_export exp_of_ours;
static struct casync_object dir, file;

/* The fake's, of all threads; atomic. */
static const char *has; /* the layout that the MDS gave the file */
static bool folder_has; /* the folder has one of its own */
static int set_rc;
static unsigned int sets_small, sets_fast, sets_else;

static bool creators_end;	  /* atomic */
static unsigned int were_changed; /* atomic */

int ceph_get_pool_id(struct ceph_mount_info *cmount, const char *pool_name)
{
	(void)cmount;
	return strcmp(pool_name, "fast") == 0 ? 7 : -ENOENT;
}

int ceph_get_default_data_pool_name(struct ceph_mount_info *cmount, char *buf,
				    size_t buflen)
{
	(void)cmount;
	assert_true(buflen > 4);
	/* NOLINTNEXTLINE(*-not-null-terminated-*): as libcephfs does. */
	memcpy(buf, "data", 4);
	return 4;
}

int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, void *value, size_t size,
		     const UserPerm *perms)
{
	(void)cmount;
	(void)in;
	(void)perms;
	if (strcmp(name, "ceph.dir.layout") == 0)
		return folder_has ? 1 : -ENODATA;
	assert_true(strlen(has) < size);
	memcpy(value, has, strlen(has));
	return (int)strlen(has);
}

int ceph_ll_setxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, const void *value, size_t size,
		     int flags, const UserPerm *perms)
{
	unsigned int *count = &sets_else;

	(void)cmount;
	(void)in;
	(void)flags;
	(void)perms;
	assert_string_equal(name, "ceph.file.layout");
	if (size == strlen(SMALL) && memcmp(value, SMALL, size) == 0)
		count = &sets_small;
	else if (size == strlen(FAST) && memcmp(value, FAST, size) == 0)
		count = &sets_fast;
	(void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return set_rc;
}

static int up(void **state)
{
	memset(&exp_of_ours, 0, sizeof(exp_of_ours));
	stub_mount_reset();
	exp_of_ours.mount = &stub_mount;
	casync_layout_init(&exp_of_ours.layout, 77);
	dir.exp = &exp_of_ours;
	dir.id.ino = 0x10000000000;
	file.exp = &exp_of_ours;
	has = DEFAULT_LAYOUT;
	folder_has = false;
	set_rc = 0;
	sets_small = sets_fast = sets_else = 0;
	return 0;
}

static int down(void **state)
{
	casync_layout_destroy(&exp_of_ours.layout);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

/* 0, or why the keys are refused. */
static int configure(uint32_t object_size, const char *pool)
{
	struct casync_export_keys keys = {
		.data_pool = (char *)pool,
		.tuning = {.object_size = object_size,
			   .stripe_unit = object_size,
			   .stripe_count = object_size != 0},
	};
	struct casync_layout_texts *texts;
	int rc = casync_layout_prepare(&exp_of_ours.layout, &stub_mount, &keys,
				       &texts);

	if (rc == 0)
		casync_layout_replace(&exp_of_ours.layout, texts);
	else
		assert_null(texts);
	return rc;
}

static int create(bool wants_change)
{
	bool changed;
	int rc =
		casync_layout_apply(&exp_of_ours.layout, &dir, &file, &changed);

	assert_int_equal(changed, wants_change);
	return rc;
}

CASE(nothing_is_set_unless_asked_for)
{
	assert_int_equal(create(false), 0);
	assert_int_equal(configure(0, NULL), 0);
	assert_int_equal(create(false), 0);
	assert_int_equal(configure(0, ""), 0);
	assert_int_equal(create(false), 0);
	assert_int_equal(sets_small + sets_fast + sets_else, 0);
}

CASE(a_new_layout_holds_for_the_next_file)
{
	assert_int_equal(configure(65536, NULL), 0);
	assert_int_equal(create(true), 0);
	assert_int_equal(sets_small, 1);
	assert_int_equal(configure(65536, "fast"), 0);
	assert_int_equal(create(true), 0);
	assert_int_equal(sets_fast, 1);
	assert_int_equal(configure(0, NULL), 0);
	assert_int_equal(create(false), 0);
	assert_int_equal(sets_small + sets_fast + sets_else, 2);
}

CASE(a_pool_that_is_not_there_leaves_the_old_layout)
{
	assert_int_equal(configure(65536, NULL), 0);
	assert_int_equal(configure(65536, "nowhere"), -ENOENT);
	assert_int_equal(create(true), 0);
	assert_int_equal(sets_small, 1);
}

CASE(the_folders_word_counts)
{
	assert_int_equal(configure(65536, NULL), 0);
	folder_has = true;
	assert_int_equal(create(false), 0);
	folder_has = false;
	has = "stripe_unit=65536 stripe_count=1 object_size=65536 pool=data";
	assert_int_equal(create(false), 0);
	assert_int_equal(sets_small, 0);
}

CASE(what_the_mds_refuses_fails_the_create)
{
	assert_int_equal(configure(65536, NULL), 0);
	set_rc = -EPERM;
	assert_int_equal(create(false), -EPERM);
}

static void *create_on(void *arg)
{
	bool changed;

	(void)arg;
	while (!NOW(creators_end)) {
		if (casync_layout_apply(&exp_of_ours.layout, &dir, &file,
					&changed) != 0)
			return "failed";
		__atomic_add_fetch(&were_changed, changed, __ATOMIC_RELAXED);
	}
	return NULL;
}

CASE(layouts_change_while_files_are_created)
{
	pthread_t creators[CREATORS];
	unsigned int i, before;
	void *wrong;

	creators_end = false;
	were_changed = 0;

	for (i = 0; i < CREATORS; i++)
		assert_int_equal(
			pthread_create(&creators[i], NULL, create_on, NULL), 0);
	for (i = 0; i < ROUNDS; i++)
		assert_int_equal(configure(i % 3 ? 65536 : 0,
					   i % 3 == 2 ? "fast" : NULL),
				 0);
	/* Each layout that stays is seen in the end. */
	assert_int_equal(configure(65536, NULL), 0);
	before = NOW(sets_small);
	RIG_UNTIL(NOW(sets_small) > before + CREATORS);
	assert_int_equal(configure(65536, "fast"), 0);
	before = NOW(sets_fast);
	RIG_UNTIL(NOW(sets_fast) > before + CREATORS);
	__atomic_store_n(&creators_end, true, __ATOMIC_RELEASE);
	for (i = 0; i < CREATORS; i++) {
		RIG_JOIN(creators[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(sets_else, 0);
	assert_int_equal(sets_small + sets_fast, were_changed);
}
