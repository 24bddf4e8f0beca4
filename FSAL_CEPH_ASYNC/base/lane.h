/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file lane.h
 * @brief Lanes: threads that may block, and the jobs that wait for them.
 *
 * A job that can wait for Ceph runs in a lane.  So it blocks neither libcephfs'
 * threads nor the answers to other requests.  Ganesha's own thread pools cannot
 * be used: at shutdown they end before the exports are released.
 *
 * Each lane has its own threads, for jobs that wait for the same thing.  A job
 * that waits for one thing never blocks a job that waits for another.  A mount
 * has lanes of its own: jobs that its MDS or its OSDs do not answer keep no
 * thread of another mount.  Jobs that do not wait for Ceph, or that end a
 * mount, are in lanes of the process.
 */
#ifndef CASYNC_LANE_H
#define CASYNC_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"

/** The lanes of a mount, by what their jobs may wait for. */
enum casync_mount_lane {
	/** The MDS: metadata flushes, questions for the journal, unlocking for
	 * clients that are gone, answers of disowned READs. */
	CASYNC_LANE_METADATA,
	/** The MDS, for a size or for capabilities: reads past the known end
	 * of a file. */
	CASYNC_LANE_LOOK,
	/** An OSD: repairs of reads, closing of temporary fds. */
	CASYNC_LANE_DATA,
	/** Capabilities that the file had a moment ago: submissions of ops
	 * that waited for others of their file or for a place in flight. */
	CASYNC_LANE_SUBMIT,
	CASYNC_MOUNT_LANES,
};

/** The lanes of the process. */
enum casync_process_lane {
	/** Locks of Ganesha: upcalls. */
	CASYNC_LANE_UPCALL,
	/** The lock of a file's state, in Ganesha: recalls of delegations. */
	CASYNC_LANE_RECALL,
	/** The end of an export, and so of a mount and its lanes. */
	CASYNC_LANE_TEARDOWN,
	/** A disk of the gateway: Metrics_File. */
	CASYNC_LANE_DISK,
	CASYNC_PROCESS_LANES,
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
#define CASYNC_LANE_THREADS 32

/** Most threads of a lane that stands still.  The stuck jobs and the next job
 * may be for different files. */
#define CASYNC_LANE_STUCK_THREADS 256

/** Threads of the lane of recalls, from its start: a thread of libcephfs queues
 * its jobs, and waits for them. */
#define CASYNC_LANE_RECALLERS 4

/** All members are under `lock`, a leaf: no job runs with it held.  Zero at
 * first. */
struct casync_lane {
	struct glist_head link; /**< In lane.c's list: it runs. */
	const char *name;	/**< Of its threads. */
	struct casync_work *head;
	struct casync_work *last;
	struct casync_work *timed; /**< A job that waits for its time. */
	uint64_t timed_ns;
	uint64_t begun, begun_before; /**< Jobs; at the watchdog's last look. */
	pthread_mutex_t lock;
	pthread_cond_t changed; /**< CLOCK_MONOTONIC. */
	pthread_cond_t ended;	/**< A thread has; CLOCK_MONOTONIC. */
	/** All are joined: their text must not be unmapped under them. */
	pthread_t threads[CASYNC_LANE_STUCK_THREADS];
	unsigned int queued;
	unsigned int thread_count; /**< Not joined. */
	unsigned int alive;	   /**< Threads that have not ended. */
	unsigned int busy;	   /**< Of these: run a job. */
	bool stopping;
};

/** Most jobs of one file that run in a lane at once. */
#define CASYNC_LANE_SHARE 4

/**
 * A part of a lane, for jobs of one file or of one kind; zero at first.
 * Further jobs wait here and block no other file.  A thread of another kind,
 * a worker of Ganesha's, may take a place as well, and do such a job itself.
 *
 * If a job waits, who leaves hands its place to the oldest one.  So nobody
 * passes a job that waits.  A thread that enters, or leaves while no job waits,
 * takes no lock.
 */
struct casync_lane_share {
	unsigned int users; /**< At work, or waiting for that; atomic. */
	unsigned int most;  /**< At work; 0: CASYNC_LANE_SHARE. */
	/* Under the lane's lock. */
	struct casync_work *waiting; /**< Oldest first. */
	struct casync_work *last;
};

/**
 * Start a lane.
 *
 * @param[in] name     Of its threads; at most 15 characters; not copied.
 * @param[in] threads  How many are there at once; at least 1.
 *
 * @return 0 or a negative errno: nothing runs.
 */
int casync_lane_start(struct casync_lane *lane, const char *name,
		      unsigned int threads);

/**
 * Run the queued jobs, a timed one too, then end the threads.  Not on a thread
 * of this lane.  A lane that was not started is stopped.
 *
 * @param[in] timeout_s  Longest wait; UINT32_MAX: no limit.
 *
 * @return false: a job does not return.  Then the lane must never be changed or
 *	   freed.
 */
bool casync_lane_stop(struct casync_lane *lane, uint32_t timeout_s);

/** Has casync_lane_stop() been called?  A long job asks, and ends. */
bool casync_lane_is_stopping(struct casync_lane *lane);

/** Queue a job.  It never blocks and never fails.  It starts no thread: each
 * lane always has one. */
void casync_lane_submit(struct casync_lane *lane, struct casync_work *work);

/** Queue a job after a time.  A lane has one such job at most. */
void casync_lane_submit_in(struct casync_lane *lane, struct casync_work *work,
			   uint32_t delay_ms);

/** If the job waits for its time, it need not wait any more. */
void casync_lane_hasten(struct casync_lane *lane,
			const struct casync_work *work);

/** Take a place of a share for the calling thread, if one is free.  It takes no
 * lock.  @return true: casync_lane_release_share() must be called. */
bool casync_lane_enter_share(struct casync_lane_share *share);

/** Queue a job of a share: a bounded number of them run at once.  The job must
 * call casync_lane_release_share(). */
void casync_lane_submit_shared(struct casync_lane *lane,
			       struct casync_lane_share *share,
			       struct casync_work *work);

/**
 * Queue a job of a share that must not wait in the queue.
 *
 * @return false: the share is used up, or no thread is free; the job is not
 *	   queued.
 */
bool casync_lane_try_shared(struct casync_lane *lane,
			    struct casync_lane_share *share,
			    struct casync_work *work);

/** A job, or a thread that has entered, has done the part that may take long;
 * the next job of its share may begin.  Call it before anything that may free
 * the share. */
void casync_lane_release_share(struct casync_lane *lane,
			       struct casync_lane_share *share);

/**
 * Add threads to lanes that have jobs queued and have begun none since the last
 * call.  The watchdog calls it ten times a second.
 */
void casync_lane_unblock_all(void);

/** Start the lanes of a mount.  @return 0 or a negative errno: none runs. */
int casync_lane_start_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES]);

/** Stop the lanes of a mount.  @return As casync_lane_stop(), for all
 * together. */
bool casync_lane_stop_mount(struct casync_lane lanes[CASYNC_MOUNT_LANES],
			    uint32_t timeout_s);

/** A lane of the process. */
struct casync_lane *casync_lane_of_process(enum casync_process_lane which);

/** Start the lanes of the process.  @return 0 or a negative errno: none
 * runs. */
int casync_lane_start_process(void);

/** Stop them, after the jobs of all lanes have ended: some end mounts. */
void casync_lane_stop_process(void);

/** Mark the calling thread as a completion thread (complete.h). */
void casync_lane_mark_completion_thread(void);

/** Is this a completion thread?  Then it must not wait for Ceph. */
bool casync_lane_on_completion_thread(void);

/** Is this a completion thread, or a lane's?  Then it must not end a mount. */
bool casync_lane_on_own_thread(void);

#endif /* CASYNC_LANE_H */
