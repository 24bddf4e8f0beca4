/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file text.h
 * @brief Copies, compares and shows texts that may be NULL; writes reasons.
 */
#ifndef CASYNC_TEXT_H
#define CASYNC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
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

/** Write why something is refused.  @return false, for a check to return. */
static inline bool casync_text_refuse(char *why, size_t size,
				      const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline bool casync_text_refuse(char *why, size_t size,
				      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, size, format, args);
	va_end(args);
	return false;
}

#endif /* CASYNC_TEXT_H */
