/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "FSAL/fsal_config.h"

#include "acl.h"
#include "attributes.h"
#include "callers.h"
#include "on_thread.h"
#include "errors.h"
#include "export.h"
#include "handle_ops.h"
#include "keys.h"
#include "module.h"
#include "stay.h"
#include "name.h"
#include "object.h"
#include "obj_ops.h"
#include "owner.h"
#include "revive.h"

#define MS_PER_S 1000

_Static_assert(CASYNC_CLIENTS_LIMIT == CASYNC_CLIENTS_MAX, "key Clients");
_Static_assert(CASYNC_CLIENTS_MAX <= UINT8_MAX, "casync_object.client");

/* Ganesha's workers that may wait for the monitors, for each export. */
#define STATFS_WORKERS 8

static struct casync_export *export_of(struct fsal_export *exp_hdl)
{
	return container_of(exp_hdl, struct casync_export, export);
}

static void export_join_upcalls(struct casync_export *exp)
{
	unsigned int i;

	for (i = 0; i < exp->client_count; i++)
		casync_upcalls_join(casync_mount_upcalls(exp->mounts[i]), exp);
	casync_recalls_join(exp);
}

static void export_leave_upcalls(struct casync_export *exp)
{
	unsigned int i;

	casync_recalls_leave(exp);
	for (i = 0; i < exp->client_count; i++)
		casync_upcalls_leave(casync_mount_upcalls(exp->mounts[i]), exp);
}

/* The first one last: the others use it. */
static void export_put_mounts(struct casync_export *exp)
{
	unsigned int i;

	for (i = exp->client_count; i-- > 0;)
		casync_mount_put(exp->mounts[i]);
	exp->client_count = 0;
	exp->mount = NULL;
}

/* If the client ends, they end with it. */
static void export_drop_listings(struct casync_export *exp)
{
	struct casync_guard *guard = casync_mount_guard(exp->mount);

	if (!casync_guard_enter_to_release(guard))
		return;
	casync_dir_cache_drop(&exp->dir_cache, casync_export_ceph(exp));
	casync_guard_leave(guard);
}

static void export_free(struct casync_export *exp)
{
	casync_watchdog_remove(exp);
	casync_publish_remove(exp);
	if (exp->mount != NULL) {
		export_leave_upcalls(exp);
		export_drop_listings(exp);
		export_put_mounts(exp);
	}
	if (exp->root_perms != NULL)
		ceph_userperm_destroy(exp->root_perms);
	casync_inflight_destroy(&exp->inflight);
	casync_pool_destroy(&exp->pool);
	casync_dir_cache_destroy(&exp->dir_cache);
	casync_layout_destroy(&exp->layout);
	casync_keys_free(CASYNC_IN_EXPORT, &exp->keys);
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
	uint32_t timeout_s = casync_tuned(&exp->keys.tuning.drain_timeout);
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
	casync_watchdog_list(exp, "did not end");
}

static void export_prepare_unexport(struct fsal_export *exp_hdl)
{
	struct casync_export *exp = export_of(exp_hdl);

	casync_watchdog_exports_go();
	export_leave_upcalls(exp);
	export_drain(exp);
}

static void export_release(struct fsal_export *exp_hdl)
{
	struct casync_export *exp = export_of(exp_hdl);

	fsal_detach_export(exp_hdl->fsal, &exp_hdl->exports);
	casync_publish_remove(exp);
	export_leave_upcalls(exp);

	if (casync_inflight_drain(&exp->inflight, 0) != 0) {
		/* libcephfs would free Fhs that it still writes to. */
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": requests are still in flight; its CephFS session stays until this process ends",
			exp_hdl->export_id);
		casync_stay();
		return;
	}

	/* The last reference may be dropped in an answer, which must not wait,
	 * or in an upcall, and the unmount waits for upcalls. */
	if (casync_on_completion_thread() || casync_upcalls_on_thread()) {
		exp->teardown.run = export_teardown;
		casync_work_submit(CASYNC_WORK_METADATA, &exp->teardown);
	} else {
		export_free(exp);
	}
}

/*
 * The rest of `path` below the mount's root; NULL if it is not below.
 * "/exp" is not a parent of "/exp10".
 */
static const char *export_below_mount(const char *root, const char *path)
{
	size_t len = strlen(root);

	if (len != 0 && root[len - 1] == '/')
		len--;
	if (strncmp(path, root, len) != 0)
		return NULL;
	if (path[len] == '\0')
		return "/";
	return path[len] == '/' ? path + len : NULL;
}

/* Begin a request that has no object yet. */
static fsal_status_t export_begin(struct casync_mount *mount)
{
	if (!casync_callers_enter(mount))
		return casync_status(-ETIME);
	if (casync_guard_enter(casync_mount_guard(mount)))
		return fsalstat(ERR_FSAL_NO_ERROR, 0);
	casync_callers_leave(mount);
	return casync_keeper_answer(mount, casync_status(-CASYNC_EBLOCKLISTED),
				    false);
}

static fsal_status_t export_end(struct casync_mount *mount,
				fsal_status_t status)
{
	status = casync_keeper_answer(mount, status, false);
	casync_guard_leave(casync_mount_guard(mount));
	casync_callers_leave(mount);
	return status;
}

static fsal_status_t export_walk(struct fsal_export *exp_hdl, const char *path,
				 struct fsal_obj_handle **handle,
				 struct fsal_attrlist *attrs_out)
{
	struct casync_export *exp = export_of(exp_hdl);
	attrmask_t mask = attrs_out != NULL ? attrs_out->request_mask : 0;
	const char *below =
		export_below_mount(casync_mount_path(exp->mount), path);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc;

	if (below == NULL) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": path '%s' is not below '%s'",
			exp_hdl->export_id, path,
			casync_mount_path(exp->mount));
		return fsalstat(ERR_FSAL_NOENT, ENOENT);
	}

	rc = ceph_ll_walk(casync_export_ceph(exp), below, &inode, &stx,
			  casync_owner_wanted(exp, casync_statx_wanted(mask)),
			  0, exp->root_perms);
	if (rc == 0)
		rc = casync_owner_settle(exp, &inode, &stx,
					 casync_statx_wanted(mask),
					 exp->root_perms);
	if (rc < 0) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16 ": cannot look up path '%s': %s",
			exp_hdl->export_id, path, strerror(-rc));
		return casync_status(rc);
	}
	casync_object_out(inode, &stx, handle, attrs_out);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static fsal_status_t export_lookup_path(struct fsal_export *exp_hdl,
					const char *path,
					struct fsal_obj_handle **handle,
					struct fsal_attrlist *attrs_out)
{
	struct casync_export *exp = export_of(exp_hdl);
	fsal_status_t status = export_begin(exp->mount);

	if (FSAL_IS_ERROR(status))
		return status;
	return export_end(exp->mount,
			  export_walk(exp_hdl, path, handle, attrs_out));
}

/* In the client that has the names: which other one it is of, its type says. */
static int export_find(struct casync_export *exp,
		       const struct casync_fileid *id, unsigned int wanted,
		       struct Inode **inode, struct ceph_statx *stx)
{
	int rc = casync_inode_of_id(exp, exp->mount, id,
				    casync_owner_wanted(exp, wanted), inode,
				    stx);

	if (rc == 0)
		rc = casync_owner_settle(exp, inode, stx, wanted,
					 exp->root_perms);
	return rc == -ENOENT ? -ESTALE : rc;
}

static fsal_status_t export_create_handle(struct fsal_export *exp_hdl,
					  struct gsh_buffdesc *fh_desc,
					  struct fsal_obj_handle **handle,
					  struct fsal_attrlist *attrs_out)
{
	struct casync_export *exp = export_of(exp_hdl);
	attrmask_t mask = attrs_out != NULL ? attrs_out->request_mask : 0;
	struct casync_fileid id;
	struct ceph_statx stx;
	struct Inode *inode;
	fsal_status_t status;
	int rc;

	if (!casync_host_decode(fh_desc, &id))
		return fsalstat(ERR_FSAL_BADHANDLE, 0);
	status = export_begin(exp->mount);
	if (FSAL_IS_ERROR(status))
		return status;
	rc = export_find(exp, &id, casync_statx_wanted(mask), &inode, &stx);
	if (rc == 0)
		casync_object_out(inode, &stx, handle, attrs_out);
	return export_end(exp->mount, casync_status(rc));
}

static void export_get_fsal_obj_hdl(struct fsal_export *exp_hdl,
				    struct fsal_fd *fd,
				    struct fsal_obj_handle **handle)
{
	(void)exp_hdl;
	*handle = &casync_fd_of(fd)->obj->handle;
}

static int export_statfs(struct casync_object *obj, struct statvfs *vfs)
{
	struct casync_export *exp = obj->exp;
	int rc;

	/* Each call asks a monitor, and waits for it without a timeout. */
	if (!casync_waiter_limit_enter(&exp->statfs, CASYNC_LANE_WORKER,
				       STATFS_WORKERS))
		return -EAGAIN;
	/* By inode: below a quota CephFS answers with the quota's values. */
	rc = ceph_ll_statfs(casync_object_ceph(obj), obj->inode, vfs);
	casync_waiter_limit_leave(&exp->statfs, CASYNC_LANE_WORKER);
	return rc;
}

static fsal_status_t export_get_fs_dynamic_info(struct fsal_export *exp_hdl,
						struct fsal_obj_handle *obj_hdl,
						fsal_dynamicfsinfo_t *info)
{
	struct casync_object *obj = casync_object_of(obj_hdl);
	fsal_status_t status;
	struct statvfs vfs = {0};
	int rc = casync_revive_begin(obj);

	(void)exp_hdl;
	if (rc == 0) {
		rc = export_statfs(obj, &vfs);
		status = casync_revive_answer(obj, casync_status(rc));
		casync_revive_end(obj);
	} else {
		status = casync_revive_answer(obj, casync_status(rc));
	}
	if (FSAL_IS_ERROR(status))
		return status;

	memset(info, 0, sizeof(*info));
	info->total_bytes = vfs.f_frsize * vfs.f_blocks;
	info->free_bytes = vfs.f_frsize * vfs.f_bfree;
	info->avail_bytes = vfs.f_frsize * vfs.f_bavail;
	info->total_files = vfs.f_files;
	info->free_files = vfs.f_ffree;
	info->avail_files = vfs.f_favail;
	info->time_delta.tv_nsec = 1;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/*
 * A client compares the verifier to find out whether unstable writes were lost.
 * Ganesha's own verifier counts seconds, so two starts within a second have the
 * same.
 */
static void export_get_write_verifier(struct fsal_export *exp_hdl,
				      struct gsh_buffdesc *verf_desc)
{
	uint64_t verifier = casync_export_time_ns(export_of(exp_hdl));

	memcpy(verf_desc->addr, &verifier,
	       verf_desc->len < sizeof(verifier) ? verf_desc->len
						 : sizeof(verifier));
}

static attrmask_t export_fs_supported_attrs(struct fsal_export *exp_hdl)
{
	attrmask_t mask = fsal_supported_attrs(&exp_hdl->fsal->fs_info);

	if (!casync_acl_offered())
		FSAL_UNSET_MASK(mask, ATTR_ACL);
	if (!casync_label_offered())
		FSAL_UNSET_MASK(mask, ATTR4_SEC_LABEL);
	return mask;
}

static fsal_aclsupp_t export_fs_acl_support(struct fsal_export *exp_hdl)
{
	return casync_acl_offered() ? fsal_acl_support(&exp_hdl->fsal->fs_info)
				    : 0;
}

static uint32_t export_fs_maxread(struct fsal_export *exp_hdl)
{
	return casync_tuned(&export_of(exp_hdl)->keys.tuning.max_read);
}

static uint32_t export_fs_maxwrite(struct fsal_export *exp_hdl)
{
	return casync_tuned(&export_of(exp_hdl)->keys.tuning.max_write);
}

static void export_set_export_ops(struct export_ops *ops)
{
	ops->prepare_unexport = export_prepare_unexport;
	ops->release = export_release;
	ops->lookup_path = export_lookup_path;
	ops->wire_to_host = casync_wire_to_host;
	ops->host_to_key = casync_host_to_key;
	ops->create_handle = export_create_handle;
	ops->get_fsal_obj_hdl = export_get_fsal_obj_hdl;
	ops->get_fs_dynamic_info = export_get_fs_dynamic_info;
	ops->get_write_verifier = export_get_write_verifier;
	ops->fs_supported_attrs = export_fs_supported_attrs;
	ops->fs_acl_support = export_fs_acl_support;
	ops->fs_maxread = export_fs_maxread;
	ops->fs_maxwrite = export_fs_maxwrite;
	ops->alloc_state = casync_state_alloc;
}

static void export_look_at_mounts(struct casync_export *exp)
{
	unsigned int i;

	exp->delegations = true;
	for (i = 0; i < exp->client_count; i++) {
		exp->sessions[i] = casync_mount_session(exp->mounts[i]);
		if (!casync_mount_delegations(exp->mounts[i]))
			exp->delegations = false;
	}
}

static int export_mount_export(struct casync_export *exp,
			       const struct casync_module_keys *module_keys)
{
	const struct casync_export_keys *keys = &exp->keys;
	/* Without Cmount_Path the export's own path is the mount's root. */
	struct casync_mount_key key = {
		.user_id = keys->user_id,
		.filesystem = keys->filesystem,
		.path = keys->cmount_path != NULL ? keys->cmount_path
						  : CTX_FULLPATH(op_ctx),
		.secret = keys->secret,
	};
	struct casync_mount_params params = {
		.ceph_conf = module_keys->ceph_conf,
		.ceph_options = keys->ceph_options,
		.use_old_uuid = module_keys->use_old_uuid,
		.export_id = exp->export.export_id,
		.clients = keys->clients,
		.timeout_s = keys->tuning.mount_timeout,
		.session_timeout_s = keys->tuning.session_timeout,
		.unmount_timeout_s = keys->tuning.drain_timeout,
		.reconnect = keys->tuning.reconnect,
		.reconnect_timeout_s = keys->tuning.reconnect_timeout,
	};
	int rc = 0;

	while (rc == 0 && exp->client_count < keys->clients) {
		key.client = exp->client_count;
		params.client = exp->client_count;
		/* It is NULL for the first one. */
		params.names = exp->mount;
		rc = casync_mount_get(&key, &params,
				      &exp->mounts[exp->client_count]);
		if (rc == 0)
			exp->client_count++;
	}
	if (rc == 0)
		export_look_at_mounts(exp);
	return rc;
}

/* Ganesha would accept a file as an export, and each lookup would fail. */
static int export_check_is_directory(struct casync_export *exp)
{
	const char *path = CTX_FULLPATH(op_ctx);
	const char *below =
		export_below_mount(casync_mount_path(exp->mount), path);
	struct ceph_statx stx;
	struct Inode *inode;
	int rc = -ENOENT;

	if (below != NULL)
		rc = ceph_ll_walk(casync_export_ceph(exp), below, &inode, &stx,
				  CEPH_STATX_MODE, 0, exp->root_perms);
	if (rc == 0) {
		ceph_ll_put(casync_export_ceph(exp), inode);
		rc = S_ISDIR(stx.stx_mode) ? 0 : -ENOTDIR;
	}
	if (rc != 0)
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": cannot export path '%s' (mounted: '%s'): %s",
			exp->export.export_id, path,
			casync_mount_path(exp->mount), strerror(-rc));
	return rc;
}

/* The first calls of the export.  Another export's mount may be without a
 * client just now. */
static int export_look_around(struct casync_export *exp,
			      struct casync_layout_texts **texts)
{
	struct casync_guard *guard = casync_mount_guard(exp->mount);
	int rc;

	if (!casync_guard_enter(guard)) {
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": its mount has lost its CephFS session and gets a new one; add the export again",
			exp->export.export_id);
		return -EAGAIN;
	}
	rc = export_check_is_directory(exp);
	if (rc == 0)
		rc = casync_layout_prepare(exp, &exp->keys, texts);
	casync_guard_leave(guard);
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
		return casync_status(-ENOMEM);

	rc = export_mount_export(exp, &module->keys);
	if (rc == 0)
		rc = export_look_around(exp, &texts);
	if (rc != 0)
		return casync_status(rc);
	casync_layout_replace(&exp->layout, texts);

	rc = fsal_attach_export(&module->fsal, &exp->export.exports);
	return casync_status(-rc);
}

fsal_status_t casync_export_create(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   const struct fsal_up_vector *up_ops)
{
	struct casync_export *exp;
	fsal_status_t status;

	/* Ganesha goes on with the next export of the file. */
	if (!casync_module_of(fsal_hdl)->ready) {
		LogCrit(COMPONENT_CONFIG,
			"export %" PRIu16 " is refused: %s { } was refused",
			op_ctx->ctx_export->export_id, casync_name);
		return fsalstat(ERR_FSAL_INVAL, 0);
	}
	exp = gsh_calloc(1, sizeof(*exp));
	casync_inflight_init(&exp->inflight, 0, 0);
	casync_pool_init(&exp->pool);
	casync_dir_cache_init(&exp->dir_cache);
	casync_layout_init(&exp->layout);
	fsal_export_init(&exp->export);
	export_set_export_ops(&exp->export.exp_ops);
	exp->export.fsal = fsal_hdl;
	exp->export.up_ops = up_ops;

	status = export_set_up(exp, casync_module_of(fsal_hdl), parse_node,
			       err_type);
	if (FSAL_IS_ERROR(status)) {
		export_free(exp);
		return status;
	}

	casync_watchdog_add(exp);
	casync_publish_add(exp);
	export_join_upcalls(exp);
	op_ctx->fsal_export = &exp->export;
	return status;
}
