/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Applies a changed configuration while exports serve.
 *
 * After a SIGHUP Ganesha reads its whole file; UpdateExport (DBus) reads one
 * export of a file.  For each export Ganesha calls casync_reload_module() and,
 * if it already has the export, casync_reload_export().  Both take over all new
 * values or none.  If CEPH_ASYNC { } is refused, it keeps its old values, and
 * the exports are still read.  No request is held back.  Limits and modes are
 * stored where requests read them (tuning.h).  They apply to requests that
 * start later.
 */
#include "config.h"

#include <pthread.h>
#include <stddef.h>

#include "fsal.h"

#include "export_mgr.h"
#include "FSAL/fsal_commonlib.h"

#include "cache.h"
#include "call.h"
#include "config_keys.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "handle_ops.h"
#include "inflight.h"
#include "key_changes.h"
#include "layout.h"
#include "module.h"
#include "name.h"
#include "publish.h"

#define LIST_BYTES 2048

/* One reload at a time: SIGHUP and DBus use different threads.  It is the
 * outermost lock. */
static pthread_mutex_t reload_lock = PTHREAD_MUTEX_INITIALIZER;

/* These keys are the mount's, which has them of its oldest export. */
static bool reload_is_of_mount(const struct casync_key *key)
{
	return key->at[CASYNC_IN_EXPORT] ==
		       offsetof(struct casync_export_keys, tuning.reconnect) ||
	       key->at[CASYNC_IN_EXPORT] == offsetof(struct casync_export_keys,
						     tuning.reconnect_timeout);
}

/* Of an export whose mount has the values of another one: 0 if it has its own.
 */
static void reload_log_changes(const char *of, enum casync_block block,
			       const void *now, const void *fresh,
			       uint16_t other)
{
	const struct casync_key *key = NULL;
	char text[CASYNC_CHANGE_BYTES];
	char but[96];

	while ((key = casync_key_changes_next(block, now, fresh, key)) !=
	       NULL) {
		casync_key_changes_describe(key, block, now, fresh, text,
					    sizeof(text));
		but[0] = '\0';
		if (other != 0 && reload_is_of_mount(key))
			(void)snprintf(
				but, sizeof(but),
				", not in force: its CephFS client has the value of export %" PRIu16,
				other);
		LogEvent(COMPONENT_FSAL, "%s: %s%s", of, text, but);
	}
}

/* --- The module's block */

static bool reload_takes_restart(const struct casync_module *module,
				 const struct casync_module_keys *fresh,
				 struct config_error_type *err_type)
{
	char list[LIST_BYTES];

	if (!casync_key_changes_list_fixed(CASYNC_IN_MODULE, &module->keys,
					   fresh, list, sizeof(list)))
		return false;
	LogCrit(COMPONENT_CONFIG,
		"%s { }: reload refused, all old values stay; these keys need a restart of Ganesha: %s",
		casync_name, list);
	err_type->invalid = true;
	return true;
}

/* The block's other values wait for an export; this one does not. */
static void reload_cache(uint64_t bytes)
{
	uint64_t before = casync_buffer_budget();

	casync_cache_set_budget(bytes);
	if (bytes != before)
		LogEvent(COMPONENT_FSAL,
			 "the read cache has %" PRIu64
			 " bytes from now on (was %" PRIu64 "), %" PRIu64
			 " are in use",
			 bytes, before, casync_buffer_used_bytes());
}

/* The file is read again, even if its name is the same.  It comes last of what
 * can fail. */
static bool reload_handle_keys(const struct casync_module *module,
			       const struct casync_module_keys *fresh,
			       config_file_t config,
			       struct config_error_type *err_type)
{
	bool right = casync_handle_ops_load(fresh, config);

	if (right && fresh->handle_keys == NULL &&
	    module->keys.handle_keys != NULL) {
		LogCrit(COMPONENT_CONFIG,
			"Handle_Keys was removed: exports may sign handles with its keys until Ganesha restarts");
		right = false;
	}
	if (right)
		return true;
	LogCrit(COMPONENT_CONFIG,
		"%s { }: reload refused, all old values and handle keys stay",
		casync_name);
	err_type->invalid = true;
	return false;
}

static void reload_module_locked(struct casync_module *module,
				 config_file_t config,
				 struct config_error_type *err_type)
{
	struct casync_module_keys fresh = {0};
	uint32_t errors_before = err_type->errors;
	char of[64];

	if (casync_config_read_module(config, &fresh, err_type) &&
	    !reload_takes_restart(module, &fresh, err_type) &&
	    reload_handle_keys(module, &fresh, config, err_type)) {
		(void)snprintf(of, sizeof(of), "%s { }, for exports read later",
			       casync_name);
		reload_log_changes(of, CASYNC_IN_MODULE, &module->keys, &fresh,
				   0);
		casync_config_lock();
		casync_key_changes_adopt(CASYNC_IN_MODULE, &module->keys,
					 &fresh);
		casync_config_unlock();
		reload_cache(module->keys.cache_bytes);
		casync_publish_set_file(module->keys.metrics_file);
	} else {
		casync_publish_reload(false);
	}
	casync_key_values_free(CASYNC_IN_MODULE, &fresh);
	/* Logged; counted, they would disable the next export. */
	err_type->errors = errors_before;
}

fsal_status_t casync_reload_module(struct fsal_module *fsal_hdl,
				   config_file_t config,
				   struct config_error_type *err_type)
{
	struct casync_module *module = casync_module_of(fsal_hdl);
	uint64_t generation = casync_config_generation(config);
	fsal_status_t status = fsalstat(ERR_FSAL_NO_ERROR, 0);

	pthread_mutex_lock(&reload_lock);
	/* Ganesha calls this for each export of the file. */
	if (module->generation == generation) {
		pthread_mutex_unlock(&reload_lock);
		return status;
	}
	module->generation = generation;
	casync_publish_reload(true);
	if (!module->ready)
		status =
			fsal_hdl->m_ops.init_config(fsal_hdl, config, err_type);
	else if (casync_config_node_block(config, fsal_hdl->name, NULL) !=
			 NULL ||
		 casync_config_is_main(config))
		reload_module_locked(module, config, err_type);
	pthread_mutex_unlock(&reload_lock);
	return status;
}

void casync_reload_module_first(struct fsal_module *fsal_hdl,
				const void *parse_node,
				struct config_error_type *err_type)
{
	if (!CASYNC_GANESHA_READS_MODULE_AGAIN)
		(void)casync_reload_module(fsal_hdl,
					   casync_config_node_root(parse_node),
					   err_type);
}

/* --- EXPORT { FSAL { } } */

static bool reload_takes_remount(const struct casync_export *exp,
				 const struct casync_export_keys *fresh)
{
	char list[LIST_BYTES];

	if (!casync_key_changes_list_fixed(CASYNC_IN_EXPORT, &exp->keys, fresh,
					   list, sizeof(list)))
		return false;
	LogCrit(COMPONENT_CONFIG,
		"export %" PRIu16
		": reload refused, all old values stay; these keys need a new mount: %s; restore them, or remove the export and add it again",
		exp->export.export_id, list);
	return true;
}

static void reload_adopt(struct casync_export *exp,
			 struct casync_export_keys *fresh)
{
	const uint16_t id = exp->export.export_id;
	uint16_t oldest = casync_mount_tune(exp->mount, id, &fresh->tuning);
	char of[32];

	(void)snprintf(of, sizeof(of), "export %" PRIu16, id);
	reload_log_changes(of, CASYNC_IN_EXPORT, &exp->keys, fresh,
			   oldest == id ? 0 : oldest);
	casync_key_changes_adopt(CASYNC_IN_EXPORT, &exp->keys, fresh);
	casync_inflight_limit(&exp->inflight, exp->keys.tuning.max_inflight,
			      exp->keys.tuning.max_inflight_bytes);
}

/* It asks Ceph for pools.  Without a client the layout stays, if it may. */
static int reload_layout(struct casync_export *exp,
			 const struct casync_export_keys *fresh)
{
	struct casync_layout_texts *texts;
	int rc;

	if (!casync_call_begin_setup(exp->mount)) {
		if (casync_layout_is_same(&exp->keys, fresh))
			return 0;
		LogCrit(COMPONENT_FSAL,
			"export %" PRIu16
			": not reloaded: its CephFS session is lost, and a new layout of files needs it; reload again once it serves",
			exp->export.export_id);
		return -EAGAIN;
	}
	rc = casync_layout_prepare(&exp->layout, exp->mount, fresh, &texts);
	casync_call_leave(exp->mount);
	if (rc == 0)
		casync_layout_replace(&exp->layout, texts);
	return rc;
}

/* All steps that can fail come first; the layout is the last of them. */
static fsal_status_t
reload_export_locked(struct casync_export *exp,
		     const struct casync_module_keys *inherited,
		     void *parse_node, struct config_error_type *err_type)
{
	struct casync_export_keys fresh = {0};
	fsal_status_t status;
	int rc;

	status = casync_config_export(parse_node, inherited, &fresh, err_type);
	if (!FSAL_IS_ERROR(status) && reload_takes_remount(exp, &fresh))
		status = fsalstat(ERR_FSAL_INVAL, 0);
	if (!FSAL_IS_ERROR(status)) {
		rc = reload_layout(exp, &fresh);
		if (rc == 0)
			reload_adopt(exp, &fresh);
		status = casync_errors_status(rc);
	}
	casync_key_values_free(CASYNC_IN_EXPORT, &fresh);
	return status;
}

/*
 * After a SIGHUP Ganesha removes the exports that are no longer in the file.
 * It takes an export that could not be updated for one of these.  But this
 * export is in the file, and an error in the file must not take it from its
 * clients.
 */
static void reload_keep_export(const void *parse_node)
{
	op_ctx->ctx_export->config_gen =
		casync_config_node_generation(parse_node);
}

fsal_status_t casync_reload_export(struct fsal_module *fsal_hdl,
				   void *parse_node,
				   struct config_error_type *err_type,
				   struct fsal_export *original,
				   struct fsal_module *updated_super)
{
	fsal_status_t status;

	casync_reload_module_first(fsal_hdl, parse_node, err_type);
	reload_keep_export(parse_node);
	/* Ganesha's check: is it an export of this FSAL? */
	status = update_export(fsal_hdl, parse_node, err_type, original,
			       updated_super);
	if (!FSAL_IS_ERROR(status)) {
		pthread_mutex_lock(&reload_lock);
		status = reload_export_locked(casync_export_of(original),
					      &casync_module_of(fsal_hdl)->keys,
					      parse_node, err_type);
		pthread_mutex_unlock(&reload_lock);
	}
	if (FSAL_IS_ERROR(status)) {
		/* If it were not counted, Ganesha would apply the rest of
		 * EXPORT { } and report success. */
		err_type->invalid = true;
		err_type->errors++;
		casync_publish_reload(false);
	}
	return status;
}
