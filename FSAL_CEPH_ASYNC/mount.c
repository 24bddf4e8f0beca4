/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

#include "fsal.h"
#include "sal_functions.h"

#include "gsh_list.h"

#include "bounded.h"
#include "ceph_options.h"
#include "identity.h"
#include "leases.h"
#include "module.h"
#include "mount.h"
#include "takeover.h"

#define NS_PER_S UINT64_C(1000000000)

/* How long an unmount may take when another one was given up less than so long
 * ago: the MDS is gone, and all exports together have to end in time. */
#define NEXT_UNMOUNT_S 1
#define GIVEN_UP_RECENTLY_S 60

/* Not an errno: the handle is spent, another one will do. */
#define TAKE_OVER_AGAIN 1

enum mount_state { BUILDING, READY, FAILED, CLOSING };

struct casync_mount {
	struct glist_head link; /* in `mounts` */
	enum mount_state state; /* under mounts_lock */
	int error;		/* why FAILED */
	unsigned int users;	/* exports and waiters, under mounts_lock */

	char *user_id;
	char *filesystem;
	char *path;
	char *secret;
	char *ceph_options;
	/* Of the one that came first. */
	uint16_t export_id;
	uint32_t unmount_timeout_s;
	bool use_old_uuid;

	struct ceph_mount_info *ceph;
	bool stuck; /* a call on it does not return: it is left behind */
	int64_t fscid;
	struct casync_upcalls upcalls;
	bool delegations;    /* libcephfs grants them */
	uint64_t mounted_ns; /* CLOCK_REALTIME; atomic */
};

/*
 * The registry.  A mount is in it from before it is built until after it is
 * gone, so that two of one identity never exist at once: the second would
 * evict the first one's session.
 */
static pthread_mutex_t mounts_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mount_changed = PTHREAD_COND_INITIALIZER;
static GLIST_HEAD(mounts);

/* Those whose unmount does not come back.  libcephfs may call into them. */
static GLIST_HEAD(left_behind);
static time_t last_given_up_s; /* CLOCK_MONOTONIC; 0: never */

struct ceph_mount_info *casync_mount_ceph(const struct casync_mount *mount)
{
	return mount->ceph;
}

int64_t casync_mount_fscid(const struct casync_mount *mount)
{
	return mount->fscid;
}

uint64_t casync_mount_time_ns(const struct casync_mount *mount)
{
	return __atomic_load_n(&mount->mounted_ns, __ATOMIC_RELAXED);
}

bool casync_mount_delegations(const struct casync_mount *mount)
{
	return mount->delegations;
}

struct casync_upcalls *casync_mount_upcalls(struct casync_mount *mount)
{
	return &mount->upcalls;
}

struct casync_roll *casync_mount_roll(struct casync_mount *mount)
{
	return &mount->upcalls.roll;
}

const char *casync_mount_path(const struct casync_mount *mount)
{
	return mount->path;
}

static char *dup_or_null(const char *text)
{
	return text != NULL ? gsh_strdup(text) : NULL;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const char *shown(const char *text, const char *otherwise)
{
	return text != NULL ? text : otherwise;
}

/* What libcephfs' errors mean; the first two are not errnos. */
static const char *reason(int rc)
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

/* One line that names key, value and reason. */
static int failed(const struct casync_mount_params *params, int rc,
		  const char *format, ...)
{
	char what[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	LogCrit(COMPONENT_FSAL, "export %" PRIu16 ": %s: %s (error %d)",
		params->export_id, what, reason(rc), rc);
	return rc;
}

static int set_option(struct casync_mount *mount,
		      const struct casync_mount_params *params,
		      const char *option, const char *value)
{
	int rc = ceph_conf_set(mount->ceph, option, value);

	if (rc < 0) /* the value is not shown: it may be the secret */
		return failed(params, rc, "setting Ceph option '%s'", option);
	return 0;
}

static int configure(struct casync_mount *mount,
		     const struct casync_mount_params *params)
{
	char why[CASYNC_CEPH_OPTION_MAX + 256];
	int rc;

	rc = ceph_conf_read_file(mount->ceph, params->ceph_conf);
	if (rc < 0)
		return failed(params, rc, "Ceph_Conf '%s'",
			      shown(params->ceph_conf, "/etc/ceph/ceph.conf"));
	rc = casync_ceph_options_set(mount->ceph, mount->ceph_options, why,
				     sizeof(why));
	if (rc < 0)
		return failed(params, rc, "Ceph_Option: %s", why);

	/* The root is chosen by ceph_mount, not by the configuration. */
	rc = set_option(mount, params, "client_mountpoint", "/");
	if (rc == 0)
		rc = set_option(mount, params, "client_acl_type", "posix_acl");
	/* The durability contract needs write acks to be commits. */
	if (rc == 0)
		rc = set_option(mount, params, "client_oc", "false");
	if (rc == 0 && mount->secret != NULL)
		rc = set_option(mount, params, "key", mount->secret);
	if (rc == 0)
		(void)ceph_set_mount_timeout(mount->ceph, params->timeout_s);
	return rc;
}

/* Does FSAL_CEPH share the process with us? */
static bool fsal_ceph_is_loaded(void)
{
	struct fsal_module *other = lookup_fsal("CEPH");

	if (other == NULL)
		return false;
	fsal_put(other);
	return true;
}

static void session_uuid(const struct casync_mount *mount, const char *nodeid,
			 char *uuid, size_t size)
{
	struct casync_identity id = {
		.nodeid = nodeid,
		.user_id = mount->user_id,
		.filesystem = mount->filesystem,
		.path = mount->path,
		.export_id = mount->export_id,
		.old_form = mount->use_old_uuid,
		.distinct = fsal_ceph_is_loaded(),
	};

	casync_identity_uuid(&id, uuid, size);
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
static int reclaim(struct casync_mount *mount,
		   const struct casync_mount_params *params, bool first)
{
	char uuid[CASYNC_UUID_BYTES];
	char *nodeid;
	int rc;

	rc = nfs_recovery_get_nodeid(&nodeid);
	if (rc != 0)
		return failed(params, rc, "asking for this node's id");
	session_uuid(mount, nodeid, uuid, sizeof(uuid));
	gsh_free(nodeid);

	/* Long enough for a restart: state must not go before we are back. */
	ceph_set_session_timeout(mount->ceph, params->session_timeout_s);
	rc = casync_takeover_session(mount->ceph, uuid, params->timeout_s);
	if (rc == -EPERM && first) {
		LogEvent(
			COMPONENT_FSAL,
			"export %" PRIu16
			": session '%s' is from before a restart of the MDS, taking it over once more",
			params->export_id, uuid);
		return TAKE_OVER_AGAIN;
	}
	if (rc == -ETIMEDOUT)
		mount->stuck = true;
	if (rc != 0 && rc != -ENOENT)
		return failed(params, rc,
			      "User_Id '%s', taking over session '%s'",
			      shown(mount->user_id, "admin"), uuid);
	ceph_set_uuid(mount->ceph, uuid);
	LogEvent(COMPONENT_FSAL, "export %" PRIu16 ": session '%s'%s%s",
		 params->export_id, uuid,
		 rc == 0 ? ", taken over from a former run" : "",
		 fsal_ceph_is_loaded() ? " (FSAL CEPH is loaded too)" : "");
	return 0;
}

/* From now on what we show is later than what a session that is gone showed. */
static void set_mount_time(struct casync_mount *mount)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_store_n(&mount->mounted_ns,
			 (uint64_t)now.tv_sec * NS_PER_S +
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
static int quieten(struct casync_mount *mount,
		   const struct casync_mount_params *params)
{
	char level[16];

	if (casync_ceph_options_have(mount->ceph_options, "debug_client") ||
	    ceph_conf_get(mount->ceph, "debug_client", level, sizeof(level)) <
		    0 ||
	    strcmp(level, "0/5") != 0)
		return 0;
	return set_option(mount, params, "debug_client", "0/0");
}

static int connect_and_mount(struct casync_mount *mount,
			     const struct casync_mount_params *params,
			     bool first)
{
	int rc;

	rc = ceph_init(mount->ceph);
	if (rc < 0)
		return failed(params, rc, "User_Id '%s', starting libcephfs",
			      shown(mount->user_id, "admin"));
	rc = quieten(mount, params);
	if (rc < 0)
		return rc;

	if (mount->filesystem != NULL) {
		rc = ceph_select_filesystem(mount->ceph, mount->filesystem);
		if (rc < 0)
			return failed(params, rc, "Filesystem '%s'",
				      mount->filesystem);
	}

	rc = reclaim(mount, params, first);
	if (rc != 0)
		return rc;

	rc = casync_upcalls_register(&mount->upcalls, mount->ceph);
	if (rc < 0)
		return failed(params, rc, "registering for upcalls");

	rc = ceph_mount(mount->ceph, mount->path);
	if (rc < 0)
		return failed(
			params, rc, "User_Id '%s', Filesystem '%s', path '%s'",
			shown(mount->user_id, "admin"),
			shown(mount->filesystem, "(default)"), mount->path);

	/* Now that a former self, if there was one, writes no more. */
	set_mount_time(mount);
	mount->fscid = ceph_get_fs_cid(mount->ceph);
	mount->upcalls.fscid = mount->fscid;
	mount->delegations = casync_lease_enable(mount->ceph);
	return 0;
}

struct teardown {
	struct casync_bounded call;
	struct ceph_mount_info *ceph;
};

static int unmount(struct casync_bounded *call)
{
	struct ceph_mount_info *ceph =
		container_of(call, struct teardown, call)->ceph;

	if (ceph_is_mounted(ceph))
		(void)ceph_unmount(ceph);
	(void)ceph_release(ceph);
	return 0;
}

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static uint32_t unmount_time_s(const struct casync_mount *mount)
{
	bool recently;

	pthread_mutex_lock(&mounts_lock);
	recently = last_given_up_s != 0 &&
		   now_s() - last_given_up_s < GIVEN_UP_RECENTLY_S;
	pthread_mutex_unlock(&mounts_lock);
	return recently ? NEXT_UNMOUNT_S : mount->unmount_timeout_s;
}

static void give_up(struct casync_mount *mount, uint32_t timeout_s)
{
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16
		": unmounting '%s' of file system '%s' did not end within %" PRIu32
		" s; its CephFS session is left behind",
		mount->export_id, mount->path,
		shown(mount->filesystem, "(default)"), timeout_s);
	mount->stuck = true;
	pthread_mutex_lock(&mounts_lock);
	last_given_up_s = now_s();
	pthread_mutex_unlock(&mounts_lock);
}

/*
 * Teardown, written once: of a mount that was, or that was not to be.  Waits
 * for Ceph, which itself waits for its MDS without a timeout.
 *
 * False if it did not end: then the mount must stay as it is, for good.
 */
static bool disconnect(struct casync_mount *mount, uint32_t timeout_s)
{
	struct teardown *teardown;
	int rc;

	if (mount->ceph == NULL)
		return true;
	if (mount->stuck)
		return false;

	teardown = gsh_calloc(1, sizeof(*teardown));
	teardown->call.run = unmount;
	teardown->ceph = mount->ceph;
	rc = casync_bounded_call(&teardown->call, timeout_s);
	if (rc == 0)
		return true;
	if (rc == -ETIMEDOUT) {
		give_up(mount, timeout_s);
	} else {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": no thread to unmount: %s",
			mount->export_id, strerror(-rc));
		mount->stuck = true;
		casync_module_stay();
	}
	return false;
}

static int attempt(struct casync_mount *mount,
		   const struct casync_mount_params *params, bool first)
{
	int rc = ceph_create(&mount->ceph, mount->user_id);

	if (rc < 0) {
		mount->ceph = NULL;
		return failed(params, rc, "User_Id '%s'",
			      shown(mount->user_id, "admin"));
	}

	rc = configure(mount, params);
	if (rc == 0)
		rc = connect_and_mount(mount, params, first);
	return rc;
}

static int build(struct casync_mount *mount,
		 const struct casync_mount_params *params)
{
	int rc = attempt(mount, params, true);

	if (rc == TAKE_OVER_AGAIN)
		rc = disconnect(mount, params->timeout_s)
			     ? attempt(mount, params, false)
			     : -ETIMEDOUT;
	return rc;
}

static struct casync_mount *mount_new(const struct casync_mount_key *key,
				      const struct casync_mount_params *params)
{
	struct casync_mount *mount = gsh_calloc(1, sizeof(*mount));

	mount->user_id = dup_or_null(key->user_id);
	mount->filesystem = dup_or_null(key->filesystem);
	mount->path = gsh_strdup(key->path);
	mount->secret = dup_or_null(key->secret);
	mount->ceph_options = dup_or_null(params->ceph_options);
	mount->export_id = params->export_id;
	mount->unmount_timeout_s = params->unmount_timeout_s;
	mount->use_old_uuid = params->use_old_uuid;
	mount->state = BUILDING;
	casync_upcalls_init(&mount->upcalls);
	return mount;
}

static void mount_free(struct casync_mount *mount)
{
	casync_upcalls_destroy(&mount->upcalls);
	gsh_free(mount->user_id);
	gsh_free(mount->filesystem);
	gsh_free(mount->path);
	gsh_free(mount->secret);
	gsh_free(mount->ceph_options);
	gsh_free(mount);
}

static struct casync_mount *find_locked(const struct casync_mount_key *key)
{
	struct casync_mount *mount;
	struct glist_head *node;

	glist_for_each(node, &mounts) {
		mount = glist_entry(node, struct casync_mount, link);
		if (same(mount->user_id, key->user_id) &&
		    same(mount->filesystem, key->filesystem) &&
		    same(mount->path, key->path) &&
		    same(mount->secret, key->secret))
			return mount;
	}
	return NULL;
}

static void drop_locked(struct casync_mount *mount)
{
	bool gone;

	if (--mount->users != 0)
		return;

	/* Still registered, so that its successor waits for it to be gone. */
	mount->state = CLOSING;
	pthread_mutex_unlock(&mounts_lock);
	gone = disconnect(mount, unmount_time_s(mount));
	pthread_mutex_lock(&mounts_lock);
	glist_del(&mount->link);
	pthread_cond_broadcast(&mount_changed);
	if (gone)
		mount_free(mount);
	else
		glist_add_tail(&left_behind, &mount->link);
}

/* The mount of that identity, with one more user; built if need be. */
static struct casync_mount *
join_or_build_locked(const struct casync_mount_key *key,
		     const struct casync_mount_params *params)
{
	struct casync_mount *mount;
	int rc;

	while ((mount = find_locked(key)) != NULL && mount->state == CLOSING)
		pthread_cond_wait(&mount_changed, &mounts_lock);

	if (mount != NULL) {
		mount->users++;
		while (mount->state == BUILDING)
			pthread_cond_wait(&mount_changed, &mounts_lock);
		return mount;
	}

	mount = mount_new(key, params);
	mount->users = 1;
	glist_add_tail(&mounts, &mount->link);
	pthread_mutex_unlock(&mounts_lock);
	rc = build(mount, params);
	pthread_mutex_lock(&mounts_lock);
	mount->state = rc == 0 ? READY : FAILED;
	mount->error = rc;
	pthread_cond_broadcast(&mount_changed);
	return mount;
}

/* A mount has one set of options, so its exports must want the same. */
static int check_options(const struct casync_mount *mount,
			 const struct casync_mount_params *params)
{
	if (same(mount->ceph_options, params->ceph_options))
		return 0;
	return failed(
		params, -EINVAL,
		"Ceph_Option: not those of export %" PRIu16
		", with which it shares the mount of '%s'; make them the same, or give it a Cmount_Path or User_Id of its own",
		mount->export_id, mount->path);
}

int casync_mount_get(const struct casync_mount_key *key,
		     const struct casync_mount_params *params,
		     struct casync_mount **mount)
{
	struct casync_mount *found;
	int rc;

	pthread_mutex_lock(&mounts_lock);
	found = join_or_build_locked(key, params);
	rc = found->error;
	if (rc == 0)
		rc = check_options(found, params);
	if (rc != 0)
		drop_locked(found);
	pthread_mutex_unlock(&mounts_lock);
	if (rc != 0)
		return rc;

	*mount = found;
	return 0;
}

void casync_mount_put(struct casync_mount *mount)
{
	pthread_mutex_lock(&mounts_lock);
	drop_locked(mount);
	pthread_mutex_unlock(&mounts_lock);
}

/* One mount's part of a take-over; the mount is held. */
static int take_over(struct casync_mount *mount, const char *nodeid,
		     uint32_t timeout_s)
{
	char uuid[CASYNC_UUID_BYTES];
	int rc;

	session_uuid(mount, nodeid, uuid, sizeof(uuid));
	rc = casync_takeover_session(mount->ceph, uuid, timeout_s);
	if (rc == -ENOENT) /* that node did not serve this one */
		return 0;
	if (rc == 0)
		set_mount_time(mount);
	LogEvent(COMPONENT_FSAL, "take-over of node '%s', session '%s': %s",
		 nodeid, uuid, rc == 0 ? "its session is ended" : reason(rc));
	return rc;
}

/* All that serve, each with one more user; frees with gsh_free(). */
static struct casync_mount **hold_all_locked(size_t *count)
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
		if (mount->state == READY && *count < room) {
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
	held = hold_all_locked(&count);
	pthread_mutex_unlock(&mounts_lock);

	for (i = 0; i < count; i++) {
		rc = take_over(held[i], nodeid, timeout_s);
		if (first_error == 0)
			first_error = rc;
		casync_mount_put(held[i]);
	}
	gsh_free(held);
	return first_error;
}
