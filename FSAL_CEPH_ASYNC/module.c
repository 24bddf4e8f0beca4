/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <sys/sysinfo.h>

#include "fsal.h"
#include "FSAL/fsal_init.h"
#include "FSAL/fsal_commonlib.h"
#include "config_parsing.h"

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
#include "mount.h"
#include "name.h"
#include "obj_ops.h"
#include "object.h"
#include "prometheus.h"
#include "publish.h"
#include "delegations.h"
#include "signature.h"
#include "pin.h"
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

/* --- the service, in Ceph's map of services */

/* Ganesha's library; it comes with the RADOS recovery backends. */
#define RADOS_LIBRARY "libganesha_rados_urls.so"

/*
 * Ganesha's library registers with its RADOS client for configurations in
 * RADOS.  It does not check that this client exists, and crashes without it.
 * The client exists if a watch_url is set.  cephadm and Rook always set one.
 */
static bool library_is_connected;

struct rados_urls {
	char *watch_url;
};

static struct config_item rados_urls_items[] = {
	CONF_ITEM_NOOP("ceph_conf"),
	CONF_ITEM_NOOP("userid"),
	CONF_ITEM_STR("watch_url", 1, MAXPATHLEN, NULL, rados_urls, watch_url),
	CONFIG_EOL,
};

static struct config_block rados_urls_block = {
	.dbus_interface_name = "org.ganesha.nfsd.config.fsal.ceph_async.urls",
	.blk_desc.name = "RADOS_URLS",
	.blk_desc.type = CONFIG_BLOCK,
	.blk_desc.flags = CONFIG_UNIQUE,
	.blk_desc.u.blk.init = noop_conf_init,
	.blk_desc.u.blk.params = rados_urls_items,
	.blk_desc.u.blk.commit = noop_conf_commit,
};

static void module_configure_service(struct config_error_type *err_type)
{
	void *node = config_GetBlockNode(rados_urls_block.blk_desc.name);
	struct rados_urls urls = {0};

	if (module.keys.register_service && !CASYNC_GANESHA_REGISTERS)
		LogWarn(COMPONENT_CONFIG,
			"Register_Service = true: Ganesha %s has no registration of services; remove the key",
			casync_versions_built.ganesha);
	if (node != NULL)
		(void)load_config_from_node(node, &rados_urls_block, &urls,
					    true, err_type);
	library_is_connected = urls.watch_url != NULL;
	gsh_free(urls.watch_url);
}

/* m_ops.fsal_register_nfs_service.  Ganesha calls it also if CEPH_ASYNC { } was
 * refused: there are no keys then. */
static void module_register_service(void)
{
	void (*register_service)(char *nodeid) = NULL;
	void *library;

	if (!module.keys.register_service)
		return;
	if (!library_is_connected) {
		LogCrit(COMPONENT_FSAL,
			"Register_Service = true: no RADOS_URLS { watch_url }; Ganesha registers over its connection; serving continues without registration");
		return;
	}

	library = dlopen(RADOS_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (library != NULL)
		*(void **)&register_service =
			dlsym(library, "register_service_to_ceph");
	if (register_service == NULL)
		LogCrit(COMPONENT_FSAL,
			"Register_Service = true: %s; install Ganesha's RADOS library or remove the key; serving continues without registration",
			dlerror());
	else
		register_service(module.keys.nodeid);
}

/* --- begin and end */

/* m_ops.fsal_reclaim_client: another node has died, and its clients come here.
 */
static fsal_status_t module_take_over(struct fsal_module *fsal_hdl,
				      char *nodeid)
{
	const struct casync_module *self = casync_module_of(fsal_hdl);

	return casync_errors_status(casync_mount_take_over(
		nodeid, casync_tuning_read(&self->keys.tuning.mount_timeout)));
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
	module_configure_service(err_type);
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
			       module_take_over, module_register_service);
	module_init_obj_ops(&module.obj_ops);
}

MODULE_FINI void casync_module_fini(void)
{
	/* One of our threads may wait for libcephfs for ever.  And a plugin
	 * that Ganesha has refused is not registered. */
	if (casync_pin_is_set() || !registered)
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
	casync_stale_sessions_free();

	if (unregister_fsal(&module.fsal) != 0)
		LogCrit(COMPONENT_FSAL, "FSAL %s could not be unregistered",
			casync_name);
	casync_key_values_free(CASYNC_IN_MODULE, &module.keys);
}
