/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file unfinished.h
 * @brief Files that a create has made, and could neither finish nor remove,
 * because the CephFS session ended in between.
 *
 * The client is asked to send the create again.  An exclusive one would find a
 * file without its verifier, as if another client had made it, and get EEXIST.
 * So the first exclusive create of the name takes the file over, and finishes
 * it.  That may be another client's; the one that comes later gets EEXIST.
 */
#ifndef CASYNC_UNFINISHED_H
#define CASYNC_UNFINISHED_H

#include <stdbool.h>
#include <stdint.h>

/** Not fewer than Ganesha has workers (200 by default), so that all creates in
 * flight may be cut off at once.  One more forgets the oldest. */
#define CASYNC_UNFINISHED_MAX 256

/** A client that is asked to wait comes back within 15 s (Linux), or never. */
#define CASYNC_UNFINISHED_S 300

struct casync_unfinished_file {
	uint64_t ino; /**< 0: nothing is here.  CephFS uses none again. */
	uint64_t made_ns;
};

/** Embedded in the mount; zero at first. */
struct casync_unfinished {
	struct casync_unfinished_file files[CASYNC_UNFINISHED_MAX];
	uint32_t next; /**< Where the next one goes. */
	bool any;      /**< One was added at some time; atomic. */
};

/** Note a file.  Any thread; it never waits for Ceph.
 * @param[in] now_ns  casync_clock_ns(). */
void casync_unfinished_add(struct casync_unfinished *unfinished, uint64_t ino,
			   uint64_t now_ns);

/** Whether a file waits for its next create. */
bool casync_unfinished_has(struct casync_unfinished *unfinished, uint64_t ino,
			   uint64_t now_ns);

/**
 * Take a file over.
 *
 * @return true: it was noted at most CASYNC_UNFINISHED_S ago.  It is the
 *	   caller's now: no other caller gets it, unless it is added again.
 */
bool casync_unfinished_take(struct casync_unfinished *unfinished, uint64_t ino,
			    uint64_t now_ns);

#endif /* CASYNC_UNFINISHED_H */
