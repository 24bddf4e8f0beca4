/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file deadline_call.h
 * @brief A call of libcephfs that may never come back.
 *
 * It is made on a thread of its own.  Past the deadline that thread is left
 * behind: it comes back some time, or never, and until then what it works on
 * must stay as it is.
 */
#ifndef CASYNC_DEADLINE_CALL_H
#define CASYNC_DEADLINE_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** The first member of what a call needs, allocated by gsh_calloc(). */
struct casync_deadline_call {
	int (*run)(struct casync_deadline_call *call);
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	bool done;
	bool given_up;
	int rc;
};

/**
 * Run a call.
 *
 * @param[in] call       Freed in any case, by whoever is the last to need it.
 * @param[in] timeout_s  Longest wait.
 *
 * @return What `run` returned; -ETIMEDOUT, and then it still runs; the
 *         negative errno of a thread that could not be started.
 */
int casync_deadline_call_run(struct casync_deadline_call *call,
			     uint32_t timeout_s);

/**
 * Its first half, for calls that are to run side by side.
 *
 * @return 0, and casync_deadline_call_end() is due; or the negative errno of a
 *         thread that could not be started, and the call is freed.
 */
int casync_deadline_call_begin(struct casync_deadline_call *call);

/** Its second half.  @return As casync_deadline_call_run(). */
int casync_deadline_call_end(struct casync_deadline_call *call,
			     uint32_t timeout_s);

#endif /* CASYNC_DEADLINE_CALL_H */
