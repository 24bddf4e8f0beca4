/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file next_files.h
 * @brief Fetches the files that a client will read next into the read cache.
 *
 * A file is opened, read and closed one after the other, and the READ waits for
 * an OSD.  So a client that reads a tree waits most of the time.  While it
 * works on one file, the beginnings of the next ones of the listing
 * (listing_order.h) are opened and read here, as READs of our own: on an object
 * of their own, with an op, a place in flight and a revalidation.  Their data
 * go into the read cache, and nowhere else.  So the client's OPEN finds the
 * capabilities, and its READ the data.  They are right for the reasons that
 * make each cached byte right (read_cache.h).
 *
 * Nobody has asked for them, so they give way to everybody:
 *
 *	- not without the read cache, and not in a snapshot
 *	- CASYNC_NEXT_FILES_MOST for each export; CASYNC_NEXT_FILES_AT_ONCE of
 *	  a mount keep a thread of its lane, and ask the MDS or an OSD
 *	- none while a request of the export waits for a place in flight, or
 *	  half of them are taken
 *	- only files that nobody has changed for CASYNC_NEXT_FILES_AGE_S.  The
 *	  open of a file that another client writes would take capabilities
 *	  from it.  libcephfs does not tell who has a file open; its age
 *	  does, mostly.
 *	- none that is delegated: the open would recall it
 *	- only files that Ganesha still knows: else the data would go at once
 *
 * They are counted as bytes that were read ahead (buffer.h: fetched, used,
 * wasted), and not as READs of a client.
 *
 * Each has a reference on the export for as long as it lives: an export that
 * goes waits for it as for the READ of a client.
 */
#ifndef CASYNC_NEXT_FILES_H
#define CASYNC_NEXT_FILES_H

#include "lane.h"
#include "op.h"

/** So much of a file is fetched, from its beginning. */
#define CASYNC_NEXT_FILES_BYTES (256U << 10)

/** Files of an export that wait or are fetched. */
#define CASYNC_NEXT_FILES_MOST 64U

#define CASYNC_NEXT_FILES_AGE_S 30

/** A client reads a file from its beginning: fetch the next ones.  It never
 * waits.  On the worker that brought the READ, before it may be answered. */
void casync_next_files_read(const struct casync_op *op);

/** fsal_async_cb of the READs that are made here: their ops are `ahead`. */
void casync_next_files_done(struct fsal_obj_handle *obj_hdl,
			    fsal_status_t status, void *read_arg,
			    void *caller_arg);

#endif /* CASYNC_NEXT_FILES_H */
