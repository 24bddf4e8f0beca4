/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file op.h
 * @brief One READ or WRITE, from the NFS request to its done callback.
 *
 *	casync_op_new()        submit_parts()           the last part's
 *	      |                      |                   result is stored
 *	      v                      v                          |
 *	    NEW -> (JOURNALING or HELD) -> SUBMITTED ---------> QUEUED
 *	     |  |          |          |        |                |
 *	     |  |          |          |        |      completion thread takes it
 *	     |  |          |          |        v                v
 *	     |  |          |          |     waiting worker -> FINISHING
 *	     |  |          v          |                         |
 *	     |  +-----> BLOCKING <----+--- repair, flush, close-+
 *	     |             |                                    |
 *	     | early       |                                    |
 *	     |             |                                    |
 *	     +--> DONE <---+------------ casync_op_answer() ----+
 *	           |
 *	     back in the export's pool, until it is NEW again
 *
 * early: casync_op_answer_early().
 * JOURNALING: a write of a new file, before the first flush.
 * HELD: a write in the queue of its file (queue.h); a parked one that then
 * waits for the first flush stays HELD.  Or a read that waits until others of
 * its file are submitted (submit.h).
 * FINISHING: a completion thread takes the op from QUEUED.  A worker that waits
 * for the answer (complete.h) takes it from SUBMITTED.  An op whose size check
 * runs on a worker stays FINISHING.
 *
 * Ways to BLOCKING, on a worker that may block:
 *	FINISHING	repair of a short read, flush, close of a temporary fd
 *	NEW		a read past the known end; a read that got no place in
 *			flight and has a temporary fd to close
 *	HELD		a read that is past the end by now; a parked write that
 *			was refused its place
 *	JOURNALING, HELD	the first flush failed
 *
 * States go forward, with one exception.  The writes of a refused call go from
 * QUEUED (the first op) or SUBMITTED (its members) to BLOCKING, and back to
 * SUBMITTED, each alone (submit_again() in submit.c).
 *
 * Owner: first the worker, until submit.c drops its hold, or another worker
 * that takes the op from the queue or from a lane.  Then libcephfs.  It knows
 * only the first op of a call that several share; that op owns all of them
 * until the results are in.  Then the thread of ours that has taken the op, or
 * the worker that waits.  An op has one owner at a time.  So only `state`,
 * `parts_left`, `awaited`, `resume_events`, `answered_ns` and each part's
 * `armed` are atomic.
 *
 * Exactly once: every op that casync_op_new() returned ends in
 * casync_op_answer() or casync_op_answer_early().  Each of them calls done_cb
 * once and puts the op back.  A second completion of a part finds the part
 * disarmed, until the part's memory serves another request (pool.h).  It is
 * counted and ignored, and the watchdog logs the count (debug builds abort).
 *
 * Until done_cb the request keeps alive: the object, the export, `arg`, its
 * buffers and the state.  io_work keeps the Fh open.
 */
#ifndef CASYNC_OP_H
#define CASYNC_OP_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "borrow.h"
#include "call.h"
#include "durability.h"
#include "fd.h"
#include "flush.h"
#include "gather.h"
#include "inflight.h"
#include "parts.h"
#include "lane.h"

struct casync_disowned;
struct casync_export;
struct casync_fill;
struct casync_object;
struct casync_pool;

enum casync_op_kind { CASYNC_OP_READ, CASYNC_OP_WRITE };

enum casync_op_state {
	CASYNC_OP_NEW,
	CASYNC_OP_JOURNALING,
	CASYNC_OP_HELD,
	CASYNC_OP_SUBMITTED,
	CASYNC_OP_QUEUED,
	CASYNC_OP_FINISHING,
	CASYNC_OP_BLOCKING,
	CASYNC_OP_DONE,
};

/**
 * These values are added to parts_left.  The calls that libcephfs has not
 * answered are fewer.
 *
 *	SUBMITTING	while a thread hands the parts to libcephfs
 *	INSIDE		a thread of ours is in a blocking read of libcephfs
 *	DISOWNED	the READ has been disowned, and is not answered yet
 */
enum {
	CASYNC_OP_SUBMITTING = 1 << 20,
	CASYNC_OP_INSIDE = 1 << 22,
	CASYNC_OP_DISOWNED = 1 << 24,
};

/** AUTH_SYS carries 16 groups; more (Manage_Gids) are allocated. */
#define CASYNC_OP_GROUPS 16

/**
 * Upper bound of an op's size, checked by the compiler.  8192 ops in flight
 * (Max_Inflight's default) take at most 8.1 MiB.  At present an op has 1024
 * bytes, and 1032 on arm64, where a mutex is larger.  More parts and iovecs
 * come on top (pool.h).
 */
#define CASYNC_OP_MAX_BYTES 1032

struct casync_op {
	struct casync_op *next; /**< Held, completed, or free in the pool. */

	/* Its memory is kept from request to request. */
	struct casync_parts parts;

	/* From here on of one request; zero in a fresh op. */
	struct casync_work work; /**< For a worker that may block. */
	struct casync_inflight_entry entry;
	struct casync_flush_waiter flush_waiter;
	struct casync_gather gather;
	struct casync_op *members; /**< In the same call, by offset. */

	enum casync_op_kind kind;
	int state; /**< enum casync_op_state, atomic. */

	struct casync_call call; /**< It ends with the answer. */
	struct casync_object *obj;
	struct casync_export *exp;
	struct gsh_export *gsh_export;
	struct user_cred creds; /**< The requester's, copied. */
	gid_t groups[CASYNC_OP_GROUPS];

	struct fsal_io_arg *arg;
	fsal_async_cb done_cb;
	void *caller_arg;

	struct fsal_fd *fsal_fd;  /**< I/O was started on it; NULL before. */
	struct casync_fd temp_fd; /**< fsal_fd may point to it. */
	bool share_held;	  /**< A temporary share reservation. */
	bool past_end;		  /**< A READ past the known end of the file. */
	bool keeps_buffer;	  /**< Ganesha lets us keep the READ's. */
	uint8_t queue_state;	  /**< enum casync_queue_state; queue.h. */
	/** Atomic; for a WRITE that waits for a place. */
	uint32_t resume_events;
	/** Of the file, when the READ came, or before the WRITE was submitted
	 * (file_size.h). */
	uint64_t truncations;

	/** Of a READ for the read cache (read_cache.h), or NULL. */
	struct casync_fill *fill;
	/** Of a READ that was left with a lost client (disown.h), or NULL. */
	struct casync_disowned *disowned;

	uint64_t ino; /**< For the log: obj may be freed by then. */
	uint64_t offset;
	size_t length_bytes;		     /**< Of all parts together. */
	struct casync_durability durability; /**< Writes only. */
	uint32_t stable_write;		     /**< The mode of it. */
	uint32_t revalidation_us; /**< Time of the revalidation, µs. */

	/* For the metrics; 0: not reached. */
	uint64_t submitted_ns;
	uint64_t answered_ns; /**< Atomic; libcephfs' last answer. */
	uint64_t taken_ns;    /**< By a completion thread. */

	int parts_left;	  /**< Atomic; CASYNC_OP_* below come on top. */
	uint32_t awaited; /**< Atomic; complete.c's. */

	/* The outcome. */
	fsal_status_t status;
	size_t amount_bytes;
	bool end_of_file;

	/** A READ of our own (next_files.h): it has no buffer of a caller, and
	 * ends where it would not fill the cache. */
	bool ahead;
};

_Static_assert(sizeof(struct casync_op) <= CASYNC_OP_MAX_BYTES,
	       "an op is larger than its bound");

/**
 * Make an op of a read2 or write2 call.  Needs op_ctx.
 *
 * @param[in] call  Begun; the op ends it.
 *
 * @return The op, NEW; never NULL (Ganesha's allocator aborts).
 */
struct casync_op *casync_op_new(enum casync_op_kind kind,
				const struct casync_call *call,
				struct fsal_io_arg *arg, fsal_async_cb done_cb,
				void *caller_arg);

enum casync_op_started {
	CASYNC_OP_STARTED, /**< Call casync_op_prepare(). */
	/** `later` will be called; for a WRITE, after casync_op_parked(). */
	CASYNC_OP_WAITS,
	/** Nothing is held; call casync_op_answer_early(). */
	CASYNC_OP_REFUSED,
};

/**
 * Get a usable Fh and a place in flight.
 *
 * It may block to open the file.  It never blocks for a place.  If a READ has
 * to wait for a place, the caller no longer owns it.  The caller owns a WRITE
 * that has to wait until casync_op_parked().
 *
 * @param[in]  bypass  Bypass non-mandatory share denials.
 * @param[in]  later   Runs on a worker of ours when the op has got a place, or
 *                     has got none in time: see entry.refused.
 * @param[out] status  Why the op was refused.
 */
enum casync_op_started casync_op_start(struct casync_op *op, bool bypass,
				       void (*later)(struct casync_work *work),
				       fsal_status_t *status);

/** Tell that a WRITE that waits for a place has been parked in its queue. */
void casync_op_parked(struct casync_op *op);

/** Decide the durability, and lay out the parts. */
void casync_op_prepare(struct casync_op *op);

/** Lay out the parts; needs fsal_fd, length and durability. */
void casync_op_lay_out(struct casync_op *op);

/**
 * Answer an op that was never submitted, on the request's own thread.
 *
 * @param[in] status  May be success (nothing to transfer).
 */
void casync_op_answer_early(struct casync_op *op, fsal_status_t status);

/**
 * Answer an op whose outcome is known, on a thread of ours.
 *
 * The order, with reasons:
 * 1. Set op_ctx: closing an fd and done_cb need it.
 * 2. casync_borrow_complete_io(), before done_cb: unexport waits for it under
 *    locks that done_cb takes, and the object may be freed after done_cb.
 * 3. Leave the in-flight set, before done_cb: releasing the op_ctx may drop
 *    the last reference on the export, and its release waits for that set.
 */
void casync_op_answer(struct casync_op *op);

/** End an op on a worker of ours. */
void casync_op_end_on_worker(struct casync_op *op);

/** End an op by a thread that must not wait for Ceph: on a worker if ending the
 * op closes a temporary fd, else at once. */
void casync_op_end_unblocked(struct casync_op *op);

/**
 * Turn the results of a submitted op into its answer, and end it: finish.c.
 * Runs on a completion thread, or on the worker that waited for the results.
 */
void casync_finish(struct casync_op *op);

/** Was the fd opened for this op alone, or is its state freed?  Then ending the
 * op calls libcephfs. */
static inline bool casync_op_ends_in_libcephfs(const struct casync_op *op)
{
	return op->fsal_fd != NULL &&
	       casync_borrow_ends_in_libcephfs(op->fsal_fd);
}

/**
 * The fields of an op that the log shows.
 *
 * A line takes two steps.  The fields are copied where the op is found, under
 * the in-flight set's lock.  No line may be formatted or logged there.  The
 * text is formatted later.
 */
struct casync_dump {
	uint64_t ino;
	uint64_t offset;
	uint64_t length_bytes;
	uint64_t since_ns; /**< CLOCK_MONOTONIC; 0 before it was let in. */
	int kind;	   /**< enum casync_op_kind */
	int state;	   /**< enum casync_op_state */
	int parts_left;
};

/** Room for any line that casync_op_dump_format() writes. */
#define CASYNC_DUMP_LINE 256

/** Copy the fields that the log shows.  Takes no lock; any thread. */
void casync_op_dump_take(const struct casync_op *op, struct casync_dump *dump);

/**
 * "WRITE inode 0x10000000001 offset 4096 length 4096 age 1503 ms state
 * SUBMITTED (with libcephfs), 1 calls unanswered".
 *
 * @return @p line
 */
const char *casync_op_dump_format(const struct casync_dump *dump, char *line,
				  size_t size);

/** Log that a slow request has completed, with its status. */
void casync_op_log_ended(const struct casync_op *op);

/** Put an op that has been answered back into its pool. */
void casync_op_free(struct casync_op *op, struct casync_pool *pool);

/** Change the state, as drawn above. */
static inline void casync_op_set_state(struct casync_op *op,
				       enum casync_op_state state)
{
	__atomic_store_n(&op->state, state, __ATOMIC_RELEASE);
}

#endif /* CASYNC_OP_H */
