/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsal.h"
#include "nfs_core.h"
#include "FSAL/fsal_commonlib.h"

#include "call.h"
#include "clock.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "handle_ops.h"
#include "keys.h"
#include "leave.h"
#include "module.h"
#include "publish.h"
#include "pin.h"
#include "name.h"
#include "object.h"
#include "watchdog.h"
#include "lane.h"

#define MS_PER_S 1000

static void export_leave_upcalls(struct casync_export *exp)
{
	casync_delegations_leave(exp);
	casync_upcalls_leave(&exp->mount->upcalls, exp);
}

/* If the client ends, they end with it. */
static void export_drop_listings(struct casync_export *exp)
{
	if (!casync_call_begin_release(exp->mount))
		return;
	casync_dir_cache_drop(&exp->dir_cache, casync_export_ceph(exp),
			      casync_guard_generation(&exp->mount->guard));
	casync_call_leave(exp->mount);
}

static void export_publish(struct casync_export *exp)
{
	const struct casync_publish_source source = {
		.export_id = exp->export.export_id,
		.metrics = &exp->metrics,
		.inflight = &exp->inflight,
		.guard = &exp->mount->guard,
		.session = &exp->mount->session,
		.callers_age = &exp->mount->callers.age,
		.tuning = &exp->keys.tuning,
	};

	exp->published = casync_publish_add(&source);
}

static void export_unpublish(struct casync_export *exp)
{
	casync_publish_remove(exp->published);
	exp->published = NULL;
}

static void export_watch(struct casync_export *exp)
{
	const struct casync_watchdog_source source = {
		.export_id = exp->export.export_id,
		.metrics = &exp->metrics,
		.inflight = &exp->inflight,
		.guard = &exp->mount->guard,
		.mount = exp->mount,
		.tuning = &exp->keys.tuning,
	};

	exp->watched = casync_watchdog_add(&source);
}

static void export_free(struct casync_export *exp)
{
	casync_watchdog_remove(exp->watched);
	export_unpublish(exp);
	if (exp->mount != NULL) {
		export_leave_upcalls(exp);
		export_drop_listings(exp);
		casync_mount_put(exp->mount);
	}
	if (exp->root_perms != NULL)
		ceph_userperm_destroy(exp->root_perms);
	casync_inflight_destroy(&exp->inflight);
	casync_pool_free(exp->pool);
	casync_dir_cache_destroy(&exp->dir_cache);
	casync_layout_destroy(&exp->layout);
	casync_key_values_free(CASYNC_IN_EXPORT, &exp->keys);
	free_export_ops(&exp->export);
	gsh_free(exp);
}

static void export_teardown(struct casync_work *work)
{
	export_free(container_of(work, struct casync_export, teardown));
}

/* Wait for the requests in flight; log those that did not end. */
static void export_drain(struct casync_export *exp)
{
	uint32_t timeout_s =
		casync_tuning_read(&exp->keys.tuning.drain_timeout);
	uint64_t left;

	left = casync_inflight_drain(&exp->inflight, timeout_s * MS_PER_S);
	if (left == 0)
		return;
	__atomic_store_n(&exp->abandoned, true, __ATOMIC_RELEASE);
	LogCrit(COMPONENT_FSAL,
		"export %" PRIu16 ": %" PRIu64
		" requests did not end within %" PRIu32
		" s (Drain_Timeout); the oldest:",
		exp->export.export_id, left, timeout_s);
	casync_watchdog_list(&exp->inflight, exp->export.export_id,
			     "did not end");
}

/* Before Ganesha unlocks and closes what clients have. */
static void export_leave_mount(struct casync_export *exp)
{
	uint32_t timeout_s = casync_client_end_time_s(
		casync_tuning_read(&exp->keys.tuning.drain_timeout));

	if (!casync_leave_is_due(timeout_s))
		return;
	/* The time is over. */
	if (__atomic_load_n(&exp->abandoned, __ATOMIC_ACQUIRE))
		timeout_s = 0;
	casync_mount_leave(exp->mount, timeout_s);
}

static void export_prepare_unexport(struct fsal_export *exp_hdl)
{
	struct casync_export *exp = casync_export_of(exp_hdl);

	casync_watchdog_exports_removed();
	export_leave_upcalls(exp);
	export_drain(exp);
	export_leave_mount(exp);
}

static void export_release(struct fsal_export *exp_hdl)
{
	struct casync_export *exp = casync_export_of(exp_hdl);

	fsal_detach_export(exp_hdl->fsal, &exp_hdl->exports);
	export_unpublish(exp);
	export_leave_upcalls(exp);

	if (casync_inflight_drain(&exp->inflight, 0) != 0) {
		/* libcephfs would free Fhs that it still writes to. */
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": requests are still in flight; its CephFS session stays until this process ends",
			exp_hdl->export_id);
		casync_pin_module();
		return;
	}

	/* The last reference may be dropped in an answer, which must not wait,
	 * or in a job of the mount, whose end waits for its jobs. */
	if (casync_lane_on_own_thread() || casync_upcalls_on_thread()) {
		exp->teardown.run = export_teardown;
		casync_lane_submit(casync_lane_of_process(CASYNC_LANE_TEARDOWN),
				   &exp->teardown);
	} else {
		export_free(exp);
	}
}

/* Ganesha's grace period begins before exports are read, one after the other,
 * and clients cannot come before all are.  That is on the first thread of the
 * process; exports that are added later are mounted on others. */
static void export_tell_if_too_late(const struct casync_export *exp,
				    uint64_t began_ns)
{
	const uint64_t grace_s = nfs_param.nfsv4_param.grace_period;
	static uint64_t first_ns; /* written at the start of Ganesha */
	uint64_t since_s;

	if (gettid() != getpid())
		return;
	if (first_ns == 0)
		first_ns = began_ns;
	since_s = casync_clock_age_ns(first_ns) / CASYNC_NS_PER_S;
	if (!nfs_param.nfsv4_param.graceless && since_s >= grace_s &&
	    began_ns - first_ns < grace_s * CASYNC_NS_PER_S)
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": mounted %" PRIu64
			" s after Ganesha began to read exports, Grace_Period is %" PRIu64
			" s: clients cannot take their former locks and opens again",
			exp->export.export_id, since_s, grace_s);
}

static int export_mount_export(struct casync_export *exp,
			       const struct casync_module_keys *module_keys)
{
	const struct casync_export_keys *keys = &exp->keys;
	/* Without Cmount_Path the export's own path is the mount's root. */
	const struct casync_identity identity = {
		.user_id = keys->user_id,
		.filesystem = keys->filesystem,
		.path = keys->cmount_path != NULL ? keys->cmount_path
						  : CTX_FULLPATH(op_ctx),
		.secret = keys->secret,
		.own = keys->tuning.share_client == 0,
		.export_id = exp->export.export_id,
		.use_old_uuid = module_keys->use_old_uuid,
	};
	const struct casync_mount_params params = {
		.ceph_conf = module_keys->ceph_conf,
		.ceph_options = keys->ceph_options,
		.timeout_s = keys->tuning.mount_timeout,
		.session_timeout_s = keys->tuning.session_timeout,
		.drain_timeout_s = keys->tuning.drain_timeout,
		.reconnect = keys->tuning.reconnect,
		.reconnect_timeout_s = keys->tuning.reconnect_timeout,
		.hooks = &casync_restore_hooks,
	};
	const uint64_t began_ns = casync_clock_ns();
	int rc = casync_mount_get(&identity, &params, &exp->mount);

	export_tell_if_too_late(exp, began_ns);
	return rc;
}

/* Ganesha would accept a file as an export, and each lookup would fail. */
static int export_check_is_directory(struct casync_export *exp)
{
	const char *path = CTX_FULLPATH(op_ctx);
	const char *below = casync_export_ops_below_mount(exp, path);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc = -ENOENT;

	if (below != NULL)
		rc = ceph_ll_walk(casync_export_ceph(exp), below, &inode, &stx,
				  CEPH_STATX_MODE | CEPH_STATX_INO, 0,
				  exp->root_perms);
	if (rc == 0) {
		exp->root_ino = stx.stx_ino;
		ceph_ll_put(casync_export_ceph(exp), inode);
		rc = S_ISDIR(stx.stx_mode) ? 0 : -ENOTDIR;
	}
	if (rc != 0)
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": cannot export path '%s' (mounted: '%s'): %s",
			exp->export.export_id, path, exp->mount->identity.path,
			strerror(-rc));
	return rc;
}

/* The first calls of the export.  Another export's mount may be without a
 * client just now. */
static int export_prepare(struct casync_export *exp,
			  struct casync_layout_texts **texts)
{
	int rc;

	if (!casync_call_begin_setup(exp->mount)) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": its mount has lost its CephFS session and gets %s",
			exp->export.export_id,
			casync_session_comes_back(exp->mount)
				? "a new one; add the export again"
				: "no other one (Reconnect, Reconnect_Timeout): see the lines of the mount");
		return -EAGAIN;
	}
	rc = export_check_is_directory(exp);
	if (rc == 0)
		rc = casync_layout_prepare(&exp->layout, exp->mount, &exp->keys,
					   texts);
	casync_call_leave(exp->mount);
	return rc;
}

static fsal_status_t export_set_up(struct casync_export *exp,
				   struct casync_module *module,
				   void *parse_node,
				   struct config_error_type *err_type)
{
	struct casync_layout_texts *texts;
	fsal_status_t status;
	int rc;

	status = casync_config_export(parse_node, &module->keys, &exp->keys,
				      err_type);
	if (FSAL_IS_ERROR(status))
		return status;
	if (!casync_handle_ops_can_sign(&exp->keys, exp->export.export_id))
		return fsalstat(ERR_FSAL_INVAL, 0);

	casync_inflight_limit(&exp->inflight, exp->keys.tuning.max_inflight,
			      exp->keys.tuning.max_inflight_bytes);
	exp->root_perms = ceph_userperm_new(0, 0, 0, NULL);
	if (exp->root_perms == NULL)
		return casync_errors_status(-ENOMEM);

	rc = export_mount_export(exp, &module->keys);
	if (rc == 0)
		rc = export_prepare(exp, &texts);
	if (rc != 0)
		return casync_errors_status(rc);
	casync_layout_replace(&exp->layout, texts);

	rc = fsal_attach_export(&module->fsal, &exp->export.exports);
	return casync_errors_status(-rc);
}

fsal_status_t casync_export_create(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   const struct fsal_up_vector *up_ops)
{
	struct casync_export *exp;
	fsal_status_t status;

	casync_reload_module_first(fsal_hdl, parse_node, err_type);
	/* Ganesha goes on with the next export of the file. */
	if (!casync_module_of(fsal_hdl)->ready) {
		LogCrit(COMPONENT_CONFIG,
			"export %" PRIu16 " is refused: %s { } was refused",
			op_ctx->ctx_export->export_id, casync_name);
		return fsalstat(ERR_FSAL_INVAL, 0);
	}
	exp = gsh_calloc(1, sizeof(*exp));
	casync_inflight_init(&exp->inflight, 0, 0);
	exp->pool = casync_pool_new();
	casync_dir_cache_init(&exp->dir_cache);
	casync_layout_init(&exp->layout, op_ctx->ctx_export->export_id);
	fsal_export_init(&exp->export);
	casync_export_ops_init(&exp->export.exp_ops);
	exp->export.exp_ops.prepare_unexport = export_prepare_unexport;
	exp->export.exp_ops.release = export_release;
	exp->export.fsal = fsal_hdl;
	exp->export.up_ops = up_ops;

	status = export_set_up(exp, casync_module_of(fsal_hdl), parse_node,
			       err_type);
	if (FSAL_IS_ERROR(status)) {
		export_free(exp);
		return status;
	}

	casync_ganesha_check_export(op_ctx->ctx_export);
	export_watch(exp);
	export_publish(exp);
	casync_upcalls_join(&exp->mount->upcalls, exp);
	casync_delegations_join(exp);
	op_ctx->fsal_export = &exp->export;
	return status;
}
