/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What ceiling.c counts, as it lies in the file of CEILING_FILE.  All are
 * 64-bit words, so that tests/bench/studies/ceiling.py can read them while the
 * daemon runs; FIGURES there has the same order.
 */
#ifndef CEILING_FIGURES_H
#define CEILING_FIGURES_H

#include <stdint.h>

struct figures {
	uint64_t reads;	   /* answered here */
	uint64_t writes;   /* the same */
	uint64_t fsyncs;   /* the same */
	uint64_t getattrs; /* the same */
	uint64_t passed;   /* of these calls, libcephfs answered so many */
};

#endif
