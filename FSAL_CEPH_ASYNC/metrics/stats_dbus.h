/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stats_dbus.h
 * @brief Shows the metrics on DBus: GetFSALStats and ResetStats of Ganesha.
 *
 * The reply has the form that Ganesha's own tool knows from FSAL_GPFS: a name,
 * rows of (what, count, mean, least, most), and a word.  Times are
 * milliseconds.  In a row without times they are 0.
 */
#ifndef CASYNC_STATS_DBUS_H
#define CASYNC_STATS_DBUS_H

#include "fsal_api.h"

/** Set the hooks.  It does nothing if Ganesha was built without DBus. */
void casync_stats_dbus_init(struct fsal_module *fsal);

#endif /* CASYNC_STATS_DBUS_H */
