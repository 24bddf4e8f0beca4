/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <pthread.h>

#include "cache_rig.h"

/*
 * Four threads read, write, forget and change the budget of few files, in a
 * cache that is too small.  Each page has the version that its file had when it
 * was fetched.
 *
 * Half of the files are written by us: a write gives the file the next version
 * between begin and end.  The tag says nothing of this, it is always the same.
 * So only the epoch keeps old data out.  The others are written by somebody
 * else: only the tag, which has the version, keeps old data out.
 */
#define THREADS 4
#define FILES 4
#define ROUNDS 20000U
#define BUDGET (4 * MIB)
#define SPAN 256U /* pages of a file */

struct versioned {
	struct casync_cache_file file;
	pthread_mutex_t writer; /* one write at a time */
	uint64_t version;	/* atomic; what a READ fetches */
	uint64_t answered;	/* atomic; of writes that have ended */
	bool by_others;
};

static struct versioned files[FILES];
static uint64_t hits_seen;

static uint64_t load(const uint64_t *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

/* What we know of a file before we look at its data. */
static struct casync_cache_tag tag_of(const struct versioned *at)
{
	return rig_tag(at->by_others ? load(&at->version) : 1);
}

static void stamp(struct casync_cache_buffer *buf, uint64_t version)
{
	uint64_t at;

	for (at = 0; at < buf->length; at += PAGE)
		*(uint64_t *)((char *)buf->data + at) = version;
}

/* Returns whether it was found.  Data of before the last write that was
 * answered when the look-up began, or of before the tag, are wrong; and so are
 * those of the future. */
static bool look(struct versioned *at, uint64_t offset, uint64_t length)
{
	struct casync_cache_segment segments[SPAN];
	uint64_t oldest = load(&at->answered);
	struct casync_cache_tag tag = tag_of(at);
	unsigned int count, i;
	uint64_t found, byte;
	bool end;

	if (at->by_others)
		oldest = tag.change;
	count = casync_cache_get(&at->file, &tag, offset, length, segments,
				 SPAN, &end);
	for (i = 0; i < count; i++) {
		for (byte = 0; byte < segments[i].bytes; byte += PAGE) {
			found = *(const uint64_t *)((const char *)segments[i]
							    .data +
						    byte);
			if (found < oldest || found > load(&at->version))
				fail_msg("version %llu, and %llu was answered",
					 (unsigned long long)found,
					 (unsigned long long)oldest);
		}
		casync_buffer_release(segments[i].buffer);
	}
	return count > 0;
}

static void fetch(struct versioned *at, uint16_t owner, uint64_t offset,
		  uint32_t length)
{
	uint64_t epoch = casync_cache_epoch(&at->file);
	struct casync_cache_tag tag = tag_of(at);
	struct casync_cache_buffer *buf =
		casync_evict_new_buffer(owner, length);

	if (buf == NULL)
		return;
	stamp(buf, load(&at->version));
	(void)casync_cache_put(&at->file, &tag, epoch, offset, length, buf);
	casync_buffer_release(buf);
}

static void overwrite(struct versioned *at)
{
	uint64_t version;

	if (at->by_others) {
		__atomic_add_fetch(&at->version, 1, __ATOMIC_RELEASE);
		return;
	}
	pthread_mutex_lock(&at->writer);
	casync_cache_begin_write(&at->file);
	version = __atomic_add_fetch(&at->version, 1, __ATOMIC_RELEASE);
	casync_cache_end_write(&at->file);
	__atomic_store_n(&at->answered, version, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&at->writer);
}

static void *work(void *arg)
{
	const uint16_t owner = (uint16_t)(uintptr_t)arg;
	unsigned int seed = 17 + owner;
	struct versioned *at;
	uint64_t hits = 0, offset;
	uint32_t length;
	unsigned int round;
	int what;

	for (round = 0; round < ROUNDS; round++) {
		at = &files[rand_r(&seed) % FILES];
		what = rand_r(&seed) % 1000;
		length = 1U << rand_r(&seed) % 6;
		offset = (uint64_t)rand_r(&seed) % (SPAN - length) * PAGE;
		length *= CASYNC_CACHE_PAGE;
		if (what < 20)
			overwrite(at);
		else if (what < 25)
			casync_cache_forget(&at->file);
		else if (what < 27)
			casync_cache_set_budget(what % 2 ? BUDGET : BUDGET / 4);
		else if (what == 27)
			casync_cache_set_budget(0);
		else if (what < 30)
			casync_cache_set_budget(BUDGET);
		else if (look(at, offset, length))
			hits++;
		else
			fetch(at, owner, offset, length);
	}
	__atomic_fetch_add(&hits_seen, hits, __ATOMIC_RELAXED);
	return NULL;
}

TEST_WITH(no_hit_is_older_than_what_is_known, NULL, rig_end)
{
	pthread_t threads[THREADS];
	struct casync_cache_stats stats;
	uintptr_t i;

	for (i = 0; i < FILES; i++) {
		pthread_mutex_init(&files[i].writer, NULL);
		files[i].by_others = i % 2 == 1;
	}
	casync_cache_set_budget(BUDGET);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		RIG_JOIN(threads[i], NULL);
	for (i = 0; i < FILES; i++)
		casync_cache_forget(&files[i].file);
	stats = rig_stats();
	print_message(
		"%llu hits, %llu puts, %llu evictions, %llu refused after a write\n",
		(unsigned long long)stats.hits,
		(unsigned long long)stats.counts.puts,
		(unsigned long long)stats.counts.evictions,
		(unsigned long long)
			stats.counts.drops[CASYNC_CACHE_DROP_WRITE]);
	/* Each counted once; and there was something to see. */
	assert_int_equal(stats.hits, hits_seen);
	assert_in_range(stats.hits, ROUNDS / 10, THREADS * ROUNDS);
	assert_in_range(stats.counts.evictions, 100, THREADS * ROUNDS);
}
