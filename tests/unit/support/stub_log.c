/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "stub_log.h"

#define LINE_BYTES 2048

static log_levels_t levels[COMPONENT_COUNT];
log_levels_t *component_log_level = levels;
log_levels_t *conditional_component_log_level = levels;
bool conditional_logging_configured;

bool is_op_context_conditional_flag_set(void)
{
	return false;
}

void DisplayLogComponentLevel(log_components_t component, const char *file,
			      int line, const char *function,
			      log_levels_t level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	(void)component;
	(void)file;
	(void)line;
	(void)function;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	stub_log_line(level, text);
}
