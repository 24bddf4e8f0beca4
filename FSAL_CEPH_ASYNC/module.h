/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file module.h
 * @brief The FSAL module: one static object that Ganesha registers.
 */
#ifndef CASYNC_MODULE_H
#define CASYNC_MODULE_H

#include "fsal_api.h"
#include "config_keys.h"

struct casync_module {
	struct fsal_module fsal;
	struct fsal_obj_ops obj_ops;
	struct casync_module_keys keys;
	uint64_t generation; /**< Of the last file that was read. */
	bool ready;	     /**< The block was right, and threads run. */
};

static inline struct casync_module *
casync_module_of(struct fsal_module *fsal_hdl)
{
	return container_of(fsal_hdl, struct casync_module, fsal);
}

#endif /* CASYNC_MODULE_H */
