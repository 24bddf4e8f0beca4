/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "clock.h"
#include "conn.h"
#include "files.h"
#include "load.h"
#include "names.h"
#include "random.h"

static bool wants_more(const struct load *load, int64_t now)
{
	if (load->options->count != 0 && load->sent >= load->options->count)
		return false;
	return now < load->window.to_ns;
}

static enum op_kind choose_kind(struct load *load)
{
	uint64_t dice = random_below(&load->seed, 100);
	unsigned int kind;

	for (kind = 0; kind < KINDS - 1; kind++) {
		if (dice < load->options->percent[kind])
			break;
		dice -= load->options->percent[kind];
	}
	return (enum op_kind)kind;
}

static void issue(struct load *load, struct request *slot, int64_t now)
{
	slot->kind = choose_kind(load);
	if (slot->kind == KIND_CREATE)
		names_choose(load->names, slot);
	else
		files_choose(load->options, load->files, &load->seed, slot);
	slot->began_ns = now;
	load->sent++;
	if (!protocol_of(load->options)->send(slot)) {
		tally_error(&load->tally[slot->kind], "not sent", true);
		return;
	}
	slot->in_flight = true;
	load->in_flight++;
}

static void slot_done(struct request *slot, const char *error, bool lost)
{
	struct load *load = slot->owner;
	int64_t now = now_ns();

	slot->in_flight = false;
	load->in_flight--;
	if (slot->kind == KIND_CREATE)
		names_ended(load->names, slot, lost);
	if (error != NULL)
		tally_error(&load->tally[slot->kind], error, lost);
	else if (now >= load->window.from_ns && now < load->window.to_ns)
		tally_latency(&load->tally[slot->kind], now - slot->began_ns,
			      slot->length_bytes);
	/* A connection that lost a request is being closed. */
	if (!lost && wants_more(load, now))
		issue(load, slot, now);
}

static void start(struct load *load)
{
	unsigned int depth = load->options->depth;
	unsigned int i;

	for (i = 0; i < load->options->connections * depth; i++) {
		struct request *slot = &load->slots[i];

		slot->conn = &load->conns[i / depth];
		slot->data = load->data;
		slot->stable = load->options->stable;
		slot->done = slot_done;
		slot->owner = load;
		if (wants_more(load, now_ns()))
			issue(load, slot, now_ns());
	}
}

static void turn(struct load *load, struct pollfd *pollfds)
{
	unsigned int i;

	for (i = 0; i < load->options->connections; i++)
		pollfds[i] = conn_poll(&load->conns[i]);
	if (poll(pollfds, load->options->connections, 50) <= 0)
		return;
	for (i = 0; i < load->options->connections; i++)
		conn_service(&load->conns[i], pollfds[i].revents);
}

static void count_lost(struct load *load)
{
	unsigned int slots = load->options->connections * load->options->depth;
	uint64_t left = load->options->count;
	unsigned int i;

	for (i = 0; i < slots; i++) {
		if (!load->slots[i].in_flight)
			continue;
		load->slots[i].in_flight = false;
		if (load->slots[i].kind == KIND_CREATE)
			names_ended(load->names, &load->slots[i], true);
		tally_error(&load->tally[load->slots[i].kind], "no answer",
			    true);
	}
	/* Of a wanted number, what there was no time for has failed. */
	for (left -= left < load->sent ? left : load->sent; left > 0; left--)
		tally_error(&load->tally[choose_kind(load)], "no time", true);
}

bool load_run(struct load *load)
{
	const struct options *options = load->options;
	struct pollfd *pollfds = calloc(options->connections, sizeof(*pollfds));
	int64_t limit_ns = load->window.to_ns + seconds_ns(options->drain_s);
	int64_t end_ns;

	load->slots = calloc((size_t)options->connections * options->depth,
			     sizeof(*load->slots));
	load->seed = options->seed;
	if (pollfds == NULL || load->slots == NULL) {
		free(pollfds);
		return false;
	}

	start(load);
	while (load->in_flight != 0 && now_ns() < limit_ns)
		turn(load, pollfds);
	end_ns = now_ns();
	if (end_ns > load->window.to_ns)
		end_ns = load->window.to_ns;
	load->measured_s =
		(double)(end_ns - load->window.from_ns) / (double)NS_PER_S;
	count_lost(load);
	free(pollfds);
	return true;
}
