/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file deadline_call.h
 * @brief Runs a libcephfs call that may never return, with a deadline.
 *
 * The call runs on its own thread.  After the deadline this thread is left
 * behind.  It returns later or never.  The memory that it uses must stay valid
 * until then.
 */
#ifndef CASYNC_DEADLINE_CALL_H
#define CASYNC_DEADLINE_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct casync_mount;

/** The first member of a call's arguments, allocated with gsh_calloc(). */
struct casync_deadline_call {
	int (*run)(struct casync_deadline_call *call);
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	bool done;
	bool abandoned;
	int rc;
};

/**
 * Run a call.
 *
 * @param[in] call       Freed in any case, by the last thread that needs it.
 * @param[in] timeout_s  Longest wait.
 *
 * @return The result of `run`; -ETIMEDOUT: it still runs; another negative
 *         errno: the thread could not be started.
 */
int casync_deadline_call_run(struct casync_deadline_call *call,
			     uint32_t timeout_s);

/**
 * The first half of it, for several calls at once.
 *
 * @return 0: casync_deadline_call_end() must be called; a negative errno: the
 *         thread could not be started, and the call is freed.
 */
int casync_deadline_call_begin(struct casync_deadline_call *call);

/** The second half of it.  @return As casync_deadline_call_run(). */
int casync_deadline_call_end(struct casync_deadline_call *call,
			     uint32_t timeout_s);

/** A thread that works for a mount until it is stopped, and may hang in
 * libcephfs then.  Embedded in its owner; zero at first. */
struct casync_deadline_thread {
	struct casync_deadline_call
		*call;	      /**< NULL: it does not run; atomic. */
	pthread_mutex_t lock; /**< A leaf. */
	pthread_cond_t wake;  /**< CLOCK_MONOTONIC. */
	bool stopping, woken; /**< Under the lock. */
};

/**
 * Start the thread.
 *
 * @param[in] run  Returns soon after `stopping` is set and `wake` signalled.
 *
 * @return 0 or a negative errno.
 */
int casync_deadline_call_start_thread(struct casync_deadline_thread *thread,
				      void (*run)(struct casync_mount *mount),
				      struct casync_mount *mount);

/**
 * End the thread, if it runs.
 *
 * @param[in] timeout_s  Longest wait for a call of libcephfs; 0: do not wait.
 *
 * @return false: it does not return.  Then the mount must never be changed or
 *	   freed.
 */
bool casync_deadline_call_stop_thread(struct casync_deadline_thread *thread,
				      uint32_t timeout_s);

/** Free its lock, once nobody wakes it any more.  It has ended, or was never
 * started: then its owner is zero. */
void casync_deadline_call_free_thread(struct casync_deadline_thread *thread);

/** Was it started, and is it to run on? */
bool casync_deadline_call_runs(const struct casync_deadline_thread *thread);

/** End the thread's pause, or its next one.  Nothing, if it does not run. */
void casync_deadline_call_wake_thread(struct casync_deadline_thread *thread);

/** Wait, as the thread, until it is woken at the longest.  @return false: it
 * has to end. */
bool casync_deadline_call_pause(struct casync_deadline_thread *thread,
				uint64_t ms);

/** Wait, as the thread, for the whole time.  @return false, at once: it has to
 * end. */
bool casync_deadline_call_sleep(struct casync_deadline_thread *thread,
				uint64_t ms);

#endif /* CASYNC_DEADLINE_CALL_H */
