/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file recalls.h
 * @brief From libcephfs to the holders of delegations: give this back.
 *
 * libcephfs recalls with client_lock held, in whatever thread has met the
 * conflict, and gives up the whole mount when a delegation is not back in
 * time.  So the recall is part of what is recalled, and queued on a list that
 * threads of its own look after, which are there from the beginning: nothing
 * is allocated, nothing started, and no other upcall is in front of it.
 *
 * There is more than one such thread, as Ganesha waits for the lock on a
 * file's state before it calls the client.
 */
#ifndef CASYNC_RECALLS_H
#define CASYNC_RECALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "gsh_list.h"
#include "filehandle.h"

struct casync_export;

/** One file's delegations to be returned; embedded in a lease. */
struct casync_recall {
	struct glist_head link;
	bool queued;
	struct casync_export *exp; /**< Set by the owner; outlives it. */
	struct casync_fileid id;   /**< Set by the owner. */
};

/** An export's place in it; embedded in the export. */
struct casync_recalls_entry {
	bool joined;
	unsigned int busy; /**< Recalls on their way. */
};

/** Recalls that can be on their way at once. */
#define CASYNC_RECALLS_THREADS 4

/** @return 0 or a negative errno. */
int casync_recalls_start(void);

/** End the threads.  All exports have left. */
void casync_recalls_stop(void);

/** Have recalls for an export's files. */
void casync_recalls_join(struct casync_export *exp);

/** No more of them; waits for those on their way, but not in an upcall.  May
 * be repeated. */
void casync_recalls_leave(struct casync_export *exp);

/** Queue a recall, unless it is queued.  May be called under client_lock. */
void casync_recall(struct casync_recall *recall);

/** Take it back if it is queued: its memory may go. */
void casync_recall_forget(struct casync_recall *recall);

#endif /* CASYNC_RECALLS_H */
