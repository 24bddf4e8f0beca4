/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file complete.h
 * @brief Hands answered ops from libcephfs' threads to our completion threads.
 *
 * casync_complete_queue() runs on a libcephfs thread under client_lock.  It
 * pushes the op to a lock-free list with one compare-and-swap.  It wakes a
 * completion thread only if the list was empty and a thread sleeps: one wake-up
 * serves many completions.
 *
 * The completion threads answer the oldest op first.  Meanwhile they hold no
 * lock of ours or of libcephfs.  An answer can block: it can take a lock of
 * Ganesha's, or drop the last reference on an object, which closes a file.  A
 * blocked answer blocks the others for two ticks of the watchdog at most.  Then
 * the watchdog wakes or starts another thread.
 */
#ifndef CASYNC_COMPLETE_H
#define CASYNC_COMPLETE_H

#include <stdbool.h>

struct casync_op;

/** Completion threads at rest.  tests/bench/studies/threads.py measured the
 * number, and sets others. */
#ifndef CASYNC_COMPLETERS
#define CASYNC_COMPLETERS 2
#endif

/** Most completion threads, while answers are blocked. */
#define CASYNC_COMPLETERS_MAX 64

/** Hand over a completed op.  May run in a libcephfs callback: see above. */
void casync_complete_queue(struct casync_op *op);

/**
 * Wake or add a thread if ops are queued and none was answered since the last
 * call.  The watchdog calls it ten times a second.
 */
void casync_complete_help(void);

/**
 * Start the threads.
 *
 * @param[in] finish_op  casync_finish(); a completion thread calls it for each
 *                       op.
 *
 * @return 0 or a negative errno.
 */
int casync_complete_start(void (*finish_op)(struct casync_op *op));

/** Answer the queued ops, then end the threads.  The watchdog must have ended
 * before. */
void casync_complete_stop(void);

#endif /* CASYNC_COMPLETE_H */
