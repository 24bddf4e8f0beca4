/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file complete.h
 * @brief Hands answered ops from libcephfs' threads to our completion threads,
 *	  or to a worker of Ganesha's that waits for the answer.
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
 *
 * A worker of Ganesha's may wait a few milliseconds for its own answer.  The
 * way over a completion thread and Ganesha's queue costs two wake-ups: 20 of
 * the 285 µs of a lone 4 KiB read, and 7 % of the rate of 128 reads at once
 * (ci/bench.sh one, S2).  If the answer comes soon, it is cheaper to let the
 * worker wait.  libcephfs' thread wakes the worker, and the worker answers the
 * client.  A blocking FSAL does the same.  There are three differences:
 *
 *	- The wait ends after CASYNC_AWAIT_MS.  The op then goes the usual way.
 *	  A worker that never returned would keep ganesha.nfsd from ending.
 *	- After a wait that timed out, the export's workers do not wait for
 *	  CASYNC_AWAIT_PAUSE_MS: Ceph is slow, and there are few workers.
 *	- At most CASYNC_AWAIT_MOST workers wait at once, and at most half of
 *	  them.  Other ops go the usual way.
 *
 * A write waits only if nothing else of its export is in flight.  A completion
 * thread answers several writes faster, one after the other: waiting cost 6 %
 * of the rate of 128 writes at once.
 */
#ifndef CASYNC_COMPLETE_H
#define CASYNC_COMPLETE_H

#include <stdbool.h>

struct casync_op;

/** Completion threads at rest.  More were measured, and are not faster
 * (docs/threads.md). */
#define CASYNC_COMPLETERS 2

/** Most completion threads, while answers are blocked. */
#define CASYNC_COMPLETERS_MAX 64

/**
 * Longest wait of a worker for its answer; that of the unit tests is longer.
 * 128 reads in flight on two cores take 8 ms each, a hundredth of them 15 ms:
 * with a limit of 10 ms the workers made a pause most of the time (CPU of a
 * read 5 µs more, by turns).
 */
#ifndef CASYNC_AWAIT_MS
#define CASYNC_AWAIT_MS 50
#endif

/** How long no worker waits after a wait that timed out.  So the export's
 * workers spend a third of their time in waits at most. */
#define CASYNC_AWAIT_PAUSE_MS 100

/** Most workers that wait at once.  Ganesha has 200 by default
 * (RPC_Ioq_ThrdMax). */
#define CASYNC_AWAIT_MOST 96

/** Hand over a completed op.  May run in a libcephfs callback: see above. */
void casync_complete_queue(struct casync_op *op);

/** Finish an op on this worker, as a completion thread would: its results are
 * there, or it is past the end.  The caller must not touch it afterwards. */
void casync_complete_run(struct casync_op *op);

/** Does a worker wait for this op's answer? */
bool casync_complete_is_awaited(const struct casync_op *op);

/**
 * Wake or add a thread if ops are queued and none was answered since the last
 * call.  The watchdog calls it ten times a second.
 */
void casync_complete_unblock(void);

/**
 * Start the threads.
 *
 * @param[in] finish_op  casync_finish(); a completion thread calls it for each
 *                       op, or the worker that has waited for the answer.
 *
 * @return 0 or a negative errno.
 */
int casync_complete_start(void (*finish_op)(struct casync_op *op));

/** Answer the queued ops, then end the threads.  The watchdog must have ended
 * before. */
void casync_complete_stop(void);

/**
 * May the calling thread wait for the answer to an op that it is about to
 * submit?
 *
 * @return true: the thread owns the op until it calls
 *	   casync_complete_wait_end(), which it must.
 */
bool casync_complete_wait_begin(struct casync_op *op);

/**
 * Wait for the answer and finish the op, or leave it to the completion threads.
 * The caller must not touch the op afterwards.
 */
void casync_complete_wait_end(struct casync_op *op);

/**
 * Hand an answered op to the thread that waits for it.  May run in a libcephfs
 * callback, like casync_complete_queue().
 *
 * @return false: no thread waits (any more); the caller still owns the op.
 */
bool casync_complete_wake_waiter(struct casync_op *op);

#endif /* CASYNC_COMPLETE_H */
