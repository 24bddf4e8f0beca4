/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file tally.h
 * @brief Counts: latencies, errors by name, requests that were lost.
 */
#ifndef NFSLOAD_TALLY_H
#define NFSLOAD_TALLY_H

#include <stdbool.h>
#include <stdint.h>

struct hdr_histogram;

#define MOST_ERROR_NAMES 32

struct tally {
	struct hdr_histogram *latency_us; /**< Of good answers. */
	uint64_t bytes;
	uint64_t lost;	 /**< No answer at all. */
	uint64_t failed; /**< Answered with an error. */
	struct {
		const char *name; /**< A literal, ours or libnfs'. */
		uint64_t count;
	} errors[MOST_ERROR_NAMES];
};

bool tally_init(struct tally *tally);

void tally_latency(struct tally *tally, int64_t ns, uint64_t bytes);
void tally_error(struct tally *tally, const char *name, bool lost);

static inline bool tally_is_clean(const struct tally *tally)
{
	return tally->lost == 0 && tally->failed == 0;
}

#endif /* NFSLOAD_TALLY_H */
