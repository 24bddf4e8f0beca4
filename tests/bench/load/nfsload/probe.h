/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file probe.h
 * @brief Another client, in a thread of its own, that feels the load.
 *
 * Sends one GETATTR at a time, at fixed times.  One that takes longer than
 * the interval delays the next ones, which then are not felt; `corrected`
 * counts those as well, each as late as it would have been.
 */
#ifndef NFSLOAD_PROBE_H
#define NFSLOAD_PROBE_H

#include <pthread.h>

#include "conn.h"
#include "load.h"

struct probe {
	const struct options *options;
	struct window window;
	struct file file; /**< What is asked about. */

	struct tally tally;
	struct tally corrected;

	/* Its own. */
	struct conn conn;
	struct request request;
	pthread_t thread;
	bool stop; /**< Atomic. */
};

/** Connect; options, window and file.handle are set. */
bool probe_open(struct probe *probe);

bool probe_start(struct probe *probe);

/** Wait for the probe that is under way. */
void probe_finish(struct probe *probe);

#endif /* NFSLOAD_PROBE_H */
