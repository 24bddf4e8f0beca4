/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Which blocks are accepted, what their keys become, and what the log says of
 * those that are refused.  The parse tree is Ganesha's, made by the test; the
 * functions that walk it are as Ganesha's (config_parsing.c).
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "unit.h"

#include "fsal.h"

#include "config_parsing.h"
#include "export_mgr.h"
#include "nfs_core.h"
#include "../config_parsing/analyse.h"

#include "config_keys.h"
#include "durability.h"
#include "keys.h"
#include "stub_log.h"

/* As in name.h, which is not included: the test changes both. */
char casync_name[16];
bool casync_compat;

#define EXPORT_ID 77

/* --- Ganesha */

__thread struct req_op_context *op_ctx;
char *nfs_config_path;

static struct req_op_context request;
static struct gsh_export gsh_export = {.export_id = EXPORT_ID};
static char last_line[2048];
static unsigned int warnings, crits;

void stub_log_line(log_levels_t level, const char *text)
{
	(void)snprintf(last_line, sizeof(last_line), "%s", text);
	warnings += level == NIV_WARN;
	crits += level == NIV_CRIT;
}

static void check_said(const char *text)
{
	if (strstr(last_line, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, last_line);
}

void *noop_conf_init(void *link_mem, void *self_struct)
{
	return self_struct;
}

static bool load_statement(struct config_node *statement,
			   struct config_item *item, void *values,
			   struct config_error_type *err_type)
{
	struct glist_head *link;
	struct config_node *term;
	int errors = 0;

	statement->found = true;
	if (item->type != CONFIG_PROC)
		return true;
	glist_for_each(link, &statement->u.nterm.sub_nodes) {
		term = glist_entry(link, struct config_node, node);
		errors += item->u.proc.handler(
			term->u.term.varvalue, term->u.term.type, item,
			(char *)values + item->off, term, err_type);
	}
	err_type->errors += (uint32_t)errors;
	return errors == 0;
}

/* Does the item have the statement?  One that may come once is told. */
static bool load_item(struct config_node *block, struct config_item *item,
		      void *values, struct config_error_type *err_type)
{
	struct config_node *node;
	struct glist_head *link;
	unsigned int seen = 0;
	bool good = true;

	glist_for_each(link, &block->u.nterm.sub_nodes) {
		node = glist_entry(link, struct config_node, node);
		if (node->type != TYPE_STMT ||
		    strcasecmp(node->u.nterm.name, item->name) != 0)
			continue;
		if (seen++ != 0 && (item->flags & CONFIG_UNIQUE)) {
			err_type->unique = true;
			err_type->errors++;
			good = false;
		}
		good = load_statement(node, item, values, err_type) && good;
	}
	return good;
}

static int load_block(struct config_node *block,
		      struct config_block *description, void *values,
		      struct config_error_type *err_type)
{
	struct config_item *of = &description->blk_desc, *item;
	struct config_node *node;
	struct glist_head *link;
	bool good = true;

	for (item = of->u.blk.params; item->name != NULL; item++)
		good = load_item(block, item, values, err_type) && good;
	glist_for_each(link, &block->u.nterm.sub_nodes) {
		node = glist_entry(link, struct config_node, node);
		err_type->bogus |= !node->found;
		node->found = false;
	}
	return good && of->u.blk.commit(block, NULL, values, err_type) == 0
		       ? 0
		       : -1;
}

int load_config_from_node(void *tree_node, struct config_block *conf_blk,
			  void *param, bool unique,
			  struct config_error_type *err_type)
{
	struct config_node *node = tree_node;

	assert_string_equal(node->u.nterm.name, conf_blk->blk_desc.name);
	return load_block(node, conf_blk, param, err_type);
}

int load_config_from_parse(config_file_t config, struct config_block *conf_blk,
			   void *param, bool unique,
			   struct config_error_type *err_type)
{
	struct config_root *root = (struct config_root *)config;
	struct config_node *node;
	struct glist_head *link;
	int found = 0;

	glist_for_each(link, &root->root.u.nterm.sub_nodes) {
		node = glist_entry(link, struct config_node, node);
		if (node->type == TYPE_BLOCK &&
		    strcasecmp(node->u.nterm.name, conf_blk->blk_desc.name) ==
			    0) {
			found++;
			(void)load_block(node, conf_blk, param, err_type);
		}
	}
	return found;
}

/* --- libcephfs: it knows one option */

static int create_result;
static int clients;

int ceph_create(struct ceph_mount_info **cmount, const char *const id)
{
	*cmount = (struct ceph_mount_info *)&clients;
	clients += create_result == 0;
	return create_result;
}

int ceph_release(struct ceph_mount_info *cmount)
{
	clients--;
	return 0;
}

int ceph_conf_set(struct ceph_mount_info *cmount, const char *option,
		  const char *value)
{
	return strcmp(option, "client_cache_size") == 0 ? 0 : -ENOENT;
}

const char *ceph_version(int *major, int *minor, int *patch)
{
	return "20.2.4";
}

/* --- a configuration */

static struct config_root file;
static struct config_node nodes[64];
static unsigned int node_count;
static struct config_error_type errors;

static char file_name[] = "/etc/ganesha/ganesha.conf";

static struct config_node *add_node(struct config_node *parent,
				    enum node_type type)
{
	struct config_node *node = &nodes[node_count++];

	assert_true(node_count <= COUNT(nodes));
	memset(node, 0, sizeof(*node));
	node->type = type;
	node->filename = file_name;
	node->linenumber = (int)node_count;
	node->parent = parent;
	glist_add_tail(&parent->u.nterm.sub_nodes, &node->node);
	return node;
}

static struct config_node *add_block(const char *name)
{
	struct config_node *block = add_node(&file.root, TYPE_BLOCK);

	block->u.nterm.name = (char *)name;
	glist_init(&block->u.nterm.sub_nodes);
	return block;
}

static struct config_node *add_key(struct config_node *block, const char *name)
{
	struct config_node *key = add_node(block, TYPE_STMT);

	key->u.nterm.name = (char *)name;
	glist_init(&key->u.nterm.sub_nodes);
	return key;
}

static struct config_node *add_value(struct config_node *key, const char *value)
{
	struct config_node *term = add_node(key, TYPE_TERM);

	term->u.term.varvalue = (char *)value;
	return term;
}

static struct config_node *set(struct config_node *block, const char *name,
			       const char *value)
{
	return add_value(add_key(block, name), value);
}

static struct casync_module_keys module;
static struct casync_export_keys of;

static int up(void **state)
{
	int i;

	memset(&file, 0, sizeof(file));
	file.root.type = TYPE_ROOT;
	glist_init(&file.root.u.nterm.sub_nodes);
	node_count = 0;
	memset(&errors, 0, sizeof(errors));
	memset(&module, 0, sizeof(module));
	memset(&of, 0, sizeof(of));
	create_result = 0;
	clients = 0;
	warnings = crits = 0;
	last_line[0] = '\0';
	(void)strcpy(casync_name, "CEPH_ASYNC");
	casync_compat = false;
	request.ctx_export = &gsh_export;
	op_ctx = &request;
	for (i = 0; i < COMPONENT_COUNT; i++)
		component_log_level[i] = NIV_EVENT;
	return 0;
}

static int down(void **state)
{
	casync_key_values_free(CASYNC_IN_MODULE, &module);
	casync_key_values_free(CASYNC_IN_EXPORT, &of);
	return clients;
}

static bool read_module(void)
{
	/* As before a second reading. */
	casync_key_values_free(CASYNC_IN_MODULE, &module);
	return casync_config_read_module((config_file_t)&file, &module,
					 &errors);
}

static fsal_errors_t read_export(struct config_node *block)
{
	return casync_config_export(block, &module, &of, &errors).major;
}

/* --- CEPH_ASYNC { } */

TEST_WITH(without_a_block_each_key_has_its_default, up, down)
{
	assert_true(read_module());
	assert_int_equal(module.max_inflight_total, 32768);
	assert_true(module.async);
	assert_null(module.ceph_conf);
	assert_int_equal(errors.errors, 0);
	assert_int_equal(crits, 0);
}

TEST_WITH(keys_of_the_block_are_taken, up, down)
{
	struct config_node *block = add_block("Ceph_Async");

	(void)set(block, "ceph_conf", "/etc/ceph/other.conf");
	(void)set(block, "Umask", "022");
	(void)set(block, "Max_Inflight_Total", "300");
	assert_true(read_module());
	assert_string_equal(module.ceph_conf, "/etc/ceph/other.conf");
	assert_int_equal(module.umask, 022);
	assert_int_equal(module.max_inflight_total, 300);
}

static const struct refused_case {
	const char *name;
	const char *key, *sign, *value, *second;
	const char *said;
} refusals[] = {
	{"too_small", "Max_Inflight_Total", NULL, "255", NULL,
	 ":3: Max_Inflight_Total = 255 is refused: it must be "},
	{"negative", "Max_Inflight_Total", "-", "300", NULL,
	 "Max_Inflight_Total = -300 is refused: it must be "},
	{"two_values", "Max_Inflight_Total", NULL, "300", "400",
	 "Max_Inflight_Total = 400 is refused: it must be one value"},
	{"no_path", "Ceph_Conf", NULL, "etc/ceph.conf", NULL,
	 "Ceph_Conf = (not shown) is refused: "},
	{"what_is_not_offered", "Client_OC", NULL, "true", NULL,
	 "Client_OC = true is refused: libcephfs hides write-back errors"},
	{"unknown_option", "Ceph_Option", NULL, "no_such = 5", NULL,
	 "Ceph_Option = (not shown) is refused: "},
	{"option_without_a_value", "Ceph_Option", NULL, "client_cache_size",
	 NULL, "Ceph_Option = (not shown) is refused: "},
};

TEST_ROWS(check_refused, refusals, up, down)
{
	const struct refused_case *c = *state;
	struct config_node *block = add_block("CEPH_ASYNC");
	struct config_node *key = add_key(block, c->key);
	struct config_node *term = add_value(key, c->value);

	term->u.term.op_code = (char *)c->sign;
	if (c->second != NULL)
		(void)add_value(key, c->second);
	assert_false(read_module());
	assert_true(errors.invalid);
	check_said(c->said);
	check_said(file_name);
	assert_true(crits > 0);
}

TEST_WITH(values_that_contradict_are_refused, up, down)
{
	struct config_node *block = add_block("CEPH_ASYNC");

	(void)set(block, "Stripe_Unit", "1048576");
	(void)set(block, "Object_Size", "1114112");
	assert_false(read_module());
	check_said("this block is refused: ");
	assert_true(errors.invalid);
	assert_int_equal(errors.errors, 1);
}

TEST_WITH(unknown_key_is_refused, up, down)
{
	(void)set(add_block("CEPH_ASYNC"), "Stable_Writes", "full");
	assert_false(read_module());
	check_said("CEPH_ASYNC { } is refused: it has an unknown key");
	assert_true(errors.bogus);
	assert_true(errors.validate);
}

/* Of another block of the file: that is Ganesha's to tell. */
TEST_WITH(unknown_key_before_is_not_ours, up, down)
{
	errors.bogus = true;
	assert_true(read_module());
	assert_true(errors.bogus);
	assert_false(errors.validate);
	assert_int_equal(crits, 0);
}

TEST_WITH(errors_before_are_not_ours, up, down)
{
	errors.errors = 3;
	assert_true(read_module());
	(void)set(add_block("CEPH_ASYNC"), "Max_Inflight_Total", "9");
	assert_false(read_module());
	assert_int_equal(errors.errors, 4);
}

TEST_WITH(key_that_comes_twice_is_ganesha_s_to_tell, up, down)
{
	struct config_node *block = add_block("CEPH_ASYNC");

	(void)set(block, "Umask", "022");
	(void)set(block, "Umask", "027");
	assert_false(read_module());
	assert_true(errors.unique);
}

TEST_WITH(options_of_ceph_may_be_many, up, down)
{
	struct config_node *block = add_block("CEPH_ASYNC");
	struct config_node *key = add_key(block, "Ceph_Option");

	(void)add_value(key, "client_cache_size = 5");
	(void)add_value(key, "client_cache_size = 6");
	(void)set(block, "Ceph_Option", "client_cache_size = 7");
	assert_true(read_module());
	assert_string_equal(module.ceph_options, "client_cache_size=5\n"
						 "client_cache_size=6\n"
						 "client_cache_size=7\n");
}

/* The mount reports why there is no client. */
TEST_WITH(option_that_nobody_can_judge_is_taken, up, down)
{
	create_result = -ENOMEM;
	(void)set(add_block("CEPH_ASYNC"), "Ceph_Option", "no_such = 5");
	assert_true(read_module());
}

/* --- keys of former versions */

static const struct {
	const char *name, *value, *today; /* NULL: not written */
	enum casync_stable_metadata found;
	const char *said;
} old_keys[] = {
	{"Stable_Names", "journal", NULL, CASYNC_METADATA_JOURNAL,
	 "Stable_Names is an old key; write Stable_Metadata = journal"},
	{"Stable_Names", "mds", NULL, CASYNC_METADATA_MDS,
	 "Stable_Names is an old key; write Stable_Metadata = mds"},
	{"stable_attributes", "Journal", NULL, CASYNC_METADATA_JOURNAL,
	 "Stable_Attributes is an old key; write Stable_Metadata = journal"},
	{"Stable_Attributes", "sent", NULL, CASYNC_METADATA_MDS,
	 "Stable_Attributes is an old key; write Stable_Metadata = mds"},
	{"Stable_Names", "journal", "mds", CASYNC_METADATA_MDS,
	 "Stable_Names is an old key"},
	{"Stable_Attributes", "sent", "journal", CASYNC_METADATA_JOURNAL,
	 "Stable_Attributes is an old key"},
};

static void read_old_key(size_t row)
{
	struct config_node *block = add_block("CEPH_ASYNC");

	if (old_keys[row].today != NULL)
		(void)set(block, "Stable_Metadata", old_keys[row].today);
	(void)set(block, old_keys[row].name, old_keys[row].value);
	assert_true(read_module());
	assert_int_equal(module.tuning.stable_metadata, old_keys[row].found);
	assert_int_equal(warnings, 1);
	check_said(old_keys[row].said);
}

TEST(old_key_says_what_to_write_instead)
{
	size_t row;

	for (row = 0; row < sizeof(old_keys) / sizeof(old_keys[0]); row++) {
		assert_int_equal(up(NULL), 0);
		read_old_key(row);
		assert_int_equal(down(NULL), 0);
	}
}

/* Whoever wanted the journal for one of them gets it. */
TEST_WITH(the_stronger_of_two_old_keys_wins, up, down)
{
	struct config_node *fsal = add_block("FSAL");

	(void)set(fsal, "Stable_Names", "journal");
	(void)set(fsal, "Stable_Attributes", "mds");
	assert_true(read_module());
	assert_int_equal(read_export(fsal), ERR_FSAL_NO_ERROR);
	assert_int_equal(of.tuning.stable_metadata, CASYNC_METADATA_JOURNAL);
	assert_int_equal(warnings, 2);
}

TEST_WITH(old_key_with_a_wrong_value_is_refused, up, down)
{
	(void)set(add_block("CEPH_ASYNC"), "Stable_Names", "always");
	assert_false(read_module());
	assert_true(errors.invalid);
	check_said(
		"Stable_Names = always is refused: it must be one of mds, journal");
}

TEST_WITH(zerocopy_has_no_effect_and_says_so, up, down)
{
	(void)set(add_block("CEPH_ASYNC"), "Zerocopy", "true");
	assert_true(read_module());
	assert_int_equal(warnings, 1);
	check_said("has no effect");
}

/* --- EXPORT { FSAL { } } */

TEST_WITH(export_inherits_what_it_does_not_set, up, down)
{
	struct config_node *block = add_block("CEPH_ASYNC");
	struct config_node *fsal = add_block("FSAL");

	(void)set(block, "Stable_Write", "full");
	(void)set(block, "Max_Inflight", "500");
	(void)set(fsal, "Name", "CEPH_ASYNC");
	(void)set(fsal, "Max_Inflight", "600");
	(void)set(fsal, "User_Id", "nfs");
	assert_true(read_module());
	assert_int_equal(read_export(fsal), ERR_FSAL_NO_ERROR);
	assert_int_equal(of.tuning.stable_write, CASYNC_STABLE_FULL);
	assert_int_equal(of.tuning.max_inflight, 600);
	assert_string_equal(of.user_id, "nfs");
	/* Those that follow from others are filled in for the export alone. */
	assert_true(of.tuning.max_read != 0);
}

TEST_WITH(export_with_a_wrong_key_is_refused, up, down)
{
	struct config_node *fsal = add_block("FSAL");

	assert_true(read_module());
	(void)set(fsal, "Max_Inflight", "none");
	assert_int_equal(read_export(fsal), ERR_FSAL_INVAL);
	assert_true(errors.invalid);
}

TEST_WITH(export_with_an_unknown_key_is_refused, up, down)
{
	struct config_node *fsal = add_block("FSAL");

	assert_true(read_module());
	(void)set(fsal, "Max_Inflights", "5");
	assert_int_equal(read_export(fsal), ERR_FSAL_INVAL);
	check_said("export 77: FSAL { } is refused");
}

TEST_WITH(export_whose_values_contradict_is_refused, up, down)
{
	struct config_node *fsal = add_block("FSAL");

	assert_true(read_module());
	(void)set(fsal, "Stripe_Unit", "1048576");
	(void)set(fsal, "Object_Size", "1114112");
	assert_int_equal(read_export(fsal), ERR_FSAL_INVAL);
	check_said("this block is refused: ");
}

TEST_WITH(secret_is_not_logged, up, down)
{
	struct config_node *fsal = add_block("FSAL");

	assert_true(read_module());
	(void)add_value(set(fsal, "Secret_Access_Key", "QUJD")->parent, "REVG");
	assert_int_equal(read_export(fsal), ERR_FSAL_INVAL);
	assert_null(strstr(last_line, "QUJD"));
	check_said("(not shown)");
}

/* --- the stand-in for FSAL_CEPH */

static int up_compat(void **state)
{
	(void)up(state);
	(void)strcpy(casync_name, "CEPH");
	casync_compat = true;
	return 0;
}

TEST_WITH(stand_in_reads_both_blocks, up_compat, down)
{
	(void)set(add_block("CEPH"), "Umask", "022");
	(void)set(add_block("CEPH_ASYNC"), "Max_Inflight_Total", "300");
	assert_true(read_module());
	assert_int_equal(module.umask, 022);
	assert_int_equal(module.max_inflight_total, 300);
}

TEST_WITH(stand_in_ignores_unknown_keys_of_fsal_ceph, up_compat, down)
{
	(void)set(add_block("CEPH"), "Of_Tomorrow", "5");
	assert_true(read_module());
	assert_int_equal(warnings, 1);
	check_said("CEPH { } has keys that this FSAL does not know");
	/* Ours are for us. */
	(void)set(add_block("CEPH_ASYNC"), "Of_Tomorrow", "5");
	assert_false(read_module());
	check_said("CEPH_ASYNC { } is refused");
}

TEST_WITH(stand_in_ignores_unknown_keys_of_exports, up_compat, down)
{
	struct config_node *fsal = add_block("FSAL");

	assert_true(read_module());
	(void)set(fsal, "Of_Tomorrow", "5");
	assert_int_equal(read_export(fsal), ERR_FSAL_NO_ERROR);
	assert_int_equal(warnings, 1);
}

/* FSAL_CEPH has that feature: the file was written for it. */
TEST_WITH(stand_in_warns_of_what_is_not_offered, up_compat, down)
{
	struct config_node *block = add_block("CEPH");

	(void)set(block, "Client_OC", "true");
	(void)set(block, "Async", "false");
	assert_true(read_module());
	assert_int_equal(warnings, 2);
	check_said("Async = false has no effect: ");
	(void)set(block, "Client_OC", "perhaps");
	assert_false(read_module());
}

TEST_WITH(stand_in_takes_any_text_of_fsal_ceph, up_compat, down)
{
	struct config_node *block = add_block("CEPH");

	(void)set(block, "Ceph_Conf", "etc/ceph.conf");
	assert_true(read_module());
	assert_string_equal(module.ceph_conf, "etc/ceph.conf");
	(void)set(block, "Metrics_File", "metrics.prom");
	assert_false(read_module());
}

/* --- the parse tree */

TEST_WITH(blocks_and_values_are_found, up, down)
{
	struct config_node *first = add_block("RADOS_URLS"), *second;
	struct config_node *key = add_key(first, "UserId");
	struct config_node *empty = add_key(first, "Empty");

	(void)add_block("OTHER");
	second = add_block("rados_urls");
	(void)add_value(key, "nfs.c1");
	(void)add_value(key, "nfs.c2");
	assert_ptr_equal(casync_config_node_block(&file, "Rados_Urls", NULL),
			 first);
	assert_ptr_equal(casync_config_node_block(&file, "RADOS_URLS", first),
			 second);
	assert_null(casync_config_node_block(&file, "RADOS_URLS", second));
	assert_null(casync_config_node_block(&file, "NONE", NULL));
	/* A key is no block, and a block no key. */
	assert_null(casync_config_node_block(first, "UserId", NULL));
	assert_null(casync_config_node_value((void *)&file, "OTHER"));
	assert_string_equal(casync_config_node_value(first, "userid"),
			    "nfs.c1");
	assert_null(casync_config_node_value(first, "None"));
	assert_null(casync_config_node_value(first, empty->u.nterm.name));
}

TEST_WITH(place_of_a_value_is_known, up, down)
{
	struct config_node *term = set(add_block("FSAL"), "Umask", "5");

	file.generation = 4711;
	assert_string_equal(casync_config_node_file(term), file_name);
	assert_int_equal(casync_config_node_line(term), 3);
	assert_string_equal(casync_config_node_sign(term), "");
	assert_ptr_equal(casync_config_node_root(term), &file);
	assert_int_equal(casync_config_node_generation(term), 4711);
	term->filename = NULL;
	assert_string_equal(casync_config_node_file(term), "(no file)");
}

TEST_WITH(main_file_may_be_any_of_the_files, up, down)
{
	char main_path[] = "/etc/ganesha/ganesha.conf";
	char other_path[] = "/etc/ganesha/export.conf";
	struct file_list last = {.pathname = main_path};
	struct file_list first = {.next = &last, .pathname = other_path};

	nfs_config_path = main_path;
	assert_false(casync_config_is_main(&file));
	file.files = &first;
	assert_true(casync_config_is_main(&file));
	first.next = NULL;
	assert_false(casync_config_is_main(&file));
}
