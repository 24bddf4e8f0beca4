/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "fsal.h"

#include "client.h"
#include "common_grace.h"
#include "config_keys.h"
#include "connect.h"
#include "identity.h"
#include "keys.h"
#include "stale_sessions.h"
#include "name.h"
#include "text.h"

/* The longest wait for another file system.  An MDS that serves answers at
 * once, and one that does not must not keep this file system. */
#define OTHER_TIMEOUT_S 5

/* A session that an export may have left in the MDS. */
struct session {
	struct glist_head link;
	struct casync_identity identity;
	struct casync_client *client; /**< Ends it. */
	bool away;		      /**< The MDS did not answer. */
	/** Its export shares a client now, and had one of its own before. */
	bool former;
};

/* All of them.  Under `lock`. */
static GLIST_HEAD(sessions);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool noted;

static void stale_sessions_session_free(struct session *session)
{
	casync_identity_free(&session->identity);
	gsh_free(session);
}

/* Share_Client of the export, or of the block. */
static bool stale_sessions_is_own(const void *fsal,
				  const struct casync_module_keys *keys)
{
	static const char name[] = "Share_Client";
	const char *text = casync_config_node_value(fsal, name);
	uint32_t shared = keys->tuning.share_client;
	char why[128];

	/* A wrong value is refused later, with a line. */
	if (text != NULL)
		(void)casync_key_values_set(casync_keys_find(name), text,
					    &shared, why, sizeof(why));
	return shared == 0;
}

static void stale_sessions_note_locked(const void *export, const void *fsal,
				       const struct casync_module_keys *keys,
				       bool former)
{
	const char *name = casync_config_node_value(fsal, "Name");
	const char *path = casync_config_node_value(fsal, "Cmount_Path");
	const char *id = casync_config_node_value(export, "Export_Id");
	struct session *session;

	if (path == NULL)
		path = casync_config_node_value(export, "Path");
	if (name == NULL || strcasecmp(name, casync_name) != 0 || path == NULL)
		return;
	session = gsh_calloc(1, sizeof(*session));
	session->former = former;
	session->identity = (struct casync_identity){
		.user_id = casync_text_copy(
			casync_config_node_value(fsal, "User_Id")),
		.filesystem = casync_text_copy(
			casync_config_node_value(fsal, "Filesystem")),
		.path = gsh_strdup(path),
		.secret = casync_text_copy(
			casync_config_node_value(fsal, "Secret_Access_Key")),
		.export_id = id != NULL ? (uint16_t)strtoul(id, NULL, 0) : 0,
		.use_old_uuid = keys->use_old_uuid,
		.own = former || stale_sessions_is_own(fsal, keys),
	};
	glist_add_tail(&sessions, &session->link);
}

void casync_stale_sessions_note(config_file_t config,
				const struct casync_module_keys *keys)
{
	const void *export = NULL, *fsal;

	pthread_mutex_lock(&lock);
	if (!noted) {
		while ((export = casync_config_node_block(config, "EXPORT",
							  export)) != NULL) {
			fsal = casync_config_node_block(export, "FSAL", NULL);
			if (fsal == NULL)
				continue;
			stale_sessions_note_locked(export, fsal, keys, false);
			if (!stale_sessions_is_own(fsal, keys))
				stale_sessions_note_locked(export, fsal, keys,
							   true);
		}
	}
	noted = true;
	pthread_mutex_unlock(&lock);
}

/* Can both be of one file system?  The default one has a name, too. */
static bool stale_sessions_may_be_same(const char *a, const char *b)
{
	return a == NULL || b == NULL || strcmp(a, b) == 0;
}

/* Those that this MDS may have.  The caller then owns the list. */
static void stale_sessions_take(struct glist_head *mine, const char *filesystem)
{
	struct glist_head *node, *next;
	const struct session *session;

	glist_init(mine);
	pthread_mutex_lock(&lock);
	glist_for_each_safe(node, next, &sessions) {
		session = glist_entry(node, struct session, link);
		if (!stale_sessions_may_be_same(session->identity.filesystem,
						filesystem) ||
		    (session->former && !casync_common_grace()))
			continue;
		glist_del(node);
		glist_add_tail(mine, node);
	}
	pthread_mutex_unlock(&lock);
}

static void stale_sessions_give_back(struct session *session)
{
	glist_del(&session->link);
	pthread_mutex_lock(&lock);
	glist_add_tail(&sessions, &session->link);
	pthread_mutex_unlock(&lock);
}

/* An MDS did not answer for another session of this file system, and will not
 * answer for this one. */
static bool stale_sessions_is_away(struct glist_head *mine,
				   const struct session *session)
{
	const struct session *other;
	struct glist_head *node;

	glist_for_each(node, mine) {
		other = glist_entry(node, struct session, link);
		if (other == session)
			break;
		if (other->away &&
		    casync_text_same(other->identity.filesystem,
				     session->identity.filesystem))
			return true;
	}
	return false;
}

static void stale_sessions_end_session(struct session *session,
				       const struct casync_mount_params *first,
				       const char *filesystem)
{
	struct casync_mount_params params = *first;
	int rc;

	/* The MDS has just answered for this file system. */
	if (!casync_text_same(session->identity.filesystem, filesystem))
		params.timeout_s = MIN(first->timeout_s, OTHER_TIMEOUT_S);
	session->client = casync_client_new(&session->identity, NULL);
	rc = casync_connect_end_session(session->client, &params, NULL);
	session->away = rc == -ETIMEDOUT;
	LogEvent(COMPONENT_FSAL,
		 "export %" PRIu16
		 ": session from before the restart of the MDS: %s",
		 session->identity.export_id,
		 rc == 0 || rc == -ENOENT ? "ended, or there was none"
					  : casync_connect_reason(rc));
}

void casync_stale_sessions_end(const char *filesystem,
			       const struct casync_mount_params *params)
{
	struct glist_head mine, *node, *next;
	struct session *session;

	stale_sessions_take(&mine, filesystem);
	glist_for_each_safe(node, next, &mine) {
		session = glist_entry(node, struct session, link);
		if (stale_sessions_is_away(&mine, session))
			stale_sessions_give_back(session);
		else
			stale_sessions_end_session(session, params, filesystem);
	}
	/*
	 * Not before: the end of a handle also waits for an MDS that serves.
	 * All at once: if the MDS stops again, each end takes libcephfs' 30 s.
	 * Four of them, one after the other, took two minutes without a log
	 * line.
	 */
	glist_for_each(node, &mine) {
		session = glist_entry(node, struct session, link);
		session->client = casync_client_drop(session->client);
	}
	glist_for_each_safe(node, next, &mine) {
		session = glist_entry(node, struct session, link);
		glist_del(node);
		(void)casync_client_await(
			session->client,
			casync_client_end_time_s(params->timeout_s));
		stale_sessions_session_free(session);
	}
}

static bool stale_sessions_is_of(const struct session *session,
				 const struct casync_identity *mount)
{
	return casync_text_same(session->identity.user_id, mount->user_id) &&
	       casync_text_same(session->identity.filesystem,
				mount->filesystem) &&
	       casync_text_same(session->identity.path, mount->path) &&
	       casync_text_same(session->identity.secret, mount->secret);
}

/* The next former session of an export of this mount; the caller frees it. */
static struct session *
stale_sessions_take_former(const struct casync_identity *mount)
{
	struct session *session = NULL;
	struct glist_head *node;

	pthread_mutex_lock(&lock);
	glist_for_each(node, &sessions) {
		session = glist_entry(node, struct session, link);
		if (session->former && stale_sessions_is_of(session, mount))
			break;
		session = NULL;
	}
	if (session != NULL)
		glist_del(&session->link);
	pthread_mutex_unlock(&lock);
	return session;
}

void casync_stale_sessions_end_former(const struct casync_identity *mount,
				      const struct casync_mount_params *params)
{
	struct session *session;
	int rc = 0;

	if (!casync_common_grace() || mount->own)
		return;
	/* If no MDS answers, it would not for the others. */
	while (rc != -ETIMEDOUT &&
	       (session = stale_sessions_take_former(mount)) != NULL) {
		/* Its locks may go to others from then on. */
		casync_common_grace_await_known_once();
		session->client = casync_client_new(&session->identity, NULL);
		rc = casync_connect_end_session(session->client, params, NULL);
		(void)casync_client_end(
			session->client,
			casync_client_end_time_s(params->timeout_s));
		if (rc != -ENOENT)
			LogEvent(
				COMPONENT_FSAL,
				"export %" PRIu16
				": its session of a former run, which had Share_Client = false: %s",
				session->identity.export_id,
				rc == 0 ? "ended" : casync_connect_reason(rc));
		stale_sessions_session_free(session);
	}
}

void casync_stale_sessions_forget(const char *uuid)
{
	struct glist_head *node, *next;
	char its[CASYNC_UUID_BYTES];
	struct session *session;

	pthread_mutex_lock(&lock);
	glist_for_each_safe(node, next, &sessions) {
		session = glist_entry(node, struct session, link);
		if (casync_connect_own_uuid(&session->identity, its,
					    sizeof(its)) != 0 ||
		    strcmp(its, uuid) != 0)
			continue;
		glist_del(node);
		stale_sessions_session_free(session);
	}
	pthread_mutex_unlock(&lock);
}

/* No export is left, and nobody else has the list.  Ganesha has its lock of all
 * FSALs, which is taken under ours elsewhere. */
void casync_stale_sessions_free(void)
{
	struct glist_head *node, *next;

	glist_for_each_safe(node, next, &sessions) {
		glist_del(node);
		stale_sessions_session_free(
			glist_entry(node, struct session, link));
	}
}
