/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "cache.h"
#include "cache_metrics.h"

void casync_cache_metrics_look(struct casync_cache_numbers *now)
{
	struct casync_cache_stats stats;
	uint64_t *of = now->of;

	casync_cache_get_stats(&stats);
	of[CASYNC_CM_BUDGET_BYTES] = stats.budget_bytes;
	of[CASYNC_CM_USED_BYTES] = stats.used_bytes;
	of[CASYNC_CM_DATA_BYTES] = stats.cached_bytes;
	of[CASYNC_CM_HITS] = stats.hits;
	of[CASYNC_CM_MISSES] = stats.misses;
	of[CASYNC_CM_HIT_BYTES] = stats.hit_bytes;
	of[CASYNC_CM_FILLS] = stats.counts.puts;
	of[CASYNC_CM_EVICTIONS] = stats.counts.evictions;
	of[CASYNC_CM_EVICTED_BYTES] = stats.counts.evicted_bytes;
	of[CASYNC_CM_NO_WITNESS] = stats.counts.no_witness;
	of[CASYNC_CM_AHEAD_BYTES] = stats.counts.ahead_bytes;
	of[CASYNC_CM_AHEAD_USED_BYTES] = stats.counts.ahead_used_bytes;
	of[CASYNC_CM_AHEAD_WASTED_BYTES] = stats.counts.ahead_wasted_bytes;
	of[CASYNC_CM_NO_BUFFER] = stats.counts.no_buffer;
	memcpy(&of[CASYNC_CM_DROPS], stats.counts.drops,
	       sizeof(stats.counts.drops));
	memcpy(&of[CASYNC_CM_LOSSES], stats.counts.losses,
	       sizeof(stats.counts.losses));
	memcpy(&of[CASYNC_CM_BYPASSES], stats.counts.bypasses,
	       sizeof(stats.counts.bypasses));
}

void casync_cache_metrics_since(struct casync_cache_numbers *now,
				const struct casync_cache_numbers *before)
{
	unsigned int i;

	for (i = CASYNC_CM_GAUGES; i < CASYNC_CACHE_METRICS; i++)
		now->of[i] -= before->of[i];
}

/* clang-format off */
#define PLAIN(name, help) {"read_cache_" name, help, {NULL}, {NULL}}
#define CAUSE(name, help, cause)                                           \
	{"read_cache_" name, help, {"cause"}, {cause}}
#define DROP(cause)                                                        \
	CAUSE("fills_dropped_total",                                       \
	      "READs whose data the read cache did not take.", cause)
#define LOSS(cause)                                                        \
	CAUSE("invalidations_total",                                       \
	      "Files that lost all of their pages in the read cache at "   \
	      "once.", cause)
#define BYPASS(cause)                                                      \
	CAUSE("bypasses_total",                                            \
	      "How often the READs of a file began to do without the "     \
	      "read cache for a while.", cause)

const struct casync_metric_name
	casync_cache_metric_names[CASYNC_CACHE_METRICS] = {
	[CASYNC_CM_BUDGET_BYTES] =
		PLAIN("budget_bytes",
		      "Bytes that the read cache may have (Cache_Bytes)."),
	[CASYNC_CM_USED_BYTES] =
		PLAIN("used_bytes",
		      "Bytes that the read cache has, with all that belongs "
		      "to it."),
	[CASYNC_CM_DATA_BYTES] =
		PLAIN("data_bytes",
		      "Bytes of the buffers in which the read cache has data."),
	[CASYNC_CM_HITS] =
		PLAIN("hits_total", "READs answered from the read cache."),
	[CASYNC_CM_MISSES] =
		PLAIN("misses_total",
		      "READs that the read cache was asked for in vain."),
	[CASYNC_CM_HIT_BYTES] =
		PLAIN("hit_bytes_total",
		      "Bytes of READs answered from the read cache."),
	[CASYNC_CM_FILLS] =
		PLAIN("fills_total",
		      "READs whose data the read cache has taken."),
	[CASYNC_CM_EVICTIONS] =
		PLAIN("evictions_total",
		      "Buffers of data given up for others."),
	[CASYNC_CM_EVICTED_BYTES] =
		PLAIN("evicted_bytes_total",
		      "Bytes of memory of evicted buffers."),
	[CASYNC_CM_NO_WITNESS] =
		PLAIN("witnesses_refused_total",
		      "READs that did without the read cache because too "
		      "many wait for attributes."),
	[CASYNC_CM_AHEAD_BYTES] =
		PLAIN("ahead_bytes_total",
		      "Bytes that READs fetched for READs to come."),
	[CASYNC_CM_AHEAD_USED_BYTES] =
		PLAIN("ahead_used_bytes_total",
		      "Bytes that were read ahead, and asked for later."),
	[CASYNC_CM_AHEAD_WASTED_BYTES] =
		PLAIN("ahead_wasted_bytes_total",
		      "Bytes that were read ahead, and given up before "
		      "anybody asked for them."),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_OFF] = DROP("off"),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_WRITE] = DROP("write"),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_TAG] = DROP("tag"),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_KNOWN] = DROP("known"),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_REFUSED] = DROP("refused"),
	[CASYNC_CM_DROPS + CASYNC_CACHE_DROP_MEMORY] = DROP("memory"),
	[CASYNC_CM_NO_BUFFER] = DROP("no_buffer"),
	[CASYNC_CM_LOSSES + CASYNC_CACHE_LOSS_OWN] = LOSS("own"),
	[CASYNC_CM_LOSSES + CASYNC_CACHE_LOSS_FOREIGN] = LOSS("foreign"),
	[CASYNC_CM_LOSSES + CASYNC_CACHE_LOSS_RELEASED] = LOSS("released"),
	[CASYNC_CM_BYPASSES + CASYNC_CACHE_BYPASS_FOREIGN] = BYPASS("foreign"),
	[CASYNC_CM_BYPASSES + CASYNC_CACHE_BYPASS_COSTLY] = BYPASS("costly"),
};
/* clang-format on */
