/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file config_keys.h
 * @brief The CEPH_ASYNC { } and EXPORT { FSAL { } } keys as plain structs.
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
	uint32_t max_inflight_total;
	uint64_t max_inflight_bytes_total;
	char *data_pool;
	char *ceph_options; /**< Of ceph_options.h. */
	struct casync_tuning tuning;
};

/** EXPORT { FSAL { } } */
struct casync_export_keys {
	char *user_id;
	char *filesystem;
	char *cmount_path;
	char *secret;
	char *sec_label_xattr;
	char *data_pool;    /**< NULL or "": as the folder says. */
	char *ceph_options; /**< The module's, then its own. */
	struct casync_tuning tuning;
};

/**
 * Around changes of the module's values: an export that is added reads them
 * meanwhile.  A leaf.
 */
void casync_config_lock(void);
void casync_config_unlock(void);

/**
 * Read CEPH_ASYNC { }.
 *
 * @param[out] keys  Zeroed by the caller; casync_keys_free() frees.
 *
 * @return Whether all of it is right; else it has been logged.
 */
bool casync_config_read_module(config_file_t config,
			       struct casync_module_keys *keys,
			       struct config_error_type *err_type);

/**
 * Read EXPORT { FSAL { } }; where it says nothing, the module's values hold.
 *
 * @param[in]  node  Parse tree node of the block.
 * @param[out] keys  Zeroed by the caller; casync_keys_free() frees.
 *
 * @return ERR_FSAL_INVAL when a key is wrong; it has been logged.
 */
fsal_status_t casync_config_export(void *node,
				   const struct casync_module_keys *inherited,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type);

#endif /* CASYNC_CONFIG_KEYS_H */
