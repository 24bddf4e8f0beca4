/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "config_parsing.h"
#include "nfs_core.h"
#include "../config_parsing/analyse.h"

#include "config_node.h"

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

bool casync_config_node_alone(const void *cnode)
{
	const struct config_node *node = cnode;

	/* The ring has only this value and the statement's head. */
	return node->node.next == node->node.prev;
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

uint64_t casync_config_node_generation(const void *cnode)
{
	const struct config_node *node = cnode;

	while (node->parent != NULL)
		node = node->parent;
	return casync_config_generation(
		container_of(node, struct config_root, root));
}

uint64_t casync_config_generation(const void *file)
{
	const struct config_root *root = file;

	return root->generation;
}

bool casync_config_has_block(const void *file, const char *name)
{
	return casync_config_node_block(file, name, NULL) != NULL;
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
