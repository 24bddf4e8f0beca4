/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include <hdr/hdr_histogram.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "clock.h"
#include "probe.h"

bool probe_open(struct probe *probe)
{
	const struct options *options = probe->options;

	return tally_init(&probe->tally) && tally_init(&probe->corrected) &&
	       conn_open(&probe->conn, options->server, options->port,
			 NFS_PROGRAM, protocol_of(options)->program_version);
}

static void probe_done(struct request *request, const char *error, bool lost)
{
	struct probe *probe = request->owner;
	int64_t took_ns = now_ns() - request->began_ns;
	int64_t took_us = took_ns / NS_PER_US;

	request->in_flight = false;
	if (error != NULL) {
		tally_error(&probe->tally, error, lost);
		return;
	}
	/* By its start: the slowest one may well end after the load. */
	if (request->began_ns < probe->window.from_ns ||
	    request->began_ns >= probe->window.to_ns)
		return;
	tally_latency(&probe->tally, took_ns, 0);
	(void)hdr_record_corrected_value(
		probe->corrected.latency_us, took_us > 0 ? took_us : 1,
		(int64_t)(probe->options->probe_ms * 1000));
}

static void ask(struct probe *probe, int64_t limit_ns)
{
	struct request *request = &probe->request;

	request->began_ns = now_ns();
	request->in_flight = protocol_of(probe->options)->send(request);
	if (!request->in_flight) {
		tally_error(&probe->tally, "not sent", true);
		return;
	}
	while (request->in_flight && now_ns() < limit_ns) {
		struct pollfd pollfd = conn_poll(&probe->conn);

		(void)poll(&pollfd, 1, 50);
		conn_service(&probe->conn, pollfd.revents);
	}
	if (request->in_flight)
		tally_error(&probe->tally, "no answer", true);
}

static void sleep_until(int64_t when_ns)
{
	struct timespec when = {.tv_sec = when_ns / NS_PER_S,
				.tv_nsec = when_ns % NS_PER_S};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static void *probing(void *arg)
{
	struct probe *probe = arg;
	int64_t interval_ns =
		(int64_t)(probe->options->probe_ms * (double)NS_PER_MS);
	int64_t limit_ns =
		probe->window.to_ns + seconds_ns(probe->options->drain_s);
	int64_t next_ns = now_ns();

	while (!__atomic_load_n(&probe->stop, __ATOMIC_RELAXED) &&
	       probe->tally.lost == 0 && next_ns < probe->window.to_ns) {
		ask(probe, limit_ns);
		next_ns += interval_ns;
		if (next_ns < now_ns())
			next_ns = now_ns();
		sleep_until(next_ns);
	}
	return NULL;
}

bool probe_start(struct probe *probe)
{
	probe->request = (struct request){
		.conn = &probe->conn,
		.kind = KIND_GETATTR,
		.file = &probe->file,
		.done = probe_done,
		.owner = probe,
	};
	return pthread_create(&probe->thread, NULL, probing, probe) == 0;
}

void probe_finish(struct probe *probe)
{
	__atomic_store_n(&probe->stop, true, __ATOMIC_RELAXED);
	(void)pthread_join(probe->thread, NULL);
	/* Nothing that comes now is counted. */
	probe->window.to_ns = 0;
	probe->request.in_flight = false;
}
