/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Both blocks, their own keys and the tuning keys of tuning.c: the module's
 * block starts from the table's defaults, an export's from the module's
 * values.
 */
#include "config.h"

#include <limits.h>

#include <cephfs/libcephfs.h>

#include "fsal.h"

#include "export_mgr.h"

#include "config_keys.h"
#include "errors.h"
#include "module.h"
#include "service.h"

/* Longest user id and secret; cephx keys are 40 characters of base64. */
#define MAX_USER_LEN 1024
#define MAX_SECRET_LEN 1024

static const struct config_item module_items[] = {
	CONF_ITEM_PATH("ceph_conf", 1, MAXPATHLEN, NULL, casync_module_keys,
		       ceph_conf),
	CONF_ITEM_MODE("umask", 0, casync_module_keys, umask),
	CONF_ITEM_BOOL("client_oc", false, casync_module_keys, client_oc),
	CONF_ITEM_BOOL("async", true, casync_module_keys, async),
	CONF_ITEM_BOOL("zerocopy", false, casync_module_keys, zerocopy),
	CONF_ITEM_BOOL("use_old_uuid", false, casync_module_keys, use_old_uuid),
	CONF_ITEM_BOOL("register_service", false, casync_module_keys,
		       register_service),
	CONF_ITEM_STR("nodeid", 1, MAXPATHLEN, NULL, casync_module_keys,
		      nodeid),
};

static const struct config_item export_items[] = {
	CONF_ITEM_NOOP("name"),
	CONF_ITEM_STR("user_id", 0, MAX_USER_LEN, NULL, casync_export_keys,
		      user_id),
	CONF_ITEM_STR("filesystem", 0, NAME_MAX, NULL, casync_export_keys,
		      filesystem),
	CONF_ITEM_PATH("cmount_path", 1, MAXPATHLEN, NULL, casync_export_keys,
		       cmount_path),
	CONF_ITEM_STR("secret_access_key", 0, MAX_SECRET_LEN, NULL,
		      casync_export_keys, secret),
	CONF_ITEM_STR("sec_label_xattr", 0, 256, "security.selinux",
		      casync_export_keys, sec_label_xattr),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A block's own keys, the tuning keys, and the end: CONFIG_EOL is a name that
 * is NULL. */
#define MODULE_ITEMS (COUNT(module_items) + CASYNC_TUNING_KEYS + 1)
#define EXPORT_ITEMS (COUNT(export_items) + CASYNC_TUNING_KEYS + 1)

static bool refused(const char *key, const char *why)
{
	LogCrit(COMPONENT_CONFIG, "CEPH_ASYNC { %s; } is refused: %s", key,
		why);
	return true;
}

/*
 * Ganesha reports an unknown key or token, calls it bogus and goes on with the
 * default.  Where a slip of the pen in Stable_Write decides what a crash
 * costs, that will not do.
 */
static bool bogus_refused(struct config_error_type *err_type, bool bogus_before,
			  const char *where)
{
	bool refuse = err_type->bogus;

	err_type->bogus |= bogus_before;
	if (!refuse)
		return false;
	LogCrit(COMPONENT_CONFIG,
		"%s is refused: it has an unknown key or value, which Ganesha names with file and line when it ends reading the configuration",
		where);
	err_type->validate = true;
	return true;
}

/* Keys that FSAL_CEPH has and that would be unsafe or untrue here. */
static bool module_keys_refused(const struct casync_module_keys *keys)
{
	bool bad = false;

	if (keys->client_oc)
		bad = refused(
			"Client_OC = true",
			"libcephfs hides write-back errors of its object cache from COMMIT, so acknowledged data could be lost unnoticed; remove the key or set it to false");
	if (!keys->async)
		bad = refused(
			"Async = false",
			"this FSAL has no blocking data path; use FSAL CEPH for that, or remove the key");
	if (keys->zerocopy)
		LogWarn(COMPONENT_CONFIG,
			"CEPH_ASYNC { Zerocopy = true; } has no effect: libcephfs %s offers no zero-copy reads",
			ceph_version(NULL, NULL, NULL));
	return bad;
}

fsal_status_t casync_config_module(struct fsal_module *fsal_hdl,
				   config_file_t config,
				   struct config_error_type *err_type)
{
	struct casync_module *module = casync_module_of(fsal_hdl);
	struct config_item items[MODULE_ITEMS] = {0};
	struct config_block block = {
		.dbus_interface_name =
			"org.ganesha.nfsd.config.fsal.ceph_async",
		.blk_desc.name = "CEPH_ASYNC",
		.blk_desc.type = CONFIG_BLOCK,
		.blk_desc.flags = CONFIG_UNIQUE,
		.blk_desc.u.blk.init = noop_conf_init,
		.blk_desc.u.blk.params = items,
		.blk_desc.u.blk.commit = noop_conf_commit,
	};
	bool bogus_before = err_type->bogus;
	int rc;

	memcpy(items, module_items, sizeof(module_items));
	casync_tuning_items(&items[COUNT(module_items)],
			    offsetof(struct casync_module_keys, tuning));
	casync_tuning_defaults(&module->keys.tuning);
	/* A block that was refused is read again for the next export. */
	gsh_free(module->keys.ceph_conf);
	gsh_free(module->keys.nodeid);
	module->keys.ceph_conf = NULL;
	module->keys.nodeid = NULL;

	err_type->bogus = false;
	(void)load_config_from_parse(config, &block, &module->keys, true,
				     err_type);
	if (bogus_refused(err_type, bogus_before, "CEPH_ASYNC { }") ||
	    !config_error_is_harmless(err_type))
		return fsalstat(ERR_FSAL_INVAL, 0);
	if (module_keys_refused(&module->keys)) {
		err_type->validate = true;
		return fsalstat(ERR_FSAL_INVAL, 0);
	}

	casync_service_configure(err_type);
	fsal_hdl->fs_info.umask = module->keys.umask;
	display_fsinfo(fsal_hdl);

	rc = casync_module_start(module);
	if (rc != 0) {
		LogCrit(COMPONENT_FSAL, "cannot start threads: %s",
			strerror(-rc));
		return casync_status(rc);
	}
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_config_export(void *node,
				   const struct casync_tuning *defaults,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type)
{
	struct config_item items[EXPORT_ITEMS] = {0};
	struct config_block block = {
		.dbus_interface_name =
			"org.ganesha.nfsd.config.fsal.ceph_async-export%d",
		.blk_desc.name = "FSAL",
		.blk_desc.type = CONFIG_BLOCK,
		.blk_desc.u.blk.init = noop_conf_init,
		.blk_desc.u.blk.params = items,
		.blk_desc.u.blk.commit = noop_conf_commit,
	};
	bool bogus_before = err_type->bogus;
	char where[64];

	memcpy(items, export_items, sizeof(export_items));
	casync_tuning_items(&items[COUNT(export_items)],
			    offsetof(struct casync_export_keys, tuning));
	keys->tuning = *defaults;

	(void)snprintf(where, sizeof(where), "export %" PRIu16 ": FSAL { }",
		       op_ctx->ctx_export->export_id);
	err_type->bogus = false;
	if (load_config_from_node(node, &block, keys, true, err_type) != 0 ||
	    bogus_refused(err_type, bogus_before, where))
		return fsalstat(ERR_FSAL_INVAL, 0);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void casync_config_export_free(struct casync_export_keys *keys)
{
	gsh_free(keys->user_id);
	gsh_free(keys->filesystem);
	gsh_free(keys->cmount_path);
	gsh_free(keys->secret);
	gsh_free(keys->sec_label_xattr);
}
