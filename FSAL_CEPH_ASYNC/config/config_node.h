/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file config_node.h
 * @brief Reads Ganesha's parse tree: file, line and sign of a value.
 *
 * Ganesha's parser does not pass these to a handler.  A handler gets "5" for
 * -5. For "5, 6" it is called twice, and the last call wins.  The function that
 * names the file and line of an error is not exported to FSALs.  The nodes of
 * the parse tree have this information.  Their header is private to Ganesha; it
 * comes with the source tree that the FSAL is built against.
 */
#ifndef CASYNC_CONFIG_NODE_H
#define CASYNC_CONFIG_NODE_H

#include <stdbool.h>
#include <stdint.h>

/** The file that the value is in. */
const char *casync_config_node_file(const void *cnode);

/** The line that the value is on. */
int casync_config_node_line(const void *cnode);

/** The sign before the number: "-", "~" or "". */
const char *casync_config_node_sign(const void *cnode);

/** Is this the only value of its key? */
bool casync_config_node_alone(const void *cnode);

/**
 * Find the next block of a name in a block, or in a whole file
 * (config_file_t).
 *
 * @param[in] after  The previous block; NULL: find the first.
 *
 * @return NULL: there is no further block.
 */
const void *casync_config_node_block(const void *parent, const char *name,
				     const void *after);

/** The value of a key in a block; the first value if there are several.  NULL:
 * the block does not have the key. */
const char *casync_config_node_value(const void *block, const char *key);

/** The generation of the configuration: a later read has a higher one. */
uint64_t casync_config_node_generation(const void *cnode);

/** The same for a whole file (config_file_t). */
uint64_t casync_config_generation(const void *file);

/** Does the file have a block of this name? */
bool casync_config_has_block(const void *file, const char *name);

/** Is it the file that Ganesha was started with, and reads after a SIGHUP? */
bool casync_config_is_main(const void *file);

#endif /* CASYNC_CONFIG_NODE_H */
