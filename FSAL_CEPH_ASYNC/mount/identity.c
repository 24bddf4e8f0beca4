/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "city.h"
#include "identity.h"

/* Longest text that is hashed; FSAL_CEPH cuts it here too. */
#define HASHED_BYTES 8192

static const char *identity_shown(const char *text)
{
	return text != NULL ? text : "(null)";
}

void casync_identity_uuid(const struct casync_identity *id, char *uuid,
			  size_t size)
{
	const char *suffix = id->distinct ? "-async" : "";
	char hashed[HASHED_BYTES];

	if (id->old_form) {
		(void)snprintf(uuid, size, "ganesha-%s-%4.4hx%s", id->nodeid,
			       id->export_id, suffix);
		return;
	}

	(void)snprintf(hashed, sizeof(hashed), "%s%s%s%s", id->nodeid,
		       identity_shown(id->user_id),
		       identity_shown(id->filesystem), id->path);
	(void)snprintf(uuid, size, "ganesha-0x%" PRIx64 "%s",
		       CityHash64(hashed, strlen(hashed)), suffix);
}
