/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file lock_records.h
 * @brief Which byte-range locks clients hold, to take them again.
 *
 * The MDS drops the locks of a session that it ends.  A new CephFS client takes
 * them again before any request is served.  A lock that somebody else
 * has got meanwhile is lost.
 *
 * A record is made after the MDS has granted a lock.  There are at most as many
 * as the MDS has for our session, and as Ganesha has entries.
 */
#ifndef CASYNC_LOCK_RECORDS_H
#define CASYNC_LOCK_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "fsal_api.h"
#include "gsh_list.h"

struct casync_fd;
struct casync_mount;
struct casync_object;

/** The records of a file; embedded in the object. */
struct casync_lock_records {
	struct glist_head list;
	struct glist_head link; /**< In the list of files with locks. */
	bool linked;		/**< Atomic. */
	bool busy;		/**< The keeper takes its locks again. */
	uint32_t changes;	/**< Counts unlocks. */
	uint32_t generation;	/**< Of the client that has taken them. */
	/** The file's version when the client was lost; see locks.c. */
	uint32_t seen_generation;
	uint64_t seen_version;
	uint64_t seen_mtime_ns;
	/** When we last submitted a WRITE; CLOCK_REALTIME; atomic. */
	uint64_t written_ns;
	/** When a late LOCK was given back, see locks.c; the same. */
	uint64_t undone_ns;
};

/** A range that an owner has locked through an fd; the ends are inclusive. */
struct casync_lock_record {
	struct glist_head link;
	struct casync_fd *fd;
	void *owner;
	uint64_t first, last;
	bool exclusive;
};

void casync_lock_records_init(struct casync_lock_records *records);

/**
 * The MDS has granted a lock, to a state's fd.
 *
 * @param[in] generation  Of the client that has taken it.
 */
void casync_lock_records_locked(struct casync_lock_records *records,
				struct casync_fd *fd, void *owner,
				const fsal_lock_param_t *lock,
				uint32_t generation);

/** Has this owner locked a byte of the range, or all of it? */
bool casync_lock_records_have(struct casync_lock_records *records,
			      const void *owner, const fsal_lock_param_t *lock);

/** A WRITE to the file was submitted.  Costs nothing without locks. */
void casync_lock_records_written(struct casync_lock_records *records);

/** A range was unlocked.  An owner that had lost a lock of the file may go on,
 * if it was the whole file. */
void casync_lock_records_unlocked(struct casync_lock_records *records,
				  struct state_t *state, void *owner,
				  const fsal_lock_param_t *lock);

/** The fd is being closed, and its locks end with it.  It may wait for the
 * keeper. */
void casync_lock_records_forget_fd(struct casync_fd *fd);

/** The object is being freed. */
void casync_lock_records_forget(struct casync_lock_records *records);

/**
 * Visit the files of a mount that have records, on the keeper's thread, before
 * the client ends.  No lock is held meanwhile.
 */
void casync_lock_records_visit(struct casync_mount *mount,
			       void (*visit)(struct casync_object *obj));

/** Called by casync_lock_records_reclaim() for each record of a file. */
typedef int casync_lock_taker(struct casync_object *obj,
			      const struct casync_lock_record *record,
			      bool unlock);

/** Called for an fd that has lost a lock, before its records are dropped and
 * under the lock of all records: it may set a flag.  @return How the holder
 * learns it, for the log. */
typedef const char *casync_lock_loser(struct casync_object *obj,
				      struct casync_fd *fd);

/**
 * Take all locks of a mount again, on the keeper's thread.
 *
 * Nobody takes another lock meanwhile, but clients may unlock.  If one does so
 * while its file is at work, the file's locks are given up and taken anew.
 *
 * @param[in]  take  Takes the lock of a record, or gives it back.  @return 0;
 *                   -EAGAIN: it is lost; another negative errno.
 * @param[in]  lost  Called once for each fd that loses its locks.
 * @param[out] taken The number of records that were taken.
 * @param[out] gone  The number of records that were dropped.
 *
 * @return 0, or the first other errno: the session is lost again.
 */
int casync_lock_records_reclaim(struct casync_mount *mount,
				casync_lock_taker *take,
				casync_lock_loser *lost, uint64_t *taken,
				uint64_t *gone);

#endif /* CASYNC_LOCK_RECORDS_H */
