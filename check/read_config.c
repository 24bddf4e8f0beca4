/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "fsal.h"

#include "conf_url.h"
#include "export_mgr.h"
#include "nfs_core.h"
#include "nfs_exports.h"
#include "nfs_init.h"

#include "config_keys.h"
#include "ganesha.h"
#include "handle_keys.h"
#include "json.h"
#include "keys.h"
#include "name.h"
#include "rados_object.h"
#include "read_config.h"
#include "said.h"
#include "tree.h"
#include "versions.h"

/* As ganesha.nfsd has it. */
#define STACK_BYTES (8UL << 20)

static void read_config_versions(struct casync_json *json)
{
	struct casync_versions running;
	char why[256] = "";
	bool fit;

	casync_versions_running(&running);
	fit = casync_versions_fit(&casync_versions_built, &running, why,
				  sizeof(why));
	casync_json_open(json, "versions", '{');
	casync_json_text(json, "plugin", CASYNC_VERSION);
	casync_json_text(json, "ganesha_built", casync_versions_built.ganesha);
	casync_json_text(json, "ganesha", running.ganesha);
	casync_json_text(json, "ceph_built", casync_versions_built.ceph);
	casync_json_text(json, "ceph", running.ceph);
	casync_json_text(json, "refused", fit ? NULL : why);
	casync_json_close(json, '}');
}

/* NULL: it cannot be opened, and the reason is in the list. */
static config_file_t read_config_parse(const char *path)
{
	struct config_error_type err_type;
	config_file_t file;

	casync_said_open(&err_type);
	file = config_ParseFile((char *)path, &err_type);
	casync_said_take(&err_type);
	return file;
}

/* What is wrong with the file of Handle_Keys; nothing, if nothing is. */
static void read_config_handle_keys(struct casync_json *json,
				    const struct casync_module_keys *module)
{
	struct casync_handle_keys keys;
	char why[256];

	/* An object is the cluster's, and nothing is asked of that here. */
	if (module->handle_keys == NULL ||
	    casync_rados_object_is_url(module->handle_keys))
		return;
	if (!casync_handle_keys_read(module->handle_keys, &keys, why,
				     sizeof(why)))
		casync_json_text(json, "handle_keys_refused", why);
	casync_handle_keys_wipe(&keys);
}

static void read_config_module(struct casync_json *json, config_file_t file,
			       struct casync_module_keys *keys)
{
	struct config_error_type err_type;
	bool good;

	casync_said_open(&err_type);
	good = casync_config_read_module(file, keys, &err_type);
	casync_said_take(&err_type);
	casync_json_open(json, "module", '{');
	casync_json_truth(json, "good", good);
	casync_tree_values(json, "values", CASYNC_IN_MODULE, keys);
	read_config_handle_keys(json, keys);
	casync_said_write(json, "said");
	casync_json_close(json, '}');
}

static bool read_config_is_ours(const void *fsal)
{
	const char *name = casync_config_node_value(fsal, "Name");

	return name != NULL && strcasecmp(name, casync_name) == 0;
}

/* The plugin takes the number of the export for its messages from op_ctx. */
static bool read_config_export_keys(const void *fsal, uint16_t export_id,
				    const struct casync_module_keys *module,
				    struct casync_export_keys *keys)
{
	struct gsh_export export = {.export_id = export_id};
	struct req_op_context context = {.ctx_export = &export};
	struct config_error_type err_type;
	fsal_status_t status;

	op_ctx = &context;
	casync_said_open(&err_type);
	status = casync_config_export((void *)fsal, module, keys, &err_type);
	casync_said_take(&err_type);
	op_ctx = NULL;
	return !FSAL_IS_ERROR(status);
}

static void read_config_export(struct casync_json *json, const void *export,
			       const void *fsal,
			       const struct casync_module_keys *module)
{
	const char *number = casync_config_node_value(export, "Export_Id");
	struct casync_export_keys keys = {0};
	unsigned long export_id = 0;
	bool good;

	if (number != NULL)
		export_id = strtoul(number, NULL, 0);
	good = read_config_export_keys(fsal, (uint16_t)export_id, module,
				       &keys);
	casync_json_open(json, NULL, '{');
	casync_json_number(json, "export_id", export_id);
	casync_json_text(json, "file", casync_config_node_file(fsal));
	casync_json_number(json, "line",
			   (uint64_t)casync_config_node_line(fsal));
	casync_json_truth(json, "good", good);
	casync_tree_values(json, "values", CASYNC_IN_EXPORT, &keys);
	casync_said_write(json, "said");
	casync_json_close(json, '}');
	casync_key_values_free(CASYNC_IN_EXPORT, &keys);
}

static void read_config_exports(struct casync_json *json, config_file_t file,
				const struct casync_module_keys *module)
{
	const void *export = NULL, *fsal;

	casync_json_open(json, "exports", '[');
	while ((export = casync_config_node_block(file, "EXPORT", export)) !=
	       NULL) {
		fsal = casync_config_node_block(export, "FSAL", NULL);
		if (fsal != NULL && read_config_is_ours(fsal))
			read_config_export(json, export, fsal, module);
	}
	casync_json_close(json, ']');
}

static FILE *read_config_begin(int out_fd)
{
	FILE *out = fdopen(out_fd, "w");

	if (out == NULL)
		return NULL;
	nfs_prereq_init("check", "localhost", -1, "STDERR", false, STACK_BYTES);
	casync_said_begin();
	config_url_init();
	return out;
}

int casync_check_read(const char *path, int out_fd)
{
	struct casync_json json = {.out = read_config_begin(out_fd)};
	struct casync_module_keys module = {0};
	config_file_t file;

	if (json.out == NULL)
		return 1;
	file = read_config_parse(path);
	casync_json_open(&json, NULL, '{');
	casync_json_text(&json, "fsal", casync_name);
	read_config_versions(&json);
	casync_said_write(&json, "said");
	if (file != NULL) {
		casync_tree_write(&json, "blocks", file);
		read_config_module(&json, file, &module);
		read_config_exports(&json, file, &module);
		casync_key_values_free(CASYNC_IN_MODULE, &module);
	}
	casync_json_close(&json, '}');
	return fclose(json.out) == 0 && file != NULL ? 0 : 1;
}

static const char *read_config_recovery(enum recovery_backend backend)
{
	switch (backend) {
	case RECOVERY_BACKEND_FS:
		return "fs";
	case RECOVERY_BACKEND_FS_NG:
		return "fs_ng";
	case RECOVERY_BACKEND_RADOS_KV:
		return "rados_kv";
	case RECOVERY_BACKEND_RADOS_NG:
		return "rados_ng";
	case RECOVERY_BACKEND_RADOS_CLUSTER:
		return "rados_cluster";
	default: /* RECOVERY_BACKEND_NONE, which 5.9 does not have */
		return "none";
	}
}

static void read_config_parameters(struct casync_json *json)
{
	const nfs_core_parameter_t *core = &nfs_param.core_param;
	const nfs_version4_parameter_t *v4 = &nfs_param.nfsv4_param;

	casync_json_open(json, "parameters", '{');
	casync_json_number(json, "Lease_Lifetime", v4->lease_lifetime);
	casync_json_number(json, "Grace_Period", v4->grace_period);
	casync_json_truth(json, "Graceless", v4->graceless);
	casync_json_truth(json, "Delegations", v4->allow_delegations);
	casync_json_text(json, "RecoveryBackend",
			 read_config_recovery(v4->recovery_backend));
	casync_json_number(json, "Slot_Table_Size", v4->nb_slots);
	casync_json_number(json, "RPC_Ioq_ThrdMax", core->rpc.ioq_thrd_max);
	casync_json_truth(json, "Enable_Metrics",
			  casync_ganesha_enable_metrics(core));
	casync_json_number(json, "Monitoring_Port",
			   casync_ganesha_monitoring_port(core));
	casync_json_number(json, "Fsal_Api", FSAL_MAJOR_VERSION);
	casync_json_truth(json, "Enable_NLM", core->enable_NLM);
	casync_json_text(json, "Plugins_Dir", core->ganesha_modules_loc);
	casync_json_close(json, '}');
}

int casync_check_ganesha(const char *path, int out_fd)
{
	struct casync_json json = {.out = read_config_begin(out_fd)};
	nfs_start_info_t start = {0};
	struct config_error_type err_type;
	config_file_t file;
	int rc;

	if (json.out == NULL)
		return 1;
	file = read_config_parse(path);
	if (file == NULL) {
		(void)fclose(json.out);
		return 1;
	}
	/* Its watch_url would be watched until a time-out: whoever changes the
	 * object would have to wait for us. */
	casync_tree_hide(file, "RADOS_URLS");
	casync_said_open(&err_type);
	rc = nfs_set_param_from_conf(file, &start, &err_type);
	casync_said_take(&err_type);
	casync_json_open(&json, NULL, '{');
	casync_json_truth(&json, "good", rc == 0);
	read_config_parameters(&json);
	casync_said_write(&json, "said");
	casync_json_close(&json, '}');
	return fclose(json.out) == 0 ? 0 : 1;
}

int casync_check_exports(const char *path, int out_fd)
{
	struct casync_json json = {.out = read_config_begin(out_fd)};
	const void *export = NULL, *fsal;
	nfs_start_info_t start = {0};
	struct config_error_type err_type;
	config_file_t file;

	if (json.out == NULL)
		return 1;
	file = read_config_parse(path);
	if (file == NULL) {
		(void)fclose(json.out);
		return 1;
	}
	casync_tree_hide(file, "RADOS_URLS");
	casync_said_open(&err_type);
	(void)nfs_set_param_from_conf(file, &start, &err_type);
	casync_said_take(&err_type);
	casync_said_forget(); /* casync_check_ganesha tells of these */
	while ((export = casync_config_node_block(file, "EXPORT", export)) !=
	       NULL) {
		fsal = NULL;
		while ((fsal = casync_config_node_block(export, "FSAL",
							fsal)) != NULL)
			casync_tree_empty(fsal);
	}
	casync_said_open(&err_type);
	(void)start_fsals(file, &err_type);
	(void)ReadExports(file, &err_type);
	casync_said_take(&err_type);
	casync_json_open(&json, NULL, '{');
	casync_said_write(&json, "said");
	casync_json_close(&json, '}');
	return fclose(json.out) == 0 ? 0 : 1;
}
