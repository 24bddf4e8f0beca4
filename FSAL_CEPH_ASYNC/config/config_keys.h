/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file config_keys.h
 * @brief Reads the blocks CEPH_ASYNC { } and EXPORT { FSAL { } } into structs.
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
	char *data_pool;
	char *ceph_options; /**< A list of ceph_options.h. */
	struct casync_tuning tuning;
};

/** Most clients of an export; CASYNC_CLIENTS_MAX of mount.h. */
#define CASYNC_CLIENTS_LIMIT 16

/** EXPORT { FSAL { } } */
struct casync_export_keys {
	char *user_id;
	char *filesystem;
	char *cmount_path;
	char *secret;
	char *sec_label_xattr;
	bool sign_handles;
	uint32_t clients;   /**< Of libcephfs, for this export. */
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
 * @param[out] keys  Zeroed by the caller; casync_keys_free() frees.
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
 * @param[out] keys  Zeroed by the caller; casync_keys_free() frees.
 *
 * @return ERR_FSAL_INVAL if a key is wrong; the error has been logged.
 */
fsal_status_t casync_config_export(void *node,
				   const struct casync_module_keys *inherited,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type);

#endif /* CASYNC_CONFIG_KEYS_H */
