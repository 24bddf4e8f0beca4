/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file fake_libcephfs.h
 * @brief libcephfs as the data path sees it, answering on command.
 *
 * One file, cut into RADOS objects of which some may be missing; results are
 * what the real library gives for them:
 *
 *	- a non-blocking read within one object gives 0 if it is missing;
 *	- one that spans several gives zeros for the missing ones, success;
 *	- ceph_ll_read() zero-fills up to the size.
 *
 * Numbers are atomic: a test may change one while the plugin's threads run.
 *
 * Callbacks run with client_lock held, as the real ones do.  A call made from
 * within one is counted (fake.calls_in_callback) and fails with -EDEADLK.
 */
#ifndef FAKE_LIBCEPHFS_H
#define FAKE_LIBCEPHFS_H

#include <time.h>

#include <cephfs/libcephfs.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MAX_OBJECTS 64
#define FAKE_MAX_CALLS 4096

/** When a non-blocking call is answered. */
enum fake_when {
	FAKE_BEFORE_RETURN, /**< By callback, in the caller's thread. */
	FAKE_LATER,	    /**< By callback, from fake_complete*(). */
	FAKE_ON_THREAD,	    /**< By callback, on a thread of its own. */
	FAKE_RETURNED,	    /**< By the return value; no callback comes. */
};

/** Do the I/O and report what came of it. */
#define FAKE_TRUE_RESULT INT64_MIN

struct fake_plan {
	enum fake_when when;
	/** Negative: no I/O, this errno.  Else at most so many bytes. */
	int64_t result;
	bool twice;	       /**< The callback comes a second time. */
	int64_t second_result; /**< What it says then. */
};

/** A ceph_ll_nonblocking_readv_writev() as it was made. */
struct fake_call {
	struct ceph_ll_io_info *io;
	struct ceph_ll_io_info asked; /**< A copy. */
	size_t length_bytes;	      /**< Sum of the iovecs. */
	struct fake_plan plan;
	bool pending;	 /**< Until fake_complete*(). */
	bool unanswered; /**< Its Fh and buffers are in use. */
};

/** The last delegation that was asked for or returned. */
struct fake_delegation {
	ceph_deleg_cb_t recall;
	void *priv;
	unsigned int command;
	int refusal; /**< Negative: what a request gets; set by the test. */
};

enum fake_blocking {
	FAKE_READ,
	FAKE_GETATTR,
	FAKE_SYNC_INODE,
	FAKE_OPEN,
	FAKE_CLOSE,
	FAKE_SETLK,
	FAKE_GETLK,
	FAKE_RELEASEDIR,
	FAKE_LOOKUP_VINO,
	FAKE_LOOKUP_ROOT,
	FAKE_START_RECLAIM,
	FAKE_DELEGATION,
	FAKE_SYNC_FS,
	FAKE_BLOCKING_CALLS,
};

struct fake {
	/* The file; set up by the test. */
	_Atomic uint64_t size_bytes;
	struct timespec mtime;
	struct timespec ctime; /**< The later one of both, as libcephfs says. */
	_Atomic uint64_t version;
	_Atomic uint16_t mode; /**< Type and mode. */
	uint64_t object_size_bytes;
	uint8_t *objects[FAKE_MAX_OBJECTS]; /**< NULL: missing. */
	struct ceph_file_layout layout;
	_Atomic bool pool_is_gone;
	struct Inode *inode; /**< What a lookup by number finds. */

	/* How calls are answered; set up by the test. */
	struct fake_plan plan; /**< Where there is no special one. */
	struct fake_plan special[FAKE_MAX_CALLS];
	bool is_special[FAKE_MAX_CALLS];
	/** Negative: the call fails. */
	_Atomic int blocking_result[FAKE_BLOCKING_CALLS];
	/** So many blocking reads get zeros: the writer's size has come, its
	 * data were not there yet. */
	_Atomic unsigned int zero_reads;
	/** Runs in each blocking call, no lock held, before it acts. */
	void (*_Atomic hook)(enum fake_blocking which);
	/** Runs in each submission, no lock held, as get_caps would block. */
	void (*_Atomic submission)(void);

	/** Somebody else's lock; F_UNLCK: none.  The hook may change it. */
	struct flock others_lock;

	/* What happened. */
	struct ceph_client_callback_args callbacks; /**< As registered. */
	struct flock asked_lock; /**< The last one, and its owner. */
	uint64_t asked_owner;
	struct Inode *_Atomic asked_inode; /**< The last GETATTR's or open's. */
	_Atomic uint64_t looked_up_ino;	   /**< By number, the last one. */
	bool asked_to_wait;
	struct fake_delegation delegation;
	struct fake_call calls[FAKE_MAX_CALLS];
	unsigned int call_count;
	_Atomic unsigned int blocking_calls[FAKE_BLOCKING_CALLS];
	_Atomic unsigned int calls_in_callback;
	_Atomic unsigned int closed_in_use; /**< Fhs with open calls. */
	_Atomic int open_fhs;
	_Atomic int last_open_flags;
	_Atomic unsigned int truncations; /**< Opens with O_TRUNC. */
	_Atomic int inode_refs; /**< Given by lookups, less those put. */
	_Atomic int patch;	/**< Of the version; 0: 20.2.4. */
	struct ceph_dir_result *released; /**< The last directory handle. */
	char reclaimed[64];		  /**< The last session's uuid. */
	_Atomic unsigned int reclaims_finished;
	_Atomic int clients_aborted;
	_Atomic int clients_ended; /**< Released. */
};

extern struct fake fake;

/** In fake.submission, of the calling thread: what is submitted. */
extern __thread const struct ceph_ll_io_info *fake_submitting;

/** A file of @p size_bytes, every object there, of fake_byte()s. */
void fake_setup(uint64_t size_bytes, uint64_t object_size_bytes);

/** Join threads and free the objects. */
void fake_teardown(void);

/** What fake_setup() puts at an offset; never 0. */
uint8_t fake_byte(uint64_t offset);

/** What a reader should see at an offset: zero in a hole. */
uint8_t fake_content(uint64_t offset);

/** Have the Nth non-blocking call answered differently. */
void fake_special(unsigned int call, struct fake_plan plan);

/** Lose an object. */
void fake_punch(unsigned int object);

/** Zero a range, as a hole that was punched. */
void fake_zero(uint64_t offset, uint64_t length);

/** Answer a call that is pending. */
void fake_complete(unsigned int call);

/** Call back once more for a call that was answered, as a bug would. */
void fake_complete_again(unsigned int call, int64_t result);

/** Answer all that are pending, in this thread. */
void fake_complete_in_order(void);
void fake_complete_reversed(void);

/** Forget all calls, which have been answered: there is room for more. */
void fake_forget_calls(void);

/** Wait for the threads of FAKE_ON_THREAD. */
void fake_join(void);

/** fake.call_count, while calls may be made. */
unsigned int fake_call_count(void);

/** The counter, read atomically. */
unsigned int fake_blocking_count(enum fake_blocking which);

#endif /* FAKE_LIBCEPHFS_H */
