/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file files.h
 * @brief The files under load: opened, filled, and where to go next in them.
 */
#ifndef NFSLOAD_FILES_H
#define NFSLOAD_FILES_H

#include <stdbool.h>

#include "options.h"
#include "request.h"

/** Open all and fill those that are too small.  Complains on stderr. */
struct file *files_open(const struct options *options, struct conn *conn,
			const struct handle *root, char *data);

/** COMMIT each. */
bool files_commit(const struct options *options, struct conn *conn,
		  const struct file *files);

/** A file, an offset and a length for a request whose kind is set. */
void files_choose(const struct options *options, struct file *files,
		  uint64_t *seed, struct request *request);

#endif /* NFSLOAD_FILES_H */
