/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "clock.h"
#include "conn.h"
#include "files.h"
#include "load.h"
#include "names.h"
#include "options.h"
#include "probe.h"
#include "random.h"
#include "report.h"

#define EXIT_NOT_STARTED 2
#define DATA_BYTES (1U << 20) /* the largest WRITE */

/* Whatever happens, the run ends: set-up is bounded call by call, but the
 * sum of its calls is not. */
#define SETUP_LIMIT_S 600

const struct protocol *protocol_of(const struct options *options)
{
	return options->version == 4 ? &nfs4_protocol : &nfs3_protocol;
}

static void bound_time(const struct options *options)
{
	double most_s = SETUP_LIMIT_S + options->warmup_s + options->seconds +
			2 * options->drain_s + names_limit_s(options);

	(void)alarm((unsigned int)most_s);
}

/* The same incompressible block everywhere: nobody looks at it. */
static char *make_data(void)
{
	char *data = malloc(DATA_BYTES);
	uint64_t seed = 88172645463325252ULL;
	unsigned int i;

	for (i = 0; data != NULL && i < DATA_BYTES; i++)
		data[i] = (char)random_below(&seed, 256);
	return data;
}

static bool connect_all(struct load *load)
{
	const struct options *options = load->options;
	unsigned int i;

	load->conns = calloc(options->connections, sizeof(*load->conns));
	if (load->conns == NULL)
		return false;
	for (i = 0; i < options->connections; i++) {
		if (!conn_open(&load->conns[i], options->server, options->port,
			       NFS_PROGRAM,
			       protocol_of(options)->program_version))
			return false;
	}
	return true;
}

/* Everything up to the first request of the load. */
static bool prepare(struct load *load, struct probe *probe)
{
	const struct options *options = load->options;
	const struct protocol *protocol = protocol_of(options);
	struct handle root;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		if (!tally_init(&load->tally[kind]))
			return false;
	}
	load->data = make_data();
	if (load->data == NULL || !connect_all(load) ||
	    !protocol->mount(options, &load->conns[0], &root) ||
	    !protocol->introduce(options, &load->conns[0]))
		return false;
	names_init(load->names, options, &root);
	load->files = files_open(options, &load->conns[0], &root, load->data);
	if (load->files == NULL)
		return false;
	probe->file.handle = load->files[0].handle;
	return options->probe_ms == 0 || probe_open(probe);
}

static bool run(struct load *load, struct probe *probe)
{
	const struct options *options = load->options;
	/* A given number of requests is measured from the first one on. */
	double warmup_s = options->count != 0 ? 0 : options->warmup_s;
	bool good;

	load->window.from_ns = now_ns() + seconds_ns(warmup_s);
	load->window.to_ns =
		load->window.from_ns + seconds_ns(options->seconds);
	probe->window = load->window;
	if (options->probe_ms != 0 && !probe_start(probe))
		return false;
	good = load_run(load);
	if (options->probe_ms != 0)
		probe_finish(probe);
	return good;
}

/* Write-back or files left over would be in the next run's way. */
static bool settle(struct load *load)
{
	const struct options *options = load->options;
	bool good = true;

	if (options->percent[KIND_WRITE] != 0 &&
	    options->stable == STABLE_UNSTABLE)
		good = files_commit(options, load->conns, load->files);
	if (options->percent[KIND_CREATE] != 0)
		good = names_finish(load->names) && good;
	return good;
}

static bool clean(const struct load *load, const struct probe *probe)
{
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		if (!tally_is_clean(&load->tally[kind]))
			return false;
	}
	return tally_is_clean(&probe->tally);
}

int main(int argc, char **argv)
{
	static struct options options;
	static struct probe probe = {.options = &options};
	static struct names names;
	static struct load load = {.options = &options, .names = &names};
	unsigned int i;
	bool good;

	options_parse(argc, argv, &options);
	bound_time(&options);
	if (!prepare(&load, &probe) || !run(&load, &probe)) {
		fprintf(stderr, "nfsload: not started\n");
		return EXIT_NOT_STARTED;
	}
	good = settle(&load) && clean(&load, &probe);
	good = report_write(&load, options.probe_ms != 0 ? &probe : NULL) &&
	       (good || options.allow_errors);

	for (i = 0; i < options.connections; i++)
		conn_close(&load.conns[i]);
	conn_close(&probe.conn);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
