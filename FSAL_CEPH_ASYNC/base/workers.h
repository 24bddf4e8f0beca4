/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file workers.h
 * @brief Worker threads that may block, grouped in lanes, and the mark of the
 * threads that may not.
 *
 * A job that can wait for Ceph runs here.  So it blocks neither libcephfs'
 * threads nor the answers to other requests.  Ganesha's own thread pools cannot
 * be used: at shutdown they end before the exports are released.
 *
 * Each lane has its own threads, for jobs that wait for the same thing.  A job
 * that waits for one thing never blocks a job that waits for another.  Without
 * an MDS the metadata and look lanes stand still; requests for files whose
 * capabilities the gateway has go on.
 */
#ifndef CASYNC_WORKERS_H
#define CASYNC_WORKERS_H

#include <stdbool.h>

/** The lanes, by what their jobs may wait for. */
enum casync_work_lane {
	/** The MDS: metadata flushes, and releases of exports. */
	CASYNC_WORK_METADATA,
	/** The MDS, for a size or for capabilities: reads past the known end
	 * of a file. */
	CASYNC_WORK_LOOK,
	/** An OSD: repairs of reads, closing of temporary fds. */
	CASYNC_WORK_DATA,
	/** Capabilities that the file had a moment ago: submissions of ops
	 * that waited in the gate or for a place in flight. */
	CASYNC_WORK_SUBMIT,
	/** Locks of Ganesha: upcalls. */
	CASYNC_WORK_UPCALL,
	/** A disk of the gateway: Metrics_File. */
	CASYNC_WORK_DISK,
	CASYNC_WORK_LANES,
};

/** A job, embedded in the struct that it works on.  It may be queued again once
 * it runs. */
struct casync_work {
	struct casync_work *next;
	void (*run)(struct casync_work *work);
};

/** Most threads of a lane.  They start on demand and stay.  Each waits for one
 * Ceph call at a time.  There is one thread more than jobs, for the next
 * job. */
#define CASYNC_WORKERS_MAX 32

/**
 * Most threads of a lane that stands still.  The stuck jobs and the next job
 * may be for different files, mounts or clusters.
 */
#define CASYNC_WORKERS_STUCK_MAX 256

/** Most jobs of one file that run in a lane at once. */
#define CASYNC_WORK_SHARE 4

/**
 * A file's share of a lane; embedded in the object, zero at first.  Further
 * jobs of the file wait here and block no other file.  Under the lane's lock.
 */
struct casync_work_share {
	unsigned int at_work;
	struct casync_work *waiting; /**< Oldest first. */
	struct casync_work *last;
};

/** Queue a job.  It never blocks and never fails.  It starts no thread: each
 * lane always has one. */
void casync_workers_submit(enum casync_work_lane lane,
			   struct casync_work *work);

/** Queue a job of a file: at most CASYNC_WORK_SHARE of them run at once.  The
 * job must call casync_workers_release_share(). */
void casync_workers_submit_shared(enum casync_work_lane lane,
				  struct casync_work_share *share,
				  struct casync_work *work);

/**
 * Queue a job of a file that must not wait in the queue.
 *
 * @return false: the file has used its share, or no thread is free; the job is
 *	   not queued.
 */
bool casync_workers_try_shared(enum casync_work_lane lane,
			       struct casync_work_share *share,
			       struct casync_work *work);

/** A job has done the part that may take long; the next job of its file may
 * begin.  Call it before anything that may free the file. */
void casync_workers_release_share(enum casync_work_lane lane,
				  struct casync_work_share *share);

/**
 * Add threads to lanes that have jobs queued and have begun none since the last
 * call.  The watchdog calls it ten times a second.
 */
void casync_workers_unblock(void);

/** Start one thread for each lane.  @return 0 or a negative errno. */
int casync_workers_start(void);

/** Run the queued jobs, then end all threads. */
void casync_workers_stop(void);

/** Mark the calling thread as a completion thread (complete.h). */
void casync_workers_mark_completion_thread(void);

/** Is this a completion thread?  Then it must not wait for Ceph. */
bool casync_workers_on_completion_thread(void);

#endif /* CASYNC_WORKERS_H */
