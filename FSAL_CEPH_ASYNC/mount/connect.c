/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

#include "fsal.h"
#include "nfs_core.h"
#include "sal_functions.h"

#include "ceph_options.h"
#include "client.h"
#include "clock.h"
#include "common_grace.h"
#include "connect.h"
#include "ganesha.h"
#include "identity.h"
#include "mount.h"
#include "name.h"
#include "text.h"
#include "tuning.h"

/*
 * Ganesha revokes a delegation after two lease periods if the recall is not
 * answered.  These seconds come on top: Ganesha checks after each attempt.  An
 * attempt takes 3 s (fsal_up_top.c, nfs_rpc_callback.c), and the next one
 * begins 1 s later.  If libcephfs' timeout is shorter, libcephfs gives up the
 * whole mount.
 */
#define REVOKE_MARGIN_S 10

/* Of a start: the handle that finds a restarted MDS, and two whose name another
 * gateway takes between their reclaim and their mount. */
#define TRIES 3

/* No session has this name. */
#define NOBODY "ganesha-nobody"

/* Not an errno: this handle cannot be used, a new one is to try again. */
#define AGAIN 1

/* Texts for libcephfs' errors; the first ones are not errnos. */
const char *casync_connect_reason(int rc)
{
	switch (-rc) {
	case CEPHFS_ERROR_MON_MAP_BUILD:
		return "no monitor is configured (mon_host in ceph.conf)";
	case CEPHFS_ERROR_NEW_CLIENT:
	case CEPHFS_ERROR_MESSENGER_START:
		return "libcephfs could not start";
	case ETIMEDOUT:
		return "no answer from the cluster in time (Mount_Timeout)";
	default:
		return strerror(-rc);
	}
}

int casync_connect_failed(const struct casync_identity *identity, int rc,
			  const char *format, ...)
{
	char what[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	LogCrit(COMPONENT_FSAL, "export %" PRIu16 ": %s: %s (error %d)",
		identity->export_id, what, casync_connect_reason(rc), rc);
	return rc;
}

static int connect_set_option(struct casync_client *client, const char *option,
			      const char *value)
{
	int rc = ceph_conf_set(client->ceph, option, value);

	if (rc < 0) /* the value is not shown: it may be the secret */
		return casync_connect_failed(client->identity, rc,
					     "setting Ceph option '%s'",
					     option);
	return 0;
}

static int connect_configure(struct casync_client *client,
			     const struct casync_mount_params *params)
{
	char why[CASYNC_CEPH_OPTION_MAX + 256];
	int rc;

	rc = ceph_conf_read_file(client->ceph, params->ceph_conf);
	if (rc < 0)
		return casync_connect_failed(
			client->identity, rc, "Ceph_Conf '%s'",
			casync_text_or(params->ceph_conf,
				       "/etc/ceph/ceph.conf"));
	/*
	 * A new client's first I/O in a pool would wait for two requests that
	 * try the permissions.  While the pool is full they fail with ENOSPC,
	 * of which libcephfs makes EIO, for READs too (20.2.4).  The OSDs check
	 * each request anyway.
	 */
	rc = connect_set_option(client, "client_check_pool_perm", "false");
	if (rc < 0)
		return rc;
	rc = casync_ceph_options_set(client->ceph, params->ceph_options, why,
				     sizeof(why));
	if (rc < 0)
		return casync_connect_failed(client->identity, rc,
					     "Ceph_Option: %s", why);

	/* ceph_mount chooses the root, not the configuration. */
	rc = connect_set_option(client, "client_mountpoint", "/");
	if (rc == 0)
		rc = connect_set_option(client, "client_acl_type", "posix_acl");
	/* Durability needs it: a write's answer must be a commit. */
	if (rc == 0)
		rc = connect_set_option(client, "client_oc", "false");
	if (rc == 0 && client->identity->secret != NULL)
		rc = connect_set_option(client, "key",
					client->identity->secret);
	if (rc == 0)
		(void)ceph_set_mount_timeout(client->ceph, params->timeout_s);
	return rc;
}

/* Is FSAL_CEPH in this process too?  Not if we are its stand-in. */
static bool connect_fsal_ceph_is_loaded(void)
{
	struct fsal_module *other;

	if (casync_compat)
		return false;
	other = lookup_fsal("CEPH");
	if (other != NULL)
		fsal_put(other);
	return other != NULL;
}

void casync_connect_uuid(const struct casync_identity *identity,
			 const char *nodeid, char *uuid, size_t size)
{
	casync_identity_uuid(identity, nodeid, connect_fsal_ceph_is_loaded(),
			     uuid, size);
}

int casync_connect_own_uuid(const struct casync_identity *identity, char *uuid,
			    size_t size)
{
	char *nodeid, *again;
	int rc = nfs_recovery_get_nodeid(&nodeid);

	if (rc != 0)
		return rc;
	casync_connect_uuid(identity, nodeid, uuid, size);
	/* rados_kv and rados_ng hand out their own text each time, the other
	 * recovery backends a new copy, which is ours (Ganesha 9.14). */
	if (nfs_recovery_get_nodeid(&again) == 0 && again != nodeid) {
		gsh_free(again);
		gsh_free(nodeid);
	}
	return 0;
}

/*
 * Reclaim the session of our former run, if there is one.
 *
 * A restarted MDS does not know the owner of a session that it replayed from
 * its journal.  It answers EPERM to a reclaim, and evicts the session all the
 * same (Ceph 20.2.4; ceph pull request 69037).  libcephfs keeps that answer for
 * the life of its handle.  The next handle finds no session and goes on.  So
 * EPERM is expected at the first try, and an error at the second.
 */
static int connect_reclaim_uuid(struct casync_client *client,
				const struct casync_mount_params *params,
				const char *uuid, bool first)
{
	int rc = casync_client_reclaim(client, params, uuid);

	if (rc == -EPERM && first) {
		LogEvent(
			COMPONENT_FSAL,
			"export %" PRIu16
			": session '%s' is older than the last restart of the MDS; reclaiming it again",
			client->identity->export_id, uuid);
		return AGAIN;
	}
	if (rc != 0 && rc != -ENOENT)
		return casync_connect_failed(
			client->identity, rc,
			"User_Id '%s', reclaiming session '%s'",
			casync_text_or(client->identity->user_id, "admin"),
			uuid);
	return rc;
}

/* The session that the exports of a former run shared. */
static int connect_end_shared(struct casync_client *client,
			      const struct casync_mount_params *params,
			      bool first)
{
	struct casync_identity shared = *client->identity;
	char uuid[CASYNC_UUID_BYTES];
	int rc;

	shared.own = false;
	rc = casync_connect_own_uuid(&shared, uuid, sizeof(uuid));
	if (rc == 0)
		rc = connect_reclaim_uuid(client, params, uuid, first);
	if (rc == 0)
		LogEvent(
			COMPONENT_FSAL,
			"export %" PRIu16
			": session '%s', which exports of a former run shared, is ended",
			client->identity->export_id, uuid);
	return rc;
}

static bool connect_is_start(const struct casync_mount_params *params)
{
	return params->mds_was_restarted != NULL;
}

static int connect_reclaim(struct casync_client *client,
			   const struct casync_mount_params *params, bool first)
{
	char uuid[CASYNC_UUID_BYTES];
	bool ended_shared = false;
	int rc;

	rc = casync_connect_own_uuid(client->identity, uuid, sizeof(uuid));
	if (rc != 0)
		return casync_connect_failed(client->identity, rc,
					     "reading this node's id");

	/* The session's state must last until after a restart. */
	ceph_set_session_timeout(client->ceph, params->session_timeout_s);
	casync_common_grace_await_known_once();
	if (params->end_shared) {
		rc = connect_end_shared(client, params, first);
		/* From then on this handle has the same answer for any uuid. */
		ended_shared = rc == 0;
	}
	if (rc == 0 || rc == -ENOENT)
		rc = connect_reclaim_uuid(client, params, uuid, first);
	if (rc != 0 && rc != -ENOENT)
		return rc;
	casync_client_wait_for_late_reclaims(client->mount,
					     connect_is_start(params));
	ceph_set_uuid(client->ceph, uuid);
	LogEvent(COMPONENT_FSAL, "export %" PRIu16 ": session '%s'%s%s",
		 client->identity->export_id, uuid,
		 rc == 0 && !ended_shared ? ", reclaimed from a former run"
					  : "",
		 connect_fsal_ceph_is_loaded() ? " (FSAL CEPH is loaded too)"
					       : "");
	return 0;
}

void casync_connect_set_time(struct casync_mount *mount)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_store_n(&mount->mounted_ns, casync_clock_timespec_ns(&now),
			 __ATOMIC_RELAXED);
}

/*
 * libcephfs keeps its last messages in memory for a crash report, by default
 * those of level 5 and below.  This takes a quarter of Ganesha's time for a
 * request (docs/performance.md).  Another value is kept: from ceph.conf, from
 * the monitors' configuration (read by ceph_init()), or from Ceph_Option.
 */
static int connect_quieten(struct casync_client *client,
			   const struct casync_mount_params *params)
{
	char level[16];

	if (casync_ceph_options_have(params->ceph_options, "debug_client") ||
	    ceph_conf_get(client->ceph, "debug_client", level, sizeof(level)) <
		    0 ||
	    strcmp(level, "0/5") != 0)
		return 0;
	return connect_set_option(client, "debug_client", "0/0");
}

/* Make a handle that is connected to the monitors.  Nothing is mounted. */
static int connect_start(struct casync_client *client,
			 const struct casync_mount_params *params)
{
	int rc = ceph_create(&client->ceph, client->identity->user_id);

	if (rc < 0) {
		client->ceph = NULL;
		return casync_connect_failed(
			client->identity, rc, "User_Id '%s'",
			casync_text_or(client->identity->user_id, "admin"));
	}
	rc = connect_configure(client, params);
	if (rc < 0)
		return rc;
	rc = ceph_init(client->ceph);
	if (rc < 0)
		return casync_connect_failed(
			client->identity, rc,
			"User_Id '%s'%s, starting libcephfs",
			casync_text_or(client->identity->user_id, "admin"),
			client->identity->secret ? " and Secret_Access_Key"
						 : "");
	rc = connect_quieten(client, params);
	if (rc < 0 || client->identity->filesystem == NULL)
		return rc;
	rc = ceph_select_filesystem(client->ceph, client->identity->filesystem);
	if (rc < 0)
		return casync_connect_failed(client->identity, rc,
					     "Filesystem '%s'",
					     client->identity->filesystem);
	return 0;
}

static bool connect_enable_delegations(struct ceph_mount_info *ceph)
{
	uint32_t timeout_s =
		nfs_param.nfsv4_param.lease_lifetime * 2 + REVOKE_MARGIN_S;
	int rc;

	if (!nfs_param.nfsv4_param.allow_delegations ||
	    CASYNC_GANESHA_DELEGATIONS == 0)
		return false;
	rc = ceph_set_deleg_timeout(ceph, timeout_s);
	if (rc != 0)
		LogWarn(COMPONENT_FSAL,
			"no delegations: NFSv4 Lease_Lifetime = %" PRIu32
			" s needs %" PRIu32
			" s to get one back, Ceph allows %" PRIu32
			" s (session_autoclose of the file system): %s",
			nfs_param.nfsv4_param.lease_lifetime, timeout_s,
			ceph_get_cap_return_timeout(ceph), strerror(-rc));
	return rc == 0;
}

/*
 * The MDS has one session of a name.  It refuses a second one, and libcephfs
 * makes EPERM of it (Ceph 20.2.4, Server::handle_client_session(), "duplicated
 * session uuid").  A user who may not mount gets the same errno.
 */
static int connect_mount(struct casync_client *client, bool name_may_be_taken)
{
	const struct casync_identity *identity = client->identity;
	int rc = ceph_mount(client->ceph, identity->path);

	if (rc == -EPERM && name_may_be_taken)
		return CASYNC_CONNECT_NAME_TAKEN;
	if (rc < 0)
		return casync_connect_failed(
			identity, rc,
			"User_Id '%s', Filesystem '%s', path '%s'",
			casync_text_or(identity->user_id, "admin"),
			casync_text_or(identity->filesystem, "(default)"),
			identity->path);
	return 0;
}

/* Make a handle, and mount; with so many tries left.  @return 0, AGAIN, or a
 * negative errno. */
static int connect_try(struct casync_client *client,
		       const struct casync_mount_params *params,
		       unsigned int tries)
{
	const struct casync_identity *identity = client->identity;
	int rc;

	rc = connect_start(client, params);
	if (rc == 0)
		rc = connect_reclaim(client, params, tries == TRIES);
	if (rc != 0)
		return rc;

	rc = casync_upcalls_register(&client->mount->upcalls, client->ceph);
	if (rc < 0)
		return casync_connect_failed(identity, rc,
					     "registering upcalls");

	rc = connect_mount(client, tries > 1);
	if (rc < 0)
		return rc;

	/* Now a former run, if there was one, no longer writes. */
	casync_connect_set_time(client->mount);
	client->fscid = ceph_get_fs_cid(client->ceph);
	client->delegations = connect_enable_delegations(client->ceph);
	return 0;
}

static uint32_t connect_end_time_s(const struct casync_mount *mount)
{
	return casync_client_end_time_s(
		casync_tuning_read(&mount->drain_timeout_s));
}

/*
 * Wait until the MDS answers, as a client without a name.  A mount that times
 * out while the MDS starts may get a session all the same, when the MDS serves.
 * It would have our name then, and nobody would end it.
 */
static int connect_await_mds(struct casync_client *client,
			     const struct casync_mount_params *params)
{
	int rc = casync_client_reclaim(client, params, NOBODY);

	if (rc == 0 || rc == -ENOENT)
		return 0;
	return casync_connect_failed(
		client->identity, rc, "User_Id '%s', reclaiming session '%s'",
		casync_text_or(client->identity->user_id, "admin"), NOBODY);
}

/* Is this mount's name free?  A client of its own asks: the one that is going
 * to serve ends the sessions of this name first, with each rank of the MDS. */
static int connect_look_for_owner(struct casync_mount *mount,
				  const struct casync_mount_params *params)
{
	struct casync_client *client =
		casync_client_new(&mount->identity, mount);
	char uuid[CASYNC_UUID_BYTES];
	int rc = connect_start(client, params);

	if (rc == 0)
		rc = casync_connect_own_uuid(client->identity, uuid,
					     sizeof(uuid));
	if (rc == 0)
		rc = connect_await_mds(client, params);
	if (rc == 0) {
		/* If it stays behind, it ends with the time of ours. */
		ceph_set_session_timeout(client->ceph,
					 params->session_timeout_s);
		ceph_set_uuid(client->ceph, uuid);
		rc = connect_mount(client, true);
	}
	(void)casync_client_end(client, connect_end_time_s(mount));
	return rc;
}

int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params,
		   struct casync_client **connected)
{
	struct casync_client *client;
	uint32_t end_s = connect_end_time_s(mount);
	unsigned int tries = TRIES;
	int rc;

	if (!connect_is_start(params)) {
		rc = connect_look_for_owner(mount, params);
		if (rc != 0)
			return rc;
	}
	client = casync_client_new(&mount->identity, mount);
	rc = connect_try(client, params, tries);
	/* A start takes the name, also from who was quicker than its mount. */
	while (rc == AGAIN ||
	       (rc == CASYNC_CONNECT_NAME_TAKEN && connect_is_start(params))) {
		if (rc == AGAIN && connect_is_start(params)) {
			params->mds_was_restarted(mount->identity.filesystem,
						  params);
			end_s = params->timeout_s;
		}
		if (!casync_client_end(client, end_s))
			return -ETIMEDOUT;
		client = casync_client_new(&mount->identity, mount);
		rc = connect_try(client, params, --tries);
	}
	if (rc == 0)
		*connected = client;
	else
		(void)casync_client_end(client, connect_end_time_s(mount));
	return rc;
}

int casync_connect_end_session(struct casync_client *client,
			       const struct casync_mount_params *params,
			       const char *nodeid)
{
	char uuid[CASYNC_UUID_BYTES];
	int rc = connect_start(client, params);

	if (rc == 0 && nodeid == NULL)
		rc = casync_connect_own_uuid(client->identity, uuid,
					     sizeof(uuid));
	else if (rc == 0)
		casync_connect_uuid(client->identity, nodeid, uuid,
				    sizeof(uuid));
	if (rc == 0)
		rc = casync_client_reclaim(client, params, uuid);
	/* The MDS has ended it: see connect_reclaim_uuid(). */
	return rc == -EPERM ? 0 : rc;
}
