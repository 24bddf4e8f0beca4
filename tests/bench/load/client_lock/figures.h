/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What client_lock.c counts, as it lies in the file of CLIENT_LOCK_FILE.  All
 * are 64-bit words, so that tests/bench/studies/client_lock.py can read them while the
 * daemon runs; FIELDS there has the same order.
 */
#ifndef CLIENT_LOCK_FIGURES_H
#define CLIENT_LOCK_FIGURES_H

#include <stdint.h>

#define FIGURES_KINDS 32
#define FIGURES_BUCKETS 40
#define FIGURES_NAME_WORDS 2

/* The threads of one name, without the number at its end. */
struct figures_kind {
	char name[FIGURES_NAME_WORDS * 8];
	uint64_t taken;	    /* acquisitions, also those after a wait */
	uint64_t contended; /* of them: somebody else held it */
	uint64_t waited_ns; /* for the holder */
	uint64_t waits;	    /* on a condition, with the lock given up */
	uint64_t held_ns;   /* by the clock */
	uint64_t sampled;   /* holds with their CPU time */
	uint64_t sampled_cpu_ns;
	uint64_t holds[FIGURES_BUCKETS]; /* [i]: below 2^i ns */
};

struct figures {
	uint64_t mutex; /* its address; 0 until it is known */
	uint64_t learned_calls;
	uint64_t learned_votes;	 /* of these calls it was the longest held */
	uint64_t clock_ns;	 /* what reading the clock twice gives */
	uint64_t cpu_clock_ns;	 /* the same for the CPU clock */
	uint64_t callbacks;	 /* of non-blocking I/O */
	uint64_t callbacks_held; /* of them: their thread held the mutex */
	uint64_t callbacks_ns;	 /* in them, with it held */
	uint64_t kinds;
	struct figures_kind kind[FIGURES_KINDS];
};

#endif
