/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include <rados/librados.h>

#include "rados_object.h"
#include "text.h"

/* Ceph has no limit for these names. */
#define NAME_BYTES 256

struct place {
	char pool[NAME_BYTES];
	char space[NAME_BYTES];
	char object[NAME_BYTES];
};

/* Copy up to the slash, or to the end for the last part. */
static const char *rados_object_take(const char *from, bool last, char *part)
{
	size_t length = last ? strlen(from) : strcspn(from, "/");

	if (length >= NAME_BYTES || (!last && from[length] != '/') ||
	    (last && strchr(from, '/') != NULL))
		return NULL;
	memcpy(part, from, length);
	part[length] = '\0';
	return from + length + (last ? 0 : 1);
}

static bool rados_object_parse(const char *url, struct place *place)
{
	const char *at = url + sizeof(CASYNC_RADOS_SCHEME) - 1;

	at = rados_object_take(at, false, place->pool);
	if (at != NULL)
		at = rados_object_take(at, false, place->space);
	if (at != NULL)
		at = rados_object_take(at, true, place->object);
	return at != NULL && place->pool[0] != '\0' && place->object[0] != '\0';
}

/* Ceph's own limits are five minutes, and none. */
static int rados_object_bound(rados_t cluster)
{
	static const char *const limits[] = {
		"client_mount_timeout",
		"rados_mon_op_timeout",
		"rados_osd_op_timeout",
	};
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < sizeof(limits) / sizeof(limits[0]); i++)
		rc = rados_conf_set(cluster, limits[i], CASYNC_RADOS_TIMEOUT_S);
	return rc;
}

static int rados_object_connect(rados_t cluster,
				const struct casync_rados_user *user)
{
	int rc = rados_conf_read_file(cluster, user->ceph_conf);

	if (rc == 0)
		rc = rados_object_bound(cluster);
	if (rc == 0)
		rc = rados_connect(cluster);
	return rc;
}

/* Its bytes, or a negative errno; more than ROOM is -EFBIG. */
static int rados_object_get(rados_t cluster, const struct place *place,
			    char *text, size_t room)
{
	rados_ioctx_t pool;
	int rc = rados_ioctx_create(cluster, place->pool, &pool);

	if (rc != 0)
		return rc;
	rados_ioctx_set_namespace(pool, place->space);
	rc = rados_read(pool, place->object, text, room, 0);
	rados_ioctx_destroy(pool);
	return rc == (int)room ? -EFBIG : rc;
}

bool casync_rados_object_read(const char *url,
			      const struct casync_rados_user *user, char *text,
			      size_t room, char *why, size_t size)
{
	struct place place;
	rados_t cluster;
	int rc;

	if (!rados_object_parse(url, &place))
		return casync_text_refuse(why, size,
					  "it must be " CASYNC_RADOS_SCHEME
					  "POOL/NAMESPACE/OBJECT");
	rc = rados_create(&cluster, user->user_id);
	if (rc != 0)
		return casync_text_refuse(why, size, "librados: %s",
					  strerror(-rc));
	rc = rados_object_connect(cluster, user);
	if (rc == 0)
		rc = rados_object_get(cluster, &place, text, room);
	rados_shutdown(cluster);
	if (rc < 0) {
		/* It may be a secret: no part of it stays. */
		explicit_bzero(text, room);
		return casync_text_refuse(
			why, size, "user '%s' cannot read it: %s",
			casync_text_or(user->user_id, "admin"), strerror(-rc));
	}
	text[rc] = '\0';
	return true;
}
