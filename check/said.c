/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * One thread reads the configuration, and nothing else runs: no lock.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"

#include "said.h"

struct said_line {
	struct said_line *next;
	log_levels_t level;
	bool parser;
	char text[];
};

static struct said_line *first, **last = &first;

static void said_add(log_levels_t level, bool parser, const char *text)
{
	size_t length = strlen(text);
	struct said_line *line = calloc(1, sizeof(*line) + length + 1);

	if (line == NULL)
		abort();
	line->level = level;
	line->parser = parser;
	memcpy(line->text, text, length + 1);
	*last = line;
	last = &line->next;
}

/* Ganesha's log facility (lf_function_t). */
static int said_log(log_header_t headers, void *priv, log_levels_t level,
		    struct display_buffer *buffer, char *compstr, char *message)
{
	(void)headers;
	(void)priv;
	(void)buffer;
	(void)compstr;
	if (level <= NIV_WARN)
		said_add(level, false, message);
	return 0;
}

static void said_parser(char *message, void *dest,
			struct config_error_type *err_type)
{
	(void)dest;
	(void)err_type;
	said_add(NIV_CRIT, true, message);
}

void casync_said_begin(void)
{
	if (create_log_facility("CHECK", said_log, NIV_FULL_DEBUG, LH_NONE,
				NULL) != 0 ||
	    enable_log_facility("CHECK") != 0)
		abort();
}

void casync_said_open(struct config_error_type *err_type)
{
	if (!init_error_type(err_type))
		abort();
}

void casync_said_take(struct config_error_type *err_type)
{
	(void)report_config_errors(err_type, NULL, said_parser);
}

void casync_said_forget(void)
{
	struct said_line *line;

	while (first != NULL) {
		line = first;
		first = line->next;
		free(line);
	}
	last = &first;
}

void casync_said_write(struct casync_json *json, const char *what)
{
	struct said_line *line;

	casync_json_open(json, what, '[');
	while (first != NULL) {
		line = first;
		first = line->next;
		casync_json_open(json, NULL, '{');
		casync_json_truth(json, "parser", line->parser);
		casync_json_truth(json, "critical", line->level <= NIV_CRIT);
		casync_json_text(json, "text", line->text);
		casync_json_close(json, '}');
		free(line);
	}
	last = &first;
	casync_json_close(json, ']');
}
