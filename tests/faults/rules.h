/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file rules.h
 * @brief The rules file: read, and asked what is to happen to a call; pure.
 *
 * The format is in README.md beside this file.
 */
#ifndef FAULTS_RULES_H
#define FAULTS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES_MAX 64

enum fault_kind {
	FAULT_READ = 1,	    /**< ceph_ll_nonblocking_readv_writev, reading */
	FAULT_WRITE = 2,    /**< the same, writing */
	FAULT_FLUSH = 4,    /**< ceph_ll_sync_inode */
	FAULT_REPAIR = 8,   /**< ceph_ll_read */
	FAULT_LOCK = 16,    /**< ceph_ll_setlk */
	FAULT_SETATTR = 32, /**< ceph_ll_setattr */
};

enum fault_action {
	FAULT_NONE, /**< Pass through. */
	FAULT_DELAY,
	FAULT_ERROR,  /**< By the callback. */
	FAULT_REFUSE, /**< By the call itself, without a callback. */
	FAULT_SHORT,
	FAULT_HOLD,
	FAULT_REORDER,
	FAULT_DUPLICATE,
	FAULT_NEVER,
};

enum fault_release {
	FAULT_RELEASE_NOT,
	FAULT_RELEASE_IN_ORDER,
	FAULT_RELEASE_REVERSED,
};

/** A call, as far as rules can tell calls apart. */
struct fault_call_id {
	enum fault_kind kind;
	uint64_t ino;	 /**< Of read and write; else 0: not known there. */
	uint64_t offset; /**< 0 for flush, lock and setattr. */
	uint64_t length_bytes;
};

/** What is to happen to a call. */
struct fault_hit {
	enum fault_action action;
	unsigned int rule;    /**< Its line. */
	unsigned int wait_ms; /**< Delay; of a duplicate, before it. */
	int error;	      /**< Positive. */
	uint64_t bytes;	      /**< What a shortened call transfers. */
	unsigned int times;   /**< Further completions; size of a batch. */
	bool later;	      /**< Duplicates come after the call. */
	unsigned int edition; /**< Of the rules, counted by shim.c. */
};

struct fault_rule {
	unsigned int line;
	unsigned int kinds;
	uint64_t nth, every, count; /* 0: not given */
	uint64_t millionths;	    /* of calls; 0: not given */
	uint64_t first_byte, last_byte;
	uint64_t ino; /* 0: any */

	enum fault_action action;
	unsigned int min_ms, max_ms;
	int error;
	uint64_t bytes;
	bool half;
	unsigned int times;
	bool later;

	uint64_t matched, fired;
};

struct fault_rules {
	uint64_t seed;
	enum fault_release release;
	unsigned int count;
	struct fault_rule rules[FAULT_RULES_MAX];
};

/**
 * Read a rules file's text, which is cut up on the way.
 *
 * @param[out] why  What is wrong and in which line, if something is.
 *
 * @return False: nothing of it is to be used.
 */
bool fault_rules_parse(char *text, struct fault_rules *rules, char *why,
		       size_t size);

/**
 * Decide on a call, and count it.
 *
 * A rule's Nth matching call meets the same fate in every run with one seed.
 */
struct fault_hit fault_rules_match(struct fault_rules *rules,
				   const struct fault_call_id *call);

/** "read", "error", … for the record of events. */
const char *fault_kind_name(enum fault_kind kind);
const char *fault_action_name(enum fault_action action);

#endif /* FAULTS_RULES_H */
