/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file recalls.h
 * @brief Carries recalls of delegations from libcephfs to Ganesha.
 *
 * libcephfs recalls with client_lock held, on the thread that found the
 * conflict.  It gives up the whole mount if a delegation is not back in time.
 * So a recall is embedded in what is recalled, and queued on a list.  Threads
 * that only serve this list exist from the start.  Nothing is allocated, no
 * thread is started, and no other upcall comes first.
 *
 * There are several threads, because Ganesha waits for the lock on a file's
 * state before it calls the client.
 */
#ifndef CASYNC_RECALLS_H
#define CASYNC_RECALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "filehandle.h"

struct casync_export;

/** A recall of a file's delegations; embedded in a lease. */
struct casync_recall {
	struct glist_head link;
	bool queued;
	struct casync_export
		*exp;		 /**< Set by the owner; outlives the recall. */
	struct casync_fileid id; /**< Set by the owner. */
};

/** An export's entry; embedded in the export. */
struct casync_recalls_entry {
	bool joined;
	unsigned int busy; /**< Recalls that run. */
};

/** Recalls that can run at once. */
#define CASYNC_RECALLS_THREADS 4

/** Start the threads.  @return 0 or a negative errno. */
int casync_recalls_start(void);

/** End the threads.  All exports must have left. */
void casync_recalls_stop(void);

/** Begin recalls for an export's files. */
void casync_recalls_join(struct casync_export *exp);

/** End recalls for an export.  It waits for running ones, but not in an upcall.
 * May be repeated. */
void casync_recalls_leave(struct casync_export *exp);

/** Queue a recall, unless it is queued already.  May run under client_lock. */
void casync_recall(struct casync_recall *recall);

/** Take a recall out of the queue, before its memory is freed. */
void casync_recall_forget(struct casync_recall *recall);

#endif /* CASYNC_RECALLS_H */
