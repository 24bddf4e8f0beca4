/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "conn.h"
#include "files.h"
#include "random.h"

#define FILL_BYTES (1U << 20) /* what main.c has of data at least */
#define FILL_LIMIT_S 300

static void filled(struct request *request, const char *error, bool lost)
{
	struct call *call = request->owner;

	(void)lost;
	call->done = true;
	if (error != NULL)
		(void)snprintf(call->error, sizeof(call->error), "%s", error);
}

static bool fill(const struct options *options, struct conn *conn,
		 struct file *file, char *data)
{
	int64_t deadline = now_ns() + FILL_LIMIT_S * NS_PER_S;
	uint64_t at = file->size_bytes;

	for (; at < options->file_bytes; at += FILL_BYTES) {
		struct call call = {0};
		uint64_t left = options->file_bytes - at;
		struct request request = {
			.conn = conn,
			.kind = KIND_WRITE,
			.file = file,
			.offset = at,
			.length_bytes = left < FILL_BYTES ? (uint32_t)left
							  : FILL_BYTES,
			.data = data,
			.done = filled,
			.owner = &call,
		};

		if (now_ns() > deadline) {
			fprintf(stderr, "nfsload: not filled within %d s\n",
				FILL_LIMIT_S);
			return false;
		}
		if (!protocol_of(options)->send(&request) ||
		    !conn_wait(conn, &call, "WRITE to fill a file"))
			return false;
	}
	if (file->size_bytes < options->file_bytes) {
		file->size_bytes = options->file_bytes;
		return protocol_of(options)->commit(conn, file);
	}
	return true;
}

struct file *files_open(const struct options *options, struct conn *conn,
			const struct handle *root, char *data)
{
	struct file *files = calloc(options->files + 1, sizeof(*files));
	/* What earlier runs appended would be read, or be in the way. */
	bool empty = options->pattern == PATTERN_APPEND;
	char name[256];
	unsigned int i;

	if (files == NULL)
		return NULL;
	for (i = 0; i < options->files; i++) {
		(void)snprintf(name, sizeof(name), "%s.%u", options->name, i);
		if (!protocol_of(options)->open(conn, root, name, empty,
						&files[i]) ||
		    !fill(options, conn, &files[i], data)) {
			fprintf(stderr, "nfsload: the file is %s\n", name);
			free(files);
			return NULL;
		}
		files[i].next_write = empty ? options->file_bytes : 0;
	}
	return files;
}

bool files_commit(const struct options *options, struct conn *conn,
		  const struct file *files)
{
	unsigned int i;

	for (i = 0; i < options->files; i++) {
		if (conn->broken ||
		    !protocol_of(options)->commit(conn, &files[i]))
			return false;
	}
	return true;
}

/* The next block, from the start again behind the last one. */
static uint64_t advance(const struct options *options, uint64_t *next)
{
	uint64_t at = *next;

	if (at + options->block_bytes > options->file_bytes)
		at = 0;
	*next = at + options->block_bytes;
	return at;
}

void files_choose(const struct options *options, struct file *files,
		  uint64_t *seed, struct request *request)
{
	struct file *file = &files[random_below(seed, options->files)];

	request->file = file;
	request->length_bytes = 0;
	if (request->kind == KIND_GETATTR)
		return;

	request->length_bytes = options->block_bytes;
	if (options->pattern == PATTERN_RANDOM) {
		request->offset =
			options->block_bytes *
			random_below(seed, options->file_bytes /
						   options->block_bytes);
	} else if (request->kind == KIND_READ) {
		request->offset = advance(options, &file->next_read);
	} else if (options->pattern == PATTERN_SEQUENTIAL) {
		request->offset = advance(options, &file->next_write);
	} else {
		request->offset = file->next_write;
		file->next_write += options->block_bytes;
	}
}
