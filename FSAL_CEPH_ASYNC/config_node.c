/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "config_parsing.h"
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

	/* In a ring with the statement's head only. */
	return node->node.next == node->node.prev;
}
