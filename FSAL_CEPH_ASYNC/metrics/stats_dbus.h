/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stats_dbus.h
 * @brief Shows the metrics on DBus: GetFSALStats and ResetStats of Ganesha.
 *
 * The reply has the form that Ganesha tells of when it is asked (Introspect): a
 * name, an array of rows (what, count, mean, least, most), and a word.  Times
 * are milliseconds.  In a row without times they are 0.
 *
 * FSAL_GPFS puts all values of all rows into one struct.  The type of a message
 * has 255 characters at most, and each value has one.  libdbus does not check
 * that: with more than 49 rows the process would crash.
 */
#ifndef CASYNC_STATS_DBUS_H
#define CASYNC_STATS_DBUS_H

#include "fsal_api.h"

/** Set the hooks.  It does nothing if Ganesha was built without DBus. */
void casync_stats_dbus_init(struct fsal_module *fsal);

#endif /* CASYNC_STATS_DBUS_H */
