/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file await.h
 * @brief A worker of Ganesha's that waits a moment for the answer itself.
 *
 * The usual way back, over a completion thread and Ganesha's queue, is two
 * wake-ups: 20 of the 285 µs of a lone 4 KiB read, and 7 % of the rate of 128
 * at once (ci/bench.sh one, S2).  Where the answer is there within
 * milliseconds, a worker that waits is woken by libcephfs' thread and answers
 * the client; it is what a blocking FSAL does, with three differences:
 *
 *	- the wait ends after CASYNC_AWAIT_MS, and the op goes the usual way:
 *	  a worker that never comes back would keep ganesha.nfsd from ending;
 *	- after a wait in vain the export's workers do not wait for
 *	  CASYNC_AWAIT_PAUSE_MS: Ceph is slow, and there are few workers;
 *	- so many wait at once, and the rest goes the usual way.
 *
 * A write waits only if nothing else of its export is in flight: several are
 * answered faster one after the other by a completion thread (waiting cost
 * 6 % of the rate of 128 writes at once).
 */
#ifndef CASYNC_AWAIT_H
#define CASYNC_AWAIT_H

#include <stdbool.h>

struct casync_op;

/** Longest wait. */
#define CASYNC_AWAIT_MS 10

/** How long nobody waits after one in vain: of all workers' time, a tenth. */
#define CASYNC_AWAIT_PAUSE_MS 100

/** Most workers that wait at once, of the 200 that Ganesha has by default
 * (RPC_Ioq_ThrdMax). */
#define CASYNC_AWAIT_MOST 96

/**
 * May the calling thread wait for the answer to an op that it is about to
 * submit?
 *
 * @return true: the op is its own until casync_await_end() or
 *	   casync_await_leave(), one of which it must call.
 */
bool casync_await_begin(struct casync_op *op);

/**
 * Wait for the answer, or leave the op to the completion threads.
 *
 * @return true: the op is answered, casync_finish() is due; false: the op must
 *	   not be touched.
 */
bool casync_await_end(struct casync_op *op);

/**
 * The caller has something else to do: the op is left to the completion
 * threads.  It must not be touched afterwards.
 */
void casync_await_leave(struct casync_op *op);

/**
 * Hand an answered op to the thread that waits for it.  Async-safe towards
 * libcephfs, as casync_complete_queue() is.
 *
 * @return false: nobody waits (any more), the op is the caller's still.
 */
bool casync_await_hand_over(struct casync_op *op);

#endif /* CASYNC_AWAIT_H */
