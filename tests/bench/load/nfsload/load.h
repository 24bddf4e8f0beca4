/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file load.h
 * @brief The load: every slot of every connection busy, in one thread.
 */
#ifndef NFSLOAD_LOAD_H
#define NFSLOAD_LOAD_H

#include "options.h"
#include "request.h"
#include "tally.h"

struct conn;
struct names;

/** What load and probe measure in; set before both start. */
struct window {
	int64_t from_ns;
	int64_t to_ns;
};

struct load {
	const struct options *options;
	struct file *files;
	struct names *names;
	struct conn *conns; /**< options->connections of them, open. */
	char *data;

	struct window window;
	struct tally tally[KINDS];
	double measured_s; /**< What rates are to be divided by. */
	uint64_t sent;

	/* Its own. */
	struct request *slots;
	unsigned int in_flight;
	uint64_t seed;
};

/**
 * Returns when all answers are there, or the time for them is over.
 *
 * @return false for want of memory.
 */
bool load_run(struct load *load);

#endif /* NFSLOAD_LOAD_H */
