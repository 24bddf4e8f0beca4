/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file parts.h
 * @brief Cuts a request into the parts that libcephfs gets.
 *
 * A read is cut at the borders of RADOS objects.  For a read over several
 * objects, libcephfs drops the error of an object and returns zeros with
 * success.  For a read within one object it reports the error.  A write is not
 * cut.
 */
#ifndef CASYNC_PARTS_H
#define CASYNC_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <cephfs/libcephfs.h>

struct casync_op;
struct casync_pool;
struct fsal_io_arg;

/**
 * Most bytes in one call: libcephfs returns an int and clamps to INT_MAX.  A
 * shorter result is legal for NFS; Ganesha's own limit is 64 MiB.
 */
#define CASYNC_PART_MAX_BYTES (1U << 30)

/** The transfer of one call of libcephfs.  A read's part is in one object. */
struct casync_part {
	struct ceph_ll_io_info io; /**< First member: the callback gets it. */
	struct casync_op *op; /**< Whose part it is, once it is submitted. */
	size_t asked_bytes;
	int64_t result; /**< Of the first completion; libcephfs writes to
			     io.result. */
	bool armed;	/**< Atomic: submitted, not completed. */
};

/** Parts of a read with more than CASYNC_OP_PARTS parts; pool.c's. */
struct casync_part_array {
	struct casync_part_array *next; /**< While it is free. */
	unsigned int size;		/**< 2^size parts. */
	struct casync_part parts[];
};

/** Enough for a read over one object border, and for a write that is submitted
 * again alone (gather.h).  Longer reads use an array of the pool. */
#define CASYNC_OP_PARTS 2

/** Ganesha has one buffer for a request of up to 1 MiB; each cut adds one. */
#define CASYNC_OP_IOVS 4

/** The parts of a request, and their memory; embedded in the op. */
struct casync_parts {
	struct casync_part_array *array; /**< Of the pool, or NULL. */
	struct casync_part *at;		 /**< In `array` or `own`. */
	unsigned int count;
	unsigned int room;
	unsigned int iovs_room;
	struct iovec *iovs; /**< Slices of the request's buffers. */
	struct casync_part own[CASYNC_OP_PARTS];
	struct iovec own_iovs[CASYNC_OP_IOVS];
};

/** The transfer of all parts together. */
struct casync_transfer {
	struct Fh *fh;
	uint64_t offset;
	size_t length_bytes;
	uint64_t span; /**< casync_parts_span(); a write is not cut. */
	const struct iovec *iov; /**< Of at least so many bytes. */
	unsigned int iov_count;
	bool write;
	bool fsync; /**< Writes only. */
};

/**
 * Number of consecutive bytes of a file that are in one object.  Such a run
 * begins at each multiple of this number.
 *
 * @return 0 if the layout does not tell; then reads are not cut.
 */
uint64_t casync_parts_span(const struct ceph_file_layout *layout);

/**
 * Bytes of a request that are passed on.  It is the least of: the bytes asked
 * for, the length of the buffers (a clamped WRITE comes with longer ones), and
 * CASYNC_PART_MAX_BYTES.
 */
size_t casync_parts_length(const struct fsal_io_arg *arg);

/**
 * Fill in the parts of a request.
 *
 * @param[in] pool  Of the export: gives memory for many parts.
 */
void casync_parts_lay_out(struct casync_parts *parts, struct casync_pool *pool,
			  const struct casync_transfer *transfer);

#endif /* CASYNC_PARTS_H */
