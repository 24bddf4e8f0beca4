/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * How fast names are made, looked at and removed:
 *
 *	nfsmeta WHERE NAME CLIENTS FILES
 *
 * WHERE is an NFS URL, or a folder of a mounted file system.  CLIENTS
 * processes, each with a connection (URL) and a directory of its own, do one
 * thing after the other with their share of FILES; all of them begin each
 * phase together, and it ends with the last one.  JSON on stdout.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nfsmeta.h"

#define MAX_CLIENTS 64
/* The longest run of all; nobody waits for ever. */
#define LIMIT_S 600

struct client {
	const struct way *way;
	char directory[128];
	unsigned int files;
};

static void fail(const char *what, const char *path, int rc)
{
	fprintf(stderr, "nfsmeta: %s %s: %s\n", what, path, strerror(-rc));
	/* The others wait at the barrier. */
	kill(getppid(), SIGTERM);
	_exit(1);
}

static void path_of(const struct client *client, char kind, unsigned int number,
		    char *path, size_t size)
{
	(void)snprintf(path, size, "%s/%c%06u", client->directory, kind,
		       number);
}

static void each(const struct client *client, const char *what, char kind,
		 int (*act)(const char *path))
{
	unsigned int i;
	char path[160];
	int rc;

	for (i = 0; i < client->files; i++) {
		path_of(client, kind, i, path, sizeof(path));
		rc = act(path);
		if (rc < 0)
			fail(what, path, rc);
	}
}

static void create(const struct client *client)
{
	each(client, "create", 'f', client->way->create);
}

static void stat_all(const struct client *client)
{
	each(client, "stat", 'f', client->way->stat);
}

static void list(const struct client *client)
{
	int count = client->way->list(client->directory);

	if (count != (int)client->files)
		fail("list", client->directory, count < 0 ? count : -ENOENT);
}

static void rename_all(const struct client *client)
{
	char from[160], to[160];
	unsigned int i;
	int rc;

	for (i = 0; i < client->files; i++) {
		path_of(client, 'f', i, from, sizeof(from));
		path_of(client, 'g', i, to, sizeof(to));
		rc = client->way->rename(from, to);
		if (rc < 0)
			fail("rename", from, rc);
	}
}

static void unlink_all(const struct client *client)
{
	each(client, "unlink", 'g', client->way->unlink);
}

static const struct {
	const char *name;
	void (*run)(const struct client *client);
} phases[] = {
	{"create", create},	{"stat", stat_all},	{"readdir", list},
	{"rename", rename_all}, {"unlink", unlink_all},
};

#define PHASES (sizeof(phases) / sizeof(phases[0]))

static pthread_barrier_t *make_barrier(unsigned int parties)
{
	pthread_barrierattr_t attr;
	pthread_barrier_t *barrier = mmap(NULL, sizeof(*barrier),
					  PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (barrier == MAP_FAILED)
		exit(1);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, parties);
	return barrier;
}

static void run_client(const struct client *client, const char *where,
		       pthread_barrier_t *barrier)
{
	size_t phase;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = client->way->begin(where);
	if (rc < 0)
		fail("mount", where, rc);
	rc = client->way->make_directory(client->directory);
	if (rc < 0)
		fail("mkdir", client->directory, rc);
	pthread_barrier_wait(barrier);
	for (phase = 0; phase < PHASES; phase++) {
		phases[phase].run(client);
		pthread_barrier_wait(barrier);
	}
	rc = client->way->remove_directory(client->directory);
	if (rc < 0)
		fail("rmdir", client->directory, rc);
	_exit(0);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report(unsigned int clients, unsigned int files,
		   pthread_barrier_t *barrier)
{
	double before, seconds;
	size_t phase;

	pthread_barrier_wait(barrier);
	before = now_s();
	printf("{\"clients\": %u, \"files\": %u, \"per_s\": {", clients, files);
	for (phase = 0; phase < PHASES; phase++) {
		pthread_barrier_wait(barrier);
		seconds = now_s() - before;
		printf("%s\"%s\": %.1f", phase == 0 ? "" : ", ",
		       phases[phase].name, files / seconds);
		before = now_s();
	}
	printf("}}\n");
}

static unsigned int number(const char *text, unsigned long most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end != '\0' || value == 0 || value > most) {
		fprintf(stderr, "nfsmeta: '%s' is not from 1 to %lu\n", text,
			most);
		exit(2);
	}
	return (unsigned int)value;
}

int main(int argc, char **argv)
{
	unsigned int clients, files, i;
	pthread_barrier_t *barrier;
	int status, failed = 0;

	if (argc != 5) {
		fprintf(stderr, "usage: nfsmeta WHERE NAME CLIENTS FILES\n");
		return 2;
	}
	clients = number(argv[3], MAX_CLIENTS);
	files = number(argv[4], 1000000) / clients * clients;
	alarm(LIMIT_S);
	barrier = make_barrier(clients + 1);
	for (i = 0; i < clients; i++) {
		struct client client = {
			.way = strstr(argv[1], "://") != NULL ? &by_libnfs
							      : &by_kernel,
			.files = files / clients,
		};
		bool absolute = client.way == &by_libnfs;

		(void)snprintf(client.directory, sizeof(client.directory),
			       "%s%.64s-%u", absolute ? "/" : "", argv[2], i);
		if (fork() == 0)
			run_client(&client, argv[1], barrier);
	}
	report(clients, files, barrier);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
