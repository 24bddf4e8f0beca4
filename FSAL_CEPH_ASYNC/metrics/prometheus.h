/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file prometheus.h
 * @brief Shows the metrics in Ganesha's registry, for its Prometheus endpoint.
 *
 * The functions of the registry are looked up at run time.  A Ganesha without
 * monitoring does not have them, and still loads the plugin.
 *
 * Nothing can be removed from the registry.  So the metrics of an export id
 * stay registered.  An export that gets the same id later continues them:
 * counters never go down.
 *
 * There is no lock here: publish.c calls under its own lock.
 */
#ifndef CASYNC_PROMETHEUS_H
#define CASYNC_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

struct casync_prometheus;
struct casync_view;

/**
 * Get the registered metrics of an export id.
 *
 * @param[in] client  The label of its session; it may differ each time.
 *
 * @return NULL if there is no registry, or the id is in use: an export may be
 *         added before its predecessor with the same id is gone.
 */
struct casync_prometheus *casync_prometheus_get(uint16_t export_id,
						const char *client);

/** The export is gone.  NULL is allowed. */
void casync_prometheus_put(struct casync_prometheus *of);

/** Add the counts since the last call.  NULL is allowed. */
void casync_prometheus_update(struct casync_prometheus *of,
			      const struct casync_view *view);

/**
 * Add what the process has counted since the last call.
 *
 * Once all exports are up to date: before the first one there is nothing to
 * show it in.
 *
 * @param[in] view       Has the numbers of the process.
 * @param[in] libcephfs  Its version.
 */
void casync_prometheus_update_process(const struct casync_view *view,
				      const char *libcephfs);

/** Free our memory; Ganesha's registry keeps its metrics. */
void casync_prometheus_free(void);

#endif /* CASYNC_PROMETHEUS_H */
