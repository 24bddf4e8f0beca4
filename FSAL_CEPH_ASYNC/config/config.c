/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Reads both blocks by the table of keys.  Values are parsed here, not by
 * Ganesha's typed items: Ganesha's messages name the value and the line, but
 * not the key and the allowed values.
 *
 * Ganesha passes too little to a handler: "5" for -5, and for "5, 6" two calls,
 * of which the last one wins.  The nodes of the parse tree have the rest.
 * Their header is private to Ganesha; it comes with Ganesha's source tree.
 */
#include "config.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include <cephfs/libcephfs.h>

#include "fsal.h"

#include "config_parsing.h"
#include "export_mgr.h"
#include "nfs_core.h"
#include "../config_parsing/analyse.h"

#include "config_keys.h"
#include "durability.h"
#include "errors.h"
#include "keys.h"
#include "name.h"
#include "text.h"

/* More than there are keys, and one for the end. */
#define ITEMS_MAX 64

/* Longest value and longest reason in a message. */
#define SHOWN_MAX 256
#define WHY_MAX 512

/* Guards the values of CEPH_ASYNC { } while there are exports. */
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the parse tree */

const char *casync_config_node_file(const void *cnode)
{
	const struct config_node *node = cnode;

	return node->filename != NULL ? node->filename : "(no file)";
}

int casync_config_node_line(const void *cnode)
{
	const struct config_node *node = cnode;

	return node->linenumber;
}

const char *casync_config_node_sign(const void *cnode)
{
	const struct config_node *node = cnode;

	return node->u.term.op_code != NULL ? node->u.term.op_code : "";
}

/* The root node is the first member of a file (struct config_root). */
static struct config_node *config_node_below(const void *parent,
					     enum node_type type,
					     const char *name,
					     const void *after)
{
	const struct config_node *block = parent;
	struct config_node *node;
	bool passed = after == NULL;
	struct glist_head *link;

	/* NOLINTNEXTLINE(*.NullDereference): Ganesha's lists are circular */
	glist_for_each(link, &block->u.nterm.sub_nodes) {
		node = glist_entry(link, struct config_node, node);
		if (node == after)
			passed = true;
		else if (passed && node->type == type &&
			 strcasecmp(node->u.nterm.name, name) == 0)
			return node;
	}
	return NULL;
}

const void *casync_config_node_block(const void *parent, const char *name,
				     const void *after)
{
	return config_node_below(parent, TYPE_BLOCK, name, after);
}

const char *casync_config_node_value(const void *block, const char *key)
{
	struct config_node *statement =
		config_node_below(block, TYPE_STMT, key, NULL);
	struct config_node *term;

	if (statement == NULL)
		return NULL;
	term = glist_first_entry(&statement->u.nterm.sub_nodes,
				 struct config_node, node);
	return term != NULL ? term->u.term.varvalue : NULL;
}

void *casync_config_node_root(const void *cnode)
{
	struct config_node *node = (struct config_node *)cnode;

	while (node->parent != NULL)
		node = node->parent;
	return container_of(node, struct config_root, root);
}

uint64_t casync_config_node_generation(const void *cnode)
{
	return casync_config_generation(casync_config_node_root(cnode));
}

uint64_t casync_config_generation(const void *file)
{
	const struct config_root *root = file;

	return root->generation;
}

bool casync_config_is_main(const void *file)
{
	const struct config_root *root = file;
	const struct file_list *part;

	/* The file may also be an included one. */
	for (part = root->files; part != NULL; part = part->next) {
		if (strcmp(part->pathname, nfs_config_path) == 0)
			return true;
	}
	return false;
}

/* --- the two blocks */

/* Does Ceph know the option?  A client that is never connected answers. */
static bool config_ceph_has_option(const char *text, char *why, size_t size)
{
	char line[CASYNC_CEPH_OPTION_MAX + 2];
	struct ceph_mount_info *ceph;
	int rc;

	if (!casync_ceph_options_parse(text, line, why, size))
		return false;
	rc = ceph_create(&ceph, NULL);
	if (rc < 0)
		return true; /* the mount will report it */
	rc = casync_ceph_options_set(ceph, line, why, size);
	(void)ceph_release(ceph);
	return rc >= 0;
}

/*
 * Where we stand in for FSAL_CEPH, its own texts are taken as they are: Ganesha
 * 9.14's parser looks neither at their length nor at their first character.
 */
static bool config_takes_any_text(const struct casync_key *key)
{
	static const char *const texts[] = {
		"Ceph_Conf",	     "NodeId",	   "User_Id",
		"Secret_Access_Key", "Filesystem", "Sec_Label_Xattr",
	};
	size_t i;

	for (i = 0; casync_compat && i < sizeof(texts) / sizeof(texts[0]);
	     i++) {
		if (strcmp(key->name, texts[i]) == 0)
			return true;
	}
	return false;
}

static bool config_set(const struct casync_key *key, const char *token,
		       void *member, char *why, size_t size)
{
	struct casync_key its = *key;

	if (config_takes_any_text(key)) {
		its.type = CASYNC_KEY_STRING;
		its.min = 0;
		its.max = SIZE_MAX;
	}
	return casync_key_values_set(&its, token, member, why, size);
}

static bool config_is_right(const struct casync_key *key, const char *token,
			    void *member, const struct config_node *node,
			    char *why, size_t size)
{
	if (casync_config_node_sign(node)[0] != '\0') {
		(void)snprintf(why, size, "it must be ");
		casync_key_values_describe(key, why + strlen(why),
					   size - strlen(why));
		return false;
	}
	if (key->type == CASYNC_KEY_OPTION) {
		if (!config_ceph_has_option(token, why, size))
			return false;
	} else if (node->node.next != node->node.prev) {
		/* The ring has more than this value and the list's head. */
		return casync_text_refuse(why, size, "it must be one value");
	}
	return config_set(key, token, member, why, size);
}

/* A secret may stand in the place of any text; Ganesha's log is for all. */
static const char *config_shown(const struct casync_key *key, const char *token)
{
	return casync_keys_is_text(key) ? "(not shown)" : token;
}

/*
 * If we are the stand-in for FSAL_CEPH, this configuration was written for
 * FSAL_CEPH.  A key that asks for a feature this FSAL lacks is ignored with a
 * warning, and not refused.
 */
static bool config_is_for_fsal_ceph(const struct casync_key *key,
				    const char *token, const void *cnode)
{
	struct casync_key its = *key;
	char why[WHY_MAX];
	uint64_t unused;

	its.only = NULL;
	if (!casync_compat || key->only == NULL ||
	    !config_is_right(&its, token, &unused, cnode, why, sizeof(why)))
		return false;
	LogWarn(COMPONENT_CONFIG, "%s:%d: %s = %s has no effect: %s",
		casync_config_node_file(cnode), casync_config_node_line(cnode),
		key->name, config_shown(key, token), key->only);
	return true;
}

/* Store the value, or tell why not. */
static bool config_take(const struct casync_key *key, const char *token,
			void *member, void *cnode,
			struct config_error_type *err_type)
{
	char why[WHY_MAX];

	if (config_is_right(key, token, member, cnode, why, sizeof(why)) ||
	    config_is_for_fsal_ceph(key, token, cnode))
		return true;

	LogCrit(COMPONENT_CONFIG, "%s:%d: %s = %s%.*s is refused: %s",
		casync_config_node_file(cnode), casync_config_node_line(cnode),
		key->name, casync_config_node_sign(cnode), SHOWN_MAX,
		config_shown(key, token), why);
	err_type->invalid = true;
	return false;
}

static int config_handle(const char *token, enum term_type type_hint,
			 struct config_item *item, void *param_addr,
			 void *cnode, struct config_error_type *err_type)
{
	(void)type_hint;
	return config_take(casync_keys_find(item->name), token, param_addr,
			   cnode, err_type)
		       ? 0
		       : 1;
}

/* Stable_Metadata has replaced them.  An administrator who wrote journal for
 * one of them wanted to lose nothing of it, and gets it for both. */
static const char *const old_keys[] = {"Stable_Names", "Stable_Attributes"};

static int config_handle_old(const char *token, enum term_type type_hint,
			     struct config_item *item, void *param_addr,
			     void *cnode, struct config_error_type *err_type)
{
	struct casync_key its = *casync_keys_find("Stable_Metadata");
	uint32_t value = CASYNC_METADATA_MDS;

	(void)type_hint;
	its.name = item->name;
	if (strcasecmp(token, "sent") != 0 &&
	    !config_take(&its, token, &value, cnode, err_type))
		return 1;
	if (value == CASYNC_METADATA_JOURNAL)
		casync_key_values_store(&its, value, param_addr);
	LogWarn(COMPONENT_CONFIG,
		"%s:%d: %s is an old key; write Stable_Metadata = %s, which is for names and attributes",
		casync_config_node_file(cnode), casync_config_node_line(cnode),
		item->name,
		value == CASYNC_METADATA_JOURNAL ? "journal" : "mds");
	return 0;
}

/* The value has its default already; there is nothing to initialise. */
static void *config_keep(void *link_mem, void *self_struct)
{
	(void)link_mem;
	return self_struct;
}

static struct config_item config_item_of(const char *name, size_t at)
{
	return (struct config_item){
		.name = (char *)name,
		.off = at,
		.type = CONFIG_PROC,
		.flags = CONFIG_UNIQUE,
		.u.proc.init = config_keep,
		.u.proc.handler = config_handle,
	};
}

/* Ganesha reads the items in the order of the array: old keys come first, so
 * that the key of today wins.  CONFIG_EOL is a NULL name, as in the rest. */
static void config_fill_items(enum casync_block block,
			      struct config_item *items)
{
	const struct casync_key *key = casync_keys_find("Stable_Metadata");
	size_t count;

	for (count = 0; count < sizeof(old_keys) / sizeof(old_keys[0]);
	     count++) {
		items[count] = config_item_of(old_keys[count], key->at[block]);
		items[count].u.proc.handler = config_handle_old;
	}
	for (key = casync_keys; key->name != NULL; key++) {
		if (!casync_keys_in_block(key, block) || count == ITEMS_MAX - 1)
			continue;
		items[count] = config_item_of(key->name, key->at[block]);
		if (key->type == CASYNC_KEY_GANESHA)
			items[count].type = CONFIG_NULL;
		if (key->type == CASYNC_KEY_OPTION)
			items[count].flags = 0;
		count++;
	}
}

/*
 * Ganesha reports an unknown key or token as bogus and uses the default.  That
 * is not acceptable here: a typing error in Stable_Write would decide which
 * data a crash loses.
 *
 * It is where we stand in for FSAL_CEPH: its next version, or a tool that
 * writes its configuration, may know more keys than we do.  Ganesha names each
 * in a line of its own.
 */
static bool config_bogus_refused(struct config_error_type *err_type,
				 bool bogus_before, bool ignore_unknown,
				 const char *where)
{
	bool refuse_it = err_type->bogus;

	err_type->bogus |= bogus_before;
	if (!refuse_it)
		return false;
	if (ignore_unknown) {
		LogWarn(COMPONENT_CONFIG,
			"%s has keys that this FSAL does not know; they are ignored, as FSAL CEPH ignores them; Ganesha's lines \"Unknown parameter\" name each with file and line",
			where);
		return false;
	}
	LogCrit(COMPONENT_CONFIG,
		"%s is refused: it has an unknown key or value; see Ganesha's line about it, with file and line number, at the end of the configuration messages",
		where);
	err_type->validate = true;
	return true;
}

/* Refuse values that contradict each other. */
static int config_check(const void *node, const struct casync_tuning *tuning,
			struct config_error_type *err_type)
{
	char why[WHY_MAX];

	if (casync_key_values_agree(tuning, why, sizeof(why)))
		return 0;
	LogCrit(COMPONENT_CONFIG, "%s:%d: this block is refused: %s",
		casync_config_node_file(node), casync_config_node_line(node),
		why);
	err_type->invalid = true;
	err_type->errors++;
	return 1;
}

static int config_commit_module(void *node, void *link_mem, void *self_struct,
				struct config_error_type *err_type)
{
	const struct casync_module_keys *keys = self_struct;
	struct casync_tuning tuning = keys->tuning;

	(void)link_mem;
	if (keys->zerocopy)
		LogWarn(COMPONENT_CONFIG,
			"%s { Zerocopy = true; } has no effect: libcephfs %s offers no zero-copy reads",
			casync_name, ceph_version(NULL, NULL, NULL));
	/* A copy: values that are not set stay so, for the exports to set. */
	casync_key_values_resolve(&tuning);
	return config_check(node, &tuning, err_type);
}

static int config_commit_export(void *node, void *link_mem, void *self_struct,
				struct config_error_type *err_type)
{
	struct casync_export_keys *keys = self_struct;

	(void)link_mem;
	casync_key_values_resolve(&keys->tuning);
	return config_check(node, &keys->tuning, err_type);
}

void casync_config_lock(void)
{
	pthread_mutex_lock(&keys_lock);
}

void casync_config_unlock(void)
{
	pthread_mutex_unlock(&keys_lock);
}

/* Keys that the block does not have stay as they are. */
static bool config_read_block(config_file_t config, const char *name,
			      struct casync_module_keys *keys,
			      struct config_error_type *err_type)
{
	struct config_item items[ITEMS_MAX] = {0};
	struct config_block block = {
		.dbus_interface_name =
			"org.ganesha.nfsd.config.fsal.ceph_async",
		.blk_desc.name = (char *)name,
		.blk_desc.type = CONFIG_BLOCK,
		.blk_desc.flags = CONFIG_UNIQUE,
		.blk_desc.u.blk.init = noop_conf_init,
		.blk_desc.u.blk.params = items,
		.blk_desc.u.blk.commit = config_commit_module,
	};
	uint32_t errors_before = err_type->errors;
	bool bogus_before = err_type->bogus;
	bool ignore_unknown = strcmp(name, CASYNC_OWN_NAME) != 0;
	char where[64];

	config_fill_items(CASYNC_IN_MODULE, items);
	(void)snprintf(where, sizeof(where), "%s { }", name);
	err_type->bogus = false;
	(void)load_config_from_parse(config, &block, keys, true, err_type);
	return !config_bogus_refused(err_type, bogus_before, ignore_unknown,
				     where) &&
	       err_type->errors == errors_before;
}

bool casync_config_read_module(config_file_t config,
			       struct casync_module_keys *keys,
			       struct config_error_type *err_type)
{
	casync_key_values_set_defaults(CASYNC_IN_MODULE, keys);
	if (!config_read_block(config, casync_name, keys, err_type))
		return false;
	/* cephadm writes the one block; an administrator adds the other. */
	return !casync_compat ||
	       config_read_block(config, CASYNC_OWN_NAME, keys, err_type);
}

fsal_status_t casync_config_export(void *node,
				   const struct casync_module_keys *inherited,
				   struct casync_export_keys *keys,
				   struct config_error_type *err_type)
{
	struct config_item items[ITEMS_MAX] = {0};
	struct config_block block = {
		.dbus_interface_name =
			"org.ganesha.nfsd.config.fsal.ceph_async-export%d",
		.blk_desc.name = "FSAL",
		.blk_desc.type = CONFIG_BLOCK,
		.blk_desc.u.blk.init = noop_conf_init,
		.blk_desc.u.blk.params = items,
		.blk_desc.u.blk.commit = config_commit_export,
	};
	bool bogus_before = err_type->bogus;
	char where[64];

	config_fill_items(CASYNC_IN_EXPORT, items);
	casync_key_values_set_defaults(CASYNC_IN_EXPORT, keys);
	casync_config_lock();
	casync_key_values_inherit(keys, inherited);
	casync_config_unlock();

	(void)snprintf(where, sizeof(where), "export %" PRIu16 ": FSAL { }",
		       op_ctx->ctx_export->export_id);
	err_type->bogus = false;
	if (load_config_from_node(node, &block, keys, true, err_type) != 0 ||
	    config_bogus_refused(err_type, bogus_before, casync_compat, where))
		return fsalstat(ERR_FSAL_INVAL, 0);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}
