/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file workers.h
 * @brief Threads of ours that may block.
 *
 * What can wait for Ceph (closing a temporary fd, repairing a short read, a
 * metadata flush, an unmount) runs here, so that it holds up neither
 * libcephfs' threads nor the completion of other requests.  Ganesha's own
 * pools will not do: they are gone before exports are released at shutdown.
 */
#ifndef CASYNC_WORKERS_H
#define CASYNC_WORKERS_H

/** A job, embedded in what it works on; may be queued again once it runs. */
struct casync_work {
	struct casync_work *next;
	void (*run)(struct casync_work *work);
};

/** Most threads.  They come on demand and stay; each waits for one Ceph call
 * at a time.  One more than there are jobs, for the next job. */
#define CASYNC_WORKERS_MAX 32

/** Queue a job.  Never blocks, never fails, starts no thread: one worker always
 * exists. */
void casync_work_submit(struct casync_work *work);

/** @return 0 or a negative errno when the first thread cannot be started. */
int casync_workers_start(void);

/** Run what is queued, then end all threads. */
void casync_workers_stop(void);

#endif /* CASYNC_WORKERS_H */
