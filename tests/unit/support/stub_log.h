/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file stub_log.h
 * @brief Ganesha's log.  Its levels are NIV_NULL until the test sets them.
 */
#ifndef STUB_LOG_H
#define STUB_LOG_H

#include "fsal_api.h"

/** Gets each line, on the thread that logs it.  stub_ganesha.c defines it, or
 * the test. */
void stub_log_line(log_levels_t level, const char *text);

#endif /* STUB_LOG_H */
