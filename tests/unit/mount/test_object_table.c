/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "object.h"
#include "rig.h"
#include "object_table.h"
#include "read_cache.h"

#define OBJECTS 2000
#define INODES 500
#define THREADS 4

static struct casync_object_table table;
static struct casync_export exports[2];
static struct casync_object objs[OBJECTS];

/* Objects 0, INODES, 2 * INODES… are of one Inode. */
static int up(void **state)
{
	uint32_t i;

	casync_object_table_init(&table);
	memset(objs, 0, sizeof(objs));
	for (i = 0; i < OBJECTS; i++) {
		objs[i].exp = &exports[i % 2];
		objs[i].id.ino = i % INODES;
		objs[i].inode =
			(struct Inode *)(uintptr_t)(4096 + i % INODES * 64);
		memcpy(objs[i].key, &i, sizeof(i));
	}
	return 0;
}

static int down(void **state)
{
	casync_object_table_destroy(&table);
	return 0;
}

#define CASE(test) TEST_WITH(test, up, down)

CASE(objects_of_an_inode_share_one_reference)
{
	assert_false(casync_object_table_enter(&table, &objs[0]));
	assert_true(casync_object_table_enter(&table, &objs[INODES]));
	assert_false(casync_object_table_enter(&table, &objs[1]));
	/* Whoever came first may go first. */
	assert_false(casync_object_table_leave(&table, &objs[0]));
	assert_true(casync_object_table_enter(&table, &objs[2 * INODES]));
	assert_false(casync_object_table_leave(&table, &objs[INODES]));
	assert_true(casync_object_table_leave(&table, &objs[2 * INODES]));
	assert_true(casync_object_table_leave(&table, &objs[1]));
	assert_false(casync_object_table_enter(&table, &objs[0]));
	assert_true(casync_object_table_leave(&table, &objs[0]));
}

/* A write through one export is seen by the READs of the other. */
CASE(objects_of_a_file_share_what_is_cached)
{
	struct casync_cached_file *first = calloc(1, sizeof(*first));
	struct casync_object *other = &objs[INODES + 1];
	uint64_t epoch;

	objs[1].cached = first;
	other->cached = calloc(1, sizeof(*first));
	objs[2].cached = calloc(1, sizeof(*first));
	(void)casync_object_table_enter(&table, &objs[1]);
	(void)casync_object_table_enter(&table, other);
	(void)casync_object_table_enter(&table, &objs[2]);
	assert_ptr_equal(other->cached, first);
	assert_ptr_not_equal(objs[2].cached, first);
	epoch = casync_cache_epoch(&objs[1].cached->file);
	casync_cache_begin_write(&other->cached->file);
	assert_true(casync_cache_epoch(&objs[1].cached->file) != epoch);
	casync_cache_end_write(&other->cached->file);

	/* The last one has to free it. */
	(void)casync_object_table_leave(&table, &objs[1]);
	assert_null(objs[1].cached);
	assert_ptr_equal(other->cached, first);
	(void)casync_object_table_leave(&table, other);
	assert_ptr_equal(other->cached, first);
	casync_read_cache_free(other->cached);
	(void)casync_object_table_leave(&table, &objs[2]);
	casync_read_cache_free(objs[2].cached);
}

/* A snapshot's file has the same inode number, and other data. */
CASE(snapshot_shares_nothing_with_the_head)
{
	struct casync_object *head = &objs[3], *snap = &objs[INODES + 3];

	head->cached = calloc(1, sizeof(*head->cached));
	snap->cached = calloc(1, sizeof(*snap->cached));
	snap->id.snapid = 7;
	(void)casync_object_table_enter(&table, head);
	(void)casync_object_table_enter(&table, snap);
	assert_ptr_not_equal(head->cached, snap->cached);
	(void)casync_object_table_leave(&table, head);
	(void)casync_object_table_leave(&table, snap);
	casync_read_cache_free(head->cached);
	casync_read_cache_free(snap->cached);
}

CASE(a_file_is_delegated_if_one_of_its_objects_is)
{
	struct casync_object *one = &objs[3], *other = &objs[INODES + 3];

	(void)casync_object_table_enter(&table, one);
	(void)casync_object_table_enter(&table, other);
	(void)casync_object_table_enter(&table, &objs[4]);
	objs[4].delegations.count = 1;
	assert_false(casync_object_table_is_delegated(&table, &one->id));
	other->delegations.count = 1;
	assert_true(casync_object_table_is_delegated(&table, &one->id));
	other->delegations.count = objs[4].delegations.count = 0;
	(void)casync_object_table_leave(&table, one);
	(void)casync_object_table_leave(&table, other);
	(void)casync_object_table_leave(&table, &objs[4]);
}

static unsigned int seen[OBJECTS];

CASE(object_is_alone_until_another_export_has_the_file)
{
	struct casync_object *one = &objs[3], *other = &objs[INODES + 3];

	(void)casync_object_table_enter(&table, one);
	(void)casync_object_table_enter(&table, &objs[4]);
	assert_true(casync_object_table_is_alone(&table, &one->id));
	(void)casync_object_table_enter(&table, other);
	assert_false(casync_object_table_is_alone(&table, &one->id));
	assert_false(casync_object_table_is_alone(&table, &other->id));
	(void)casync_object_table_leave(&table, one);
	assert_true(casync_object_table_is_alone(&table, &other->id));
	(void)casync_object_table_leave(&table, other);
	(void)casync_object_table_leave(&table, &objs[4]);
}

static void see(void *arg, const void *key)
{
	uint32_t i;

	memcpy(&i, key, sizeof(i));
	seen[i]++;
	/* No lock is held. */
	if (arg != NULL && !casync_object_table_leave(&table, &objs[i]))
		(void)casync_object_table_enter(&table, &objs[i]);
}

CASE(visit_has_each_object_of_the_export_once)
{
	unsigned int i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < OBJECTS; i++)
		(void)casync_object_table_enter(&table, &objs[i]);
	casync_object_table_visit(&table, &exports[1], see, NULL);
	for (i = 0; i < OBJECTS; i++)
		assert_int_equal(seen[i], i % 2);
}

CASE(visit_may_change_the_roll)
{
	unsigned int i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < INODES; i++)
		(void)casync_object_table_enter(&table, &objs[i]);
	casync_object_table_visit(&table, &exports[0], see, &table);
	for (i = 0; i < INODES; i++)
		assert_int_equal(seen[i], 1 - i % 2);
	memset(seen, 0, sizeof(seen));
	casync_object_table_visit(&table, &exports[0], see, NULL);
	for (i = 0; i < INODES; i++)
		assert_int_equal(seen[i], 0);
}

/* References as libcephfs would count them: each object comes with one. */
static int refs[INODES];

static void *come_and_go(void *arg)
{
	const unsigned int first = (unsigned int)(uintptr_t)arg * INODES;
	unsigned int i, round;

	for (round = 0; round < 200; round++) {
		for (i = 0; i < INODES; i++) {
			__atomic_add_fetch(&refs[i], 1, __ATOMIC_ACQ_REL);
			if (casync_object_table_enter(&table, &objs[first + i]))
				__atomic_sub_fetch(&refs[i], 1,
						   __ATOMIC_ACQ_REL);
		}
		for (i = 0; i < INODES; i++) {
			if (casync_object_table_leave(&table, &objs[first + i]))
				__atomic_sub_fetch(&refs[i], 1,
						   __ATOMIC_ACQ_REL);
		}
	}
	return NULL;
}

CASE(references_add_up_whoever_comes_and_goes)
{
	pthread_t threads[THREADS];
	unsigned int i;

	memset(refs, 0, sizeof(refs));
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go,
						(void *)(uintptr_t)i),
				 0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	for (i = 0; i < INODES; i++)
		assert_int_equal(refs[i], 0);
}

_Static_assert(THREADS *INODES == OBJECTS, "each thread has its own");
