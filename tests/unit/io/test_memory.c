/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Requests of all kinds, by the million: the process does not grow.
 *
 * What is kept is measured after the first 100,000 and after the last:
 * resident memory and the pool's own account, within 5 % and what some threads
 * and ops more take.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "complete.h"
#include "durability.h"
#include "ganesha_unit.h"
#include "op.h"
#include "obj_ops.h"
#include "pool_look.h"
#include "rig.h"
#include "rig_lanes.h"

#define AT_ONCE 64U
#define IOVS 200U
#define SMALL 64U
#define FIRST 100000U

/* A sanitizer keeps what is freed, and takes ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAST 300000U
#define RSS_COUNTS false
#else
#define LAST 1000000U
#define RSS_COUNTS true
#endif

static struct request {
	struct fsal_io_arg arg;
	struct iovec iovs[IOVS];
	uint8_t buffer[RIG_OBJECT * RIG_OBJECTS];
} requests[AT_ONCE];

static unsigned int answered; /* atomic */

static int up(void **state)
{
	rig_up(state);
	/* As Ganesha's default. */
	casync_inflight_limit(&rig.exp.inflight, 8192, UINT64_C(1) << 30);
	rig.exp.keys.tuning.gather_bytes = 4096;
	if (rig_lanes_up() != 0)
		return -1;
	return casync_complete_start(casync_finish);
}

static int down(void **state)
{
	casync_complete_stop();
	rig_lanes_down();
	return rig_down(state);
}

static void done(struct fsal_obj_handle *obj, fsal_status_t status,
		 void *obj_data, void *caller_data)
{
	(void)obj;
	(void)status;
	(void)obj_data;
	(void)caller_data;
	__atomic_add_fetch(&answered, 1, __ATOMIC_ACQ_REL);
}

/* In so many pieces. */
static void fill(struct request *request, uint64_t offset, size_t length,
		 unsigned int pieces)
{
	size_t each = length / pieces;
	unsigned int i;

	for (i = 0; i < pieces; i++)
		request->iovs[i] =
			(struct iovec){request->buffer + i * each, each};
	request->iovs[pieces - 1].iov_len = length - (pieces - 1) * each;
	memset(&request->arg, 0, sizeof(request->arg));
	request->arg.iov_count = (int)pieces;
	request->arg.offset = offset;
	set_buffers(&request->arg, request->iovs, length);
}

static void read_at(struct request *request, uint64_t offset, size_t length)
{
	fill(request, offset, length, 1);
	casync_read2(&rig.obj->handle, false, done, &request->arg, NULL);
}

static void write_at(struct request *request, uint64_t offset, size_t length,
		     unsigned int pieces)
{
	fill(request, offset, length, pieces);
	request->arg.fsal_stable = true;
	casync_write2(&rig.obj->handle, false, done, &request->arg, NULL);
}

static void run(void (*start)(struct request *request, unsigned int i),
		int64_t result)
{
	unsigned int i;

	fake.plan = (struct fake_plan){FAKE_LATER, result, false, 0};
	__atomic_store_n(&answered, 0, __ATOMIC_RELEASE);
	for (i = 0; i < AT_ONCE; i++)
		start(&requests[i], i);
	while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) != AT_ONCE) {
		fake_complete_in_order();
		sched_yield();
	}
	fake_forget_calls();
}

static void stream(struct request *request, unsigned int i)
{
	write_at(request, i * SMALL, SMALL, 1 + i % 3);
}

static void scattered(struct request *request, unsigned int i)
{
	write_at(request, i * 7919 % 200 * SMALL, SMALL, 1);
}

static void in_pieces(struct request *request, unsigned int i)
{
	write_at(request, i % 8 * 1024, 1024, 1 + (i * 31) % IOVS);
}

static void short_reads(struct request *request, unsigned int i)
{
	read_at(request, i * SMALL, SMALL);
}

/* Over 1 to 64 objects of 256 bytes. */
static void long_reads(struct request *request, unsigned int i)
{
	read_at(request, 0, 256 * (1 + i));
}

/* The end, and beyond. */
static void last_reads(struct request *request, unsigned int i)
{
	read_at(request, fake.size_bytes - SMALL + (i % 3) * SMALL, SMALL);
}

/* Each kind of them once, some of it refused or failed. */
static unsigned int one_round(void)
{
	static const int64_t results[] = {FAKE_TRUE_RESULT, -EDQUOT, -EFBIG,
					  -ENOSPC,	    -EIO,    SMALL / 2};
	unsigned int i;

	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		run(stream, results[i]);
		run(in_pieces, results[i]);
	}
	run(scattered, FAKE_TRUE_RESULT);
	run(short_reads, FAKE_TRUE_RESULT);
	run(short_reads, -EIO);
	run(last_reads, FAKE_TRUE_RESULT);
	rig.obj->object_span = 256;
	run(long_reads, FAKE_TRUE_RESULT);
	rig.obj->object_span = RIG_OBJECT;
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_FULL;
	run(stream, FAKE_TRUE_RESULT);
	rig.exp.keys.tuning.stable_write = CASYNC_STABLE_DATA;
	return (2 * i + 6) * AT_ONCE;
}

static unsigned long resident_kib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	(void)fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

TEST_WITH(nothing_grows, up, down)
{
	unsigned long kib[2];
	uint64_t bytes[2];
	unsigned int count = 0;

	while (count < FIRST)
		count += one_round();
	kib[0] = resident_kib();
	bytes[0] = pool_free_bytes(rig.exp.pool);
	while (count < LAST)
		count += one_round();
	kib[1] = resident_kib();
	bytes[1] = pool_free_bytes(rig.exp.pool);
	print_message("%u requests: %lu KiB resident, %" PRIu64
		      " of the pool; after %u: %lu and %" PRIu64 "\n",
		      count, kib[1], bytes[1], FIRST, kib[0], bytes[0]);
	/* Not to the byte: how many ops there were at once is chance, and so is
	 * how many threads came on demand. */
	assert_true(bytes[1] <= bytes[0] + bytes[0] / 20 + 131072);
	if (RSS_COUNTS)
		assert_true(kib[1] <= kib[0] + kib[0] / 20 + 1024);
	assert_int_equal(pool_in_use(rig.exp.pool), 0);
}
