/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file module.h
 * @brief The FSAL as Ganesha sees it: one static object.
 */
#ifndef CASYNC_MODULE_H
#define CASYNC_MODULE_H

#include "fsal_api.h"
#include "config_keys.h"

struct casync_module {
	struct fsal_module fsal;
	struct fsal_obj_ops obj_ops;
	struct casync_module_keys keys;
	uint64_t generation; /**< Of the file that was read last. */
	bool ready;	     /**< Its block was right, threads run. */
};

extern struct casync_module casync_module;

static inline struct casync_module *
casync_module_of(struct fsal_module *fsal_hdl)
{
	return container_of(fsal_hdl, struct casync_module, fsal);
}

/**
 * Say in one line what we were built for and what runs us; where that does
 * not go together, refuse it with what to install.
 */
bool casync_module_fits(void);

/** Start the threads, once.  @return 0 or a negative errno. */
int casync_module_start(void);

/**
 * Keep our text mapped until the process ends, for callbacks that may come
 * after Ganesha has unloaded us.
 */
void casync_module_stay(void);

#endif /* CASYNC_MODULE_H */
