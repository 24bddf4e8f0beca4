/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file options.h
 * @brief What the command line asks for.
 */
#ifndef NFSLOAD_OPTIONS_H
#define NFSLOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "request.h"

enum pattern { PATTERN_RANDOM, PATTERN_SEQUENTIAL, PATTERN_APPEND };

struct options {
	const char *server;
	int port;
	int mount_port;
	int version; /**< 3 or 4 (4.0). */
	const char *export;
	const char *name; /**< Files are NAME.0, NAME.1, … */

	unsigned int connections;
	unsigned int depth; /**< Requests in flight per connection. */
	unsigned int percent[KINDS];
	uint32_t block_bytes;
	enum stable_level stable;
	unsigned int files; /**< 0: nothing but creates is asked for. */
	uint64_t file_bytes;
	enum pattern pattern;
	uint64_t seed;

	double seconds;	 /**< Of measuring, after the warm-up. */
	double warmup_s; /**< Load that is not counted. */
	double drain_s;	 /**< How long the last answers may take. */
	uint64_t count;	 /**< End after so many requests; 0 = by time. */

	double probe_ms; /**< Interval of the probe; 0 = none. */
	bool allow_errors;
};

/** Parse, or explain and exit. */
void options_parse(int argc, char **argv, struct options *options);

#endif /* NFSLOAD_OPTIONS_H */
