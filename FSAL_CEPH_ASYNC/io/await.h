/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file await.h
 * @brief A worker of Ganesha's that waits a few milliseconds for the answer.
 *
 * The usual way back goes over a completion thread and Ganesha's queue.  It
 * costs two wake-ups: 20 of the 285 µs of a lone 4 KiB read, and 7 % of the
 * rate of 128 reads at once (ci/bench.sh one, S2).  If the answer comes soon,
 * it is cheaper to let the worker wait.  libcephfs' thread wakes
 * the worker, and the worker answers the client.  A blocking FSAL does the
 * same.  There are three differences:
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
#ifndef CASYNC_AWAIT_H
#define CASYNC_AWAIT_H

#include <stdbool.h>

struct casync_op;

/**
 * Longest wait; that of the unit tests is longer.  128 reads in flight on two
 * cores take 8 ms each, a hundredth of them 15 ms: with a limit of 10 ms the
 * workers made a pause most of the time (CPU of a read 5 µs more, by turns).
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

/**
 * May the calling thread wait for the answer to an op that it is about to
 * submit?
 *
 * @return true: the thread owns the op until it calls casync_await_end() or
 *	   casync_await_leave(); it must call one of them.
 */
bool casync_await_begin(struct casync_op *op);

/**
 * Wait for the answer, or leave the op to the completion threads.
 *
 * @return true: the op is answered, and the caller must call casync_finish();
 *	   false: the caller must not touch the op.
 */
bool casync_await_end(struct casync_op *op);

/**
 * Leave the op to the completion threads, because the caller has other work.
 * The caller must not touch the op afterwards.
 */
void casync_await_leave(struct casync_op *op);

/**
 * Hand an answered op to the thread that waits for it.  May run in a libcephfs
 * callback, like casync_complete_queue().
 *
 * @return false: no thread waits (any more); the caller still owns the op.
 */
bool casync_await_hand_over(struct casync_op *op);

#endif /* CASYNC_AWAIT_H */
