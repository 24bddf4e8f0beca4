/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>

#include "fsal.h"
#include "config_parsing.h"

#include "errors.h"
#include "ganesha.h"
#include "module.h"
#include "mount.h"
#include "versions.h"

/* Ganesha's library; it comes with the RADOS recovery backends. */
#define RADOS_LIBRARY "libganesha_rados_urls.so"

fsal_status_t casync_service_take_over(struct fsal_module *fsal_hdl,
				       char *nodeid)
{
	const struct casync_module *module = casync_module_of(fsal_hdl);

	return casync_errors_status(casync_mount_take_over(
		nodeid,
		casync_tuning_read(&module->keys.tuning.mount_timeout)));
}

/*
 * Ganesha's library registers with its RADOS client for configurations in
 * RADOS.  It does not check that this client exists, and crashes without it.
 * The client exists if a watch_url is set.  cephadm and Rook always set one.
 */
static bool library_is_connected;

/* The module's keys; they live as long as the process.  NULL: CEPH_ASYNC { }
 * was refused, and Ganesha registers the service all the same. */
static const struct casync_module_keys *module_keys;

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

void casync_service_configure(const struct casync_module_keys *keys,
			      struct config_error_type *err_type)
{
	void *node = config_GetBlockNode(rados_urls_block.blk_desc.name);
	struct rados_urls urls = {0};

	module_keys = keys;
	if (keys->register_service && !CASYNC_GANESHA_REGISTERS)
		LogWarn(COMPONENT_CONFIG,
			"Register_Service = true: Ganesha %s has no registration of services; remove the key",
			casync_versions_built.ganesha);
	if (node != NULL)
		(void)load_config_from_node(node, &rados_urls_block, &urls,
					    true, err_type);
	library_is_connected = urls.watch_url != NULL;
	gsh_free(urls.watch_url);
}

void casync_service_register(void)
{
	void (*register_service)(char *nodeid) = NULL;
	void *library;

	if (module_keys == NULL || !module_keys->register_service)
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
		register_service(module_keys->nodeid);
}
