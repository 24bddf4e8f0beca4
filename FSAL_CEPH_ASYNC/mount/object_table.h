/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file object_table.h
 * @brief The objects of a mount, by the Inode they refer to.
 *
 * Two needs.  libcephfs asks to let go only of an Inode that is referred to
 * once (seen with 20.2.4), and exports that share a mount have an object each
 * of a file: so all objects of an Inode share one reference.  And when
 * libcephfs had more to tell than there is room for, everything that an
 * export's cache may hold is invalidated, of which Ganesha has no list for us.
 *
 * The locks are leaves.
 */
#ifndef CASYNC_OBJECT_TABLE_H
#define CASYNC_OBJECT_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct casync_export;
struct casync_object;

/** Some 30 objects each when Ganesha's cache holds a million. */
#define CASYNC_OBJECT_TABLE_BUCKETS 32768

#define CASYNC_OBJECT_TABLE_LOCKS 64

/** Embedded in the mount. */
struct casync_object_table {
	pthread_mutex_t locks[CASYNC_OBJECT_TABLE_LOCKS];
	struct casync_object **buckets;
};

void casync_object_table_init(struct casync_object_table *table);
void casync_object_table_destroy(struct casync_object_table *table);

/**
 * Enter an object; its inode is set.
 *
 * @return Whether another object of the Inode is there: the caller then gives
 *         the reference that came with this one back.
 */
bool casync_object_table_enter(struct casync_object_table *table,
			       struct casync_object *obj);

/**
 * Strike an object out.
 *
 * @return Whether it was the last one of its Inode: then the reference is the
 *         caller's to give back.
 */
bool casync_object_table_leave(struct casync_object_table *table,
			       struct casync_object *obj);

/**
 * Call a function with the key of each of an export's objects.
 *
 * No lock is held then, and the object may be gone.  Objects that come or go
 * meanwhile may be missed.
 */
void casync_object_table_visit(struct casync_object_table *table,
			       const struct casync_export *exp,
			       void (*visit)(void *arg, const void *key),
			       void *arg);

#endif /* CASYNC_OBJECT_TABLE_H */
