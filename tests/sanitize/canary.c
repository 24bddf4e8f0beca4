/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Does wrong on purpose, so that a clean run of the other tests means
 * something: each of these has to be reported.
 */
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static volatile int sink;
static volatile int largest = INT_MAX;

static void leak(void)
{
	char *volatile lost = malloc(100);

	sink = lost != NULL;
	lost = NULL;
}

static void use_after_free(void)
{
	char *volatile gone = malloc(100);

	free(gone);
	sink = gone[50];
}

static void overflow(void)
{
	sink = largest + 1;
}

static int shared;

static void *touch(void *unused)
{
	shared++;
	return unused;
}

static void race(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, touch, NULL) != 0)
		return;
	touch(NULL);
	pthread_join(thread, NULL);
	sink = shared;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} wrongs[] = {
		{"leak", leak},
		{"use_after_free", use_after_free},
		{"overflow", overflow},
		{"race", race},
	};
	size_t i;

	for (i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		if (argc == 2 && strcmp(argv[1], wrongs[i].name) == 0)
			wrongs[i].run();
	}
	return 0;
}
