/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * One table of tuning keys serves both blocks: the module's block takes the
 * defaults that stand here, an export's block takes the module's values.
 */
#include "config.h"

#include <limits.h>

#include <cephfs/libcephfs.h>

#include "fsal.h"

#include "export_mgr.h"

#include "config_keys.h"
#include "durability.h"
#include "errors.h"
#include "module.h"

/* Longest user id and secret; cephx keys are 40 characters of base64. */
#define MAX_USER_LEN 1024
#define MAX_SECRET_LEN 1024

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static struct config_item_list stable_write_tokens[] = {
	CONFIG_LIST_TOK("data", CASYNC_STABLE_DATA),
	CONFIG_LIST_TOK("fdatasync", CASYNC_STABLE_FDATASYNC),
	CONFIG_LIST_TOK("full", CASYNC_STABLE_FULL), CONFIG_LIST_EOL};

/* The keys of struct casync_tuning, at `member` of `type`. */
/* clang-format off */
#define TUNING_ITEMS(type, member)                                           \
	CONF_ITEM_TOKEN("stable_write", CASYNC_STABLE_DATA,                  \
			stable_write_tokens, type, member.stable_write),     \
	CONF_ITEM_BOOL("promote_unstable", true, type,                       \
		       member.promote_unstable),                             \
	CONF_ITEM_UI32("max_inflight", 1, 1048576, 8192, type,               \
		       member.max_inflight),                                 \
	CONF_ITEM_UI64("max_inflight_bytes", MIB, 1024 * GIB, GIB, type,     \
		       member.max_inflight_bytes),                           \
	CONF_ITEM_UI32("mount_timeout", 1, 3600, 60, type,                   \
		       member.mount_timeout),                                \
	CONF_ITEM_UI32("session_timeout", 30, 86400, 300, type,              \
		       member.session_timeout),                              \
	CONF_ITEM_UI32("drain_timeout", 1, 3600, 30, type,                   \
		       member.drain_timeout)
/* clang-format on */

static struct config_item module_items[] = {
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
	TUNING_ITEMS(casync_module_keys, tuning),
	CONFIG_EOL};

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
	TUNING_ITEMS(casync_export_keys, tuning),
	CONFIG_EOL};

#define EXPORT_ITEM_COUNT (sizeof(export_items) / sizeof(export_items[0]))

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

static struct config_block module_block = {
	.dbus_interface_name = "org.ganesha.nfsd.config.fsal.ceph_async",
	.blk_desc.name = "CEPH_ASYNC",
	.blk_desc.type = CONFIG_BLOCK,
	.blk_desc.flags = CONFIG_UNIQUE,
	.blk_desc.u.blk.init = noop_conf_init,
	.blk_desc.u.blk.params = module_items,
	.blk_desc.u.blk.commit = noop_conf_commit,
};

fsal_status_t casync_config_module(struct fsal_module *fsal_hdl,
				   config_file_t config,
				   struct config_error_type *err_type)
{
	struct casync_module *module = casync_module_of(fsal_hdl);
	bool bogus_before = err_type->bogus;
	int rc;

	err_type->bogus = false;
	(void)load_config_from_parse(config, &module_block, &module->keys, true,
				     err_type);
	if (!config_error_is_harmless(err_type) ||
	    bogus_refused(err_type, bogus_before, "CEPH_ASYNC { }"))
		return fsalstat(ERR_FSAL_INVAL, 0);
	if (module_keys_refused(&module->keys)) {
		err_type->validate = true;
		return fsalstat(ERR_FSAL_INVAL, 0);
	}

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

/* Give each tuning item of an export's table the module's value. */
static void set_default(struct config_item *item,
			const struct casync_tuning *defaults)
{
	size_t base = offsetof(struct casync_export_keys, tuning);
	const char *value = (const char *)defaults + (item->off - base);

	if (item->name == NULL || item->off < base)
		return;

	switch (item->type) {
	case CONFIG_TOKEN:
		item->u.lst.def = *(const uint32_t *)value;
		break;
	case CONFIG_BOOL:
		item->u.b.def = *(const bool *)value;
		break;
	case CONFIG_UINT32:
		item->u.ui32.def = *(const uint32_t *)value;
		break;
	case CONFIG_UINT64:
		item->u.ui64.def = *(const uint64_t *)value;
		break;
	default:
		break;
	}
}

fsal_status_t casync_config_export(void *node,
				   const struct casync_tuning *defaults,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type)
{
	struct config_item items[EXPORT_ITEM_COUNT];
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
	size_t i;

	memcpy(items, export_items, sizeof(items));
	for (i = 0; i < EXPORT_ITEM_COUNT; i++)
		set_default(&items[i], defaults);

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
