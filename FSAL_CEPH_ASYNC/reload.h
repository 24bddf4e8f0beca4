/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reload.h
 * @brief The configuration, read again while we serve.
 *
 * By SIGHUP Ganesha reads all of its file, by UpdateExport (DBus) one export
 * of a file.  For each export it calls casync_reload_module() and, if it has
 * the export already, casync_reload_export(): both take over all that is new
 * or nothing.  A block that is refused keeps the old values of the block,
 * exports are read all the same.  Requests are not held up: limits and modes are stored where
 * they are read (tuning.h), and hold for what starts from then on.
 */
#ifndef CASYNC_RELOAD_H
#define CASYNC_RELOAD_H

#include "config_parsing.h"
#include "fsal_api.h"

/**
 * m_ops.update_config: read CEPH_ASYNC { } again, once per file.
 *
 * What it gives holds for exports read after that.  Ganesha's own file without
 * the block brings the defaults back; any other, as UpdateExport's and
 * AddExport's are, changes nothing then.
 */
fsal_status_t casync_reload_module(struct fsal_module *fsal_hdl,
				   config_file_t config,
				   struct config_error_type *err_type);

/**
 * m_ops.update_export: read EXPORT { FSAL { } } again.
 *
 * op_ctx has the export that runs.  One that is refused goes on as it was.
 */
fsal_status_t casync_reload_export(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   struct fsal_export *original,
				   struct fsal_module *updated_super);

#endif /* CASYNC_RELOAD_H */
