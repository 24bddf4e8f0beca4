/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file take_over.h
 * @brief Ends the CephFS session of a dead node, for one mount.
 *
 * It uses a client of its own: that of the mount may be lost at this moment, as
 * one cause often hits two gateways.  If the session cannot be ended now, the
 * mount notes the node, and its keeper tries again: before each try to make a
 * new client, so before locks are taken again, and from time to time.
 */
#ifndef CASYNC_TAKE_OVER_H
#define CASYNC_TAKE_OVER_H

#include <stdbool.h>
#include <stdint.h>

struct casync_mount;

/** Most nodes that a mount notes. */
#define CASYNC_TAKE_OVERS_MAX 8

/** A node that is noted. */
struct casync_take_over {
	char *nodeid; /**< NULL: the place is free. */
	/* CLOCK_MONOTONIC. */
	uint64_t next_ns;  /**< When to try again. */
	uint64_t pause_ns; /**< To the try after that. */
	uint64_t until_ns; /**< Then the MDS has ended the session by itself. */
};

/**
 * End the node's session.  Each outcome is logged.
 *
 * @param[in] timeout_s  Longest wait for the MDS.
 *
 * @return 0, also if there is no such session.  A negative errno: the keeper
 *         tries again.
 */
int casync_take_over_node(struct casync_mount *mount, const char *nodeid,
			  uint32_t timeout_s);

/** Try again, as the keeper.  @param[in] now  Even if the pause is not over. */
void casync_take_over_again(struct casync_mount *mount, bool now);

/** Forget the nodes: the mount is freed. */
void casync_take_over_forget(struct casync_mount *mount);

#endif /* CASYNC_TAKE_OVER_H */
