/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file disown.h
 * @brief READs that an OSD does not answer are left with their lost client.
 *
 * After an eviction libcephfs cancels the WRITEs in flight, not the READs.  An
 * OSD that is away, or a connection that waits to send again, would hold up the
 * new client for as long.  So the keeper disowns such READs.  A disowned READ
 *
 *	- is answered: the NFS client is asked to retry;
 *	- is no longer in flight, and no longer in the guard;
 *	- leaves its op and its buffer with libcephfs until libcephfs answers.
 *	  Then a completion thread frees both.
 *
 * A READ by a blocking call cannot be answered: Ganesha's worker, or a thread
 * of ours, is inside libcephfs.  It leaves the guard only.  When the call
 * returns, its result is not used, and the NFS client is asked to retry.
 *
 * The lost client is not ended before all of them have come back
 * (client.h): libcephfs would free the Inodes that it still uses.
 *
 *	parts_left of the op	whose it is
 *	n			libcephfs': n calls are not answered
 *	DISOWNED + n		ours, to answer it; libcephfs has its parts
 *	n again			libcephfs': it is answered; its pool waits
 *	INSIDE			the thread's that is inside libcephfs
 *	DISOWNED + INSIDE	the same; it has left the guard
 */
#ifndef CASYNC_DISOWN_H
#define CASYNC_DISOWN_H

#include <stddef.h>
#include <stdint.h>

struct Fh;
struct casync_inflight_entry;
struct casync_op;

/** One look at all READs of a mount. */
struct casync_disown_round {
	struct casync_op *to_answer; /**< Linked by `members`. */
	unsigned int count;
};

/**
 * A visitor (inflight.h): disown the op, if it is a READ that libcephfs has.
 * No request enters the guard, and nothing is released in the client any more.
 * READs that are being submitted, and those whose buffers are not Ganesha's own
 * (RDMA, 9P), are left out: look again.
 *
 * @param[in,out] round  A struct casync_disown_round.
 */
void casync_disown_visit(struct casync_inflight_entry *entry, void *round);

/** Answer those of a round, on workers.  @return How many were disowned. */
unsigned int casync_disown_answer(struct casync_disown_round *round);

/** libcephfs has answered a disowned READ. */
void casync_disown_release(struct casync_op *op);

/**
 * ceph_ll_read() for an op.  It may wait for an OSD.
 *
 * @return As ceph_ll_read().  -ETIME: the READ was disowned meanwhile; the
 *         caller is no longer in the guard and must call libcephfs no more.
 */
int64_t casync_disown_read(struct casync_op *op, struct Fh *fh, int64_t offset,
			   char *to, size_t length_bytes);

#endif /* CASYNC_DISOWN_H */
