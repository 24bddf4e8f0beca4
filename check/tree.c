/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>

#include "config_parsing.h"
#include "../config_parsing/analyse.h"

#include "config_keys.h"
#include "tree.h"

static void tree_place(struct casync_json *json, const struct config_node *node)
{
	casync_json_text(json, "name", node->u.nterm.name);
	casync_json_text(json, "file", casync_config_node_file(node));
	casync_json_number(json, "line",
			   (uint64_t)casync_config_node_line(node));
}

static bool tree_is_secret(const struct config_node *statement)
{
	const struct casync_key *key =
		casync_keys_find(statement->u.nterm.name);

	return key != NULL && key->secret;
}

static void tree_value(struct casync_json *json, const struct config_node *term)
{
	char text[4096];

	(void)snprintf(text, sizeof(text), "%s%s",
		       casync_config_node_sign(term), term->u.term.varvalue);
	casync_json_text(json, NULL, text);
}

static void tree_statement(struct casync_json *json,
			   struct config_node *statement)
{
	struct glist_head *link;

	casync_json_open(json, NULL, '{');
	tree_place(json, statement);
	casync_json_truth(json, "secret", tree_is_secret(statement));
	casync_json_open(json, "values", '[');
	glist_for_each(link, &statement->u.nterm.sub_nodes)
		tree_value(json, glist_entry(link, struct config_node, node));
	casync_json_close(json, ']');
	casync_json_close(json, '}');
}

static void tree_block(struct casync_json *json, struct config_node *block);

/* Statements or blocks of a block; Ganesha's parser limits their depth. */
static void tree_below(struct casync_json *json, const char *name,
		       struct config_node *block, enum node_type type)
{
	struct glist_head *link;

	casync_json_open(json, name, '[');
	glist_for_each(link, &block->u.nterm.sub_nodes) {
		struct config_node *node =
			glist_entry(link, struct config_node, node);

		if (node->type != type)
			continue;
		if (type == TYPE_STMT)
			tree_statement(json, node);
		else
			tree_block(json, node);
	}
	casync_json_close(json, ']');
}

static void tree_block(struct casync_json *json, struct config_node *block)
{
	casync_json_open(json, NULL, '{');
	tree_place(json, block);
	tree_below(json, "keys", block, TYPE_STMT);
	tree_below(json, "blocks", block, TYPE_BLOCK);
	casync_json_close(json, '}');
}

void casync_tree_write(struct casync_json *json, const char *name,
		       const void *file)
{
	/* The root node is the first member. */
	tree_below(json, name, (struct config_node *)file, TYPE_BLOCK);
}

static void tree_number(struct casync_json *json, const struct casync_key *key,
			const void *member)
{
	const struct casync_word *word;
	uint64_t value = 0;

	memcpy(&value, member, key->bytes); /* little or big: see below */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value >>= 8 * (sizeof(value) - key->bytes);
#endif
	for (word = key->words; word != NULL && word->word != NULL; word++) {
		if (word->value == value)
			break;
	}
	if (key->type == CASYNC_KEY_BOOLEAN)
		casync_json_truth(json, key->name, value != 0);
	else if (word != NULL && word->word != NULL)
		casync_json_text(json, key->name, word->word);
	else
		casync_json_number(json, key->name, value);
}

static void tree_text(struct casync_json *json, const struct casync_key *key,
		      const void *member)
{
	const char *text;

	memcpy(&text, member, sizeof(text));
	if (text != NULL && key->secret)
		text = "(not shown)";
	casync_json_text(json, key->name, text);
}

void casync_tree_values(struct casync_json *json, const char *name,
			enum casync_block block, const void *values)
{
	const struct casync_key *key;

	casync_json_open(json, name, '{');
	for (key = casync_keys; key->name != NULL; key++) {
		const char *member = values;

		if (!casync_keys_in_block(key, block) ||
		    key->type == CASYNC_KEY_GANESHA)
			continue;
		member += key->at[block];
		if (casync_keys_is_text(key))
			tree_text(json, key, member);
		else
			tree_number(json, key, member);
	}
	casync_json_close(json, '}');
}

void casync_tree_hide(const void *file, const char *name)
{
	static char hidden[] = "(hidden)";
	const void *block = casync_config_node_block(file, name, NULL);

	if (block != NULL)
		((struct config_node *)block)->u.nterm.name = hidden;
}

void casync_tree_empty(const void *block)
{
	/* The process ends soon: nothing is freed. */
	glist_init(&((struct config_node *)block)->u.nterm.sub_nodes);
}
