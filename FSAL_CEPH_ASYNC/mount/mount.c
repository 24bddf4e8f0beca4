/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "fsal.h"

#include "check.h"
#include "client.h"
#include "common_grace.h"
#include "connect.h"
#include "deadline_call.h"
#include "stale_sessions.h"
#include "identity.h"
#include "leave.h"
#include "mount.h"
#include "pin.h"
#include "take_over.h"
#include "text.h"

/*
 * The registry.  A mount is added before it is built, and removed after it is
 * gone.  It has no two mounts whose sessions have the same name.
 */
static pthread_mutex_t mounts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mount_changed = PTHREAD_COND_INITIALIZER;
static GLIST_HEAD(mounts);

/* Mounts whose unmount does not return.  libcephfs may still use them. */
static GLIST_HEAD(left_behind);

uint16_t casync_mount_tune(struct casync_mount *mount, uint16_t export_id,
			   const struct casync_tuning *tuning)
{
	uint16_t oldest =
		casync_upcalls_oldest_export(&mount->upcalls, export_id);

	if (export_id != oldest)
		return oldest;
	__atomic_store_n(&mount->drain_timeout_s, tuning->drain_timeout,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&mount->keeper.reconnect, tuning->reconnect,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&mount->keeper.timeout_s, tuning->reconnect_timeout,
			 __ATOMIC_RELAXED);
	return oldest;
}

/* A name for the metrics; freed with gsh_free(). */
static char *mount_client_name(const struct casync_identity *key)
{
	const char *user = casync_text_or(key->user_id, "admin");
	const char *filesystem = casync_text_or(key->filesystem, "(default)");
	size_t size = strlen(user) + strlen(filesystem) + strlen(key->path) +
		      sizeof("@:#65535");
	char *name = gsh_malloc(size);
	int used =
		snprintf(name, size, "%s@%s:%s", user, filesystem, key->path);

	if (key->own)
		(void)snprintf(name + used, size - (size_t)used, "#%" PRIu16,
			       key->export_id);
	return name;
}

static struct casync_mount *mount_new(const struct casync_identity *key,
				      const struct casync_mount_params *params)
{
	struct casync_mount *mount = gsh_calloc(1, sizeof(*mount));

	mount->identity = casync_identity_copy(key);
	mount->drain_timeout_s = params->drain_timeout_s;
	mount->params = *params;
	mount->params.ceph_options = casync_text_copy(params->ceph_options);
	mount->keeper.reconnect = params->reconnect;
	mount->keeper.timeout_s = params->reconnect_timeout_s;
	mount->session.client = mount_client_name(key);
	mount->state = CASYNC_MOUNT_BUILDING;
	mount->unlocks.most = 1;
	mount->next_files.most = CASYNC_NEXT_FILES_AT_ONCE;
	casync_upcalls_init(&mount->upcalls);
	glist_init(&mount->delegations_held);
	pthread_mutex_init(&mount->delegations_lock, NULL);
	return mount;
}

static void mount_free(struct casync_mount *mount)
{
	casync_upcalls_destroy(&mount->upcalls);
	casync_take_over_forget(mount);
	pthread_mutex_destroy(&mount->delegations_lock);
	casync_identity_free(&mount->identity);
	gsh_free(mount->uuid);
	gsh_free(mount->params.ceph_options);
	gsh_free(mount->session.client);
	gsh_free(mount);
}

static bool mount_is_for(const struct casync_mount *mount,
			 const struct casync_identity *key)
{
	return mount->identity.own == key->own &&
	       (!key->own || mount->identity.export_id == key->export_id);
}

static struct casync_mount *mount_find_locked(const struct casync_identity *key)
{
	struct casync_mount *mount;
	struct glist_head *node;

	glist_for_each(node, &mounts) {
		mount = glist_entry(node, struct casync_mount, link);
		if (mount_is_for(mount, key) &&
		    casync_text_same(mount->identity.user_id, key->user_id) &&
		    casync_text_same(mount->identity.filesystem,
				     key->filesystem) &&
		    casync_text_same(mount->identity.path, key->path) &&
		    casync_text_same(mount->identity.secret, key->secret))
			return mount;
	}
	return NULL;
}

/* End the threads of a mount.  False: a call of libcephfs does not return. */
static bool mount_end_threads(struct casync_mount *mount, uint32_t timeout_s)
{
	const char *what = NULL;

	if (!casync_deadline_call_stop_thread(&mount->keeper.thread, timeout_s))
		what = "the look at the CephFS session";
	/* After one that hangs the others end once their own call returns. */
	if (!casync_lane_stop_mount(mount->lanes,
				    what == NULL ? timeout_s : 0)) {
		casync_pin_module();
		if (what == NULL)
			what = "a question to Ceph";
	}
	if (what == NULL) {
		/* Jobs of the lanes may have woken it until now. */
		casync_deadline_call_free_thread(&mount->keeper.thread);
		return true;
	}
	LogEvent(COMPONENT_FSAL,
		 "mount %s: %s did not return within %" PRIu32 " s",
		 mount->session.client, what, timeout_s);
	return false;
}

/*
 * If READs were left with the client and the keeper ended before others had
 * left the guard, nobody may end it: they may still be inside.
 */
static bool mount_may_end_client(const struct casync_mount *mount)
{
	return mount->client->reads_left == 0 ||
	       casync_guard_is_empty(&mount->guard);
}

/* End its threads and its client.  False: a call of libcephfs does not return,
 * or another of its clients has not ended.  Then the mount must never be
 * changed or freed. */
static bool mount_end(struct casync_mount *mount)
{
	uint32_t timeout_s = casync_client_end_time_s(
		casync_tuning_read(&mount->drain_timeout_s));
	struct casync_client *client;

	if (!mount_end_threads(mount, timeout_s)) {
		casync_client_note_stuck(&mount->identity, timeout_s);
		return false;
	}
	client = mount->client;
	if (client != NULL && mount_may_end_client(mount)) {
		client->lost = casync_session_state(&mount->guard) ==
			       CASYNC_SESSION_LOST;
		(void)casync_client_end(client, timeout_s);
	}
	return __atomic_load_n(&mount->clients_alive, __ATOMIC_ACQUIRE) == 0;
}

static void mount_drop_locked(struct casync_mount *mount)
{
	bool gone;

	CASYNC_CHECK_HELD(&mounts_lock);
	CASYNC_CHECK(mount->users > 0);
	if (--mount->users != 0)
		return;

	/* It stays registered: its successor waits until it is gone. */
	mount->state = CASYNC_MOUNT_CLOSING;
	pthread_mutex_unlock(&mounts_lock);
	gone = mount_end(mount);
	pthread_mutex_lock(&mounts_lock);
	glist_del(&mount->link);
	pthread_cond_broadcast(&mount_changed);
	if (gone)
		mount_free(mount);
	else
		glist_add_tail(&left_behind, &mount->link);
}

/* It waits for Ceph; no lock is held. */
static int mount_build(struct casync_mount *mount,
		       const struct casync_mount_params *params)
{
	int rc;

	casync_stale_sessions_end_former(&mount->identity, params);
	casync_stale_sessions_forget(mount->uuid);
	rc = casync_lane_start_mount(mount->lanes);
	if (rc != 0)
		return casync_connect_failed(&mount->identity, rc,
					     "starting threads");
	rc = casync_connect(mount, params, &mount->client);
	if (rc == 0) {
		mount->fscid = mount->client->fscid;
		mount->upcalls.fscid = mount->fscid;
		mount->delegations = mount->client->delegations;
		casync_common_grace_begins();
		rc = casync_keeper_start(mount);
	}
	return rc;
}

static int mount_name(struct casync_mount *mount)
{
	char uuid[CASYNC_UUID_BYTES];
	int rc = casync_connect_own_uuid(&mount->identity, uuid, sizeof(uuid));

	if (rc != 0)
		return casync_connect_failed(&mount->identity, rc,
					     "reading this node's id");
	gsh_free(mount->uuid);
	mount->uuid = gsh_strdup(uuid);
	return 0;
}

static struct casync_mount *mount_of_name_locked(const char *uuid)
{
	struct casync_mount *mount;
	struct glist_head *node;

	glist_for_each(node, &mounts) {
		mount = glist_entry(node, struct casync_mount, link);
		if (strcmp(mount->uuid, uuid) == 0)
			return mount;
	}
	return NULL;
}

/*
 * Share_Client has become false, or FSAL_CEPH ran here before: its session has
 * the name that exports share, and holds capabilities until the MDS ends it.
 * Not if exports of this process share it.
 */
static bool mount_must_end_shared_locked(const struct casync_mount *mount)
{
	struct casync_identity shared = mount->identity;
	char uuid[CASYNC_UUID_BYTES];

	shared.own = false;
	return mount->identity.own &&
	       casync_connect_own_uuid(&shared, uuid, sizeof(uuid)) == 0 &&
	       mount_of_name_locked(uuid) == NULL;
}

/*
 * Another mount serves with this name.  An older name is of the mount's first
 * export only, which may have left it since: the new mount gets the other form.
 */
static int mount_rename(struct casync_mount *mount,
			const struct casync_mount *other)
{
	if (!mount->identity.use_old_uuid)
		return casync_connect_failed(
			&mount->identity, -EINVAL,
			"Secret_Access_Key: not that of export %" PRIu16
			", which has the same User_Id, Filesystem and Cmount_Path, and so the same CephFS session '%s'; make them equal, or give this export its own Cmount_Path or User_Id, or Share_Client = false",
			other->identity.export_id, other->uuid);
	mount->identity.use_old_uuid = false;
	return mount_name(mount);
}

/* Find the mount with this identity, or add a new one, and add a user.  It
 * waits for a mount that ends. */
static int mount_join_or_add_locked(const struct casync_identity *key,
				    struct casync_mount *fresh,
				    struct casync_mount **mount)
{
	struct casync_mount *found;
	int rc = 0;

	CASYNC_CHECK_HELD(&mounts_lock);
	while (rc == 0) {
		found = mount_find_locked(key);
		if (found != NULL && found->state != CASYNC_MOUNT_CLOSING)
			break;
		if (found == NULL)
			found = mount_of_name_locked(fresh->uuid);
		if (found == NULL) {
			glist_add_tail(&mounts, &fresh->link);
			found = fresh;
			break;
		}
		if (found->state == CASYNC_MOUNT_READY)
			rc = mount_rename(fresh, found);
		else
			pthread_cond_wait(&mount_changed, &mounts_lock);
	}
	if (rc != 0)
		return rc;
	found->users++;
	*mount = found;
	return 0;
}

/* Its first user builds it. */
static void mount_build_locked(struct casync_mount *mount)
{
	struct casync_mount_params first = mount->params;
	int rc;

	/* Not for a new client after a loss: that name is then of this run. */
	first.end_shared = mount_must_end_shared_locked(mount);
	first.mds_was_restarted = casync_stale_sessions_end;
	pthread_mutex_unlock(&mounts_lock);
	rc = mount_build(mount, &first);
	pthread_mutex_lock(&mounts_lock);
	mount->state = rc == 0 ? CASYNC_MOUNT_READY : CASYNC_MOUNT_FAILED;
	mount->error = rc;
	pthread_cond_broadcast(&mount_changed);
}

/* A mount has one set of options: its exports must have the same. */
static int mount_check_options(const struct casync_mount *mount,
			       const struct casync_identity *key,
			       const struct casync_mount_params *params)
{
	if (casync_text_same(mount->params.ceph_options, params->ceph_options))
		return 0;
	return casync_connect_failed(
		key, -EINVAL,
		"Ceph_Option: not the options of export %" PRIu16
		", which shares the mount of '%s'; make them equal, or give this export its own Cmount_Path or User_Id, or Share_Client = false",
		mount->identity.export_id, mount->identity.path);
}

int casync_mount_get(const struct casync_identity *key,
		     const struct casync_mount_params *params,
		     struct casync_mount **mount)
{
	struct casync_mount *fresh = mount_new(key, params);
	struct casync_mount *found = NULL;
	int rc = mount_name(fresh);

	pthread_mutex_lock(&mounts_lock);
	if (rc == 0)
		rc = mount_join_or_add_locked(key, fresh, &found);
	if (found == fresh)
		mount_build_locked(fresh);
	else
		mount_free(fresh);
	if (found != NULL) {
		while (found->state == CASYNC_MOUNT_BUILDING)
			pthread_cond_wait(&mount_changed, &mounts_lock);
		rc = found->error;
		if (rc == 0)
			rc = mount_check_options(found, key, params);
		if (rc == 0)
			*mount = found;
		else
			mount_drop_locked(found);
	}
	pthread_mutex_unlock(&mounts_lock);
	return rc;
}

void casync_mount_put(struct casync_mount *mount)
{
	pthread_mutex_lock(&mounts_lock);
	mount_drop_locked(mount);
	pthread_mutex_unlock(&mounts_lock);
}

void casync_mount_leave(struct casync_mount *mount, uint32_t timeout_s)
{
	bool first;

	pthread_mutex_lock(&mounts_lock);
	first = mount->state == CASYNC_MOUNT_READY;
	if (first)
		mount->state = CASYNC_MOUNT_LEFT;
	pthread_mutex_unlock(&mounts_lock);
	if (!first || casync_leave_session(mount, timeout_s))
		return;
	/* With a user that never puts it, nobody ends it. */
	pthread_mutex_lock(&mounts_lock);
	mount->users++;
	pthread_mutex_unlock(&mounts_lock);
}

/* All mounts that serve, each with one more user; free with gsh_free(). */
static struct casync_mount **mount_hold_all_locked(size_t *count)
{
	struct casync_mount **held;
	struct casync_mount *mount;
	struct glist_head *node;
	size_t room;

	room = glist_length(&mounts);
	held = gsh_calloc(room + 1, sizeof(*held));
	*count = 0;
	glist_for_each(node, &mounts) {
		mount = glist_entry(node, struct casync_mount, link);
		if (mount->state == CASYNC_MOUNT_READY && *count < room) {
			mount->users++;
			held[(*count)++] = mount;
		}
	}
	return held;
}

int casync_mount_take_over(const char *nodeid, uint32_t timeout_s)
{
	struct casync_mount **held;
	int first_error = 0;
	size_t count, i;
	int rc;

	pthread_mutex_lock(&mounts_lock);
	held = mount_hold_all_locked(&count);
	pthread_mutex_unlock(&mounts_lock);

	/* Ganesha began this gateway's grace period just now. */
	casync_common_grace_begins();
	casync_common_grace_await_known();
	for (i = 0; i < count; i++) {
		rc = casync_take_over_node(held[i], nodeid, timeout_s);
		if (first_error == 0)
			first_error = rc;
		casync_mount_put(held[i]);
	}
	gsh_free(held);
	return first_error;
}
