/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The documents quote sizes and counts of the code.  Each is compared with the
 * code here, in the words around it.  If one differs: correct the document.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#include "fsal.h"

#include "complete.h"
#include "export.h"
#include "metrics.h"
#include "object.h"
#include "object_table.h"
#include "op.h"
#include "pool.h"
#include "publish.h"
#include "read_cache.h"
#include "delegations.h"
#include "upcalls.h"
#include "workers.h"

#include "unit.h"

#define WATCHDOGS 1U
#define US_PER_S 1e6

/* A document's text; the next call overwrites it. */
static const char *read_document(const char *name)
{
	char path[1024];
	static char
		text[1 << 20]; /* of the largest document, many times over */
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", CASYNC_DOCS, name);
	file = fopen(path, "r");
	if (file == NULL)
		fail_msg("%s cannot be read", path);
	memset(text, 0, sizeof(text));
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	assert_true(feof(file));
	(void)fclose(file);
	return text;
}

static void quotes(const char *document, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void quotes(const char *document, const char *format, ...)
{
	const char *text = read_document(document);
	char words[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (strstr(text, words) == NULL)
		fail_msg("docs/%s does not say \"%s\", as the code does",
			 document, words);
}

/* 60872 as "60,872", in one of a few buffers. */
static const char *grouped(size_t number)
{
	static char buffers[4][32];
	static unsigned int next;
	char *text = buffers[next++ % 4];

	if (number < 1000)
		(void)snprintf(text, 32, "%zu", number);
	else
		(void)snprintf(text, 32, "%zu,%03zu", number / 1000,
			       number % 1000);
	return text;
}

/* The documents give the sizes of a build for x86-64. */
static void need_x86_64(void)
{
#ifndef __x86_64__
	skip();
#endif
}

TEST(a_request)
{
	need_x86_64();
	quotes("operations.md", "kept for the next request | %zu |",
	       sizeof(struct casync_op));
	quotes("operations.md", "8192 × %zu bytes", sizeof(struct casync_op));
	quotes("threads.md", "at most %d bytes of ours", CASYNC_OP_MAX_BYTES);
	quotes("threads.md", "%zu at present", sizeof(struct casync_op));
	quotes("threads.md", "%d iovecs for each request (%zu KiB)",
	       CASYNC_POOL_IOVS,
	       CASYNC_POOL_IOVS * sizeof(struct iovec) / 1024);
}

TEST(parts_of_a_read)
{
	need_x86_64();
	assert_int_equal(CASYNC_OP_PARTS, 2);
	quotes("operations.md", "in addition | %zu, and %zu for each object",
	       sizeof(struct casync_part_array), sizeof(struct casync_part));
	quotes("threads.md", "An array has %zu bytes and %zu for each part",
	       sizeof(struct casync_part_array), sizeof(struct casync_part));
}

TEST(a_file_and_a_state)
{
	need_x86_64();
	quotes("operations.md",
	       "besides what Ganesha and libcephfs keep | %s |",
	       grouped(sizeof(struct casync_object) +
		       sizeof(struct casync_cached_file)));
	quotes("operations.md", "Ganesha's part included | %s |",
	       grouped(sizeof(struct casync_state)));
}

TEST(an_export)
{
	need_x86_64();
	quotes("operations.md", "| an export | %s; %s of them are metrics |",
	       grouped(sizeof(struct casync_export) +
		       sizeof(struct casync_published)),
	       grouped(sizeof(struct casync_metrics)));
}

TEST(a_mount)
{
	need_x86_64();
	quotes("operations.md", "counters of truncations | %s, %s and %s |",
	       grouped(CASYNC_UPCALLS_MAX * sizeof(struct casync_upcall)),
	       grouped(CASYNC_OBJECT_TABLE_BUCKETS *
		       sizeof(struct casync_object *)),
	       grouped(CASYNC_UPCALLS_TRUNCATIONS * sizeof(uint64_t)));
	quotes("threads.md", "a ring of %d events for each mount, %zu bytes",
	       CASYNC_UPCALLS_MAX, sizeof(struct casync_upcall));
}

TEST(threads)
{
	assert_int_equal(CASYNC_WORK_LANES, 6);
	quotes("operations.md",
	       "| our threads | %u, and up to %d in each of six lanes",
	       CASYNC_COMPLETERS + WATCHDOGS + CASYNC_DELEGATIONS_THREADS +
		       CASYNC_WORK_LANES,
	       CASYNC_WORKERS_MAX);
	quotes("threads.md", "At most %d workers wait at once",
	       CASYNC_AWAIT_MOST);
}

TEST(buckets)
{
	quotes("metrics.md", "buckets from %" PRIu64 " µs to %.1f s",
	       casync_metrics_bucket_us(0),
	       (double)casync_metrics_bucket_us(CASYNC_BUCKETS - 2) / US_PER_S);
}
