/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file birth.h
 * @brief Has a new file journaled where it was made: in an export's client 0.
 *
 * The MDS answers a create at once and writes its journal when it is asked
 * (journal.h), else every few seconds.  Until then another client waits for the
 * file, and a flush in that client does not wait for the create.
 */
#ifndef CASYNC_BIRTH_H
#define CASYNC_BIRTH_H

struct casync_object;

/**
 * Is all that client 0 has done for a file in the journal of the MDS?  It waits
 * for that.  For files of client 0 it does nothing.
 *
 * @return 0 or a negative errno.
 */
int casync_birth_sync(const struct casync_object *obj);

#endif /* CASYNC_BIRTH_H */
