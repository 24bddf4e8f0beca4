/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What disks.c counts, as it lies in the file of DISK_FILE: 64-bit words, as
 * FIELDS in tests/bench/studies/disks.py.
 */
#ifndef DISKS_FIGURES_H
#define DISKS_FIGURES_H

#include <stdint.h>

struct figures {
	uint64_t mib_s; /* the study may write it; 0: counted, but not slowed */
	uint64_t seek_us;
	uint64_t reads;
	uint64_t writes;
	uint64_t bytes;
	uint64_t seeks;
};

#endif
