/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file reload.h
 * @brief Applies a changed configuration while exports serve.
 *
 * After a SIGHUP Ganesha reads its whole file; UpdateExport (DBus) reads one
 * export of a file.  For each export Ganesha calls casync_reload_module() and,
 * if it already has the export, casync_reload_export().  Both take over all new
 * values or none.  If CEPH_ASYNC { } is refused, it keeps its old values, and
 * the exports are still read.  No request is held back.  Limits and modes are
 * stored where requests read them (tuning.h).  They apply to requests that
 * start later.
 */
#ifndef CASYNC_RELOAD_H
#define CASYNC_RELOAD_H

#include "config_parsing.h"
#include "fsal_api.h"

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

#endif /* CASYNC_RELOAD_H */
