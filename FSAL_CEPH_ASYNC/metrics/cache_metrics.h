/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file cache_metrics.h
 * @brief What the outputs (publish.h) show of the read cache.
 *
 * The cache counts by itself (cache.h): it is the process', and its counters
 * have no export.  Here they are put in the order in which they are shown, with
 * their names.
 */
#ifndef CASYNC_CACHE_METRICS_H
#define CASYNC_CACHE_METRICS_H

#include <stdint.h>

#include "buffer.h"
#include "metrics.h"

enum casync_cache_metric {
	/** Gauges. */
	CASYNC_CM_BUDGET_BYTES,
	CASYNC_CM_USED_BYTES,
	CASYNC_CM_DATA_BYTES,
	CASYNC_CM_GAUGES,
	/** The others only grow. */
	CASYNC_CM_HITS = CASYNC_CM_GAUGES,
	CASYNC_CM_MISSES,
	CASYNC_CM_HIT_BYTES,
	CASYNC_CM_FILLS,
	CASYNC_CM_EVICTIONS,
	CASYNC_CM_EVICTED_BYTES,
	CASYNC_CM_NO_WITNESS,
	CASYNC_CM_AHEAD_BYTES,
	CASYNC_CM_AHEAD_USED_BYTES,
	CASYNC_CM_AHEAD_WASTED_BYTES,
	/** One for each enum casync_cache_drop, and one for fills that had no
	 * buffer. */
	CASYNC_CM_DROPS,
	CASYNC_CM_NO_BUFFER = CASYNC_CM_DROPS + CASYNC_CACHE_DROPS,
	/** One for each enum casync_cache_loss. */
	CASYNC_CM_LOSSES,
	/** One for each enum casync_cache_bypass. */
	CASYNC_CM_BYPASSES = CASYNC_CM_LOSSES + CASYNC_CACHE_LOSSES,
	CASYNC_CACHE_METRICS = CASYNC_CM_BYPASSES + CASYNC_CACHE_BYPASSES,
};

struct casync_cache_numbers {
	uint64_t of[CASYNC_CACHE_METRICS];
};

extern const struct casync_metric_name
	casync_cache_metric_names[CASYNC_CACHE_METRICS];

/** What it is now.  It reads some 16 KiB that READs write to: not for each
 * request. */
void casync_cache_metrics_look(struct casync_cache_numbers *now);

/** Subtract what was before; gauges stay. */
void casync_cache_metrics_since(struct casync_cache_numbers *now,
				const struct casync_cache_numbers *before);

#endif /* CASYNC_CACHE_METRICS_H */
