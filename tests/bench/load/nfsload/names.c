/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "clock.h"
#include "conn.h"
#include "names.h"

#define REMOVES_IN_FLIGHT 64U

/* Removing takes about as long as creating did. */
#define REMOVE_LIMIT_S 60

/* What is busy is tried again after that long. */
#define AGAIN_MS 100

void names_init(struct names *names, const struct options *options,
		const struct handle *directory)
{
	names->options = options;
	names->directory.handle = *directory;
	/* Files that are left are of another second or another process. */
	(void)snprintf(names->stem, sizeof(names->stem), "%s.c.%lld-%d",
		       options->name, (long long)time(NULL), (int)getpid());
}

static void set_name(const struct names *names, struct request *request,
		     uint64_t number)
{
	request->number = number;
	(void)snprintf(request->name, sizeof(request->name), "%s.%llu",
		       names->stem, (unsigned long long)number);
}

void names_choose(struct names *names, struct request *request)
{
	request->file = &names->directory;
	request->offset = 0;
	request->length_bytes = 0;
	request->made = false;
	set_name(names, request, names->next++);
}

static bool make_room(struct names *names)
{
	size_t room = names->made_room != 0 ? 2 * names->made_room : 1024;
	uint64_t *made;

	if (names->made_count < names->made_room)
		return true;
	made = realloc(names->made, room * sizeof(*made));
	if (made == NULL)
		return false;
	names->made = made;
	names->made_room = room;
	return true;
}

void names_ended(struct names *names, const struct request *request, bool lost)
{
	if (!request->made && !lost)
		return;
	if (!make_room(names)) {
		names->forgotten++;
		return;
	}
	names->made[names->made_count++] = request->number;
	if (!request->made)
		names->unanswered++;
}

double names_limit_s(const struct options *options)
{
	return REMOVE_LIMIT_S + 2 * (options->warmup_s + options->seconds);
}

/* ---- removing them ---- */

struct sweep {
	struct names *names;
	struct conn conn;
	int64_t limit_ns;
	size_t next; /* in names->made */
	size_t left; /* so many are there again, from its beginning */
	unsigned int in_flight;
	bool again; /* the server asks for that */
	uint64_t removed;
	const char *error; /* the last one */
};

static void remove_next(struct sweep *sweep, struct request *slot)
{
	struct names *names = sweep->names;

	if (sweep->next == names->made_count || now_ns() >= sweep->limit_ns)
		return;
	set_name(names, slot, names->made[sweep->next]);
	if (!protocol_of(names->options)->remove(slot)) {
		sweep->error = "not sent";
		return;
	}
	sweep->next++;
	sweep->in_flight++;
}

static void removed(struct request *slot, const char *error, bool lost)
{
	struct sweep *sweep = slot->owner;

	sweep->in_flight--;
	if (error == NULL) {
		sweep->removed++;
	} else if (strcmp(error, "NFS3ERR_NOENT") != 0) {
		/* What has been looked at is no longer needed there. */
		sweep->names->made[sweep->left++] = slot->number;
		sweep->again |= strcmp(error, "NFS3ERR_JUKEBOX") == 0;
		sweep->error = error;
	} /* else: a CREATE without an answer made none */
	if (!lost)
		remove_next(sweep, slot);
}

/* Each of names->made once, as long as there is time. */
static void remove_each(struct sweep *sweep)
{
	struct names *names = sweep->names;
	struct request slots[REMOVES_IN_FLIGHT] = {0};
	unsigned int i;

	sweep->next = 0;
	sweep->left = 0;
	sweep->again = false;
	for (i = 0; i < REMOVES_IN_FLIGHT; i++) {
		slots[i].conn = &sweep->conn;
		slots[i].file = &names->directory;
		slots[i].done = removed;
		slots[i].owner = sweep;
		remove_next(sweep, &slots[i]);
	}
	while (sweep->in_flight != 0 && now_ns() < sweep->limit_ns) {
		struct pollfd pollfd = conn_poll(&sweep->conn);

		(void)poll(&pollfd, 1, 50);
		conn_service(&sweep->conn, pollfd.revents);
	}
	if (sweep->in_flight != 0)
		conn_close(&sweep->conn); /* ends them */
	for (; sweep->next < names->made_count; sweep->next++)
		names->made[sweep->left++] = names->made[sweep->next];
	names->made_count = sweep->left;
}

/* By a connection of its own: those of the load may still get answers. */
static void remove_all(struct sweep *sweep)
{
	const struct options *options = sweep->names->options;

	if (!conn_open(&sweep->conn, options->server, options->port,
		       NFS_PROGRAM, protocol_of(options)->program_version)) {
		sweep->error = "no connection";
		return;
	}
	remove_each(sweep);
	while (sweep->again && !sweep->conn.broken &&
	       now_ns() < sweep->limit_ns) {
		(void)poll(NULL, 0, AGAIN_MS);
		remove_each(sweep);
	}
	conn_close(&sweep->conn);
}

bool names_finish(struct names *names)
{
	struct sweep sweep = {
		.names = names,
		.limit_ns =
			now_ns() + seconds_ns(names_limit_s(names->options)),
	};
	uint64_t all = names->made_count + names->forgotten;
	uint64_t created = all - names->unanswered;
	uint64_t left;

	if (names->made_count != 0)
		remove_all(&sweep);
	left = names->made_count + names->forgotten;
	fprintf(stderr, "nfsload: created %llu files, removed %llu\n",
		(unsigned long long)created, (unsigned long long)sweep.removed);
	if (left != 0)
		fprintf(stderr, "nfsload: %llu files are left as %s.*: %s\n",
			(unsigned long long)left, names->stem,
			sweep.error != NULL ? sweep.error : "no time");
	return left == 0;
}
