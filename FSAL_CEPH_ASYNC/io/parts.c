/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "ganesha.h"
#include "parts.h"
#include "pool.h"

uint64_t casync_parts_span(const struct ceph_file_layout *layout)
{
	/* With a stripe count of 1, consecutive stripe units are in one
	 * object. */
	return layout->fl_stripe_count <= 1 ? layout->fl_object_size
					    : layout->fl_stripe_unit;
}

size_t casync_parts_length(const struct fsal_io_arg *arg)
{
	size_t length_bytes = 0;
	int i;

	for (i = 0; i < arg->iov_count; i++)
		length_bytes += arg->iov[i].iov_len;
	if (length_bytes > casync_ganesha_asked_bytes(arg))
		length_bytes = casync_ganesha_asked_bytes(arg);
	if (length_bytes > CASYNC_PART_MAX_BYTES)
		length_bytes = CASYNC_PART_MAX_BYTES;
	return length_bytes;
}

/* A position in the caller's buffers. */
struct cursor {
	const struct iovec *iov;
	size_t done_bytes; /* of iov[0] */
};

/* Slice off the next `length` bytes.  Returns the number of iovecs written. */
static int parts_slice(struct cursor *from, size_t length, struct iovec *to)
{
	int count = 0;

	while (length != 0) {
		/* The iovecs have as many bytes as the op, a fill's too.
		 * NOLINTNEXTLINE(*.ArrayBound): so it is not left */
		size_t left = from->iov->iov_len - from->done_bytes;
		size_t take = left < length ? left : length;

		if (take != 0) {
			to[count].iov_base =
				(char *)from->iov->iov_base + from->done_bytes;
			to[count].iov_len = take;
			count++;
		}
		length -= take;
		from->done_bytes += take;
		if (from->done_bytes == from->iov->iov_len) {
			from->iov++;
			from->done_bytes = 0;
		}
	}
	return count;
}

static unsigned int parts_count(const struct casync_transfer *transfer,
				uint64_t span)
{
	uint64_t last = transfer->offset + transfer->length_bytes - 1;

	if (span == 0)
		return 1;
	return (unsigned int)(last / span - transfer->offset / span + 1);
}

static void parts_init_part(struct casync_part *part,
			    const struct casync_transfer *transfer,
			    uint64_t offset, size_t length_bytes)
{
	part->asked_bytes = length_bytes;
	part->result = 0;
	part->io.fh = transfer->fh;
	part->io.off = (int64_t)offset;
	part->io.write = transfer->write;
	part->io.fsync = transfer->write && transfer->fsync;
	/* Never a full fsync on this path: it can abort the process
	 * (nfs-ganesha issue 1323) and costs an MDS journal event. */
	part->io.syncdataonly = true;
}

void casync_parts_lay_out(struct casync_parts *parts, struct casync_pool *pool,
			  const struct casync_transfer *transfer)
{
	uint64_t span = transfer->write ? 0 : transfer->span;
	uint64_t offset = transfer->offset;
	size_t left = transfer->length_bytes;
	struct cursor cursor = {.iov = transfer->iov};
	struct iovec *iov;
	unsigned int i;

	parts->count = parts_count(transfer, span);
	/* Each cut adds at most one iovec. */
	casync_pool_make_room(pool, parts, parts->count,
			      transfer->iov_count + parts->count);

	iov = parts->iovs;
	for (i = 0; i < parts->count; i++) {
		struct casync_part *part = &parts->at[i];
		size_t length = left;

		if (span != 0 && span - offset % span < length)
			length = span - offset % span;
		parts_init_part(part, transfer, offset, length);
		part->io.iov = iov;
		part->io.iovcnt = parts_slice(&cursor, length, iov);
		iov += part->io.iovcnt;
		offset += length;
		left -= length;
	}
}
