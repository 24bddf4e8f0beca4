/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "city.h"
#include "identity.h"
#include "text.h"

/* Longest text that is hashed; FSAL_CEPH cuts it at the same length. */
#define HASHED_BYTES 8192

struct casync_identity
casync_identity_copy(const struct casync_identity *identity)
{
	struct casync_identity copy = *identity;

	copy.user_id = casync_text_copy(identity->user_id);
	copy.filesystem = casync_text_copy(identity->filesystem);
	copy.path = casync_text_copy(identity->path);
	copy.secret = casync_text_copy(identity->secret);
	return copy;
}

void casync_identity_free(const struct casync_identity *identity)
{
	gsh_free(identity->user_id);
	gsh_free(identity->filesystem);
	gsh_free(identity->path);
	gsh_free(identity->secret);
}

void casync_identity_uuid(const struct casync_identity *id, const char *nodeid,
			  bool distinct, char *uuid, size_t size)
{
	const char *suffix = distinct ? "-async" : "";
	char own[sizeof("-export-65535")] = "";
	char hashed[HASHED_BYTES];

	if (id->own)
		(void)snprintf(own, sizeof(own), "-export-%hu", id->export_id);
	if (id->use_old_uuid) {
		(void)snprintf(uuid, size, "ganesha-%s-%4.4hx%s%s", nodeid,
			       id->export_id, own, suffix);
		return;
	}

	(void)snprintf(hashed, sizeof(hashed), "%s%s%s%s", nodeid,
		       casync_text_or(id->user_id, "(null)"),
		       casync_text_or(id->filesystem, "(null)"), id->path);
	(void)snprintf(uuid, size, "ganesha-0x%" PRIx64 "%s%s",
		       CityHash64(hashed, strlen(hashed)), own, suffix);
}
