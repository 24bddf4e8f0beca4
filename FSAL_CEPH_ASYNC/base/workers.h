/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file workers.h
 * @brief Threads of ours that may block, in lanes.
 *
 * What can wait for Ceph runs here, so that it holds up neither libcephfs'
 * threads nor the completion of other requests.  Ganesha's own pools will not
 * do: they are gone before exports are released at shutdown.
 *
 * A lane has threads of its own, so jobs that wait for one thing never keep a
 * job that waits for another from running.  With the MDS away the metadata
 * and look lanes stand still, and whoever has its capabilities notices
 * nothing.
 */
#ifndef CASYNC_WORKERS_H
#define CASYNC_WORKERS_H

#include <stdbool.h>

/** What a job may wait for. */
enum casync_work_lane {
	/** The MDS: metadata flushes, and exports that are released. */
	CASYNC_WORK_METADATA,
	/** The MDS, for a size or for capabilities: reads past what is known
	 * of a file. */
	CASYNC_WORK_LOOK,
	/** An OSD: repairs of reads, temporary fds that are closed. */
	CASYNC_WORK_DATA,
	/** Capabilities that were there a moment ago: submissions of what has
	 * waited in the gate or for room. */
	CASYNC_WORK_SUBMIT,
	/** Locks of Ganesha's: upcalls. */
	CASYNC_WORK_UPCALL,
	CASYNC_WORK_LANES,
};

/** A job, embedded in what it works on; may be queued again once it runs. */
struct casync_work {
	struct casync_work *next;
	void (*run)(struct casync_work *work);
};

/** Most threads of a lane.  They come on demand and stay; each waits for one
 * Ceph call at a time.  One more than there are jobs, for the next job. */
#define CASYNC_WORKERS_MAX 32

/**
 * And the most there are where a lane stands still: the jobs that are stuck may
 * not be for the file, the mount or the cluster that the next one is for.
 */
#define CASYNC_WORKERS_STUCK_MAX 256

/** Jobs that one file may have at work in a lane, of CASYNC_WORKERS_MAX. */
#define CASYNC_WORK_SHARE 4

/**
 * A file's share of a lane; embedded in the object, zero to begin with.  Its
 * other jobs wait here, in nobody's way.  Under the lane's lock.
 */
struct casync_work_share {
	unsigned int at_work;
	struct casync_work *waiting; /**< Oldest first. */
	struct casync_work *last;
};

/** Queue a job.  Never blocks, never fails, starts no thread: each lane has
 * one always. */
void casync_work_submit(enum casync_work_lane lane, struct casync_work *work);

/** The same for one of a file's jobs, which take CASYNC_WORK_SHARE threads at
 * most.  The job owes a casync_work_give_way(). */
void casync_work_submit_shared(enum casync_work_lane lane,
			       struct casync_work_share *share,
			       struct casync_work *work);

/**
 * The same for one that would rather not run than wait.
 *
 * @return false: the file has had its share, or no thread is free; nothing is
 *	   queued.
 */
bool casync_work_try_shared(enum casync_work_lane lane,
			    struct casync_work_share *share,
			    struct casync_work *work);

/** A job has done what may take long; the next of its file may begin.  Before
 * anything is done that may free the file. */
void casync_work_give_way(enum casync_work_lane lane,
			  struct casync_work_share *share);

/**
 * Add threads to lanes that have jobs queued and have begun none since the
 * last call.  The watchdog's, ten times a second.
 */
void casync_workers_help(void);

/** @return 0 or a negative errno when a lane's first thread cannot be
 * started. */
int casync_workers_start(void);

/** Run what is queued, then end all threads. */
void casync_workers_stop(void);

#endif /* CASYNC_WORKERS_H */
