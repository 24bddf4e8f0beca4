/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file names.h
 * @brief The files that the load creates: their names, and their end.
 */
#ifndef NFSLOAD_NAMES_H
#define NFSLOAD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"
#include "request.h"

struct names {
	const struct options *options;
	struct file directory;

	/* Its own. */
	char stem[MOST_NAME_BYTES - 32]; /**< What all have in common. */
	uint64_t next;			 /**< Number of the next one. */
	uint64_t *made;			 /**< Numbers of those to be removed. */
	size_t made_count;
	size_t made_room;
	uint64_t unanswered; /**< In `made`, but nobody said so. */
	uint64_t forgotten;  /**< Not in `made`, for want of memory. */
};

void names_init(struct names *names, const struct options *options,
		const struct handle *directory);

/** A name that nobody has, for a request that is to create it. */
void names_choose(struct names *names, struct request *request);

/** Keep in mind what that request made, or may have made. */
void names_ended(struct names *names, const struct request *request, bool lost);

/** Remove what was made.  @return Is none left? */
bool names_finish(struct names *names);

/** How long that may take. */
double names_limit_s(const struct options *options);

#endif /* NFSLOAD_NAMES_H */
