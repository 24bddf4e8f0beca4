/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Any layout, offset, length and buffers: the parts tile the request, each
 * read within one object, and their slices tile the buffers.
 */
#include "config.h"

#include "fsal.h"

#include "export.h"
#include "ganesha_unit.h"
#include "op.h"
#include "parts.h"
#include "pool.h"
#include "fuzz.h"

#define MAX_IOVS 16
/* More take the fuzzer's time, and show nothing new. */
#define MAX_PARTS 4096

/* With a pool. */
static struct casync_export *exported(void)
{
	static struct casync_export one;
	static bool there;

	if (!there)
		one.pool = casync_pool_new();
	there = true;
	return &one;
}

struct request {
	enum casync_op_kind kind;
	uint64_t span;
	uint64_t offset;
	struct fsal_io_arg arg;
	struct iovec iov[MAX_IOVS];
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A size with so many bits: small ones are as likely as large ones. */
static uint64_t take_size(struct fuzz_input *input, unsigned int most_bits)
{
	uint8_t bits;

	fuzz_take(input, &bits, sizeof(bits));
	bits %= most_bits + 1;
	return bits == 0 ? 0 : fuzz_number(input) >> (64 - bits);
}

static void take_request(struct fuzz_input *input, struct request *request)
{
	struct ceph_file_layout layout = {
		.fl_object_size = (uint32_t)take_size(input, 32),
		.fl_stripe_unit = (uint32_t)take_size(input, 32),
		.fl_stripe_count = (uint32_t)take_size(input, 3),
	};
	/* Buffers lie anywhere, apart from each other; nobody touches them. */
	char *base = (char *)0x100000;
	int i;

	request->span = casync_parts_span(&layout);
	request->kind = take_size(input, 1) ? CASYNC_OP_WRITE : CASYNC_OP_READ;
	request->offset = take_size(input, 63);
	set_buffers(&request->arg, request->iov, take_size(input, 33));
	request->arg.iov_count = (int)take_size(input, 4);
	for (i = 0; i < request->arg.iov_count; i++) {
		request->iov[i].iov_len = take_size(input, 33);
		request->iov[i].iov_base = base;
		base += request->iov[i].iov_len + 16;
	}
}

/* The buffer position of byte `at` of the request. */
static char *buffer_at(const struct request *request, size_t at)
{
	const struct iovec *iov = request->iov;

	while (at >= iov->iov_len) {
		at -= iov->iov_len;
		iov++;
	}
	return (char *)iov->iov_base + at;
}

static void check_slices(const struct request *request,
			 const struct casync_part *part, size_t at)
{
	size_t sliced = 0;
	int i;

	for (i = 0; i < part->io.iovcnt; i++) {
		const struct iovec *iov = &part->io.iov[i];
		char *last = (char *)iov->iov_base + iov->iov_len - 1;

		FUZZ_CHECK(iov->iov_len != 0);
		FUZZ_CHECK(iov->iov_base == buffer_at(request, at + sliced));
		sliced += iov->iov_len;
		FUZZ_CHECK(last == buffer_at(request, at + sliced - 1));
	}
	FUZZ_CHECK(sliced == part->asked_bytes);
}

static void check_tiling(const struct request *request,
			 const struct casync_op *op)
{
	bool cut = op->kind == CASYNC_OP_READ && request->span != 0;
	size_t at = 0;
	unsigned int i;

	FUZZ_CHECK(cut || op->parts.count == 1);
	for (i = 0; i < op->parts.count; i++) {
		const struct casync_part *part = &op->parts.at[i];
		uint64_t begin = request->offset + at;
		uint64_t last = begin + part->asked_bytes - 1;

		FUZZ_CHECK(part->io.off >= 0);
		FUZZ_CHECK((uint64_t)part->io.off == begin);
		FUZZ_CHECK(part->asked_bytes != 0);
		FUZZ_CHECK(part->asked_bytes <= CASYNC_PART_MAX_BYTES);
		if (cut)
			FUZZ_CHECK(begin / request->span ==
				   last / request->span);
		/* No part too many: the next begins at a border. */
		if (cut && i != 0)
			FUZZ_CHECK(begin % request->span == 0);
		check_slices(request, part, at);
		at += part->asked_bytes;
	}
	FUZZ_CHECK(at == op->length_bytes);
}

static void lay_out(const struct request *request, size_t length)
{
	const struct casync_transfer transfer = {
		.fh = (struct Fh *)0x1234,
		.offset = request->offset,
		.length_bytes = length,
		.span = request->span,
		.iov = request->iov,
		.iov_count = (unsigned int)request->arg.iov_count,
		.write = request->kind == CASYNC_OP_WRITE,
	};
	struct casync_op *op = casync_pool_get(exported()->pool);

	op->exp = exported();
	op->kind = request->kind;
	op->length_bytes = length;
	casync_parts_lay_out(&op->parts, op->exp->pool, &transfer);
	check_tiling(request, op);
	casync_pool_put(op->exp->pool, op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct request request;
	uint64_t buffers = 0;
	size_t length;
	int i;

	memset(&request, 0, sizeof(request));
	take_request(&input, &request);
	for (i = 0; i < request.arg.iov_count; i++)
		buffers += request.iov[i].iov_len;
	length = casync_parts_length(&request.arg);
	FUZZ_CHECK(length ==
		   smaller(smaller(buffers,
				   casync_ganesha_asked_bytes(&request.arg)),
			   CASYNC_PART_MAX_BYTES));

	/* rw.c answers these itself. */
	if (length == 0 || request.offset > INT64_MAX - length)
		return 0;
	if (request.span != 0 && length / request.span >= MAX_PARTS)
		return -1;
	lay_out(&request, length);
	return 0;
}
