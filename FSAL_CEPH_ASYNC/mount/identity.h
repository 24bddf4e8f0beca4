/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file identity.h
 * @brief Who we are to the MDS: the uuid of a client session.
 */
#ifndef CASYNC_IDENTITY_H
#define CASYNC_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Room for a uuid with any node id Ganesha takes. */
#define CASYNC_UUID_BYTES 320

struct casync_identity {
	const char *nodeid;
	const char *user_id;	/**< NULL when not configured. */
	const char *filesystem; /**< NULL when not configured. */
	const char *path;	/**< Root of the mount. */
	uint16_t export_id;
	bool old_form; /**< Use_Old_Uuid */
	bool distinct; /**< FSAL_CEPH lives in this process too. */
};

/**
 * Write the session uuid.
 *
 * It is FSAL_CEPH's, so that a restart under the other name takes over its
 * session at once instead of waiting for it to time out: a hash of node id,
 * user, file system and path ("(null)" for what is not set, as printf has
 * it), or the older form of node id and export id.  Where FSAL_CEPH is loaded
 * in the same process the same uuid would evict its live session, so ours
 * gets a suffix.
 *
 * @param[in]  id    What goes in.
 * @param[out] uuid  Text.
 * @param[in]  size  Of @p uuid, at most CASYNC_UUID_BYTES is used.
 */
void casync_identity_uuid(const struct casync_identity *id, char *uuid,
			  size_t size);

#endif /* CASYNC_IDENTITY_H */
