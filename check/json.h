/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file json.h
 * @brief Writes JSON to a stream, value by value.
 *
 * A writer knows only whether a comma is due.  A caller opens and closes
 * objects and arrays in the right order.
 */
#ifndef CASYNC_JSON_H
#define CASYNC_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct casync_json {
	FILE *out;
	bool comma; /**< Something stands before, on this level. */
};

/** Begin a value.  NAME is NULL in an array and at the top. */
void casync_json_name(struct casync_json *json, const char *name);

/** Begin an object ('{') or an array ('['). */
void casync_json_open(struct casync_json *json, const char *name, char bracket);

/** End it: '}' or ']'. */
void casync_json_close(struct casync_json *json, char bracket);

/** A text; NULL gives null.  Bytes are passed on as they are. */
void casync_json_text(struct casync_json *json, const char *name,
		      const char *text);

/** The first LENGTH bytes of a text. */
void casync_json_bytes(struct casync_json *json, const char *name,
		       const char *text, size_t length);

void casync_json_number(struct casync_json *json, const char *name,
			uint64_t number);

void casync_json_truth(struct casync_json *json, const char *name, bool truth);

#endif /* CASYNC_JSON_H */
