/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "json.h"

void casync_json_bytes(struct casync_json *json, const char *name,
		       const char *text, size_t length)
{
	size_t i;

	casync_json_name(json, name);
	(void)fputc('"', json->out);
	for (i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			(void)fprintf(json->out, "\\%c", byte);
		else if (byte < ' ' || byte == 0x7f)
			(void)fprintf(json->out, "\\u%04x", byte);
		else
			(void)fputc(byte, json->out);
	}
	(void)fputc('"', json->out);
	json->comma = true;
}

void casync_json_text(struct casync_json *json, const char *name,
		      const char *text)
{
	if (text != NULL) {
		casync_json_bytes(json, name, text, strlen(text));
		return;
	}
	casync_json_name(json, name);
	(void)fputs("null", json->out);
	json->comma = true;
}

/* A name is one of ours or a key of the table: nothing to escape. */
void casync_json_name(struct casync_json *json, const char *name)
{
	if (json->comma)
		(void)fputc(',', json->out);
	if (name != NULL)
		(void)fprintf(json->out, "\"%s\":", name);
}

void casync_json_open(struct casync_json *json, const char *name, char bracket)
{
	casync_json_name(json, name);
	(void)fputc(bracket, json->out);
	json->comma = false;
}

void casync_json_close(struct casync_json *json, char bracket)
{
	(void)fputc(bracket, json->out);
	json->comma = true;
}

void casync_json_number(struct casync_json *json, const char *name,
			uint64_t number)
{
	casync_json_name(json, name);
	(void)fprintf(json->out, "%" PRIu64, number);
	json->comma = true;
}

void casync_json_truth(struct casync_json *json, const char *name, bool truth)
{
	casync_json_name(json, name);
	(void)fputs(truth ? "true" : "false", json->out);
	json->comma = true;
}
