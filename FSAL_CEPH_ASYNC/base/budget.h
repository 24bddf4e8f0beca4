/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file budget.h
 * @brief How many of Ganesha's workers may wait for Ceph, and for whom.
 *
 * Calls of libcephfs wait without a timeout: for an MDS, or for a client that
 * does not return capabilities.  So whatever keeps a worker while it waits
 * takes a slot: a place of its file, of its mount, and of the process.  So one
 * dead MDS, or one stuck file, leaves workers for the others.
 *
 * casync_budget_decide() says how many places there are.  It is a pure function
 * of a few counts, so its cases are a table.  In numbers, of 200 workers
 * (RPC_Ioq_ThrdMax); "kept" are the slots of all mounts together:
 *
 *	who			may have
 *	all mounts together	150, three quarters.  The rest goes on: for
 *				NFSv4 leases, and for what asks Ceph nothing.
 *	a mount			as many as are left of these.  If one does not
 *				answer, it keeps 75; two keep 50 each.  Another
 *				one finds as many as each of them has (dynamic
 *				thresholds, Choudhury and Hahne 1998).
 *	  that was idle, and	4, until its MDS has answered the keeper.
 *	  41 are kept		Eight that die while idle keep 40 + 7 * 4 then.
 *				A folder that is alone has 38, so it never
 *				comes to the 41.
 *	  for an optional call	half of what is left: the other half is for
 *				calls that are needed
 *	  for the first call	four times what is left, at most 75, if the MDS
 *	  of a file		has answered the keeper: what is left may be
 *				less than what one dead mount keeps
 *	  if that file has	places up to 175, half of the last quarter.  So
 *	  answered lately	it is served when more files have died than the
 *				budget has room for.
 *	a file			half of what its mount could take still, and 1.
 *				So files that do not answer leave room for one
 *				that does.
 *	  that was idle, and	1, and one more for each answer, as in TCP's
 *	  others keep 9		slow start (RFC 5681, section 3.1).  9 is a
 *				sixteenth: less than that is no load.
 *
 *	who finds no place	waits, as long as somebody leaves
 *	a call			0.1 s without progress.  A worker that waits is
 *				kept, too.
 *	  and 150 are kept or	25 ms, if the MDS has not answered the keeper,
 *	  wait			or the file not within the last second: eight
 *				dead mounts kept all workers for 0.1 s each,
 *				one mount after the other.
 *	  for a file that has	1 s, if it is not full for being idle: a folder
 *	  answered lately	with many changes outlasts a pause of the MDS.
 *				For 51 calls, a quarter of the workers, and as
 *				long as half of the workers are free.
 *	an optional call	not at all.  For a mount with its 4 places the
 *				first call of a file waits for the keeper's
 *				question.
 *
 * The counts that a decision is made of are read one after the other.  So a
 * bound of a mount or file may be passed by as many threads as run at once.
 * That of all mounts together holds.
 */
#ifndef CASYNC_BUDGET_H
#define CASYNC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "room.h"

/** Patience without progress: of a call for a file that has answered lately, of
 * the others, and of them in a crowd. */
#define CASYNC_BUDGET_LONG_MS 1000
#define CASYNC_BUDGET_SHORT_MS 100
#define CASYNC_BUDGET_CROWDED_MS 25

/** A decision is made of this. */
struct casync_load {
	uint32_t workers;      /**< Ganesha's. */
	uint32_t all;	       /**< Kept by all mounts. */
	uint32_t waiting;      /**< For a place, this call included. */
	uint32_t mount_inside; /**< Kept by the mount. */
	bool mount_proved;     /**< Has its MDS answered the keeper? */
	uint32_t file_inside;  /**< Kept by the file, without this call. */
	uint32_t file_answers; /**< Since it was idle. */
	bool answered;	       /**< The file, within the last second. */
	bool first;	       /**< No other call of the file has a place. */
	bool optional;	       /**< The call is. */
};

/** How many may have a place, this call included, and how long it waits. */
struct casync_decision {
	uint32_t mount_room, mount_ms;
	uint32_t file_room, file_ms;
	/** So many calls may wait for a file for CASYNC_BUDGET_LONG_MS. */
	uint32_t patient_room;
	/** The mount has few places, until its MDS has answered the keeper. */
	bool asks_mds;
};

/** Pure. */
struct casync_decision casync_budget_decide(const struct casync_load *load);

/**
 * How long the oldest call of a mount has kept its worker.
 *
 * A list would take a lock for each call.  Two generations are counted instead.
 * Calls enter the young one.  When the old one is empty at a look, the two
 * change their parts, and all calls of the new old one began before that.  All
 * members are atomic but since_ns, which is the looker's.
 */
struct casync_budget_age {
	uint32_t inside[2]; /**< Calls of each generation. */
	uint32_t young;	    /**< The one that calls enter. */
	uint64_t since_ns;  /**< All calls of the old one began before. */
};

/** The slots of a mount; zero at first. */
struct casync_budget_mount {
	struct casync_room room;
	struct casync_budget_age age;
};

/** A place of a mount, and of a file of it or NULL. */
struct casync_budget_slot {
	struct casync_budget_mount *mount;
	struct casync_room *file;
	uint32_t generation; /**< Set by casync_budget_enter(). */
};

enum casync_budget_who {
	CASYNC_BUDGET_NEEDED,
	CASYNC_BUDGET_OPTIONAL, /**< The caller can do without it. */
	CASYNC_BUDGET_ALWAYS,	/**< It enters although all is full. */
};

/**
 * Take a slot, or wait for it.
 *
 * @param[in] answered  Ceph has answered for the file within the last second.
 *
 * @return true: casync_budget_leave() must be called.
 */
bool casync_budget_enter(struct casync_budget_slot *slot,
			 enum casync_budget_who who, bool answered);

/** @param[in] answered_ns  The time, or 0: Ceph has not answered. */
void casync_budget_leave(const struct casync_budget_slot *slot,
			 uint64_t answered_ns);

/** A quarter of the workers.  So many of them may wait for the attributes of
 * one file. */
uint32_t casync_budget_quarter(void);

/** Is it time to ask the MDS of a mount, because the mount has few places? */
bool casync_budget_wants_proof(const struct casync_budget_mount *mount);

/** The MDS of a mount is about to be asked: who waits, waits for that. */
void casync_budget_await_proof(struct casync_budget_mount *mount);

/** The MDS of a mount has answered. */
void casync_budget_prove(struct casync_budget_mount *mount);

/**
 * One thread looks at a time, about once a second.
 *
 * @return The age of the oldest call in ns, or less: while one waits, others
 *	   are not dated, and when it ends, they count from then on.  0: all
 *	   calls began after the last look but one.
 */
uint64_t casync_budget_look_at_age(struct casync_budget_age *age,
				   uint64_t now_ns);

#endif /* CASYNC_BUDGET_H */
