/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file read_here.h
 * @brief READs by a blocking call, on the worker of Ganesha's: large ones, and
 * small ones while few are in flight.
 *
 * libcephfs' non-blocking READ copies the caller's empty buffers first, and the
 * data once more, both under its lock.  ceph_ll_read() copies once, without the
 * lock.  For a MiB that is worth a worker.
 *
 * For a small READ it is worth one while the export has few in flight: the
 * answer comes from libcephfs' messenger thread at once, and not by way of its
 * finisher (by turns, 32 READs of 4 KiB in flight: 60 us of CPU each, not 72;
 * one: 157, not 183).  With many in flight the usual way holds libcephfs' lock
 * for less time, and that lock is the limit of a large gateway.
 *
 * What keeps it harmless:
 *
 *	- At most half of the workers that the mount may keep (callers.h) do so.
 *	  READs that find no room go the usual way.  So an OSD or an MDS that
 *	  does not answer keeps those workers, and no more.
 *	- After one that took longer than CASYNC_READ_HERE_MS, or a small one
 *	  that took longer than CASYNC_AWAIT_MS, the export's READs go the
 *	  usual way for CASYNC_AWAIT_PAUSE_MS.
 *	- At the end of Ganesha ending.h waits for these workers no longer than
 *	  for others that Ceph keeps.
 */
#ifndef CASYNC_READ_HERE_H
#define CASYNC_READ_HERE_H

#include <stdbool.h>

struct casync_op;

/** The smallest READ for which it pays, however many are in flight. */
#define CASYNC_READ_HERE_BYTES (128U << 10)

/** A smaller READ is a blocking call if its export had at most so many in
 * flight when it came, itself included. */
#define CASYNC_READ_HERE_FEW 32

/** CASYNC_READ_HERE_FEW; tests that want the usual way set it to 0 before
 * anything is read. */
extern unsigned int casync_read_here_few;

/** From when on Ceph is slow.  16 READs of 1 MiB in flight take 20 ms where the
 * gateway is the limit. */
#define CASYNC_READ_HERE_MS 200

/**
 * May this thread read a laid out op by the blocking call?
 *
 * @return true: it must call casync_read_here().
 */
bool casync_read_here_begin(const struct casync_op *op);

/** Read it.  The result is in its part; casync_finish() goes on. */
void casync_read_here(struct casync_op *op);

#endif /* CASYNC_READ_HERE_H */
