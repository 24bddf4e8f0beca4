/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file object_table.h
 * @brief All objects of a mount, by inode: they share one Inode reference.
 *
 * There are two reasons for the table.  First, libcephfs asks to release an
 * Inode only if it has one reference (seen with 20.2.4).  Exports that share a
 * mount have one object each for the same file.  So all objects of an Inode
 * share one reference.  Second, the queue of upcalls can overflow.  Then
 * everything that an export's cache may hold is invalidated, and Ganesha has no
 * list of that.
 *
 * The objects of a file also share what the read cache knows of it: a write
 * through one export must drop the pages that another one has read.
 *
 * An Inode is of one client of the mount (guard.h).  References are counted for
 * each client by itself.
 *
 * The locks are leaves.
 */
#ifndef CASYNC_OBJECT_TABLE_H
#define CASYNC_OBJECT_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inode;
struct casync_export;
struct casync_fileid;
struct casync_object;

/** With a million objects in Ganesha's cache, a bucket has some 30. */
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
 * Add an object; its id, inode and generation must be set.  obj->cached is
 * freed, and the file's is in its place, if another object has one.
 *
 * @return Whether another object of the Inode is in the table: then the caller
 *         must drop the reference that came with this object.
 */
bool casync_object_table_enter(struct casync_object_table *table,
			       struct casync_object *obj);

/** Has the file one object only?  Then no other export uses it. */
bool casync_object_table_is_alone(struct casync_object_table *table,
				  const struct casync_fileid *id);

/** Has a client a delegation of the file, from any export? */
bool casync_object_table_is_delegated(struct casync_object_table *table,
				      const struct casync_fileid *id);

/**
 * Give an object the Inode of another client, unless another thread has.
 *
 * @return Whether an object of the Inode is in the table: then the caller must
 *         drop the reference that came with this one.
 */
bool casync_object_table_renew(struct casync_object_table *table,
			       struct casync_object *obj, struct Inode *inode,
			       uint32_t generation);

/**
 * Remove an object.  obj->cached is NULL then, but for the last object of the
 * file: its caller must free it.
 *
 * @return Whether it was the last object of its Inode: then the caller must
 *         drop the reference.
 */
bool casync_object_table_leave(struct casync_object_table *table,
			       struct casync_object *obj);

/**
 * Call a function with the key of each of an export's objects.
 *
 * No lock is held meanwhile, and the object may be freed already.  Objects that
 * are added or removed meanwhile may be missed.
 */
void casync_object_table_visit(struct casync_object_table *table,
			       const struct casync_export *exp,
			       void (*visit)(void *arg, const void *key),
			       void *arg);

#endif /* CASYNC_OBJECT_TABLE_H */
