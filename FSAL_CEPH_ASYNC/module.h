/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file module.h
 * @brief The FSAL module, one static object that Ganesha registers, and what
 * the files beside module.c do for it.
 */
#ifndef CASYNC_MODULE_H
#define CASYNC_MODULE_H

#include "config_parsing.h"
#include "fsal_api.h"
#include "config_keys.h"

struct casync_export;
struct casync_keeper_hooks;

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

/* --- export_ops.c */

/** Fill in all operations but those that end an export: they are export.c's. */
void casync_export_ops_init(struct export_ops *ops);

/**
 * The rest of a path below the root of the export's mount.
 *
 * @return A part of @p path, or "/"; NULL if it is not below the root.
 */
const char *casync_export_ops_below_mount(const struct casync_export *exp,
					  const char *path);

/* --- reload.c */

/**
 * m_ops.update_config: read CEPH_ASYNC { } again, once per file.
 *
 * The new values apply to exports that are read afterwards.  If Ganesha's own
 * file does not have the block, the defaults apply.  If another file (of
 * UpdateExport or AddExport) does not have it, nothing changes.
 */
fsal_status_t casync_reload_module(struct fsal_module *fsal_hdl,
				   config_file_t config,
				   struct config_error_type *err_type);

/** Do it when an export is read, if Ganesha does not (ganesha.h). */
void casync_reload_module_first(struct fsal_module *fsal_hdl,
				const void *parse_node,
				struct config_error_type *err_type);

/**
 * m_ops.update_export: read EXPORT { FSAL { } } again.
 *
 * op_ctx has the running export.  If the new values are refused, it keeps its
 * old ones.
 */
fsal_status_t casync_reload_export(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   struct fsal_export *original,
				   struct fsal_module *updated_super);

/* --- restore.c */

/** A mount's keeper calls them around a change of the client. */
extern const struct casync_keeper_hooks casync_restore_hooks;

#endif /* CASYNC_MODULE_H */
