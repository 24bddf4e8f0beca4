/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <string.h>

#include <hdr/hdr_histogram.h>

#include "clock.h"
#include "tally.h"

/* 1 µs to 10 minutes with three digits. */
#define MOST_US (600LL * 1000 * 1000)
#define DIGITS 3

bool tally_init(struct tally *tally)
{
	memset(tally, 0, sizeof(*tally));
	return hdr_init(1, MOST_US, DIGITS, &tally->latency_us) == 0;
}

void tally_latency(struct tally *tally, int64_t ns, uint64_t bytes)
{
	int64_t us = ns / NS_PER_US;

	if (us > MOST_US)
		us = MOST_US;
	(void)hdr_record_value(tally->latency_us, us > 0 ? us : 1);
	tally->bytes += bytes;
}

void tally_error(struct tally *tally, const char *name, bool lost)
{
	int i;

	if (lost)
		tally->lost++;
	else
		tally->failed++;

	for (i = 0; i < MOST_ERROR_NAMES - 1; i++) {
		if (tally->errors[i].name == NULL)
			tally->errors[i].name = name;
		if (strcmp(tally->errors[i].name, name) == 0)
			break;
	}
	if (tally->errors[i].name == NULL)
		tally->errors[i].name = "others";
	tally->errors[i].count++;
}
