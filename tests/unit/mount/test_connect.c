/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What Ceph sees of a client that connects and ends: its options, its session's
 * name, the end of the session of a former run, and that before the mount.  And
 * what the log says where that fails.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "nfs_core.h"
#include "sal_functions.h"

#include "client.h"
#include "connect.h"
#include "city.h"
#include "ganesha.h"
#include "mount.h"
#include "pin.h"
#include "stub_log.h"

/* As in name.h, which is not included: the test changes it. */
bool casync_compat;
const char casync_name[] = "CEPH_ASYNC";

#define CEPH ((struct ceph_mount_info *)&a_client)
static const char a_client;

/* --- libcephfs: each call is written down, and one of them fails */

static char calls[4096];
static const char *fails; /* The first call that begins so; NULL: none. */
static int failure;
static const char *level; /* debug_client */
static int reclaim_results[4];
static unsigned int reclaims;
static int mount_results[3];
static unsigned int mounts;
static bool mounted;
static sem_t go;	  /* The call that hangs. */
static const char *hangs; /* atomic */
static int released;	  /* atomic */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;

static int call(const char *format, ...)
{
	const char *hanging = NOW(hangs);
	char text[512];
	va_list args;
	size_t used;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&calls_lock);
	used = strlen(calls);
	(void)snprintf(calls + used, sizeof(calls) - used, "%s\n", text);
	pthread_mutex_unlock(&calls_lock);
	if (hanging != NULL && strncmp(text, hanging, strlen(hanging)) == 0)
		(void)rig_wait(&go);
	return fails != NULL && strncmp(text, fails, strlen(fails)) == 0
		       ? failure
		       : 0;
}

static bool called(const char *text)
{
	return strstr(calls, text) != NULL;
}

/* Both were called, in this order. */
static bool in_order(const char *first, const char *second)
{
	const char *at = strstr(calls, first), *then = strstr(calls, second);

	return at != NULL && then != NULL && at < then;
}

int ceph_create(struct ceph_mount_info **cmount, const char *const id)
{
	*cmount = CEPH;
	return call("create %s", id != NULL ? id : "(default)");
}

int ceph_conf_read_file(struct ceph_mount_info *cmount, const char *path_list)
{
	return call("read %s", path_list != NULL ? path_list : "(default)");
}

int ceph_conf_set(struct ceph_mount_info *cmount, const char *option,
		  const char *value)
{
	return call("set %s=%s", option, value);
}

int ceph_conf_get(struct ceph_mount_info *cmount, const char *option, char *buf,
		  size_t len)
{
	assert_string_equal(option, "debug_client");
	if (level == NULL)
		return -ENOENT;
	return snprintf(buf, len, "%s", level);
}

int ceph_set_mount_timeout(struct ceph_mount_info *cmount, uint32_t timeout)
{
	return call("mount_timeout %u", timeout);
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	return "20.2.4";
}

int ceph_init(struct ceph_mount_info *cmount)
{
	return call("init");
}

int ceph_select_filesystem(struct ceph_mount_info *cmount, const char *fs_name)
{
	return call("select %s", fs_name);
}

void ceph_set_session_timeout(struct ceph_mount_info *cmount, unsigned timeout)
{
	(void)call("session_timeout %u", timeout);
}

int ceph_start_reclaim(struct ceph_mount_info *cmount, const char *uuid,
		       unsigned flags)
{
	int result = reclaim_results[reclaims < 3 ? reclaims : 3];

	assert_int_equal(flags, CEPH_RECLAIM_RESET);
	reclaims++;
	(void)call("reclaim %s", uuid);
	return result;
}

void ceph_finish_reclaim(struct ceph_mount_info *cmount)
{
	(void)call("finish_reclaim");
}

void ceph_set_uuid(struct ceph_mount_info *cmount, const char *uuid)
{
	(void)call("uuid %s", uuid);
}

int ceph_mount(struct ceph_mount_info *cmount, const char *root)
{
	int rc = call("mount %s", root);

	if (rc == 0)
		rc = mount_results[mounts < 2 ? mounts : 2];
	mounts++;
	mounted = rc == 0;
	return rc;
}

int64_t ceph_get_fs_cid(struct ceph_mount_info *cmount)
{
	return 3;
}

int ceph_set_deleg_timeout(struct ceph_mount_info *cmount, uint32_t timeout)
{
	return call("deleg_timeout %u", timeout);
}

uint32_t ceph_get_cap_return_timeout(struct ceph_mount_info *cmount)
{
	return 55;
}

int ceph_is_mounted(struct ceph_mount_info *cmount)
{
	return mounted;
}

int ceph_unmount(struct ceph_mount_info *cmount)
{
	return call("unmount");
}

int ceph_sync_fs(struct ceph_mount_info *cmount)
{
	return call("sync");
}

int ceph_abort_conn(struct ceph_mount_info *cmount)
{
	return call("abort");
}

int ceph_release(struct ceph_mount_info *cmount)
{
	assert_ptr_equal(cmount, CEPH);
	(void)call("release");
	__atomic_add_fetch(&released, 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- Ganesha, and what connect.c calls of ours */

nfs_parameter_t nfs_param;
bool admin_shutdown;

void reaper_wake(void)
{
}

static struct fsal_module fsal_ceph;
static bool fsal_ceph_is_loaded;
static int nodeid_result;
static bool nodeid_is_kept;
static char kept_nodeid[] = "node1";
static char last_line[2048];
static unsigned int crits, warnings, stays;

void stub_log_line(log_levels_t log_level, const char *text)
{
	(void)snprintf(last_line, sizeof(last_line), "%s", text);
	crits += log_level == NIV_CRIT;
	warnings += log_level == NIV_WARN;
}

static void check_said(const char *text)
{
	if (strstr(last_line, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, last_line);
}

struct fsal_module *lookup_fsal(const char *name)
{
	assert_string_equal(name, "CEPH");
	if (!fsal_ceph_is_loaded)
		return NULL;
	fsal_ceph.refcount++;
	return &fsal_ceph;
}

/* Copies of the node's id that are given and not freed; atomic. */
static void *nodeids[8];

void __real_free(void *memory);

void __wrap_free(void *memory)
{
	void *given;
	size_t i;

	for (i = 0; i < COUNT(nodeids); i++) {
		given = memory;
		(void)__atomic_compare_exchange_n(&nodeids[i], &given, NULL,
						  false, __ATOMIC_RELAXED,
						  __ATOMIC_RELAXED);
	}
	__real_free(memory);
}

static bool nodeids_are_freed(void)
{
	size_t i;

	for (i = 0; i < COUNT(nodeids) && NOW(nodeids[i]) == NULL; i++)
		;
	return i == COUNT(nodeids);
}

int nfs_recovery_get_nodeid(char **pnodeid)
{
	size_t i;

	*pnodeid = kept_nodeid;
	if (nodeid_result != 0 || nodeid_is_kept)
		return nodeid_result;
	for (i = 0; NOW(nodeids[i]) != NULL; i++)
		assert_true(i < COUNT(nodeids) - 1);
	*pnodeid = strdup("node1");
	__atomic_store_n(&nodeids[i], *pnodeid, __ATOMIC_RELEASE);
	return 0;
}

/* Names are compared, not computed. */
uint64 CityHash64(const char *buf, size_t len)
{
	return 0xabc;
}

int casync_upcalls_register(struct casync_upcalls *upcalls,
			    struct ceph_mount_info *ceph)
{
	return call("upcalls");
}

void casync_pin_module(void)
{
	__atomic_add_fetch(&stays, 1, __ATOMIC_RELAXED);
}

void SetNameFunction(const char *nom)
{
}

/* --- */

static struct casync_mount mount;
static struct casync_mount_params params;
static struct casync_client *client; /* NULL: there is none */
static int restarts;

static void set_client(const char *user, const char *filesystem,
		       const char *secret)
{
	struct casync_identity *identity = &mount.identity;

	identity->user_id = user != NULL ? strdup(user) : NULL;
	identity->filesystem = filesystem != NULL ? strdup(filesystem) : NULL;
	identity->secret = secret != NULL ? strdup(secret) : NULL;
	identity->path = strdup("/exp");
	identity->export_id = 7;
}

static void mds_was_restarted(const char *filesystem,
			      const struct casync_mount_params *start)
{
	restarts++;
	(void)call("stale %s", filesystem);
}

static int up(void **state)
{
	int i;

	memset(&mount, 0, sizeof(mount));
	memset(&params, 0, sizeof(params));
	memset(&nfs_param, 0, sizeof(nfs_param));
	client = NULL;
	restarts = 0;
	mount.drain_timeout_s = 20;
	mount.session.client = "admin@fs:/exp";
	params.timeout_s = 20;
	params.session_timeout_s = 300;
	params.mds_was_restarted = mds_was_restarted;
	nfs_param.nfsv4_param.lease_lifetime = 60;
	calls[0] = '\0';
	last_line[0] = '\0';
	fails = hangs = NULL;
	level = NULL;
	for (i = 0; i < 4; i++)
		reclaim_results[i] = -ENOENT;
	reclaims = 0;
	memset(mount_results, 0, sizeof(mount_results));
	mounts = 0;
	mounted = false;
	released = 0;
	fsal_ceph_is_loaded = casync_compat = false;
	fsal_ceph.refcount = 0;
	nodeid_result = 0;
	nodeid_is_kept = false;
	crits = warnings = 0;
	/* A thread that was left behind may say so late. */
	__atomic_store_n(&stays, 0, __ATOMIC_RELAXED);
	sem_init(&go, 0, 0);
	for (i = 0; i < COMPONENT_COUNT; i++)
		component_log_level[i] = NIV_EVENT;
	return 0;
}

static int down(void **state)
{
	assert_null(client);
	casync_identity_free(&mount.identity);
	assert_int_equal(fsal_ceph.refcount, 0);
	assert_true(nodeids_are_freed());
	sem_destroy(&go);
	return 0;
}

static int connect_it(void)
{
	return casync_connect(&mount, &params, &client);
}

static bool end_in(uint32_t timeout_s)
{
	struct casync_client *ending = client;

	client = NULL;
	return casync_client_end(ending, timeout_s);
}

/* It ends, and the mount could be freed. */
static void close_it(void)
{
	assert_true(end_in(20));
	assert_int_equal(NOW(mount.clients_alive), 0);
}

/* Nothing is left of a client that did not connect. */
static void check_nothing_is_left(void)
{
	assert_null(client);
	assert_int_equal(NOW(mount.clients_alive), 0);
}

TEST_WITH(client_has_its_options_before_it_starts, up, down)
{
	static char conf[] = "/etc/ceph/other.conf";
	static char options[] = "client_cache_size=5\n";
	static const char *const wanted[] = {
		"create nfs\n",
		"read /etc/ceph/other.conf\n",
		"set client_check_pool_perm=false\n",
		"set client_cache_size=5\n",
		"set client_mountpoint=/\n",
		"set client_acl_type=posix_acl\n",
		"set client_oc=false\n",
		"set key=QUJD\n",
		"mount_timeout 20\n",
	};
	size_t i;

	set_client("nfs", "fs", "QUJD");
	params.ceph_conf = conf;
	params.ceph_options = options;
	assert_int_equal(connect_it(), 0);
	for (i = 0; i < COUNT(wanted); i++)
		assert_true(in_order(wanted[i], "init\n"));
	/* Ours stand whatever ceph.conf and Ceph_Option say. */
	assert_true(in_order("read ", "set client_check_pool_perm"));
	assert_true(in_order("set client_cache_size", "set client_oc"));
	assert_true(in_order("init\n", "select fs\n"));
	assert_true(in_order("select fs\n", "reclaim "));
	assert_true(in_order("upcalls\n", "mount /exp\n"));
	assert_int_equal(client->fscid, 3);
	close_it();
	assert_true(in_order("unmount\n", "release\n"));
	assert_int_equal(released, 1);
}

TEST_WITH(what_is_not_set_is_left_to_ceph, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	assert_true(called("create (default)\n"));
	assert_true(called("read (default)\n"));
	assert_false(called("select"));
	assert_false(called("set key"));
	close_it();
}

TEST_WITH(time_of_the_mount_is_that_of_the_wall_clock, up, down)
{
	uint64_t before = (uint64_t)time(NULL) * 1000000000;

	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	assert_true(mount.mounted_ns >= before);
	assert_true(mount.mounted_ns < before + UINT64_C(60000000000));
	close_it();
}

/* --- failures */

static const struct failure_case {
	const char *name;
	const char *call;
	const char *said; /* The key at fault, and its value. */
} failures[] = {
	{"create", "create", "User_Id 'nfs'"},
	{"ceph_conf", "read", "Ceph_Conf '/etc/ceph/ceph.conf'"},
	{"first_option", "set client_check_pool_perm",
	 "setting Ceph option 'client_check_pool_perm'"},
	{"option_of_the_configuration", "set client_cache_size",
	 "Ceph_Option: "},
	{"mountpoint", "set client_mountpoint", "'client_mountpoint'"},
	{"acls", "set client_acl_type", "'client_acl_type'"},
	{"object_cache", "set client_oc", "'client_oc'"},
	{"secret", "set key", "setting Ceph option 'key'"},
	{"init", "init", "User_Id 'nfs' and Secret_Access_Key"},
	{"quiet", "set debug_client", "'debug_client'"},
	{"filesystem", "select", "Filesystem 'fs'"},
	{"upcalls", "upcalls", "registering upcalls"},
	{"mount", "mount /", "Filesystem 'fs', path '/exp'"},
};

TEST_ROWS(check_failure, failures, up, down)
{
	const struct failure_case *c = *state;

	set_client("nfs", "fs", "QUJD");
	params.ceph_options = (char *)"client_cache_size=5\n";
	level = "0/5";
	fails = c->call;
	failure = -EACCES;
	assert_int_equal(connect_it(), -EACCES);
	check_said(c->said);
	check_said("export 7: ");
	check_said(strerror(EACCES));
	assert_null(strstr(last_line, "QUJD"));
	assert_int_equal(crits, 1);
	/* Nothing comes after it, and nothing is left. */
	if (strcmp(c->name, "mount") != 0)
		assert_false(called("mount /"));
	assert_int_equal(mount.mounted_ns, 0);
	check_nothing_is_left();
	assert_false(called("unmount"));
	assert_int_equal(released, strcmp(c->name, "create") != 0);
}

TEST_WITH(node_without_a_name_does_not_mount, up, down)
{
	set_client(NULL, NULL, NULL);
	nodeid_result = -ENOENT;
	assert_int_equal(connect_it(), -ENOENT);
	check_said("reading this node's id");
	assert_false(called("mount /"));
	check_nothing_is_left();
}

static const struct reason_case {
	const char *name;
	int rc;
	const char *reason;
} reasons[] = {
	{"no_monitors", -CEPHFS_ERROR_MON_MAP_BUILD,
	 "no monitor is configured"},
	{"no_client", -CEPHFS_ERROR_NEW_CLIENT, "libcephfs could not start"},
	{"no_messenger", -CEPHFS_ERROR_MESSENGER_START,
	 "libcephfs could not start"},
	{"no_answer", -ETIMEDOUT, "no answer from the cluster in time"},
	{"an_errno", -EACCES, "Permission denied"},
};

TEST_ROWS(check_reason, reasons, NULL, NULL)
{
	const struct reason_case *c = *state;

	assert_non_null(strstr(casync_connect_reason(c->rc), c->reason));
}

/* --- the session of a former run */

TEST_WITH(session_of_a_former_run_ends_before_the_mount, up, down)
{
	set_client(NULL, NULL, NULL);
	reclaim_results[0] = 0;
	assert_int_equal(connect_it(), 0);
	check_said("session 'ganesha-0xabc', reclaimed from a former run");
	assert_true(in_order("session_timeout 300\n", "reclaim "));
	assert_true(in_order("reclaim ganesha-0xabc\n", "finish_reclaim\n"));
	assert_true(in_order("finish_reclaim\n", "uuid ganesha-0xabc\n"));
	assert_true(in_order("uuid ganesha-0xabc\n", "mount /exp\n"));
	assert_int_equal(reclaims, 1);
	close_it();
}

TEST_WITH(without_a_former_run_the_name_is_new, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	check_said("session 'ganesha-0xabc'");
	assert_null(strstr(last_line, "reclaimed"));
	assert_true(in_order("uuid ganesha-0xabc\n", "mount /exp\n"));
	close_it();
}

/* Ceph pull request 69037. */
TEST_WITH(restarted_mds_is_asked_by_a_second_client, up, down)
{
	set_client(NULL, "fs", NULL);
	reclaim_results[0] = -EPERM;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(crits, 0);
	assert_int_equal(restarts, 1);
	assert_int_equal(reclaims, 2);
	/* The first one has ended before the second one begins. */
	assert_int_equal(released, 1);
	assert_int_equal(mount.clients_alive, 1);
	assert_true(in_order("stale fs\n", "release\n"));
	assert_true(in_order("release\n", "mount /exp\n"));
	close_it();
	assert_int_equal(released, 2);
}

/* While Ganesha runs, all sessions of before are ours. */
TEST_WITH(new_client_after_a_loss_asks_for_no_others, up, down)
{
	set_client(NULL, NULL, NULL);
	/* The first answer is for the question after the MDS. */
	reclaim_results[1] = -EPERM;
	params.mds_was_restarted = NULL;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(restarts, 0);
	close_it();
	assert_int_equal(released, 3);
}

TEST_WITH(second_client_that_is_refused_gives_up, up, down)
{
	set_client("nfs", NULL, NULL);
	reclaim_results[0] = reclaim_results[1] = -EPERM;
	assert_int_equal(connect_it(), -EPERM);
	check_said("User_Id 'nfs', reclaiming session 'ganesha-0xabc'");
	assert_false(called("mount /"));
	check_nothing_is_left();
	assert_int_equal(released, 2);
}

TEST_WITH(session_that_cannot_be_ended_is_an_error, up, down)
{
	set_client(NULL, NULL, NULL);
	reclaim_results[0] = -EACCES;
	assert_int_equal(connect_it(), -EACCES);
	check_said("User_Id 'admin', reclaiming session");
	assert_false(called("mount /"));
	check_nothing_is_left();
}

/* No MDS has taken the rank: the handle is libcephfs' until it answers. */
TEST_WITH(reclaim_that_does_not_return_keeps_its_client, up, down)
{
	set_client(NULL, NULL, NULL);
	params.timeout_s = 0;
	hangs = "reclaim";
	assert_int_equal(connect_it(), -ETIMEDOUT);
	assert_null(client);
	assert_int_equal(NOW(mount.clients_alive), 1);
	assert_int_equal(NOW(mount.clients_reclaiming), 1);
	assert_int_equal(released, 0);
	assert_true(NOW(stays) > 0);
	__atomic_store_n(&hangs, NULL, __ATOMIC_RELEASE);
	sem_post(&go);
	RIG_UNTIL(NOW(mount.clients_alive) == 0);
	assert_int_equal(NOW(released), 1);
	assert_int_equal(NOW(mount.clients_reclaiming), 0);
}

/* It is asked: the answer is an error like others. */
TEST_WITH(time_out_of_libcephfs_leaves_nothing_behind, up, down)
{
	set_client(NULL, NULL, NULL);
	reclaim_results[0] = -ETIMEDOUT;
	assert_int_equal(connect_it(), -ETIMEDOUT);
	check_nothing_is_left();
	assert_int_equal(released, 1);
}

TEST_WITH(shared_session_of_a_former_run_ends_too, up, down)
{
	set_client(NULL, NULL, NULL);
	mount.identity.own = true;
	params.end_shared = true;
	reclaim_results[0] = 0;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(reclaims, 2);
	assert_true(in_order("reclaim ganesha-0xabc\n",
			     "reclaim ganesha-0xabc-export-7\n"));
	assert_true(in_order("reclaim ganesha-0xabc-export-7\n",
			     "uuid ganesha-0xabc-export-7\n"));
	/* The second answer is the first one's. */
	assert_null(strstr(last_line, "reclaimed from"));
	close_it();
}

TEST_WITH(shared_session_that_is_not_there_is_passed_by, up, down)
{
	set_client(NULL, NULL, NULL);
	mount.identity.own = true;
	params.end_shared = true;
	reclaim_results[1] = 0;
	assert_int_equal(connect_it(), 0);
	check_said("reclaimed from a former run");
	close_it();
}

TEST_WITH(shared_session_that_cannot_be_ended_is_an_error, up, down)
{
	set_client(NULL, NULL, NULL);
	mount.identity.own = true;
	params.end_shared = true;
	reclaim_results[0] = -EACCES;
	assert_int_equal(connect_it(), -EACCES);
	assert_int_equal(reclaims, 1);
	assert_false(called("mount /"));
	check_nothing_is_left();
}

/* --- a name has one owner: the MDS refuses a second session of it */

TEST_WITH(after_a_loss_the_name_is_asked_for_first, up, down)
{
	set_client("nfs", "fs", "QUJD");
	params.mds_was_restarted = NULL;
	assert_int_equal(connect_it(), 0);
	/* It ends as ours would, if it stays behind. */
	assert_true(in_order("session_timeout 300\n", "uuid ganesha-0xabc\n"));
	/* By a client that has the same rights, has seen the MDS answer, and
	 * has ended. */
	assert_true(
		in_order("reclaim ganesha-nobody\n", "uuid ganesha-0xabc\n"));
	assert_true(in_order("select fs\n", "uuid ganesha-0xabc\n"));
	assert_true(in_order("uuid ganesha-0xabc\n", "mount /exp\n"));
	assert_true(in_order("mount /exp\n", "unmount\n"));
	assert_true(in_order("release\n", "reclaim ganesha-0xabc\n"));
	assert_int_equal(mounts, 2);
	assert_int_equal(mount.clients_alive, 1);
	close_it();
}

TEST_WITH(start_does_not_ask_for_the_name, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	assert_int_equal(mounts, 1);
	close_it();
}

TEST_WITH(session_of_the_owner_is_not_ended, up, down)
{
	set_client(NULL, NULL, NULL);
	params.mds_was_restarted = NULL;
	mount_results[0] = -EPERM;
	assert_int_equal(connect_it(), CASYNC_CONNECT_NAME_TAKEN);
	assert_false(called("reclaim ganesha-0xabc"));
	assert_int_equal(crits, 0);
	check_nothing_is_left();
	assert_int_equal(released, 1);
}

/* A start came between the question and the session. */
TEST_WITH(owner_that_came_meanwhile_keeps_its_session, up, down)
{
	set_client(NULL, NULL, NULL);
	params.mds_was_restarted = NULL;
	mount_results[1] = -EPERM;
	assert_int_equal(connect_it(), CASYNC_CONNECT_NAME_TAKEN);
	assert_int_equal(reclaims, 2);
	assert_int_equal(mounts, 2);
	check_nothing_is_left();
	assert_int_equal(released, 2);
}

TEST_WITH(question_without_an_answer_is_an_error, up, down)
{
	set_client("nfs", NULL, NULL);
	params.mds_was_restarted = NULL;
	mount_results[0] = -ETIMEDOUT;
	assert_int_equal(connect_it(), -ETIMEDOUT);
	check_said("User_Id 'nfs'");
	assert_false(called("reclaim ganesha-0xabc"));
	check_nothing_is_left();
}

/* It might get a session later, and keep the name from us. */
TEST_WITH(name_is_not_asked_for_while_no_mds_answers, up, down)
{
	set_client(NULL, NULL, NULL);
	params.mds_was_restarted = NULL;
	reclaim_results[0] = -ETIMEDOUT;
	assert_int_equal(connect_it(), -ETIMEDOUT);
	check_said("reclaiming session");
	assert_false(called("uuid"));
	assert_int_equal(mounts, 0);
	check_nothing_is_left();
}

/* From one that was quicker than its mount. */
TEST_WITH(start_takes_the_name_again, up, down)
{
	set_client(NULL, NULL, NULL);
	mount_results[0] = mount_results[1] = -EPERM;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(reclaims, 3);
	assert_int_equal(restarts, 0);
	assert_int_equal(crits, 0);
	assert_int_equal(mount.clients_alive, 1);
	close_it();
	assert_int_equal(released, 3);
}

/* The first handle is for the MDS that was restarted. */
TEST_WITH(start_after_a_restart_of_the_mds_takes_it_again_too, up, down)
{
	set_client(NULL, NULL, NULL);
	reclaim_results[0] = -EPERM;
	mount_results[0] = -EPERM;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(restarts, 1);
	assert_int_equal(mounts, 2);
	close_it();
}

TEST_WITH(start_that_may_not_mount_says_so, up, down)
{
	set_client("nfs", NULL, NULL);
	mount_results[0] = mount_results[1] = mount_results[2] = -EPERM;
	assert_int_equal(connect_it(), -EPERM);
	check_said("User_Id 'nfs', Filesystem '(default)', path '/exp'");
	assert_int_equal(crits, 1);
	check_nothing_is_left();
}

/* --- its name */

TEST_WITH(beside_fsal_ceph_the_name_is_another_one, up, down)
{
	char uuid[64];

	set_client(NULL, NULL, NULL);
	fsal_ceph_is_loaded = true;
	assert_int_equal(
		casync_connect_own_uuid(&mount.identity, uuid, sizeof(uuid)),
		0);
	assert_string_equal(uuid, "ganesha-0xabc-async");
	/* In its place it is the same. */
	casync_compat = true;
	nodeid_is_kept = true;
	assert_int_equal(
		casync_connect_own_uuid(&mount.identity, uuid, sizeof(uuid)),
		0);
	assert_string_equal(uuid, "ganesha-0xabc");
	mount.identity.use_old_uuid = true;
	casync_connect_uuid(&mount.identity, "other", uuid, sizeof(uuid));
	assert_string_equal(uuid, "ganesha-other-0007");
}

/* --- the log of libcephfs */

static const struct level_case {
	const char *name;
	const char *level;
	const char *options;
	bool quieted;
} levels[] = {
	{"preset", "0/5", NULL, true},
	{"other_level", "0/3", NULL, false},
	{"unknown", NULL, NULL, false},
	{"own_option", "0/5", "debug_client=0/5\n", false},
	{"another_option", "0/5", "debug_ms=0/5\n", true},
};

TEST_ROWS(check_level, levels, up, down)
{
	const struct level_case *c = *state;

	set_client(NULL, NULL, NULL);
	level = c->level;
	params.ceph_options = (char *)c->options;
	assert_int_equal(connect_it(), 0);
	assert_int_equal(called("set debug_client=0/0\n"), c->quieted);
	close_it();
}

/* --- delegations */

TEST_WITH(delegations_need_time_for_two_leases, up, down)
{
	set_client(NULL, NULL, NULL);
	nfs_param.nfsv4_param.allow_delegations = true;
	assert_int_equal(connect_it(), 0);
	/* Not with each Ganesha. */
	assert_int_equal(called("deleg_timeout 130\n"),
			 CASYNC_GANESHA_DELEGATIONS != 0);
	assert_int_equal(client->delegations, CASYNC_GANESHA_DELEGATIONS != 0);
	close_it();
	fails = "deleg_timeout";
	failure = -EINVAL;
	assert_int_equal(connect_it(), 0);
	assert_false(client->delegations);
	if (CASYNC_GANESHA_DELEGATIONS != 0)
		check_said(
			"no delegations: NFSv4 Lease_Lifetime = 60 s needs 130 s");
	assert_int_equal(warnings, CASYNC_GANESHA_DELEGATIONS != 0);
	close_it();
}

TEST_WITH(delegations_that_nobody_wants_are_not_asked_for, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	assert_false(called("deleg_timeout"));
	assert_false(client->delegations);
	close_it();
}

/* --- the session of another node, or of a former run, without a mount */

static const struct end_case {
	const char *name;
	const char *nodeid;
	int answer, rc;
} ends[] = {
	{"of_another_node", "other", 0, 0},
	{"of_a_former_run", NULL, 0, 0},
	{"of_nobody", "other", -ENOENT, -ENOENT},
	{"that_the_mds_has_ended", "other", -EPERM, 0},
	{"that_is_refused", "other", -EACCES, -EACCES},
};

TEST_ROWS(check_end, ends, up, down)
{
	const struct end_case *c = *state;

	set_client("nfs", "fs", NULL);
	mount.identity.use_old_uuid = true;
	reclaim_results[0] = c->answer;
	client = casync_client_new(&mount.identity, NULL);
	assert_int_equal(casync_connect_end_session(client, &params, c->nodeid),
			 c->rc);
	assert_true(called(c->nodeid != NULL ? "reclaim ganesha-other-0007\n"
					     : "reclaim ganesha-node1-0007\n"));
	assert_true(in_order("select fs\n", "reclaim "));
	assert_false(called("mount /"));
	assert_false(called("uuid"));
	close_it();
	assert_false(called("unmount"));
	assert_int_equal(released, 1);
}

TEST_WITH(session_is_not_ended_without_a_client, up, down)
{
	set_client(NULL, NULL, NULL);
	fails = "init";
	failure = -EACCES;
	client = casync_client_new(&mount.identity, NULL);
	assert_int_equal(casync_connect_end_session(client, &params, "other"),
			 -EACCES);
	assert_int_equal(reclaims, 0);
	close_it();
}

/* --- the end; the last one, as those after it would get less time */

TEST_WITH(lost_client_is_not_unmounted, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(connect_it(), 0);
	client->lost = true;
	close_it();
	assert_true(in_order("abort\n", "release\n"));
	assert_false(called("unmount"));
}

TEST_WITH(nothing_is_ended_without_a_handle, up, down)
{
	client = casync_client_new(&mount.identity, &mount);
	close_it();
	assert_int_equal(released, 0);
}

TEST_WITH(unmount_that_hangs_is_left_behind, up, down)
{
	set_client(NULL, NULL, NULL);
	assert_int_equal(casync_client_end_time_s(20), 20);
	assert_int_equal(connect_it(), 0);
	hangs = "unmount";
	assert_false(end_in(0));
	check_said("unmounting '/exp' of file system '(default)' did not end");
	/* All exports together have to end in time. */
	assert_int_equal(casync_client_end_time_s(20), 1);
	assert_int_equal(NOW(mount.clients_alive), 1);
	assert_int_equal(released, 0);
	sem_post(&go);
	RIG_UNTIL(NOW(mount.clients_alive) == 0);
	assert_int_equal(NOW(released), 1);
}
