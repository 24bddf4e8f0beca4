/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file said.h
 * @brief Keeps what Ganesha and the plugin say while a configuration is read.
 *
 * The plugin's own code logs what it refuses, as it does in ganesha.nfsd.
 * Ganesha's parser collects its messages in a buffer.  Both end in one list.
 */
#ifndef CASYNC_SAID_H
#define CASYNC_SAID_H

#include "config_parsing.h"
#include "json.h"

/** Send Ganesha's log to the list. */
void casync_said_begin(void);

/** Write the list as an array, and empty it.  WHAT names the step. */
void casync_said_write(struct casync_json *json, const char *what);

/** Begin to collect the parser's messages. */
void casync_said_open(struct config_error_type *err_type);

/** Move the parser's messages to the list. */
void casync_said_take(struct config_error_type *err_type);

/** Forget all lines. */
void casync_said_forget(void);

#endif /* CASYNC_SAID_H */
