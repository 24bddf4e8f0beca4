/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Objects that share a bucket of the table, and no file. */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "object.h"
#include "object_table.h"

/* Numbers in a row are spread evenly.  Of 4,000 others in 32,768 buckets hundreds
 * are not by themselves. */
#define OBJECTS 4000

static uint64_t number(uint64_t i)
{
	return 1 + i * i * i;
}

static struct casync_object_table table;
static struct casync_object objs[OBJECTS];

static int up(void **state)
{
	casync_object_table_init(&table);
	memset(objs, 0, sizeof(objs));
	return 0;
}

static int down(void **state)
{
	casync_object_table_destroy(&table);
	return 0;
}

static void check_each_is_alone(void)
{
	uintptr_t i;

	for (i = 0; i < OBJECTS; i++) {
		objs[i].inode = (struct Inode *)(64 * (i + 1));
		assert_false(casync_object_table_enter(&table, &objs[i]));
	}
	for (i = 0; i < OBJECTS; i++)
		assert_true(casync_object_table_is_alone(&table, &objs[i].id));
	for (i = 0; i < OBJECTS; i++)
		assert_true(casync_object_table_leave(&table, &objs[i]));
}

TEST_WITH(files_are_not_each_other, up, down)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++)
		objs[i].id = (struct casync_fileid){.ino = number(i),
						    .snapid = CEPH_NOSNAP};
	check_each_is_alone();
}

TEST_WITH(states_of_a_file_in_snapshots_are_not_each_other, up, down)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++)
		objs[i].id =
			(struct casync_fileid){.ino = 1, .snapid = number(i)};
	check_each_is_alone();
}
