/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "fsal.h"

#include "export.h"
#include "ganesha_unit.h"
#include "op.h"
#include "parts.h"
#include "pool.h"
#include "pool_look.h"
#include "submit.h"

#define KIB 1024UL
#define MIB (1024UL * KIB)
#define MAX_IOVS 8
#define MAX_PARTS 8

struct span_case {
	const char *name;
	uint32_t stripe_unit;
	uint32_t stripe_count;
	uint32_t object_size;
	uint64_t span;
};

static const struct span_case span_cases[] = {
	{"span_of_default_layout_is_object", 4 * MIB, 1, 4 * MIB, 4 * MIB},
	{"span_of_small_units_in_one_object_is_object", 64 * KIB, 1, 4 * MIB,
	 4 * MIB},
	{"span_of_striped_file_is_stripe_unit", 64 * KIB, 4, 4 * MIB, 64 * KIB},
	{"span_of_stripes_of_whole_objects_is_object", 4 * MIB, 3, 4 * MIB,
	 4 * MIB},
	{"span_of_unset_stripe_count_is_object", 0, 0, 4 * MIB, 4 * MIB},
	{"span_of_unknown_layout_is_none", 0, 0, 0, 0},
};

TEST_ROWS(check_span, span_cases, NULL, NULL)
{
	const struct span_case *c = *state;
	struct ceph_file_layout layout = {
		.fl_stripe_unit = c->stripe_unit,
		.fl_stripe_count = c->stripe_count,
		.fl_object_size = c->object_size,
	};

	assert_int_equal(casync_parts_span(&layout), c->span);
}

struct length_case {
	const char *name;
	size_t request;
	size_t iov_lens[MAX_IOVS]; /* to the first 0 ... */
	int iov_count;		   /* ... unless said */
	size_t length;
};

static const struct length_case length_cases[] = {
	{"length_is_what_was_asked", 4096, {4096}, 1, 4096},
	{"length_of_trimmed_write_is_request", 4096, {4096, 4096}, 2, 4096},
	{"length_is_at_most_the_buffers", 8192, {4096, 100}, 2, 4196},
	{"length_without_buffers_is_none", 4096, {0}, 0, 0},
	{"length_of_nothing_asked_is_none", 0, {4096}, 1, 0},
	{"length_passes_over_empty_buffers", 4096, {0, 4096}, 2, 4096},
	{"length_at_limit_is_kept", 1U << 30, {1U << 30}, 1, 1U << 30},
	{"length_past_limit_is_clamped",
	 (1UL << 30) + 1,
	 {1UL << 30, 1},
	 2,
	 1U << 30},
	{"length_past_int_is_clamped", 1UL << 33, {1UL << 33}, 1, 1U << 30},
};

TEST_ROWS(check_length, length_cases, NULL, NULL)
{
	const struct length_case *c = *state;
	struct {
		struct fsal_io_arg arg;
		struct iovec iov[MAX_IOVS];
	} io = {.arg.iov_count = c->iov_count};
	size_t bytes = 0;
	int i;

	for (i = 0; i < c->iov_count; i++) {
		io.iov[i].iov_len = c->iov_lens[i];
		bytes += c->iov_lens[i];
	}
	if (!HAS_OWN_REPLY && c->request < bytes)
		skip();
	set_buffers(&io.arg, io.iov, c->request);
	assert_int_equal(casync_parts_length(&io.arg), c->length);
	assert_true(CASYNC_PART_MAX_BYTES <= INT32_MAX);
}

/* Used again from test to test, as from request to request. */
static struct casync_export exp;
#define pool (exp.pool)

/* One op, and what its parts are to transfer. */
struct bench {
	struct casync_transfer transfer;
	struct fsal_io_arg arg;
	struct iovec iov[MAX_IOVS];
	struct casync_op *op;
	uint8_t *base; /* where the buffers begin; never touched */
};

/* Does the request end inside the buffers, where Ganesha never asks that? */
static bool is_trimmed(size_t request, const size_t *iov_lens)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < MAX_IOVS && iov_lens[i] != SIZE_MAX; i++)
		bytes += iov_lens[i];
	return !HAS_OWN_REPLY && request < bytes;
}

static void prepare(struct bench *bench, enum casync_op_kind kind,
		    uint64_t span, uint64_t offset, size_t request,
		    const size_t *iov_lens)
{
	size_t gap = 0;
	int i;

	memset(bench, 0, sizeof(*bench));
	bench->op = casync_pool_get(pool);
	bench->op->exp = &exp;
	bench->base = (uint8_t *)0x100000;
	set_buffers(&bench->arg, bench->iov, request);
	for (i = 0; i < MAX_IOVS && iov_lens[i] != SIZE_MAX; i++) {
		bench->iov[i].iov_base = bench->base + gap;
		bench->iov[i].iov_len = iov_lens[i];
		/* Not adjoining, so that a slice cannot span two. */
		gap += iov_lens[i] + 16;
	}
	bench->arg.iov_count = i;
	bench->op->kind = kind;
	bench->op->offset = offset;
	bench->op->length_bytes = casync_parts_length(&bench->arg);
	bench->transfer = (struct casync_transfer){
		.fh = (struct Fh *)0x1234,
		.offset = offset,
		.length_bytes = bench->op->length_bytes,
		.span = span,
		.iov = bench->iov,
		.iov_count = (unsigned int)i,
		.write = kind == CASYNC_OP_WRITE,
	};
	casync_parts_lay_out(&bench->op->parts, pool, &bench->transfer);
}

static void clean_up(struct bench *bench)
{
	casync_pool_put(pool, bench->op);
}

/* The buffer position of byte `at` of the request. */
static uint8_t *buffer_at(const struct bench *bench, size_t at)
{
	const struct iovec *iov = bench->iov;

	while (at >= iov->iov_len) {
		at -= iov->iov_len;
		iov++;
	}
	return (uint8_t *)iov->iov_base + at;
}

/* What holds for any layout: parts tile the request, slices its buffers. */
static void check_tiling(const struct bench *bench, uint64_t span)
{
	const struct casync_op *op = bench->op;
	size_t at = 0;
	unsigned int i;
	int v;

	for (i = 0; i < op->parts.count; i++) {
		const struct casync_part *part = &op->parts.at[i];
		size_t sliced = 0;

		assert_ptr_equal(part->io.fh, bench->transfer.fh);
		assert_false(part->armed);
		assert_int_equal(part->io.off, op->offset + at);
		assert_true(part->asked_bytes > 0);
		if (span != 0 && op->kind == CASYNC_OP_READ)
			assert_int_equal((uint64_t)part->io.off / span,
					 ((uint64_t)part->io.off +
					  part->asked_bytes - 1) /
						 span);
		for (v = 0; v < part->io.iovcnt; v++) {
			const struct iovec *iov = &part->io.iov[v];

			assert_true(iov->iov_len > 0);
			assert_ptr_equal(iov->iov_base,
					 buffer_at(bench, at + sliced));
			assert_ptr_equal(
				(uint8_t *)iov->iov_base + iov->iov_len - 1,
				buffer_at(bench,
					  at + sliced + iov->iov_len - 1));
			sliced += iov->iov_len;
		}
		assert_int_equal(sliced, part->asked_bytes);
		at += sliced;
	}
	assert_int_equal(at, op->length_bytes);
}

#define END SIZE_MAX

struct cut_case {
	const char *name;
	uint64_t span;
	uint64_t offset;
	size_t request;
	size_t iov_lens[MAX_IOVS]; /* END after the last */
	unsigned int count;
	size_t part_bytes[MAX_PARTS];
};

static const struct cut_case cut_cases[] = {
	{"read_within_object_is_one_part",
	 4 * MIB,
	 4096,
	 8192,
	 {8192, END},
	 1,
	 {8192}},
	{"read_of_whole_object_is_one_part",
	 64 * KIB,
	 64 * KIB,
	 64 * KIB,
	 {64 * KIB, END},
	 1,
	 {64 * KIB}},
	{"read_to_boundary_is_one_part",
	 64 * KIB,
	 60 * KIB,
	 4096,
	 {4096, END},
	 1,
	 {4096}},
	{"read_from_boundary_is_one_part",
	 64 * KIB,
	 128 * KIB,
	 4096,
	 {4096, END},
	 1,
	 {4096}},
	{"read_one_byte_past_boundary_is_two_parts",
	 64 * KIB,
	 60 * KIB,
	 4097,
	 {4097, END},
	 2,
	 {4096, 1}},
	{"read_one_byte_before_boundary_is_two_parts",
	 64 * KIB,
	 64 * KIB - 1,
	 4096,
	 {4096, END},
	 2,
	 {1, 4095}},
	{"read_of_many_objects_is_cut_at_each",
	 64 * KIB,
	 32 * KIB,
	 192 * KIB,
	 {192 * KIB, END},
	 4,
	 {32 * KIB, 64 * KIB, 64 * KIB, 32 * KIB}},
	{"read_cut_inside_buffer_slices_it",
	 64 * KIB,
	 60 * KIB,
	 12288,
	 {6000, 6288, END},
	 2,
	 {4096, 8192}},
	{"read_cut_between_buffers_does_not",
	 64 * KIB,
	 60 * KIB,
	 8192,
	 {4096, 4096, END},
	 2,
	 {4096, 4096}},
	{"read_with_empty_buffers_skips_them",
	 64 * KIB,
	 60 * KIB,
	 8192,
	 {0, 4096, 0, 4096, 0, END},
	 2,
	 {4096, 4096}},
	{"read_shorter_than_buffers_is_trimmed",
	 64 * KIB,
	 60 * KIB,
	 5000,
	 {4000, 4000, END},
	 2,
	 {4096, 904}},
	{"read_of_odd_span_is_cut_at_its_multiples",
	 1000,
	 2500,
	 1600,
	 {1600, END},
	 3,
	 {500, 1000, 100}},
	{"read_of_unknown_layout_is_one_part",
	 0,
	 60 * KIB,
	 192 * KIB,
	 {192 * KIB, END},
	 1,
	 {192 * KIB}},
	{"read_at_last_offset_is_cut_without_overflow",
	 4 * MIB,
	 INT64_MAX - 4 * MIB,
	 4 * MIB,
	 {4 * MIB, END},
	 2,
	 {1, 4 * MIB - 1}},
	{"read_of_one_byte_is_one_part",
	 64 * KIB,
	 64 * KIB - 1,
	 1,
	 {1, END},
	 1,
	 {1}},
};

TEST_ROWS(check_cut, cut_cases, NULL, NULL)
{
	const struct cut_case *c = *state;
	struct bench bench;
	unsigned int i;

	if (is_trimmed(c->request, c->iov_lens))
		skip();
	prepare(&bench, CASYNC_OP_READ, c->span, c->offset, c->request,
		c->iov_lens);
	assert_int_equal(bench.op->parts.count, c->count);
	for (i = 0; i < c->count; i++) {
		assert_int_equal(bench.op->parts.at[i].asked_bytes,
				 c->part_bytes[i]);
		assert_false(bench.op->parts.at[i].io.write);
		assert_false(bench.op->parts.at[i].io.fsync);
		assert_true(bench.op->parts.at[i].io.syncdataonly);
	}
	check_tiling(&bench, c->span);
	clean_up(&bench);
}

/* Every offset around a boundary, every length up to three objects. */
TEST(parts_tile_every_small_request)
{
	static const size_t lens[] = {3, 0, 7, 5, 40, END};
	uint64_t span, offset;
	size_t request;

	for (span = 0; span <= 12; span++) {
		for (offset = 0; offset <= 2 * span + 1; offset++) {
			for (request = 1; request <= 36; request++) {
				struct bench bench;

				prepare(&bench, CASYNC_OP_READ, span, offset,
					request, lens);
				check_tiling(&bench, span);
				clean_up(&bench);
			}
		}
	}
}

TEST(write_over_objects_stays_whole)
{
	static const size_t lens[] = {100 * KIB, 100 * KIB, END};
	struct bench bench;

	prepare(&bench, CASYNC_OP_WRITE, 64 * KIB, 60 * KIB, 200 * KIB, lens);
	assert_int_equal(bench.op->parts.count, 1);
	assert_true(bench.op->parts.at[0].io.write);
	assert_int_equal(bench.op->parts.at[0].io.iovcnt, 2);
	check_tiling(&bench, 64 * KIB);
	clean_up(&bench);
}

/* Ganesha clamps io_request to MaxWrite and leaves the buffers as they are. */
TEST(trimmed_write_ends_inside_its_buffers)
{
	static const size_t lens[] = {1000, 1000, 1000, END};
	struct bench bench;

	if (is_trimmed(1500, lens))
		skip();
	prepare(&bench, CASYNC_OP_WRITE, 64 * KIB, 0, 1500, lens);
	assert_int_equal(bench.op->parts.at[0].asked_bytes, 1500);
	assert_int_equal(bench.op->parts.at[0].io.iovcnt, 2);
	assert_int_equal(bench.op->parts.at[0].io.iov[1].iov_len, 500);
	/* The caller's own are not touched. */
	assert_int_equal(bench.iov[1].iov_len, 1000);
	check_tiling(&bench, 0);
	clean_up(&bench);
}

TEST(huge_request_is_clamped_to_what_an_int_holds)
{
	static const size_t lens[] = {3UL << 30, END};
	struct bench bench;

	prepare(&bench, CASYNC_OP_WRITE, 0, 0, 3UL << 30, lens);
	assert_int_equal(bench.op->parts.count, 1);
	assert_int_equal(bench.op->parts.at[0].asked_bytes,
			 CASYNC_PART_MAX_BYTES);
	check_tiling(&bench, 0);
	clean_up(&bench);
}

/* Issue 1323: fsync without syncdataonly can abort the process. */
TEST(fsync_always_goes_with_syncdataonly)
{
	static const size_t lens[] = {4096, END};
	int kind, fsync;

	for (kind = CASYNC_OP_READ; kind <= CASYNC_OP_WRITE; kind++) {
		for (fsync = 0; fsync <= 1; fsync++) {
			struct bench bench;

			prepare(&bench, (enum casync_op_kind)kind, 0, 0, 4096,
				lens);
			bench.transfer.fsync = fsync;
			casync_parts_lay_out(&bench.op->parts, pool,
					     &bench.transfer);
			assert_true(bench.op->parts.at[0].io.syncdataonly);
			assert_int_equal(bench.op->parts.at[0].io.fsync,
					 fsync && kind == CASYNC_OP_WRITE);
			clean_up(&bench);
		}
	}
}

static int pool_up(void **state)
{
	pool = casync_pool_new();
	return 0;
}

static int pool_down(void **state)
{
	assert_int_equal(pool_in_use(pool), 0);
	casync_pool_free(pool);
	return 0;
}

TEST_FIXTURE(pool_up, pool_down)
