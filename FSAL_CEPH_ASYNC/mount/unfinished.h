/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file unfinished.h
 * @brief Files that an exclusive create has made, and could neither finish nor
 * remove, because the CephFS session ended in between.
 *
 * The client is asked to send the create again.  It would find a file without
 * its verifier, as if another client had made it, and get EEXIST.  So the
 * mount keeps the verifier for that time.
 */
#ifndef CASYNC_UNFINISHED_H
#define CASYNC_UNFINISHED_H

#include <stdbool.h>
#include <stdint.h>

/** Not fewer than Ganesha has workers (200 by default), so that all creates in
 * flight may be cut off at once.  One more forgets the oldest. */
#define CASYNC_UNFINISHED_MAX 256

/** Of an exclusive create (RFC 8881, verifier4; RFC 1813, createverf3). */
#define CASYNC_VERIFIER_BYTES 8

struct casync_unfinished_file {
	uint64_t ino; /**< 0: nothing is here.  CephFS uses none again. */
	char verifier[CASYNC_VERIFIER_BYTES];
};

/** Embedded in the mount; zero at first. */
struct casync_unfinished {
	struct casync_unfinished_file files[CASYNC_UNFINISHED_MAX];
	uint32_t next; /**< Where the next one goes. */
	bool any;      /**< One was added at some time; atomic. */
};

/** Note a file.  Any thread; it never waits for Ceph. */
void casync_unfinished_add(struct casync_unfinished *unfinished, uint64_t ino,
			   const char *verifier);

/** Whether a file waits for the create with this verifier to come again. */
bool casync_unfinished_has(struct casync_unfinished *unfinished, uint64_t ino,
			   const char *verifier);

/** It is finished: forget it. */
void casync_unfinished_remove(struct casync_unfinished *unfinished,
			      uint64_t ino, const char *verifier);

#endif /* CASYNC_UNFINISHED_H */
