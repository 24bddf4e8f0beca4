/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file export_ops.h
 * @brief What Ganesha asks of an export: paths, handles, space, what is offered.
 *
 * fsal_api.h of Ganesha has the contracts (struct export_ops).  All operations
 * run on a Ganesha worker with op_ctx set, and may block.
 */
#ifndef CASYNC_EXPORT_OPS_H
#define CASYNC_EXPORT_OPS_H

#include "fsal_api.h"

struct casync_export;

/** Fill in all operations but those that end an export: they are export.c's. */
void casync_export_ops_init(struct export_ops *ops);

/**
 * The rest of a path below the root of the export's mount.
 *
 * @return A part of @p path, or "/"; NULL if it is not below the root.
 */
const char *casync_export_below_mount(const struct casync_export *exp,
				      const char *path);

#endif /* CASYNC_EXPORT_OPS_H */
