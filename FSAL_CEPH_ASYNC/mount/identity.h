/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file identity.h
 * @brief Makes the uuid of a CephFS session, from what Ceph knows a client by.
 */
#ifndef CASYNC_IDENTITY_H
#define CASYNC_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Room for a uuid with any node id that Ganesha accepts. */
#define CASYNC_UUID_BYTES 320

/** Exports of the same identity share a client.  Strings but the path may be
 * NULL: they are not configured. */
struct casync_identity {
	char *user_id;
	char *filesystem;
	char *path; /**< Root of the mount. */
	char *secret;
	uint16_t export_id; /**< The first export's. */
	bool own;	    /**< Of this export alone: Share_Client = false. */
	bool use_old_uuid;
};

/** A copy of it, and of its texts; casync_identity_free(). */
struct casync_identity
casync_identity_copy(const struct casync_identity *identity);

/** Free the texts. */
void casync_identity_free(const struct casync_identity *identity);

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
 * @param[in]  id        The values that the uuid is made of.
 * @param[in]  nodeid    Of the host whose session it is.
 * @param[in]  distinct  FSAL_CEPH is in this process too.
 * @param[out] uuid      The uuid as text.
 * @param[in]  size      Of @p uuid; at most CASYNC_UUID_BYTES are used.
 */
void casync_identity_uuid(const struct casync_identity *id, const char *nodeid,
			  bool distinct, char *uuid, size_t size);

#endif /* CASYNC_IDENTITY_H */
