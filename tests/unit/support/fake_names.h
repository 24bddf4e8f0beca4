/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file fake_names.h
 * @brief libcephfs' calls on names, attributes and directories, answering on
 * command.
 *
 * fake_libcephfs.h has the calls on data and locks, GETATTR and the look-up by
 * number.  Each call here is written down.  It succeeds, or fails as the test
 * says.  A look-up and a creation find fake.inode, and give a reference on it.
 *
 * The functions are weak: a test may have one of its own.
 */
#ifndef FAKE_NAMES_H
#define FAKE_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fake_libcephfs.h"

struct fake_names {
	/* Set up by the test. */
	_Atomic int result; /**< Negative: calls fail with it. */
	const char *fails;  /**< The call that fails; NULL: each. */
	/** Runs in each call, before it answers; @p in is NULL if it is on an
	 * Fh or a listing. */
	void (*hook)(const char *call, const struct Inode *in);
	/** Look-ups find nothing until something is made. */
	bool nothing_yet;
	uint64_t ino;	 /**< Of what is found or made. */
	mode_t mode;	 /**< Its type and mode. */
	int xattr_bytes; /**< Of each extended attribute... */
	bool capability; /**< ...but of security.capability. */
	/** What listings have; the end comes after them. */
	const struct ceph_statx *entries;
	unsigned int entry_count;
	_Atomic int perms_made; /**< Ever, not root's. */

	/* What happened. */
	char log[256];		    /**< All calls, with a space between two. */
	_Atomic unsigned int calls; /**< Their number. */
	_Atomic int perms; /**< Credentials made, less those destroyed. */
	_Atomic unsigned int entries_read; /**< Since the last opendir. */
	struct ceph_statx set;		   /**< What the last setattr set. */
	int set_mask;
};

extern struct fake_names fake_names;

/** Forget all, and have each call succeed.  A regular file is found. */
void fake_names_setup(void);

#endif /* FAKE_NAMES_H */
