/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file config_node.h
 * @brief What Ganesha's parser knows of a value and does not tell handlers.
 *
 * Its handlers get "5" for -5, and for "5, 6" two calls of which the last one
 * wins; and the function that says where in a file something is wrong is not
 * exported to FSALs.  The nodes tell, by a header that Ganesha keeps to itself;
 * it comes with the source tree that the FSAL is built against.
 */
#ifndef CASYNC_CONFIG_NODE_H
#define CASYNC_CONFIG_NODE_H

#include <stdbool.h>
#include <stdint.h>

/** Which file it is in. */
const char *casync_config_node_file(const void *cnode);

/** And on which line. */
int casync_config_node_line(const void *cnode);

/** What stands before the number: "-", "~" or "". */
const char *casync_config_node_sign(const void *cnode);

/** Is it the statement's only value? */
bool casync_config_node_alone(const void *cnode);

/**
 * The next block of a name within a block, or within a whole file
 * (config_file_t).
 *
 * @param[in] after  The one before; NULL: the first.
 *
 * @return NULL: no more.
 */
const void *casync_config_node_block(const void *parent, const char *name,
				     const void *after);

/** The value of a key in a block, the first one if it has several; NULL:
 * none. */
const char *casync_config_node_value(const void *block, const char *key);

/** Which reading of the configuration it is of; later ones have higher ones. */
uint64_t casync_config_node_generation(const void *cnode);

/** The same of a whole file (config_file_t). */
uint64_t casync_config_generation(const void *file);

/** Has that file a block of that name? */
bool casync_config_has_block(const void *file, const char *name);

/** Is it the one that Ganesha was started with, and reads after a SIGHUP? */
bool casync_config_is_main(const void *file);

#endif /* CASYNC_CONFIG_NODE_H */
