/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <limits.h>
#include <malloc.h>
#include <sys/sysinfo.h>

#include "fsal.h"
#include "FSAL/fsal_init.h"
#include "FSAL/fsal_commonlib.h"

#include "attributes.h"
#include "cache.h"
#include "complete.h"
#include "config_keys.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "op.h"
#include "handle_ops.h"
#include "stale_sessions.h"
#include "inflight.h"
#include "keys.h"
#include "module.h"
#include "name.h"
#include "obj_ops.h"
#include "object.h"
#include "prometheus.h"
#include "publish.h"
#include "delegations.h"
#include "signature.h"
#include "stay.h"
#include "versions.h"
#include "watchdog.h"
#include "lane.h"

static struct casync_module module = {
	.fsal =
		{
			.fs_info = {.maxfilesize = INT64_MAX,
				    .maxlink = 1024,
				    .maxnamelen = NAME_MAX,
				    .maxpathlen = PATH_MAX,
				    .no_trunc = true,
				    .chown_restricted = true,
				    .case_preserving = true,
				    .link_support = true,
				    .symlink_support = true,
				    .lock_support = true,
				    .xattr_support = true,
				    .acl_support = FSAL_ACLSUPPORT_ALLOW |
						   FSAL_ACLSUPPORT_DENY,
				    .unique_handles = true,
				    .cansettime = true,
				    .homogenous = true,
				    .maxread = FSAL_MAXIOSIZE,
				    .maxwrite = FSAL_MAXIOSIZE,
				    .delegations = CASYNC_GANESHA_DELEGATIONS,
				    .readdir_plus = true,
				    .expire_time_parent = -1,
				    .compliant_eof_behavior = true,
				    CASYNC_GANESHA_FS_INFO},
		},
};

static bool registered;

static const char *module_known(const char *version)
{
	return version[0] != '\0' ? version : "(unknown)";
}

static bool module_fits(void)
{
	const struct casync_versions *built = &casync_versions_built;
	struct casync_versions running;
	char why[256];

	casync_versions_running(&running);
	LogEvent(
		COMPONENT_FSAL,
		"FSAL %s %s: FSAL API %d.%d, Ganesha %s (built for %s), libcephfs %s (built with %s)",
		casync_name, CASYNC_VERSION, FSAL_MAJOR_VERSION,
		FSAL_MINOR_VERSION, module_known(running.ganesha),
		built->ganesha, running.ceph, module_known(built->ceph));
	if (casync_versions_fit(built, &running, why, sizeof(why)) &&
	    casync_versions_layout_fits(why, sizeof(why)))
		return true;
	LogCrit(COMPONENT_FSAL,
		"FSAL %s is refused: it was built for Ganesha %s, %s",
		casync_name, built->ganesha, why);
	return false;
}

/* Lists that MDCACHE keeps lack what other CephFS clients have made. */
static void module_check_listings(config_file_t config)
{
	const void *mdcache;
	const char *value;

	if (!CASYNC_GANESHA_KEEPS_LISTINGS)
		return;
	mdcache = casync_config_node_block(config, "MDCACHE", NULL);
	if (mdcache == NULL)
		mdcache = casync_config_node_block(config, "CACHEINODE", NULL);
	value = mdcache == NULL
			? NULL
			: casync_config_node_value(mdcache, "Dir_Chunk");
	if (value == NULL || strcmp(value, "0") != 0)
		LogWarn(COMPONENT_CONFIG,
			"Dir_Chunk = %s: Ganesha %s keeps lists of directories, which may lack names that other CephFS clients make; set MDCACHE { Dir_Chunk = 0; }",
			value != NULL ? value : "(preset)",
			casync_versions_built.ganesha);
}

/* A CephFS client that ends leaves free memory in each arena, of which malloc
 * makes 8 for each core: docs/operations.md#sizing.  The administrator's own
 * number stays. */
static void module_limit_arenas(void)
{
	const char *tunables = getenv("GLIBC_TUNABLES");

	if (getenv("MALLOC_ARENA_MAX") == NULL &&
	    (tunables == NULL || strstr(tunables, "arena_max") == NULL))
		(void)mallopt(M_ARENA_MAX, 2 * get_nprocs());
}

static int module_start(void)
{
	int rc;

	rc = casync_lane_start_process();
	if (rc == 0)
		rc = casync_complete_start(casync_finish);
	if (rc == 0)
		rc = casync_watchdog_start();
	return rc;
}

/* m_ops.init_config: the values first, then the threads that use them. */
static fsal_status_t module_init_config(struct fsal_module *fsal_hdl,
					config_file_t config,
					struct config_error_type *err_type)
{
	struct casync_module *self = casync_module_of(fsal_hdl);
	struct casync_module_keys keys = {0};
	int rc;

	self->generation = casync_config_generation(config);
	if (!module_fits())
		return fsalstat(ERR_FSAL_INVAL, 0);
	if (!casync_config_read_module(config, &keys, err_type) ||
	    !casync_handle_ops_load(&keys, config)) {
		casync_key_values_free(CASYNC_IN_MODULE, &keys);
		return fsalstat(ERR_FSAL_INVAL, 0);
	}
	casync_config_lock();
	casync_key_values_free(CASYNC_IN_MODULE, &self->keys);
	self->keys = keys;
	casync_config_unlock();

	module_check_listings(config);
	casync_stale_sessions_note(config, &self->keys);
	casync_service_configure(&self->keys, err_type);
	fsal_hdl->fs_info.umask = self->keys.umask;
	casync_inflight_limit_all(self->keys.max_inflight_total,
				  self->keys.max_inflight_bytes_total);
	casync_cache_set_budget(self->keys.cache_bytes);
	casync_publish_set_file(self->keys.metrics_file);
	display_fsinfo(fsal_hdl);

	module_limit_arenas();
	rc = module_start();
	if (rc != 0) {
		LogCrit(COMPONENT_FSAL, "cannot start threads: %s",
			strerror(-rc));
		return casync_errors_status(rc);
	}
	self->ready = true;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* Ganesha has just logged its API version. */
static void module_refused(void)
{
	struct casync_versions running;

	casync_versions_running(&running);
	LogCrit(COMPONENT_FSAL,
		"FSAL %s %s could not be registered: it was built for FSAL API %d.%d of Ganesha %s, this is Ganesha %s; install nfs-ganesha-ceph-async built for this one",
		casync_name, CASYNC_VERSION, FSAL_MAJOR_VERSION,
		FSAL_MINOR_VERSION, casync_versions_built.ganesha,
		module_known(running.ganesha));
}

static void module_init_obj_ops(struct fsal_obj_ops *ops)
{
	fsal_default_obj_ops_init(ops);

	ops->release = casync_object_release;
	ops->merge = casync_object_merge;
	ops->handle_to_wire = casync_handle_to_wire;
	ops->handle_to_key = casync_handle_to_key;

	/* They release, or ask for nothing: no call (call.h) begins. */
	ops->status2 = casync_status2;
	ops->close = casync_close;
	ops->close2 = casync_close2;
	ops->close_func = casync_fd_close;
	ops->io_advise = casync_io_advise;
	/* Within a call already: an operation on the object needs the fd. */
	ops->reopen_func = casync_fd_reopen;

	ops->lookup = casync_lookup;
	ops->mkdir = casync_mkdir;
	ops->mknode = casync_mknode;
	ops->symlink = casync_symlink;
	ops->readlink = casync_readlink;
	ops->link = casync_link;
	ops->rename = casync_rename;
	ops->unlink = casync_unlink;
	ops->readdir = casync_readdir;
	ops->getattrs = casync_getattrs;
	ops->setattr2 = casync_setattr2;
	ops->open2 = casync_open2;
	ops->check_verifier = casync_check_verifier;
	ops->reopen2 = casync_reopen2;
	ops->read2 = casync_read2;
	ops->write2 = casync_write2;
	ops->commit2 = casync_commit2;
	ops->fallocate = casync_fallocate;
	ops->seek2 = casync_seek2;
	ops->lock_op2 = casync_lock_op2;
	ops->lease_op2 = casync_lease_op2;
	ops->getxattrs = casync_getxattrs;
	ops->setxattrs = casync_setxattrs;
	ops->removexattrs = casync_removexattrs;
	ops->listxattrs = casync_listxattrs;
}

/*
 * The constructor calls it, at dlopen.  No thread is started yet: threads start
 * with the configuration, because a failure can be reported there.
 */
MODULE_INIT void casync_module_init(void)
{
	struct fsal_module *fsal = &module.fsal;

	module.fsal.fs_info.supported_attrs = casync_supported_attributes;

	if (register_fsal(fsal, casync_name, FSAL_MAJOR_VERSION,
			  FSAL_MINOR_VERSION, FSAL_ID_NO_PNFS) != 0) {
		module_refused();
		return;
	}
	registered = true;

	/* register_fsal has set the defaults: ours come after it. */
	fsal->m_ops.init_config = module_init_config;
	fsal->m_ops.create_export = casync_export_create;
	fsal->m_ops.update_export = casync_reload_export;
	CASYNC_GANESHA_SET_OPS(&fsal->m_ops, casync_reload_module,
			       casync_service_take_over,
			       casync_service_register);
	module_init_obj_ops(&module.obj_ops);
}

MODULE_FINI void casync_module_fini(void)
{
	/* One of our threads may wait for libcephfs for ever.  And a plugin
	 * that Ganesha has refused is not registered. */
	if (casync_stay_is_set() || !registered)
		return;

	/* The exports are released: the queued jobs free the rest of them. */
	casync_watchdog_stop();
	casync_complete_stop();
	casync_lane_stop_process();
	casync_publish_set_file(NULL);
	casync_prometheus_free();
	/* Its memory is mapped: nobody else gives it back. */
	casync_cache_set_budget(0);
	casync_signature_free();

	if (unregister_fsal(&module.fsal) != 0)
		LogCrit(COMPONENT_FSAL, "FSAL %s could not be unregistered",
			casync_name);
	casync_key_values_free(CASYNC_IN_MODULE, &module.keys);
}
