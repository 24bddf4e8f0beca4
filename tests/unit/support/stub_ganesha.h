/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stub_ganesha.h
 * @brief The smallest Ganesha that the data path runs in.
 *
 * Counts what has to balance.  Everything is atomic: the plugin calls from
 * its own threads, tests look from theirs.
 */
#ifndef STUB_GANESHA_H
#define STUB_GANESHA_H

#include "fsal_api.h"

struct stub {
	/* Set up by the test. */
	struct fsal_fd *io_fd; /**< fsal_start_io() gives this one, if set. */
	bool global_fd_busy;   /**< I/O without state gets a temporary fd. */
	fsal_status_t start_status;    /**< fsal_start_io()'s. */
	fsal_status_t complete_status; /**< fsal_complete_io()'s. */
	void (*on_complete_io)(void);  /**< Runs in fsal_complete_io(). */
	void (*on_release)(void);      /**< In release_op_context(): the export
				       may go. */

	/* The last fsal_start_io(). */
	fsal_openflags_t openflags;
	bool for_locks;
	bool bypass;

	/* Counted. */
	int ios_started;
	int ios_completed;
	int ios_without_op_ctx;	 /**< Completed, that is. */
	int reservations;	 /**< Shares held: 0 when idle. */
	int reservation_changes; /**< Both ways. */
	int export_refs;	 /**< Over the test's own. */
	int op_contexts;	 /**< Initialised, not released. */
	int warnings;		 /**< LogWarn and worse. */
	char last_warning[256];	 /**< Under a lock: stub_warned(). */
};

extern struct stub stub;

/** Zero everything. */
void stub_reset(void);

int stub_ios_completed(void);

/** Does the last of the warnings contain @p text? */
bool stub_warned(const char *text);

#endif /* STUB_GANESHA_H */
