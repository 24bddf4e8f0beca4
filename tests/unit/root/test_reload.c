/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A configuration that is read again: all new values of a block are taken over,
 * or none, and an error in the file takes no export from its clients.  Reading
 * the blocks is test_config.c's; here it gives what the test says.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"
#include "export_mgr.h"
#include "FSAL/fsal_commonlib.h"

#include "cache.h"
#include "call.h"
#include "durability.h"
#include "errors.h"
#include "export.h"
#include "ganesha.h"
#include "handle_ops.h"
#include "key_changes.h"
#include "module.h"
#include "publish.h"
#include "stub_log.h"

const char casync_name[] = "CEPH_ASYNC";

#define FILE_OF(generation) ((config_file_t)(uintptr_t)(generation))
#define EXPORT_ID 7

/* --- what is read, and what happens */

static struct {
	/* Set up by the test. */
	void (*change_module)(struct casync_module_keys *keys);
	void (*change_export)(struct casync_export_keys *keys);
	bool module_is_wrong, export_is_wrong;
	bool has_block, is_main;
	bool handle_keys_are_wrong;
	bool client_is_lost;
	int layout_result;
	bool layout_is_same;
	fsal_status_t update_status;
	uint16_t oldest;

	/* What happened. */
	unsigned int reads, inits, layouts, leaves, tunes;
	int locked;
	unsigned int good, bad; /* As the metrics tell. */
	uint64_t budget;
	char file[64];
	uint64_t max_inflight, max_inflight_bytes;
	char log[4096];
} with;

void stub_log_line(log_levels_t level, const char *text)
{
	size_t used = strlen(with.log);

	(void)snprintf(with.log + used, sizeof(with.log) - used, "%s\n", text);
}

static void check_said(const char *text)
{
	if (strstr(with.log, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, with.log);
}

bool casync_config_read_module(config_file_t config,
			       struct casync_module_keys *keys,
			       struct config_error_type *err_type)
{
	with.reads++;
	casync_key_values_set_defaults(CASYNC_IN_MODULE, keys);
	if (with.change_module != NULL)
		with.change_module(keys);
	err_type->errors += with.module_is_wrong;
	return !with.module_is_wrong;
}

fsal_status_t casync_config_export(void *node,
				   const struct casync_module_keys *inherited,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type)
{
	with.reads++;
	casync_key_values_set_defaults(CASYNC_IN_EXPORT, keys);
	if (with.change_export != NULL)
		with.change_export(keys);
	return fsalstat(
		with.export_is_wrong ? ERR_FSAL_INVAL : ERR_FSAL_NO_ERROR, 0);
}

void casync_config_lock(void)
{
	with.locked++;
}

void casync_config_unlock(void)
{
	with.locked--;
}

const void *casync_config_node_block(const void *parent, const char *name,
				     const void *after)
{
	assert_string_equal(name, "CEPH_ASYNC");
	return with.has_block ? &with : NULL;
}

bool casync_config_is_main(const void *file)
{
	return with.is_main;
}

uint64_t casync_config_generation(const void *file)
{
	return (uintptr_t)file;
}

uint64_t casync_config_node_generation(const void *cnode)
{
	return 4711;
}

void *casync_config_node_root(const void *cnode)
{
	return (void *)cnode;
}

bool casync_handle_ops_load(const struct casync_module_keys *keys,
			    config_file_t config)
{
	return !with.handle_keys_are_wrong;
}

uint64_t casync_buffer_budget(void)
{
	return with.budget;
}

uint64_t casync_buffer_used_bytes(void)
{
	return 5;
}

void casync_cache_set_budget(uint64_t bytes)
{
	with.budget = bytes;
}

void casync_publish_set_file(const char *path)
{
	(void)snprintf(with.file, sizeof(with.file), "%s",
		       path != NULL ? path : "(none)");
}

void casync_publish_reload(bool good)
{
	with.good += good;
	with.bad += !good;
}

uint16_t casync_mount_tune(struct casync_mount *mount, uint16_t export_id,
			   const struct casync_tuning *tuning)
{
	with.tunes++;
	return with.oldest;
}

void casync_inflight_limit(struct casync_inflight *set, uint64_t max_ops,
			   uint64_t max_bytes)
{
	with.max_inflight = max_ops;
	with.max_inflight_bytes = max_bytes;
}

bool casync_call_begin_setup(struct casync_mount *mount)
{
	return !with.client_is_lost;
}

void casync_call_leave(struct casync_mount *mount)
{
	with.leaves++;
}

int casync_layout_prepare(const struct casync_layout *layout,
			  const struct casync_mount *mount,
			  const struct casync_export_keys *keys,
			  struct casync_layout_texts **texts)
{
	*texts = NULL;
	return with.layout_result;
}

void casync_layout_replace(struct casync_layout *layout,
			   struct casync_layout_texts *texts)
{
	with.layouts++;
}

bool casync_layout_is_same(const struct casync_export_keys *a,
			   const struct casync_export_keys *b)
{
	return with.layout_is_same;
}

fsal_status_t casync_errors_status(int64_t rc)
{
	if (rc == -EAGAIN)
		return fsalstat(ERR_FSAL_DELAY, EAGAIN);
	return fsalstat(rc < 0 ? ERR_FSAL_NOENT : ERR_FSAL_NO_ERROR, (int)-rc);
}

/* Of options that nobody sets here. */
int ceph_conf_set(struct ceph_mount_info *cmount, const char *option,
		  const char *value)
{
	return 0;
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	return "20.2.4";
}

/* --- Ganesha */

__thread struct req_op_context *op_ctx;

fsal_status_t update_export(struct fsal_module *fsal_hdl, void *parse_node,
			    struct config_error_type *err_type,
			    struct fsal_export *original,
			    struct fsal_module *updated_super)
{
	return with.update_status;
}

static fsal_status_t init_config(struct fsal_module *fsal_hdl,
				 config_file_t config_struct,
				 struct config_error_type *err_type)
{
	with.inits++;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* --- a module and an export that run */

static struct casync_module module;
static struct casync_export exp;
static struct gsh_export gsh_export;
static struct req_op_context request;
static struct config_error_type errors;
static char module_name[] = "CEPH_ASYNC";

static int up(void **state)
{
	int i;

	memset(&with, 0, sizeof(with));
	with.has_block = true;
	with.oldest = EXPORT_ID;
	with.budget = 256U << 20;
	memset(&module, 0, sizeof(module));
	memset(&exp, 0, sizeof(exp));
	memset(&errors, 0, sizeof(errors));
	casync_key_values_set_defaults(CASYNC_IN_MODULE, &module.keys);
	casync_key_values_set_defaults(CASYNC_IN_EXPORT, &exp.keys);
	module.ready = true;
	module.generation = 1;
	module.fsal.name = module_name;
	module.fsal.m_ops.init_config = init_config;
	exp.export.export_id = EXPORT_ID;
	gsh_export.config_gen = 0;
	request.ctx_export = &gsh_export;
	op_ctx = &request;
	for (i = 0; i < COMPONENT_COUNT; i++)
		component_log_level[i] = NIV_EVENT;
	return 0;
}

static int down(void **state)
{
	casync_key_values_free(CASYNC_IN_MODULE, &module.keys);
	casync_key_values_free(CASYNC_IN_EXPORT, &exp.keys);
	return with.locked;
}

static void reload_module(uint64_t generation)
{
	assert_int_equal(
		casync_reload_module(&module.fsal, FILE_OF(generation), &errors)
			.major,
		ERR_FSAL_NO_ERROR);
}

/* Of the file whose module block is read already. */
static fsal_errors_t reload_export(void)
{
	return casync_reload_export(&module.fsal, (void *)(uintptr_t)1, &errors,
				    &exp.export, NULL)
		.major;
}

static void set_text(char **member, const char *text)
{
	free(*member);
	*member = strdup(text);
}

/* --- CEPH_ASYNC { } */

static void change_values(struct casync_module_keys *keys)
{
	keys->tuning.stable_write = CASYNC_STABLE_FULL;
	keys->cache_bytes = 1U << 20;
	set_text(&keys->metrics_file, "/run/a.prom");
}

TEST_WITH(new_values_of_the_module_are_taken_over, up, down)
{
	with.change_module = change_values;
	reload_module(2);
	assert_int_equal(module.keys.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_int_equal(with.budget, 1U << 20);
	assert_string_equal(with.file, "/run/a.prom");
	check_said("CEPH_ASYNC { }, for exports read later: "
		   "Stable_Write = full (was data)");
	check_said("the read cache has 1048576 bytes from now on "
		   "(was 268435456), 5 are in use");
	assert_int_equal(with.good, 1);
	assert_int_equal(with.bad, 0);
	assert_false(errors.invalid);
}

TEST_WITH(same_values_are_not_told, up, down)
{
	reload_module(2);
	assert_int_equal(with.reads, 1);
	assert_string_equal(with.log, "");
}

/* Ganesha asks for each export of the file. */
TEST_WITH(file_is_read_once, up, down)
{
	reload_module(2);
	reload_module(2);
	assert_int_equal(with.reads, 1);
	assert_int_equal(with.good, 1);
	reload_module(3);
	assert_int_equal(with.reads, 2);
}

/* The file of one export has no such block: nothing changes. */
TEST_WITH(file_without_the_block_changes_nothing, up, down)
{
	with.has_block = false;
	with.change_module = change_values;
	reload_module(2);
	assert_int_equal(with.reads, 0);
	assert_int_equal(module.keys.tuning.stable_write, CASYNC_STABLE_DATA);
	/* In Ganesha's own file that means the defaults. */
	with.is_main = true;
	reload_module(3);
	assert_int_equal(with.reads, 1);
}

TEST_WITH(module_that_was_refused_is_begun, up, down)
{
	module.ready = false;
	reload_module(2);
	assert_int_equal(with.inits, 1);
	assert_int_equal(with.reads, 0);
}

static void change_conf(struct casync_module_keys *keys)
{
	change_values(keys);
	set_text(&keys->ceph_conf, "/etc/ceph/other.conf");
}

static void check_nothing_changed(void)
{
	assert_int_equal(module.keys.tuning.stable_write, CASYNC_STABLE_DATA);
	assert_null(module.keys.metrics_file);
	assert_int_equal(with.budget, 256U << 20);
	assert_string_equal(with.file, "");
	assert_int_equal(with.bad, 1);
	/* Counted, they would disable the next export. */
	assert_int_equal(errors.errors, 0);
}

TEST_WITH(key_that_needs_a_restart_refuses_all, up, down)
{
	with.change_module = change_conf;
	reload_module(2);
	check_nothing_changed();
	check_said("these keys need a restart of Ganesha: Ceph_Conf");
	assert_true(errors.invalid);
}

TEST_WITH(block_that_is_wrong_refuses_all, up, down)
{
	with.change_module = change_values;
	with.module_is_wrong = true;
	reload_module(2);
	check_nothing_changed();
}

TEST_WITH(handle_keys_that_are_wrong_refuse_all, up, down)
{
	with.change_module = change_values;
	with.handle_keys_are_wrong = true;
	reload_module(2);
	check_nothing_changed();
	check_said("all old values and handle keys stay");
	assert_true(errors.invalid);
}

/* Exports may sign with them. */
TEST_WITH(handle_keys_cannot_be_removed, up, down)
{
	set_text(&module.keys.handle_keys, "/etc/ganesha/keys");
	with.change_module = change_values;
	reload_module(2);
	check_nothing_changed();
	check_said("Handle_Keys was removed");
	assert_string_equal(module.keys.handle_keys, "/etc/ganesha/keys");
}

TEST_WITH(ganesha_says_when_the_module_is_read, up, down)
{
	casync_reload_module_first(&module.fsal, FILE_OF(2), &errors);
	assert_int_equal(with.reads, !CASYNC_GANESHA_READS_MODULE_AGAIN);
}

/* --- EXPORT { FSAL { } } */

static void change_tuning(struct casync_export_keys *keys)
{
	keys->tuning.stable_write = CASYNC_STABLE_FULL;
	keys->tuning.max_inflight = 500;
	keys->tuning.max_inflight_bytes = 1U << 30;
	keys->tuning.reconnect_timeout = 77;
}

TEST_WITH(new_values_of_the_export_are_taken_over, up, down)
{
	with.change_export = change_tuning;
	assert_int_equal(reload_export(), ERR_FSAL_NO_ERROR);
	assert_int_equal(with.reads, 1);
	assert_int_equal(exp.keys.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_int_equal(with.max_inflight, 500);
	assert_int_equal(with.max_inflight_bytes, 1U << 30);
	assert_int_equal(with.tunes, 1);
	assert_int_equal(with.layouts, 1);
	assert_int_equal(with.leaves, 1);
	check_said("export 7: Stable_Write = full (was data)");
	assert_null(strstr(with.log, "not in force"));
	assert_int_equal(with.bad, 0);
	assert_false(errors.invalid);
	/* It is in the file: Ganesha must not remove it. */
	assert_int_equal(gsh_export.config_gen, 4711);
}

/* The client is shared, and has the values of its oldest export. */
TEST_WITH(values_of_the_client_are_those_of_its_oldest_export, up, down)
{
	with.change_export = change_tuning;
	with.oldest = 3;
	assert_int_equal(reload_export(), ERR_FSAL_NO_ERROR);
	check_said("Reconnect_Timeout = 77 (was 0), not in force: "
		   "its CephFS client has the value of export 3");
	check_said("Stable_Write = full (was data)\n");
}

static void change_identity(struct casync_export_keys *keys)
{
	change_tuning(keys);
	set_text(&keys->user_id, "other");
}

static void check_export_refused(void)
{
	assert_int_equal(exp.keys.tuning.stable_write, CASYNC_STABLE_DATA);
	assert_int_equal(with.max_inflight, 0);
	assert_int_equal(with.tunes, 0);
	assert_int_equal(with.layouts, 0);
	assert_int_equal(with.bad, 1);
	/* Or Ganesha would apply the rest of EXPORT { } and report success. */
	assert_true(errors.invalid);
	assert_int_equal(errors.errors, 1);
	assert_int_equal(gsh_export.config_gen, 4711);
}

TEST_WITH(key_that_needs_a_mount_refuses_all, up, down)
{
	with.change_export = change_identity;
	assert_int_equal(reload_export(), ERR_FSAL_INVAL);
	check_export_refused();
	check_said("these keys need a new mount: User_Id");
}

TEST_WITH(export_that_is_wrong_refuses_all, up, down)
{
	with.change_export = change_tuning;
	with.export_is_wrong = true;
	assert_int_equal(reload_export(), ERR_FSAL_INVAL);
	check_export_refused();
}

TEST_WITH(export_of_another_fsal_is_not_read, up, down)
{
	with.change_export = change_tuning;
	with.update_status = fsalstat(ERR_FSAL_INVAL, 0);
	assert_int_equal(reload_export(), ERR_FSAL_INVAL);
	assert_int_equal(with.reads, 0);
	check_export_refused();
}

TEST_WITH(pool_that_is_not_there_refuses_all, up, down)
{
	with.change_export = change_tuning;
	with.layout_result = -ENOENT;
	assert_int_equal(reload_export(), ERR_FSAL_NOENT);
	check_export_refused();
	assert_int_equal(with.leaves, 1);
}

/* Pools cannot be asked for: a new layout has to wait, the rest has not. */
TEST_WITH(lost_client_refuses_a_new_layout_alone, up, down)
{
	with.change_export = change_tuning;
	with.client_is_lost = true;
	assert_int_equal(reload_export(), ERR_FSAL_DELAY);
	check_export_refused();
	check_said("its CephFS session is lost");
	with.layout_is_same = true;
	assert_int_equal(reload_export(), ERR_FSAL_NO_ERROR);
	assert_int_equal(exp.keys.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_int_equal(with.leaves, 0);
}
