/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file text.h
 * @brief Copies, compares and shows texts that may be NULL.
 */
#ifndef CASYNC_TEXT_H
#define CASYNC_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "abstract_mem.h"

/** A copy, to be freed with gsh_free(); NULL for NULL. */
static inline char *casync_text_copy(const char *text)
{
	return text != NULL ? gsh_strdup(text) : NULL;
}

/** Are the texts equal, or both NULL? */
static inline bool casync_text_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/** The text; @p otherwise for NULL. */
static inline const char *casync_text_or(const char *text,
					 const char *otherwise)
{
	return text != NULL ? text : otherwise;
}

#endif /* CASYNC_TEXT_H */
