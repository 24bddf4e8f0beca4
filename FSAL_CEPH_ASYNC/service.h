/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file service.h
 * @brief Our part in a cluster of gateways.
 */
#ifndef CASYNC_SERVICE_H
#define CASYNC_SERVICE_H

#include "config_parsing.h"
#include "fsal_api.h"

/** m_ops.fsal_reclaim_client: another node is dead and we take over. */
fsal_status_t casync_service_take_over(struct fsal_module *fsal_hdl,
				       char *nodeid);

/**
 * While the configuration is read: what Register_Service will need.
 *
 * @param[in] keys  The module's; they stay where they are.
 */
struct casync_module_keys;
void casync_service_configure(const struct casync_module_keys *keys,
			      struct config_error_type *err_type);

/** m_ops.fsal_register_nfs_service: Register_Service, NodeId. */
void casync_service_register(void);

#endif /* CASYNC_SERVICE_H */
