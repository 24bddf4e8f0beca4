/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

const char *argp_program_version = "nfsload " CASYNC_VERSION;

/* A request is one RPC record; libnfs and Ganesha take this much. */
#define MOST_BLOCK_BYTES (1U << 20)
#define MOST_SLOTS 65536U
#define MOST_SECONDS 86400.0

enum {
	KEY_MOUNT_PORT = 256,
	KEY_NAME,
	KEY_STABLE,
	KEY_FILES,
	KEY_FILE_SIZE,
	KEY_WARMUP,
	KEY_DRAIN,
	KEY_ALLOW_ERRORS,
	KEY_SEED,
};

/* clang-format off */
static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Server:", 1 },
	{ "server", 's', "HOST", 0, "default 127.0.0.1", 0 },
	{ "port", 'p', "PORT", 0, "of NFS, default 2049", 0 },
	{ "mount-port", KEY_MOUNT_PORT, "PORT", 0,
	  "of MOUNT, default PORT + 1 (what the lab uses)", 0 },
	{ "export", 'e', "PATH", 0, "default /ceph", 0 },
	{ "nfs", 'v', "3|4", 0, "NFSv3 (default) or NFSv4.0", 0 },
	{ NULL, 0, NULL, 0, "Load:", 2 },
	{ "connections", 'c', "N", 0, "default 4", 0 },
	{ "depth", 'd', "N", 0, "in flight per connection, default 32", 0 },
	{ "mix", 'm', "read=P,write=P,getattr=P,create=P", 0,
	  "percent of each, 100 in all; default write=100.  A create, of NFSv3 "
	  "only, makes an empty file NAME.c.*, which is removed at the end",
	  0 },
	{ "block-size", 'b', "SIZE", 0, "of READ and WRITE, default 4k", 0 },
	{ "stable", KEY_STABLE, "HOW", 0,
	  "unstable, data_sync or file_sync (default)", 0 },
	{ "files", KEY_FILES, "N", 0, "default 1", 0 },
	{ "file-size", KEY_FILE_SIZE, "SIZE", 0,
	  "of each, default 64M; files that are smaller are filled first", 0 },
	{ "name", KEY_NAME, "NAME", 0, "files are NAME.0 …, default nfsload",
	  0 },
	{ "pattern", 'o', "HOW", 0,
	  "offsets: random (default), sequential, or append: writes go behind "
	  "the file's end, reads sequentially before it", 0 },
	{ "seed", KEY_SEED, "N", 0, "of offsets and mix, default 1", 0 },
	{ NULL, 0, NULL, 0, "Time:", 3 },
	{ "seconds", 't', "S", 0, "of measuring, default 10", 0 },
	{ "warmup", KEY_WARMUP, "S", 0, "of load before that, default 1", 0 },
	{ "count", 'n', "N", 0, "end after N requests, all measured; one that "
	  "--seconds leaves no time for has failed", 0 },
	{ "drain", KEY_DRAIN, "S", 0,
	  "how long the last answers may take, default 30; what is missing "
	  "then is lost", 0 },
	{ NULL, 0, NULL, 0, "Probe:", 4 },
	{ "probe", 'g', "MS", 0, "one more connection sends a GETATTR every "
	  "MS milliseconds, one at a time, of the first file under load", 0 },
	{ NULL, 0, NULL, 0, "Result:", 5 },
	{ "allow-errors", KEY_ALLOW_ERRORS, NULL, 0,
	  "exit 0 though requests failed or were lost", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};
/* clang-format on */

/* argp_error() ends the program, but does not tell the compiler. */
static _Noreturn void wrong(const struct argp_state *state, const char *format,
			    ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	argp_error(state, "%s", text);
	exit(argp_err_exit_status);
}

/* A whole number in [min, max] with an optional k, M or G. */
static uint64_t number(struct argp_state *state, const char *what,
		       const char *text, uint64_t min, uint64_t max)
{
	static const char suffixes[] = "kMG";
	const char *suffix;
	unsigned int shift = 0;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	suffix = *end == '\0' ? NULL : strchr(suffixes, *end);
	if (suffix != NULL) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
	}
	if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' ||
	    value > (UINT64_MAX >> shift) || value << shift < min ||
	    value << shift > max)
		wrong(state, "%s: '%s' is not a number from %llu to %llu", what,
		      text, (unsigned long long)min, (unsigned long long)max);
	return value << shift;
}

static double decimal(struct argp_state *state, const char *what,
		      const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(value) || value < 0 ||
	    value > max)
		wrong(state, "%s: '%s' is not a number from 0 to %g", what,
		      text, max);
	return value;
}

/* The index of `text` among the words, which end with a NULL. */
static int word(struct argp_state *state, const char *what, const char *text,
		const char *const *words)
{
	int i;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0)
			return i;
	}
	wrong(state, "%s: '%s' is none of its words, see --help", what, text);
	return 0;
}

static void parse_mix(struct argp_state *state, char *text,
		      struct options *options)
{
	char *const kinds[] = {"read", "write", "getattr", "create", NULL};
	unsigned int sum = 0;
	char *value;
	int kind;

	memset(options->percent, 0, sizeof(options->percent));
	while (*text != '\0') {
		kind = getsubopt(&text, kinds, &value);
		if (kind < 0 || value == NULL)
			wrong(state, "mix: read=, write=, getattr= or "
				     "create=");
		options->percent[kind] =
			(unsigned int)number(state, "mix", value, 0, 100);
	}
	for (kind = 0; kind < KINDS; kind++)
		sum += options->percent[kind];
	if (sum != 100)
		wrong(state, "mix: %u percent in all", sum);
}

static void check(struct argp_state *state, struct options *options)
{
	if ((uint64_t)options->connections * options->depth > MOST_SLOTS)
		wrong(state, "more than %u in flight", MOST_SLOTS);
	if (options->file_bytes < options->block_bytes &&
	    options->pattern != PATTERN_APPEND)
		wrong(state, "the files are smaller than a block");
	if (options->file_bytes < options->block_bytes &&
	    options->percent[KIND_READ] != 0)
		wrong(state, "there is nothing to read in such files");
	if (options->percent[KIND_CREATE] == 100)
		options->files = 0; /* nobody needs one */
	if (options->version == 4 && options->percent[KIND_CREATE] != 0)
		wrong(state, "creates are of NFSv3 only");
	if (options->files == 0 && options->probe_ms != 0)
		wrong(state, "creates only: there is no file to probe");
	if (options->seconds == 0)
		wrong(state, "no time to measure");
	if (options->mount_port == 0)
		options->mount_port = options->port + 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const stables[] = {"unstable", "data_sync",
					      "file_sync", NULL};
	static const char *const patterns[] = {"random", "sequential", "append",
					       NULL};
	struct options *options = state->input;

	switch (key) {
	case 's':
		options->server = arg;
		break;
	case 'p':
		options->port = (int)number(state, "port", arg, 1, 65535);
		break;
	case KEY_MOUNT_PORT:
		options->mount_port =
			(int)number(state, "mount-port", arg, 1, 65535);
		break;
	case 'e':
		options->export = arg;
		break;
	case 'v':
		options->version = (int)number(state, "nfs", arg, 3, 4);
		break;
	case KEY_NAME:
		options->name = arg;
		break;
	case 'c':
		options->connections =
			(unsigned int)number(state, "connections", arg, 1, 512);
		break;
	case 'd':
		options->depth = (unsigned int)number(state, "depth", arg, 1,
						      MOST_SLOTS);
		break;
	case 'm':
		parse_mix(state, arg, options);
		break;
	case 'b':
		options->block_bytes = (uint32_t)number(
			state, "block-size", arg, 1, MOST_BLOCK_BYTES);
		break;
	case KEY_STABLE:
		options->stable =
			(enum stable_level)word(state, "stable", arg, stables);
		break;
	case KEY_FILES:
		options->files =
			(unsigned int)number(state, "files", arg, 1, 65536);
		break;
	case KEY_FILE_SIZE:
		options->file_bytes =
			number(state, "file-size", arg, 0, 1ULL << 40);
		break;
	case 'o':
		options->pattern =
			(enum pattern)word(state, "pattern", arg, patterns);
		break;
	case KEY_SEED:
		options->seed = number(state, "seed", arg, 1, UINT64_MAX);
		break;
	case 't':
		options->seconds = decimal(state, "seconds", arg, MOST_SECONDS);
		break;
	case KEY_WARMUP:
		options->warmup_s = decimal(state, "warmup", arg, MOST_SECONDS);
		break;
	case 'n':
		options->count = number(state, "count", arg, 1, UINT64_MAX);
		break;
	case KEY_DRAIN:
		options->drain_s = decimal(state, "drain", arg, MOST_SECONDS);
		break;
	case 'g':
		options->probe_ms = decimal(state, "probe", arg, 60000);
		break;
	case KEY_ALLOW_ERRORS:
		options->allow_errors = true;
		break;
	case ARGP_KEY_ARG:
		wrong(state, "'%s': there are options only", arg);
		break;
	case ARGP_KEY_END:
		check(state, options);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void options_parse(int argc, char **argv, struct options *options)
{
	static const struct argp argp = {
		.options = table,
		.parser = parse,
		.doc = "NFS load with many requests in flight.\v"
		       "Exit status: 0 when every request was answered "
		       "without an error, 1 when not, 2 when the load could "
		       "not be started.",
	};

	*options = (struct options){
		.server = "127.0.0.1",
		.port = 2049,
		.version = 3,
		.export = "/ceph",
		.name = "nfsload",
		.connections = 4,
		.depth = 32,
		.percent = {[KIND_WRITE] = 100},
		.block_bytes = 4096,
		.stable = STABLE_FILE_SYNC,
		.files = 1,
		.file_bytes = 64ULL << 20,
		.seed = 1,
		.seconds = 10,
		.warmup_s = 1,
		.drain_s = 30,
	};
	argp_err_exit_status = 2;
	(void)argp_parse(&argp, argc, argv, 0, NULL, options);
}
