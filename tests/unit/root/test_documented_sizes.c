/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The documents quote sizes and counts of the code.  Each is compared with the
 * code here, in the words around it: counts as they are, sizes of structs to a
 * tenth.  If one differs: correct the document.
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
#include "lane.h"

#include "unit.h"

#define WATCHDOGS 1U
#define KEEPERS 1
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

/* Behind WORDS, which stand there once, is a size: within a tenth of BYTES.
 * So another member of a struct needs no other document. */
static void gives(const char *words, size_t bytes)
{
	const char *text = read_document("operations.md");
	const char *at = strstr(text, words);
	double said;
	char *unit;

#ifndef __x86_64__
	skip();
#endif
	if (at == NULL || strstr(at + 1, words) != NULL)
		fail_msg("docs/operations.md has to say once \"%s\"", words);
	said = strtod(at + strlen(words), &unit);
	if (strncmp(unit, " KiB", 4) == 0)
		said *= 1024;
	else
		assert_memory_equal(unit, " bytes", 6);
	if (said < 0.9 * (double)bytes || said > 1.1 * (double)bytes)
		fail_msg("\"%s\": %zu bytes", words, bytes);
}

TEST(a_request)
{
	gives("kept for the next request | ", sizeof(struct casync_op));
	quotes("threads.md", "at most %d bytes of ours", CASYNC_OP_MAX_BYTES);
	quotes("threads.md", "%d iovecs for each request (%zu KiB)",
	       CASYNC_POOL_IOVS,
	       CASYNC_POOL_IOVS * sizeof(struct iovec) / 1024);
}

TEST(parts_of_a_read)
{
	assert_int_equal(CASYNC_OP_PARTS, 2);
	gives("rounded up to a power of two | ", sizeof(struct casync_part));
}

TEST(a_file_and_a_state)
{
	gives("besides what Ganesha and libcephfs keep | ",
	      sizeof(struct casync_object) + sizeof(struct casync_cached_file));
	gives("Ganesha's part included | ", sizeof(struct casync_state));
}

TEST(an_export)
{
	gives("| an export | ",
	      sizeof(struct casync_export) + sizeof(struct casync_published));
	gives(" KiB, of which ", sizeof(struct casync_metrics));
}

TEST(a_mount)
{
	gives("counters of truncations | ",
	      CASYNC_UPCALLS_MAX * sizeof(struct casync_upcall));
	gives("| 768 KiB, ",
	      CASYNC_OBJECT_TABLE_BUCKETS * sizeof(struct casync_object *));
	gives("256 KiB and ", CASYNC_UPCALLS_TRUNCATIONS * sizeof(uint64_t));
	quotes("threads.md", "a ring of %d events for each mount",
	       CASYNC_UPCALLS_MAX);
}

TEST(threads)
{
	quotes("operations.md",
	       "| our threads | %u, and %u for each mount; up to %d in each lane",
	       CASYNC_COMPLETERS + WATCHDOGS + CASYNC_LANE_RECALLERS +
		       CASYNC_PROCESS_LANES - 1,
	       CASYNC_MOUNT_LANES + KEEPERS, CASYNC_LANE_THREADS);
	quotes("threads.md", "At most %d workers wait at once",
	       CASYNC_AWAIT_MOST);
}

TEST(buckets)
{
	quotes("metrics.md", "buckets from %" PRIu64 " µs to %.1f s",
	       casync_metrics_bucket_us(0),
	       (double)casync_metrics_bucket_us(CASYNC_BUCKETS - 2) / US_PER_S);
}
