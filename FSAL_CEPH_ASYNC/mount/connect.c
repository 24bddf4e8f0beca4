/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

#include "fsal.h"
#include "nfs_core.h"
#include "sal_functions.h"

#include "deadline_call.h"
#include "ceph_options.h"
#include "clock.h"
#include "connect.h"
#include "identity.h"
#include "name.h"
#include "stay.h"
#include "reclaim.h"
#include "tuning.h"

/* How long an unmount may take when another one was given up less than so long
 * ago: the MDS is gone, and all exports together have to end in time. */
#define NEXT_UNMOUNT_S 1
#define GIVEN_UP_RECENTLY_S 60

/*
 * Seconds beyond the two lease periods after which Ganesha revokes a
 * delegation whose recall is not answered: it looks after each attempt, which
 * takes 3 s (fsal_up_top.c, nfs_rpc_callback.c), and the next one begins 1 s
 * later.  libcephfs gives up the whole mount when its own timeout passes
 * first.
 */
#define REVOKE_MARGIN_S 10

static time_t last_given_up_s; /* CLOCK_MONOTONIC; 0: never; atomic */

static const char *connect_shown(const char *text, const char *otherwise)
{
	return text != NULL ? text : otherwise;
}

/* What libcephfs' errors mean; the first two are not errnos. */
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

int casync_connect_failed(const struct casync_mount_params *params, int rc,
			  const char *format, ...)
{
	char what[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	LogCrit(COMPONENT_FSAL, "export %" PRIu16 ": %s: %s (error %d)",
		params->export_id, what, casync_connect_reason(rc), rc);
	return rc;
}

static int connect_set_option(struct casync_mount *mount,
			      const struct casync_mount_params *params,
			      const char *option, const char *value)
{
	int rc = ceph_conf_set(mount->ceph, option, value);

	if (rc < 0) /* the value is not shown: it may be the secret */
		return casync_connect_failed(
			params, rc, "setting Ceph option '%s'", option);
	return 0;
}

static int connect_configure(struct casync_mount *mount,
			     const struct casync_mount_params *params)
{
	char why[CASYNC_CEPH_OPTION_MAX + 256];
	int rc;

	rc = ceph_conf_read_file(mount->ceph, params->ceph_conf);
	if (rc < 0)
		return casync_connect_failed(
			params, rc, "Ceph_Conf '%s'",
			connect_shown(params->ceph_conf,
				      "/etc/ceph/ceph.conf"));
	rc = casync_ceph_options_set(mount->ceph, mount->ceph_options, why,
				     sizeof(why));
	if (rc < 0)
		return casync_connect_failed(params, rc, "Ceph_Option: %s",
					     why);

	/* The root is chosen by ceph_mount, not by the configuration. */
	rc = connect_set_option(mount, params, "client_mountpoint", "/");
	if (rc == 0)
		rc = connect_set_option(mount, params, "client_acl_type",
					"posix_acl");
	/* The durability contract needs write acks to be commits. */
	if (rc == 0)
		rc = connect_set_option(mount, params, "client_oc", "false");
	if (rc == 0 && mount->secret != NULL)
		rc = connect_set_option(mount, params, "key", mount->secret);
	if (rc == 0)
		(void)ceph_set_mount_timeout(mount->ceph, params->timeout_s);
	return rc;
}

/* Does FSAL_CEPH share the process with us?  We may stand in for it. */
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

void casync_connect_uuid(const struct casync_mount *mount, const char *nodeid,
			 char *uuid, size_t size)
{
	struct casync_identity id = {
		.nodeid = nodeid,
		.user_id = mount->user_id,
		.filesystem = mount->filesystem,
		.path = mount->path,
		.export_id = mount->export_id,
		.old_form = mount->use_old_uuid,
		.distinct = connect_fsal_ceph_is_loaded(),
	};

	casync_identity_uuid(&id, uuid, size);
}

static int connect_own_uuid(const struct casync_mount *mount, char *uuid,
			    size_t size)
{
	char *nodeid;
	int rc = nfs_recovery_get_nodeid(&nodeid);

	if (rc != 0)
		return rc;
	casync_connect_uuid(mount, nodeid, uuid, size);
	gsh_free(nodeid);
	return 0;
}

/*
 * Take over the session of our former self, if it has one.
 *
 * An MDS that was restarted does not know whose a session is that it replayed
 * from its journal: it answers EPERM to whoever takes that over, and evicts
 * it all the same (Ceph 20.2.4; ceph pull request 69037).  libcephfs keeps
 * that answer for the life of its handle; the next handle finds no session
 * and goes on.  So EPERM is news the first time and an error the second time.
 */
static int connect_reclaim(struct casync_mount *mount,
			   const struct casync_mount_params *params, bool first)
{
	char uuid[CASYNC_UUID_BYTES];
	int rc;

	rc = connect_own_uuid(mount, uuid, sizeof(uuid));
	if (rc != 0)
		return casync_connect_failed(params, rc,
					     "reading this node's id");

	/* Long enough for a restart: state must not go before we are back. */
	ceph_set_session_timeout(mount->ceph, params->session_timeout_s);
	rc = casync_reclaim_session(mount->ceph, uuid, params->timeout_s);
	if (rc == -EPERM && first) {
		LogEvent(
			COMPONENT_FSAL,
			"export %" PRIu16
			": session '%s' is older than the last restart of the MDS; reclaiming it again",
			params->export_id, uuid);
		return CASYNC_CONNECT_AGAIN;
	}
	if (rc == -ETIMEDOUT)
		mount->stuck = true;
	if (rc != 0 && rc != -ENOENT)
		return casync_connect_failed(
			params, rc, "User_Id '%s', reclaiming session '%s'",
			connect_shown(mount->user_id, "admin"), uuid);
	ceph_set_uuid(mount->ceph, uuid);
	LogEvent(COMPONENT_FSAL, "export %" PRIu16 ": session '%s'%s%s",
		 params->export_id, uuid,
		 rc == 0 ? ", reclaimed from a former run" : "",
		 connect_fsal_ceph_is_loaded() ? " (FSAL CEPH is loaded too)"
					       : "");
	return 0;
}

void casync_connect_set_time(struct casync_mount *mount)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_store_n(&mount->mounted_ns,
			 (uint64_t)now.tv_sec * CASYNC_NS_PER_S +
				 (uint64_t)now.tv_nsec,
			 __ATOMIC_RELAXED);
}

/*
 * libcephfs keeps its last messages in memory for a crash report, by default
 * those of level 5 and below: a quarter of Ganesha's time per request
 * (docs/performance.md).  Whoever set the option to something else, in
 * ceph.conf or in the monitors' configuration, which has come with
 * ceph_init(), or here in Ceph_Option, gets that.
 */
static int connect_quieten(struct casync_mount *mount,
			   const struct casync_mount_params *params)
{
	char level[16];

	if (casync_ceph_options_have(mount->ceph_options, "debug_client") ||
	    ceph_conf_get(mount->ceph, "debug_client", level, sizeof(level)) <
		    0 ||
	    strcmp(level, "0/5") != 0)
		return 0;
	return connect_set_option(mount, params, "debug_client", "0/0");
}

/* A handle that talks to the monitors; nothing is mounted. */
static int connect_start(struct casync_mount *mount,
			 const struct casync_mount_params *params)
{
	int rc = ceph_create(&mount->ceph, mount->user_id);

	if (rc < 0) {
		mount->ceph = NULL;
		return casync_connect_failed(
			params, rc, "User_Id '%s'",
			connect_shown(mount->user_id, "admin"));
	}
	rc = connect_configure(mount, params);
	if (rc < 0)
		return rc;
	rc = ceph_init(mount->ceph);
	if (rc < 0)
		return casync_connect_failed(
			params, rc, "User_Id '%s', starting libcephfs",
			connect_shown(mount->user_id, "admin"));
	rc = connect_quieten(mount, params);
	if (rc < 0 || mount->filesystem == NULL)
		return rc;
	rc = ceph_select_filesystem(mount->ceph, mount->filesystem);
	if (rc < 0)
		return casync_connect_failed(params, rc, "Filesystem '%s'",
					     mount->filesystem);
	return 0;
}

static bool connect_enable_delegations(struct ceph_mount_info *ceph)
{
	uint32_t timeout_s =
		nfs_param.nfsv4_param.lease_lifetime * 2 + REVOKE_MARGIN_S;
	int rc;

	if (!nfs_param.nfsv4_param.allow_delegations)
		return false;
	rc = ceph_set_deleg_timeout(ceph, timeout_s);
	if (rc != 0)
		LogWarn(COMPONENT_FSAL,
			"no delegations: NFSv4 Lease_Lifetime = %" PRIu32
			" s needs %" PRIu32
			" s to get one back, Ceph allows %" PRIu32
			" s (session_timeout of the file system): %s",
			nfs_param.nfsv4_param.lease_lifetime, timeout_s,
			ceph_get_cap_return_timeout(ceph), strerror(-rc));
	return rc == 0;
}

int casync_connect(struct casync_mount *mount,
		   const struct casync_mount_params *params, bool first)
{
	int rc;

	rc = connect_start(mount, params);
	if (rc == 0)
		rc = connect_reclaim(mount, params, first);
	if (rc != 0)
		return rc;

	rc = casync_upcalls_register(&mount->upcalls, mount->ceph);
	if (rc < 0)
		return casync_connect_failed(params, rc, "registering upcalls");

	rc = ceph_mount(mount->ceph, mount->path);
	if (rc < 0)
		return casync_connect_failed(
			params, rc, "User_Id '%s', Filesystem '%s', path '%s'",
			connect_shown(mount->user_id, "admin"),
			connect_shown(mount->filesystem, "(default)"),
			mount->path);

	/* Now that a former self, if there was one, writes no more. */
	casync_connect_set_time(mount);
	mount->fscid = ceph_get_fs_cid(mount->ceph);
	mount->upcalls.fscid = mount->fscid;
	mount->delegations = connect_enable_delegations(mount->ceph);
	return 0;
}

int casync_connect_end_session(struct casync_mount *mount,
			       const struct casync_mount_params *params)
{
	char uuid[CASYNC_UUID_BYTES];
	int rc = connect_start(mount, params);

	if (rc == 0)
		rc = connect_own_uuid(mount, uuid, sizeof(uuid));
	if (rc == 0)
		rc = casync_reclaim_session(mount->ceph, uuid,
					    params->timeout_s);
	if (rc == -ETIMEDOUT)
		mount->stuck = true;
	return rc == -EPERM || rc == -ENOENT ? 0 : rc;
}

struct teardown {
	struct casync_deadline_call call;
	struct ceph_mount_info *ceph;
};

static int connect_unmount(struct casync_deadline_call *call)
{
	struct ceph_mount_info *ceph =
		container_of(call, struct teardown, call)->ceph;

	if (ceph_is_mounted(ceph))
		(void)ceph_unmount(ceph);
	(void)ceph_release(ceph);
	return 0;
}

static time_t connect_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

uint32_t casync_connect_end_time_s(const struct casync_mount *mount)
{
	time_t last_s = __atomic_load_n(&last_given_up_s, __ATOMIC_RELAXED);

	return last_s != 0 && connect_now_s() - last_s < GIVEN_UP_RECENTLY_S
		       ? NEXT_UNMOUNT_S
		       : casync_tuned(&mount->unmount_timeout_s);
}

static void connect_give_up(struct casync_mount *mount, uint32_t timeout_s)
{
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16
		": unmounting '%s' of file system '%s' did not end within %" PRIu32
		" s; its CephFS session stays open",
		mount->export_id, mount->path,
		connect_shown(mount->filesystem, "(default)"), timeout_s);
	mount->stuck = true;
	__atomic_store_n(&last_given_up_s, connect_now_s(), __ATOMIC_RELAXED);
}

/*
 * Teardown, written once: of a mount that was, or that was not to be.  Waits
 * for Ceph: for its MDS without a timeout when it was mounted, else up to
 * client_shutdown_timeout, 30 s.
 */
void casync_disconnect_begin(struct casync_mount *mount)
{
	struct teardown *teardown;
	int rc;

	if (mount->ceph == NULL || mount->stuck)
		return;
	teardown = gsh_calloc(1, sizeof(*teardown));
	teardown->call.run = connect_unmount;
	teardown->ceph = mount->ceph;
	rc = casync_deadline_call_begin(&teardown->call);
	if (rc == 0) {
		mount->ending = &teardown->call;
		return;
	}
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16 ": cannot start a thread to unmount: %s",
		mount->export_id, strerror(-rc));
	mount->stuck = true;
	casync_stay();
}

bool casync_disconnect_end(struct casync_mount *mount, uint32_t timeout_s)
{
	if (mount->ending != NULL &&
	    casync_deadline_call_end(mount->ending, timeout_s) == -ETIMEDOUT)
		connect_give_up(mount, timeout_s);
	mount->ending = NULL;
	return !mount->stuck;
}

bool casync_disconnect(struct casync_mount *mount, uint32_t timeout_s)
{
	casync_disconnect_begin(mount);
	return casync_disconnect_end(mount, timeout_s);
}
