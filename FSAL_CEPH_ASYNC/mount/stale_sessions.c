/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "fsal.h"

#include "config_node.h"
#include "connect.h"
#include "stale_sessions.h"
#include "name.h"
#include "text.h"

/* Only what identifies a mount is filled in.  Under `lock`. */
static GLIST_HEAD(sessions);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool noted;

static void stale_sessions_session_free(struct casync_mount *session)
{
	gsh_free(session->user_id);
	gsh_free(session->filesystem);
	gsh_free(session->path);
	gsh_free(session->secret);
	gsh_free(session->ceph_options);
	gsh_free(session);
}

static void stale_sessions_note_locked(const void *export, const void *fsal,
				       bool use_old_uuid)
{
	const char *name = casync_config_node_value(fsal, "Name");
	const char *path = casync_config_node_value(fsal, "Cmount_Path");
	const char *id = casync_config_node_value(export, "Export_Id");
	struct casync_mount *session;

	if (path == NULL)
		path = casync_config_node_value(export, "Path");
	if (name == NULL || strcasecmp(name, casync_name) != 0 || path == NULL)
		return;
	session = gsh_calloc(1, sizeof(*session));
	session->user_id =
		casync_text_copy(casync_config_node_value(fsal, "User_Id"));
	session->filesystem =
		casync_text_copy(casync_config_node_value(fsal, "Filesystem"));
	session->secret = casync_text_copy(
		casync_config_node_value(fsal, "Secret_Access_Key"));
	session->path = gsh_strdup(path);
	session->export_id = id != NULL ? (uint16_t)strtoul(id, NULL, 0) : 0;
	session->use_old_uuid = use_old_uuid;
	glist_add_tail(&sessions, &session->link);
}

void casync_stale_sessions_note(config_file_t config, bool use_old_uuid)
{
	const void *export = NULL, *fsal;

	pthread_mutex_lock(&lock);
	if (!noted) {
		while ((export = casync_config_node_block(config, "EXPORT",
							  export)) != NULL) {
			fsal = casync_config_node_block(export, "FSAL", NULL);
			if (fsal != NULL)
				stale_sessions_note_locked(export, fsal,
							   use_old_uuid);
		}
	}
	noted = true;
	pthread_mutex_unlock(&lock);
}

/* The list is the caller's then. */
static void stale_sessions_take_all(struct glist_head *mine)
{
	glist_init(mine);
	pthread_mutex_lock(&lock);
	glist_splice_tail(mine, &sessions);
	pthread_mutex_unlock(&lock);
}

/* False when the MDS does not answer: it will not answer the next one. */
static bool stale_sessions_end_session(struct casync_mount *session,
				       const struct casync_mount_params *first)
{
	struct casync_mount_params params = *first;
	int rc;

	params.export_id = session->export_id;
	session->ceph_options = casync_text_copy(first->ceph_options);
	session->unmount_timeout_s = first->timeout_s;
	rc = casync_connect_end_session(session, &params);
	LogEvent(COMPONENT_FSAL,
		 "export %" PRIu16
		 ": session from before the restart of the MDS: %s",
		 session->export_id,
		 rc == 0 ? "ended, or there was none"
			 : casync_connect_reason(rc));
	return rc != -ETIMEDOUT;
}

void casync_stale_sessions_end_all(const struct casync_mount_params *params)
{
	struct glist_head mine, *node, *next;

	stale_sessions_take_all(&mine);
	glist_for_each(node, &mine)
		if (!stale_sessions_end_session(
			    glist_entry(node, struct casync_mount, link),
			    params))
			break;
	/*
	 * Only now: a handle's end, too, waits for an MDS that serves.  And
	 * all at once: where that stops serving again, each takes libcephfs'
	 * 30 s, which four one after the other made two silent minutes.
	 */
	glist_for_each(node, &mine)
		casync_disconnect_begin(
			glist_entry(node, struct casync_mount, link));
	glist_for_each_safe(node, next, &mine) {
		struct casync_mount *session =
			glist_entry(node, struct casync_mount, link);

		glist_del(node);
		if (casync_disconnect_end(session,
					  casync_connect_end_time_s(session)))
			stale_sessions_session_free(session);
		/* else it stays as it is, for the call that does not end */
	}
}

void casync_stale_sessions_forget(void)
{
	struct glist_head mine, *node, *next;

	stale_sessions_take_all(&mine);
	glist_for_each_safe(node, next, &mine) {
		glist_del(node);
		stale_sessions_session_free(
			glist_entry(node, struct casync_mount, link));
	}
}
