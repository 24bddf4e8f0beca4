/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file complete.h
 * @brief From libcephfs' threads to ours: a lock-free list and its takers.
 *
 * casync_complete_queue() runs on a libcephfs thread under client_lock.  It
 * pushes the op with one compare-and-swap and wakes a completion thread only
 * if the list was empty and one sleeps: one wake-up for many completions.
 * The completion threads answer oldest first and hold no lock of ours or of
 * libcephfs while they do.  An answer that is held up (dropping the last
 * reference on an object can close a file; a lock of Ganesha's can be taken)
 * holds up nothing else for more than two ticks of the watchdog: then another
 * thread is woken, or started.
 */
#ifndef CASYNC_COMPLETE_H
#define CASYNC_COMPLETE_H

#include <stdbool.h>

struct casync_op;

/** Completion threads that are always there (measured by
 * tests/bench/threads.py, which sets it). */
#ifndef CASYNC_COMPLETERS
#define CASYNC_COMPLETERS 2
#endif

/** And the most there are while answers are held up. */
#define CASYNC_COMPLETERS_MAX 64

/** Hand a completed op over.  Async-safe towards libcephfs: see above. */
void casync_complete_queue(struct casync_op *op);

/**
 * Wake or add a thread if something is queued and nothing was answered since
 * the last call.  The watchdog's, ten times a second.
 */
void casync_complete_help(void);

/**
 * Start the threads.
 *
 * @param[in] finish_op  casync_finish(); called for each op, on one of them.
 *
 * @return 0 or a negative errno.
 */
int casync_complete_start(void (*finish_op)(struct casync_op *op));

/** Answer what is queued, then end the threads.  The watchdog has ended. */
void casync_complete_stop(void);

#endif /* CASYNC_COMPLETE_H */
