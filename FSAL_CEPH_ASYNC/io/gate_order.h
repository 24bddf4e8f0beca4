/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file gate_order.h
 * @brief Decides which queued op of a file goes next.
 *
 * Order.  WRITEs that overlap reach libcephfs in the order of their arrival.
 * An op is "in sight" from the moment it is queued until it has been submitted.
 * A call of several ops can be refused and submitted again, so its ops stay in
 * sight until it has been answered.  An op waits if it overlaps an op in sight.
 * A READ that overlaps a WRITE in flight may see the data before or after it, so
 * reads block nothing.
 *
 * Bounds.  A search skips only so many ops that cannot go, and follows only so
 * many that overlap.  When a blocking op has gone, the search is repeated.
 *
 * Only gate.c calls it, under the gate's lock.  Nothing here blocks.
 */
#ifndef CASYNC_GATE_ORDER_H
#define CASYNC_GATE_ORDER_H

#include <stdbool.h>

struct casync_gate;
struct casync_op;

/** Put an op at the end of the queue. */
void casync_order_append_locked(struct casync_gate *gate, struct casync_op *op);

/** Take out the op at a link of the queue. */
struct casync_op *casync_order_take_out_locked(struct casync_gate *gate,
					       struct casync_op **link);

/**
 * Take the next op that may go, with the ops that share its call.
 *
 * @return The first op of the call, in sight if it is a WRITE.  NULL: none.
 */
struct casync_op *casync_order_take_locked(struct casync_gate *gate);

/**
 * The same for the newest op, if so many others cannot go that the search did
 * not reach it.
 *
 * @param[in] link  That of the newest op.
 */
struct casync_op *casync_order_take_newest_locked(struct casync_gate *gate,
						  struct casync_op **link);

/** @return Whether the op was in sight. */
bool casync_order_leave_sight_locked(struct casync_gate *gate,
				     struct casync_op *op);

#endif /* CASYNC_GATE_ORDER_H */
