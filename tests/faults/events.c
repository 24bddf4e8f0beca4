/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"

#define DEFAULT_DIR "/run/casync-faults"

static int events_fd = -1;

const char *fault_dir(void)
{
	const char *dir = getenv("CASYNC_FAULTS_DIR");

	return dir != NULL ? dir : DEFAULT_DIR;
}

void fault_events_open(void)
{
	char path[4096];

	(void)mkdir(fault_dir(), 0755);
	(void)snprintf(path, sizeof(path), "%s/events", fault_dir());
	events_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (events_fd < 0)
		(void)fprintf(stderr, "casync-faults: %s: %s\n", path,
			      strerror(errno));
	(void)dprintf(events_fd, "{\"event\": \"start\", \"pid\": %d}\n",
		      (int)getpid());
}

void fault_event_rules(unsigned int count)
{
	(void)dprintf(events_fd, "{\"event\": \"rules\", \"count\": %u}\n",
		      count);
}

void fault_event_bad_rules(const char *why)
{
	char plain[256];
	char *c;

	(void)snprintf(plain, sizeof(plain), "%s", why);
	for (c = plain; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
	}
	(void)fprintf(stderr, "casync-faults: rules refused: %s\n", plain);
	(void)dprintf(events_fd, "{\"event\": \"refused\", \"why\": \"%s\"}\n",
		      plain);
}

void fault_event_hit(const struct fault_call_id *call,
		     const struct fault_hit *hit)
{
	(void)dprintf(events_fd,
		      "{\"event\": \"hit\", \"rule\": %u, \"kind\": \"%s\", "
		      "\"action\": \"%s\", \"ino\": %" PRIu64
		      ", \"offset\": %" PRIu64 ", \"length\": %" PRIu64
		      ", \"errno\": %d, \"ms\": %u}\n",
		      hit->rule, fault_kind_name(call->kind),
		      fault_action_name(hit->action), call->ino, call->offset,
		      call->length_bytes, hit->error, hit->wait_ms);
}

void fault_event_returned(const struct fault_call_id *call, int64_t rc)
{
	(void)dprintf(events_fd,
		      "{\"event\": \"returned\", \"kind\": \"%s\", \"ino\": "
		      "%" PRIu64 ", \"offset\": %" PRIu64
		      ", \"length\": %" PRIu64 ", \"rc\": %" PRId64 "}\n",
		      fault_kind_name(call->kind), call->ino, call->offset,
		      call->length_bytes, rc);
}

void fault_event_count(const char *event, unsigned int count)
{
	(void)dprintf(events_fd, "{\"event\": \"%s\", \"count\": %u}\n", event,
		      count);
}
