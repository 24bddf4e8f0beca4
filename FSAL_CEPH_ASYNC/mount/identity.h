/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file identity.h
 * @brief Makes the uuid of a CephFS session: who we are to the MDS.
 */
#ifndef CASYNC_IDENTITY_H
#define CASYNC_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Room for a uuid with any node id that Ganesha accepts. */
#define CASYNC_UUID_BYTES 320

struct casync_identity {
	const char *nodeid;
	const char *user_id;	/**< NULL when not configured. */
	const char *filesystem; /**< NULL when not configured. */
	const char *path;	/**< Root of the mount. */
	uint16_t export_id;
	bool own;      /**< Only this export uses the session. */
	bool old_form; /**< Use_Old_Uuid */
	bool distinct; /**< FSAL_CEPH is in this process too. */
};

/**
 * Write the session uuid.
 *
 * It is the same as FSAL_CEPH's.  So a restart with the other FSAL reclaims the
 * session at once, and does not wait for its timeout.  The uuid is a hash of
 * node id, user, file system and path ("(null)" if not set, as printf writes
 * it), or the older form of node id and export id.  If FSAL_CEPH is loaded in
 * the same process, the same uuid would evict its live session.  Then ours gets
 * a suffix.  So does the session of one export: exports that share no client
 * must not have the same uuid.
 *
 * @param[in]  id    The values that the uuid is made of.
 * @param[out] uuid  The uuid as text.
 * @param[in]  size  Of @p uuid; at most CASYNC_UUID_BYTES are used.
 */
void casync_identity_uuid(const struct casync_identity *id, char *uuid,
			  size_t size);

#endif /* CASYNC_IDENTITY_H */
