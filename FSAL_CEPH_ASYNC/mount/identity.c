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

void casync_identity_uuid(const struct casync_identity *id, char *uuid,
			  size_t size)
{
	const char *suffix = id->distinct ? "-async" : "";
	char own[sizeof("-export-65535")] = "";
	char hashed[HASHED_BYTES];

	if (id->own)
		(void)snprintf(own, sizeof(own), "-export-%hu", id->export_id);
	if (id->old_form) {
		(void)snprintf(uuid, size, "ganesha-%s-%4.4hx%s%s", id->nodeid,
			       id->export_id, own, suffix);
		return;
	}

	(void)snprintf(hashed, sizeof(hashed), "%s%s%s%s", id->nodeid,
		       casync_text_or(id->user_id, "(null)"),
		       casync_text_or(id->filesystem, "(null)"), id->path);
	(void)snprintf(uuid, size, "ganesha-0x%" PRIx64 "%s%s",
		       CityHash64(hashed, strlen(hashed)), own, suffix);
}
