/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "events.h"
#include "pending.h"
#include "shim.h"

#define RULES_FILE "rules"
#define RULES_MAX_BYTES 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_rules in_force; /* under the lock */
static unsigned int edition;	    /* of in_force */

static pthread_t thread;
static bool running;
static bool stopping; /* atomic */
static int watch_fd = -1;

struct fault_hit fault_decide(const struct fault_call_id *call)
{
	struct fault_hit hit;

	pthread_mutex_lock(&lock);
	hit = fault_rules_match(&in_force, call);
	hit.edition = edition;
	pthread_mutex_unlock(&lock);
	if (hit.action != FAULT_NONE)
		fault_event_hit(call, &hit);
	return hit;
}

/* Empty if there is no file; false if it cannot be read whole. */
static bool read_file(char *text, size_t size)
{
	char path[PATH_MAX];
	ssize_t got;
	int fd;

	text[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/" RULES_FILE, fault_dir());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	got = read(fd, text, size - 1);
	(void)close(fd);
	if (got < 0 || (size_t)got == size - 1)
		return false;
	text[got] = '\0';
	return true;
}

static void load_rules(void)
{
	static char text[RULES_MAX_BYTES];
	static struct fault_rules fresh;
	char why[256] = "the file cannot be read, or is too long";
	bool good = read_file(text, sizeof(text)) &&
		    fault_rules_parse(text, &fresh, why, sizeof(why));

	if (!good)
		memset(&fresh, 0, sizeof(fresh));
	pthread_mutex_lock(&lock);
	in_force = fresh;
	edition++;
	pthread_mutex_unlock(&lock);

	if (!good) {
		fault_event_bad_rules(why);
		return;
	}
	fault_pending_release(fresh.release, edition);
	fault_event_rules(fresh.count);
}

/* Did one of the changes concern the rules file?  Takes all of them. */
static bool rules_changed(void)
{
	_Alignas(struct inotify_event) char buffer[4096];
	bool changed = false;
	ssize_t got, at;

	while ((got = read(watch_fd, buffer, sizeof(buffer))) > 0) {
		for (at = 0; at < got;) {
			struct inotify_event *event = (void *)(buffer + at);

			if ((event->mask & IN_Q_OVERFLOW) != 0 ||
			    (event->len != 0 &&
			     strcmp(event->name, RULES_FILE) == 0))
				changed = true;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return changed;
}

static void *shim_thread(void *unused)
{
	struct pollfd fds[] = {
		{.fd = fault_pending_fd(), .events = POLLIN},
		{.fd = watch_fd, .events = POLLIN},
	};
	uint64_t count;

	(void)unused;
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		(void)poll(fds, 2, fault_pending_run());
		(void)!read(fds[0].fd, &count, sizeof(count));
		if (rules_changed())
			load_rules();
	}
	return NULL;
}

/* The plugin is being loaded; Ganesha has become a daemon by then. */
__attribute__((constructor)) static void shim_start(void)
{
	fault_events_open();
	watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch_fd < 0 || fault_pending_fd() < 0 ||
	    inotify_add_watch(watch_fd, fault_dir(),
			      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
				      IN_DELETE) < 0) {
		fault_event_bad_rules("the folder cannot be watched");
		return;
	}
	load_rules();
	running = pthread_create(&thread, NULL, shim_thread, NULL) == 0;
	if (running)
		(void)pthread_setname_np(thread, "casync_faults");
	else
		fault_event_bad_rules("no thread");
}

/* Its text must not be unmapped under the thread. */
__attribute__((destructor)) static void shim_stop(void)
{
	uint64_t one = 1;

	if (!running)
		return;
	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	(void)!write(fault_pending_fd(), &one, sizeof(one));
	(void)pthread_join(thread, NULL);
	/* The files stay open: at exit libcephfs may still complete a call. */
}
