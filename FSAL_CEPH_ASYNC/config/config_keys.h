/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file config_keys.h
 * @brief Reads the blocks CEPH_ASYNC { } and EXPORT { FSAL { } } into structs,
 * and of Ganesha's parse tree the file, line and sign of a value.
 */
#ifndef CASYNC_CONFIG_KEYS_H
#define CASYNC_CONFIG_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "config_parsing.h"
#include "fsal_api.h"
#include "tuning.h"

/** CEPH_ASYNC { } */
struct casync_module_keys {
	char *ceph_conf;
	uint32_t umask;
	bool client_oc;
	bool async;
	bool zerocopy;
	bool use_old_uuid;
	bool register_service;
	char *nodeid;
	char *handle_keys; /**< Path of handle_keys.h; NULL: none. */
	bool sign_handles;
	uint32_t max_inflight_total;
	uint64_t max_inflight_bytes_total;
	uint64_t cache_bytes; /**< 0: no read cache. */
	char *metrics_file;   /**< NULL: none. */
	char *data_pool;
	char *ceph_options; /**< A list of ceph_options.h. */
	struct casync_tuning tuning;
};

/** EXPORT { FSAL { } } */
struct casync_export_keys {
	char *user_id;
	char *filesystem;
	char *cmount_path;
	char *secret;
	char *sec_label_xattr;
	bool sign_handles;
	char *data_pool;    /**< NULL or "": the folder's value. */
	char *ceph_options; /**< The module's, then the export's own. */
	struct casync_tuning tuning;
};

/**
 * Lock and unlock the module's values while they change.  An export that is
 * added reads them meanwhile.  The lock is a leaf.
 */
void casync_config_lock(void);
void casync_config_unlock(void);

/**
 * Read CEPH_ASYNC { }.
 *
 * @param[out] keys  Zeroed by the caller; casync_key_values_free() frees.
 *
 * @return Whether the block is right; if not, the error has been logged.
 */
bool casync_config_read_module(config_file_t config,
			       struct casync_module_keys *keys,
			       struct config_error_type *err_type);

/**
 * Read EXPORT { FSAL { } }.  Keys that it does not set get the module's values.
 *
 * @param[in]  node  Parse tree node of the block.
 * @param[out] keys  Zeroed by the caller; casync_key_values_free() frees.
 *
 * @return ERR_FSAL_INVAL if a key is wrong; the error has been logged.
 */
fsal_status_t casync_config_export(void *node,
				   const struct casync_module_keys *inherited,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type);

/** The file that the value is in. */
const char *casync_config_node_file(const void *cnode);

/** The line that the value is on. */
int casync_config_node_line(const void *cnode);

/** The sign before the number: "-", "~" or "". */
const char *casync_config_node_sign(const void *cnode);

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

/** The whole file (config_file_t) that a node is in. */
void *casync_config_node_root(const void *cnode);

/** The generation of a whole file (config_file_t). */
uint64_t casync_config_generation(const void *file);

/** Is it the file that Ganesha was started with, and reads after a SIGHUP? */
bool casync_config_is_main(const void *file);

#endif /* CASYNC_CONFIG_KEYS_H */
