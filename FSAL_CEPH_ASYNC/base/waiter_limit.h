/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file waiter_limit.h
 * @brief Limits how many threads wait for the MDS or a monitor.
 *
 * Some calls of libcephfs wait without a timeout.  A question for attributes
 * waits for a client that does not return its capabilities.  Ganesha asks
 * before and after each NFSv3 WRITE, so the requests for one such file would
 * block all workers, and its answers all completion threads.
 *
 * So only some threads may wait for one file.  The others wait for room.  If no
 * thread has left for a while, the client is asked to retry (NFS4ERR_DELAY).
 * An NFSv3 WRITE is answered without attributes instead: they are optional
 * there.  Workers and completion threads have separate room.
 *
 * A file has one limit for GETATTR, one for SETATTR, COMMIT, DEALLOCATE and
 * WRITEs to setuid files, and one for all that keeps a worker.  An export has
 * one for statfs, which asks a monitor.  A mount has one for all that keeps a
 * worker (call.h).
 *
 * The limits of all mounts share one budget: three quarters of Ganesha's
 * workers.  A mount may keep as many as are left of it.  So one that does not
 * answer keeps half of the budget, two of them keep a third each, and another
 * one always finds as much.  The rule is known from switches that share a
 * buffer (dynamic thresholds, Choudhury and Hahne 1998).
 *
 * A mount or file that was idle begins with few places.  So one that does not
 * answer, and was not in use, keeps few.  A file gets one more with each
 * answer, as in TCP's slow start (RFC 5681, section 3.1); that holds once
 * others keep a sixteenth of the budget.  A mount gets all once its MDS has
 * answered its keeper; that holds once a quarter of the budget is in use.
 *
 * A worker that waits for a place is kept, too.  When those inside and those
 * who wait are as many as the budget, the patience with what has not shown that
 * it answers is 25 ms.
 */
#ifndef CASYNC_WAITER_LIMIT_H
#define CASYNC_WAITER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/** The kind of thread that asks. */
enum casync_waiter_kind {
	CASYNC_WAITER_WORKER,
	CASYNC_WAITER_COMPLETER,
	CASYNC_WAITER_KINDS
};

/** Milliseconds without progress after which threads stop waiting. */
#define CASYNC_WAITER_LIMIT_WORKER_MS 1000
#define CASYNC_WAITER_LIMIT_COMPLETER_MS 100

/** Embedded in the object, export or mount; zero at first.  All members are
 * atomic. */
struct casync_waiter_limit {
	struct {
		uint32_t inside;
		uint32_t sleepers; /**< Waiting for room. */
		uint32_t left;	   /**< Counts threads that left; a futex. */
	} kinds[CASYNC_WAITER_KINDS];
	uint64_t progress_ns; /**< When a thread last left, or the first one
				   entered; CLOCK_MONOTONIC. */
	/** Since nobody was inside for 0.1 s.  Of a file: its answers.  Of a
	 * mount: has its MDS answered the keeper? */
	uint32_t credit;
};

/** A call that wants to enter the limit of a mount. */
enum casync_caller {
	CASYNC_CALLER_OPTIONAL, /**< It need not: half of what is left. */
	CASYNC_CALLER_NEXT,	/**< All that is left. */
	/** The only one of its file: if the MDS has answered, four times that,
	 * and at most half of the budget. */
	CASYNC_CALLER_FIRST,
};

/**
 * Enter, or wait for room.
 *
 * @param[in] room  How many threads of this kind may be inside; at least 1.
 *
 * @return true: the thread is inside and must call casync_waiter_limit_leave();
 *	   false: there was no room.
 */
bool casync_waiter_limit_enter(struct casync_waiter_limit *limit,
			       enum casync_waiter_kind kind, uint32_t room);

/** Enter if there is a place now; never wait. */
bool casync_waiter_limit_try(struct casync_waiter_limit *limit,
			     enum casync_waiter_kind kind, uint32_t room);

void casync_waiter_limit_leave(struct casync_waiter_limit *limit,
			       enum casync_waiter_kind kind);

/** Leave without an answer: no progress. */
void casync_waiter_limit_cancel(struct casync_waiter_limit *limit,
				enum casync_waiter_kind kind);

/** The room of a file for workers: a quarter of Ganesha's, not all. */
uint32_t casync_waiter_limit_workers(void);

/** How many workers all mounts together may keep. */
uint32_t casync_waiter_limit_budget(void);

/** How many workers a file may keep: as many as its mount may take still; at
 * least 1.  So files that do not answer leave room for one that does. */
uint32_t casync_waiter_limit_file_room(const struct casync_waiter_limit *limit,
				       const struct casync_waiter_limit *mount);

/** As casync_waiter_limit_enter(), for a worker and a mount. */
bool casync_waiter_limit_enter_mount(struct casync_waiter_limit *limit,
				     enum casync_caller who);

/** As casync_waiter_limit_try(), for a worker and a mount. */
bool casync_waiter_limit_try_mount(struct casync_waiter_limit *limit,
				   enum casync_caller who);

/** Enter the limit of a mount that is full, for a file that answers: half of
 * the workers that are left.  The others are for requests that ask Ceph
 * nothing. */
bool casync_waiter_limit_try_reserve(struct casync_waiter_limit *mount);

/**
 * Enter the limits of a file and of its mount.
 *
 * For files that answer, a quarter of the workers may wait there for
 * CASYNC_WAITER_LIMIT_WORKER_MS without progress, as long as half of the
 * workers stay free, and the file's window is not full.  All others wait for
 * CASYNC_WAITER_LIMIT_COMPLETER_MS, or for 25 ms in a crowd.  A file that
 * answers, and for which nobody waits, gets at the reserve, and need not wait
 * for the others.
 *
 * @param[in] answers  Ceph has answered for the file a moment ago.
 */
bool casync_waiter_limit_enter_both(struct casync_waiter_limit *file,
				    struct casync_waiter_limit *mount,
				    bool answers);

/** As casync_waiter_limit_enter_both() for a call that is optional.  Only the
 * first call of a file waits, while the keeper asks the MDS, 0.1 s at most. */
bool casync_waiter_limit_try_both(struct casync_waiter_limit *file,
				  struct casync_waiter_limit *mount);

/** Is it time to ask the MDS of a mount, because the mount has few places? */
bool casync_waiter_limit_wants_proof(const struct casync_waiter_limit *mount);

/** The MDS of a mount is about to be asked: who waits, waits for that. */
void casync_waiter_limit_await_proof(struct casync_waiter_limit *mount);

/** The MDS of a mount has answered. */
void casync_waiter_limit_prove(struct casync_waiter_limit *mount);

/** Enter the limit of a mount although it is full. */
void casync_waiter_limit_force_mount(struct casync_waiter_limit *limit);

/** Leave the limits of a mount and of a file, which may be NULL. */
void casync_waiter_limit_leave_mount(struct casync_waiter_limit *limit,
				     struct casync_waiter_limit *file);

/** Leave both without an answer: no progress. */
void casync_waiter_limit_cancel_mount(struct casync_waiter_limit *limit,
				      struct casync_waiter_limit *file);

/**
 * How long the oldest call of a mount has kept its worker.
 *
 * A list would take a lock for each call.  Two generations are counted instead.
 * Calls enter the young one.  When the old one is empty at a look, the two
 * change their parts, and all calls of the new old one began before that.  Zero
 * at first.  All members are atomic but since_ns, which is the looker's.
 */
struct casync_waiter_age {
	uint32_t inside[2]; /**< Calls of each generation. */
	uint32_t young;	    /**< The one that calls enter. */
	uint64_t since_ns;  /**< All calls of the old one began before. */
};

/** @return The generation, for casync_waiter_limit_leave_age(). */
uint32_t casync_waiter_limit_enter_age(struct casync_waiter_age *age);
void casync_waiter_limit_leave_age(struct casync_waiter_age *age,
				   uint32_t generation);

/**
 * One thread looks at a time, about once a second.
 *
 * @return The age of the oldest call in ns, or less: while one waits, others
 *	   are not dated, and when it ends, they count from then on.  0: all
 *	   calls began after the last look but one.
 */
uint64_t casync_waiter_limit_look_at_age(struct casync_waiter_age *age,
					 uint64_t now_ns);

#endif /* CASYNC_WAITER_LIMIT_H */
