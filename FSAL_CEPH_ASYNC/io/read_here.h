/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file read_here.h
 * @brief Large READs by a blocking call, on the worker of Ganesha's.
 *
 * libcephfs' non-blocking READ copies the caller's empty buffers first, and the
 * data once more, both under its lock.  ceph_ll_read() copies once, without the
 * lock.  For a MiB that is worth a worker; what keeps it harmless:
 *
 *	- At most half of the workers that the mount may keep (call.h) do so.
 *	  READs that find no room go the usual way.  So an OSD or an MDS that
 *	  does not answer keeps those workers, and no more.
 *	- After one that took longer than CASYNC_READ_HERE_MS, the export's
 *	  READs go the usual way for CASYNC_AWAIT_PAUSE_MS.
 *	- At the end of Ganesha ending.h waits for these workers no longer than
 *	  for others that Ceph keeps.
 */
#ifndef CASYNC_READ_HERE_H
#define CASYNC_READ_HERE_H

#include <stdbool.h>

struct casync_call;
struct casync_op;

/** The smallest READ for which it pays. */
#define CASYNC_READ_HERE_BYTES (128U << 10)

/** From when on Ceph is slow.  16 READs of 1 MiB in flight take 20 ms where the
 * gateway is the limit. */
#define CASYNC_READ_HERE_MS 200

/**
 * May this thread read a laid out op by the blocking call?
 *
 * @return true: it must call casync_read_here().
 */
bool casync_read_here_begin(const struct casync_op *op,
			    struct casync_call *slot);

/** Read it.  The result is in its part; casync_finish() goes on. */
void casync_read_here(struct casync_op *op, struct casync_call *slot);

#endif /* CASYNC_READ_HERE_H */
