/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file service.h
 * @brief Work in a cluster of gateways: takeover of a node, and registration.
 */
#ifndef CASYNC_SERVICE_H
#define CASYNC_SERVICE_H

#include "config_parsing.h"
#include "fsal_api.h"

/** m_ops.fsal_reclaim_client: another node has died, and its clients come
 * here. */
fsal_status_t casync_service_take_over(struct fsal_module *fsal_hdl,
				       char *nodeid);

/**
 * Read what Register_Service needs, while the configuration is read.
 *
 * @param[in] keys  The module's keys; the pointer is kept.
 */
struct casync_module_keys;
void casync_service_configure(const struct casync_module_keys *keys,
			      struct config_error_type *err_type);

/** m_ops.fsal_register_nfs_service: do what Register_Service asks for. */
void casync_service_register(void);

#endif /* CASYNC_SERVICE_H */
