/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file op.h
 * @brief One READ or WRITE, from the NFS request to its done callback.
 *
 *	 casync_op_new()        casync_submit()          the last part's
 *	      |                      |                   result is stored
 *	      v                      v                          |
 *	    NEW -> (JOURNALING or HELD) -> SUBMITTED ---------> QUEUED
 *	     |  |                                               |
 *	     | casync_finish_blocking_read()           completion thread takes it
 *	     |  |                                               v
 *	     |  +--> BLOCKING <-- repair, flush, close --- FINISHING
 *	     |           |                                      |
 *	casync_op_fail() |                                      |
 *	     |           |                                      |
 *	     +--> DONE <-+------------ casync_op_end() ---------+
 *	           |
 *	     back in the export's pool, where it waits its turn to be NEW
 *
 * JOURNALING: a new file's writes before its first flush; HELD; both gate.h.  A
 * worker that waits for the answer takes it without QUEUED, await.h.  From
 * QUEUED the writes of a call that was refused go back, over BLOCKING, to be
 * submitted each by itself, gather.h.
 *
 * Owner: the worker until casync_submit() gives up its hold, or another one
 * that takes it along from the gate; then libcephfs (of ops that share a call
 * it knows the first, whose owner is everybody's until the results are in);
 * then whichever of our threads has taken it, or the worker that waits.  One
 * owner at a time, so only `state`, `parts_left`, `awaited` and each part's
 * `armed` are atomic.
 *
 * Exactly once: every op that casync_op_new() returned ends in
 * casync_op_end() or casync_op_fail(), each of which calls done_cb and puts
 * the op back; a part's second completion finds it disarmed, is recorded,
 * logged by the watchdog and else ignored (aborts in debug builds).
 *
 * Until done_cb the request keeps alive: the object, the export, `arg`, its
 * buffers and the state; io_work keeps the Fh open.
 */
#ifndef CASYNC_OP_H
#define CASYNC_OP_H

#include <cephfs/libcephfs.h>

#include "fsal_api.h"
#include "durability.h"
#include "fd.h"
#include "flush.h"
#include "gather.h"
#include "inflight.h"
#include "workers.h"

struct casync_export;
struct casync_object;

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

/** What one call of libcephfs transfers: at most one RADOS object's worth. */
struct casync_part {
	struct ceph_ll_io_info io; /**< First: the callback gets it. */
	struct casync_op *op;
	size_t asked_bytes;
	int64_t result; /**< Of the first completion; io.result is
			     libcephfs' to write to. */
	bool armed;	/**< Atomic; submitted and not completed. */
};

/** Parts of a read that has more than an op's own; pool.c's. */
struct casync_part_array {
	struct casync_part_array *next; /**< While nobody uses it. */
	unsigned int size;		/**< 2^size parts. */
	struct casync_part parts[];
};

/** AUTH_SYS carries 16 groups; more (Manage_Gids) are allocated. */
#define CASYNC_OP_GROUPS 16

/** A read over one object border; or a write, and once more by itself
 * (gather.h).  Longer reads take an array of the pool's. */
#define CASYNC_OP_PARTS 2

/** Ganesha has one buffer per request up to 1 MiB; each cut adds one. */
#define CASYNC_OP_IOVS 4

/**
 * Most that an op takes, checked when compiled: 8192 in flight (Max_Inflight's
 * default) are 8 MiB.  Parts and iovecs beyond the usual come on top (pool.h).
 */
#define CASYNC_OP_MAX_BYTES 1024

struct casync_op {
	struct casync_op *next; /**< Held, completed, or free in the pool. */

	/* Kept from request to request, but the array. */
	struct casync_part_array *part_array;
	struct casync_part *parts;
	unsigned int parts_room;
	unsigned int iovs_room;
	struct iovec *iovs; /**< Slices of arg->iov. */
	struct casync_part own_parts[CASYNC_OP_PARTS];
	struct iovec own_iovs[CASYNC_OP_IOVS];

	/* From here on each request's own; zero in a fresh op. */
	struct casync_work work; /**< On a worker that may block. */
	struct casync_inflight_entry entry;
	struct casync_flush_waiter flush_waiter;
	struct casync_gather gather;
	struct casync_op *members; /**< In the same call, by offset. */

	enum casync_op_kind kind;
	int state; /**< enum casync_op_state, atomic. */

	struct casync_object *obj;
	struct casync_export *exp;
	struct gsh_export *gsh_export;
	struct user_cred creds; /**< The requester's, copied. */
	gid_t groups[CASYNC_OP_GROUPS];

	struct fsal_io_arg *arg;
	fsal_async_cb done_cb;
	void *caller_arg;

	struct fsal_fd *fsal_fd;  /**< I/O started on it; NULL before. */
	struct casync_fd temp_fd; /**< Where fsal_fd may point. */
	bool share_held;	  /**< A temporary share reservation. */
	/** A READ whose caller sees by itself whether it is at the end. */
	bool caller_finds_end;
	bool past_end; /**< A READ beyond what is known of the file. */
	uint32_t late; /**< Atomic; of a WRITE that waits for a place. */

	uint64_t ino; /**< For the log: obj may be gone by then. */
	uint64_t offset;
	size_t length_bytes; /**< What is asked of libcephfs in all. */
	struct casync_durability durability; /**< Writes only. */
	uint32_t stable_write;		     /**< And the mode it is of. */

	/* For the metrics; 0: it never got there. */
	uint64_t submitted_ns;
	uint64_t answered_ns; /**< Atomic; libcephfs' last answer. */
	uint64_t taken_ns;    /**< By a completion thread. */

	unsigned int part_count;
	int parts_left;	  /**< Atomic; one more while submitting. */
	uint32_t awaited; /**< Atomic; await.c's. */

	/* The outcome. */
	fsal_status_t status;
	size_t amount_bytes;
	bool end_of_file;
};

_Static_assert(sizeof(struct casync_op) <= CASYNC_OP_MAX_BYTES,
	       "an op takes more memory than is promised");

/**
 * Make an op of a read2 or write2 call.  Needs op_ctx.
 *
 * @return The op, NEW; never NULL (Ganesha's allocator aborts).
 */
struct casync_op *casync_op_new(enum casync_op_kind kind,
				struct fsal_obj_handle *obj_hdl,
				struct fsal_io_arg *arg, fsal_async_cb done_cb,
				void *caller_arg);

enum casync_op_started {
	CASYNC_OP_STARTED, /**< casync_op_prepare() is due. */
	/** `later` is going to be called; of a WRITE, after
	 * casync_op_parked(). */
	CASYNC_OP_WAITS,
	CASYNC_OP_REFUSED, /**< Nothing is held; casync_op_fail() is due. */
};

/**
 * Get a usable Fh and a place among what is in flight.
 *
 * May block (opening the file), but not for a place: a READ that has to wait
 * for one is not the caller's any more, a WRITE until casync_op_parked().
 *
 * @param[in]  bypass  Bypass non-mandatory share denials.
 * @param[in]  later   Run on a worker of ours once there is a place, or there
 *                     is none in time: entry.refused tells.
 * @param[out] status  Why it was refused.
 */
enum casync_op_started casync_op_start(struct casync_op *op, bool bypass,
				       void (*later)(struct casync_work *work),
				       fsal_status_t *status);

/** A WRITE that waits for a place has been parked. */
void casync_op_parked(struct casync_op *op);

/** Decide what is promised, and lay out the parts. */
void casync_op_prepare(struct casync_op *op);

/**
 * Answer an op that was never submitted, in the request's own thread.
 *
 * @param[in] status  May be success (nothing to transfer).
 */
void casync_op_fail(struct casync_op *op, fsal_status_t status);

/**
 * Answer an op whose outcome is settled, on a thread of ours.
 *
 * Order, and why: the op_ctx first, because closing an fd and done_cb need
 * one; fsal_complete_io before done_cb, because unexport waits for it under
 * locks that done_cb takes, and because the object may be gone afterwards;
 * out of the in-flight set before done_cb, because releasing the op_ctx may
 * drop the last export reference, whose release waits for that set.
 */
void casync_op_end(struct casync_op *op);

/** The same on a worker of ours. */
void casync_op_end_on_worker(struct casync_op *op);

/** The same by a thread that must not wait for Ceph: on a worker where ending
 * the op closes a temporary fd, else at once. */
void casync_op_end_unblocked(struct casync_op *op);

/** Was the fd opened for this op alone?  Then ending it calls libcephfs. */
static inline bool casync_op_closes_fd(const struct casync_op *op)
{
	return op->fsal_fd != NULL && op->fsal_fd->close_on_complete;
}

/** Move on, as drawn above. */
static inline void casync_op_set_state(struct casync_op *op,
				       enum casync_op_state state)
{
	__atomic_store_n(&op->state, state, __ATOMIC_RELEASE);
}

#endif /* CASYNC_OP_H */
