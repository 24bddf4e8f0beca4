/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file prometheus.h
 * @brief The metrics in Ganesha's registry, which its endpoint serves.
 *
 * The functions of the registry are looked up at run time: a Ganesha without
 * monitoring has none, and the plugin loads there all the same.
 *
 * Nothing can be taken out of the registry.  So what is registered for an
 * export id stays, and goes on where an export of that id comes back:
 * counters never go down.
 *
 * No lock of its own: publish.c calls under its lock.
 */
#ifndef CASYNC_PROMETHEUS_H
#define CASYNC_PROMETHEUS_H

#include <stdint.h>

struct casync_prometheus;
struct casync_view;

/**
 * What is registered for an export id.
 *
 * @param[in] client  Whose session it has; may be another one each time.
 *
 * @return NULL where there is no registry, and while the id is in use: one
 *         export may take another's place before that is gone.
 */
struct casync_prometheus *casync_prometheus_get(uint16_t export_id,
						const char *client);

/** The export is gone.  NULL is allowed. */
void casync_prometheus_put(struct casync_prometheus *of);

/** Add what has come since the last call.  NULL is allowed. */
void casync_prometheus_update(struct casync_prometheus *of,
			      const struct casync_view *view);

/** Forget everything; Ganesha's registry keeps what it has. */
void casync_prometheus_free(void);

#endif /* CASYNC_PROMETHEUS_H */
