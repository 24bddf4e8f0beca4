/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stats_dbus.h
 * @brief The metrics over DBus: GetFSALStats and ResetStats of Ganesha.
 *
 * The shape of the reply is the one Ganesha's own tool knows of FSAL_GPFS: a
 * name, rows of (what, count, mean, least, most), a word.  Times are
 * milliseconds; where there is no time, they are 0.
 */
#ifndef CASYNC_STATS_DBUS_H
#define CASYNC_STATS_DBUS_H

#include "fsal_api.h"

/** Set the hooks; where Ganesha has no DBus, there are none. */
void casync_stats_dbus_init(struct fsal_module *fsal);

#endif /* CASYNC_STATS_DBUS_H */
