/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file tree.h
 * @brief Writes Ganesha's parse tree, and the values of our keys, as JSON.
 */
#ifndef CASYNC_TREE_H
#define CASYNC_TREE_H

#include "json.h"
#include "keys.h"

/**
 * Write all blocks of a file (config_file_t): name, file, line, keys with
 * their values, and the blocks in them.  A secret value is there too, marked:
 * a mount needs it, and it may come from RADOS (%url).
 */
void casync_tree_write(struct casync_json *json, const char *name,
		       const void *file);

/** Write the value of each key of a block, by the table of keys. */
void casync_tree_values(struct casync_json *json, const char *name,
			enum casync_block block, const void *values);

/** Give a block another name, so that Ganesha does not find it. */
void casync_tree_hide(const void *file, const char *name);

/** Take all that a block has out of it: Ganesha goes past an empty one. */
void casync_tree_empty(const void *block);

#endif /* CASYNC_TREE_H */
